//! Image decoders: the input is a file, and every one of its pixels is read.
//!
//! No panic, in this project or in a library. The decoded picture matches its header read alone, and decoding twice
//! gives the same result.

use images::{
    Error, Format, OutputFormat, PlanOutcome, Source, TransformOptions, plan, read_source, render,
};

/// Pixel limit: larger pictures are skipped, to run many inputs.
const PIXELS_MAX: u64 = 1 << 14;

/// Checks the property.
pub fn run(input: &[u8]) {
    let Some(format) = Format::detect(input) else { return };
    let Ok(source) = read_source(format, input) else { return };
    if source.pixels() * u64::from(source.frames) > PIXELS_MAX {
        return;
    }
    // These formats are lossless, keep the alpha channel, and are the cheapest.
    let format = if source.frames > 1 { Format::Gif } else { Format::Png };
    let wish = TransformOptions {
        format: OutputFormat::Format(format),
        width: Some(source.sides.0.max(2) - 1),
        ..TransformOptions::default()
    };
    let Ok(PlanOutcome::Transform(plan)) = plan(&source, &wish) else { return };
    let make = || render(input, &source, &plan, &|| false);
    match make() {
        Ok(made) => {
            let Source { sides, .. } = read_source(plan.format, &made).expect("ours");
            assert_eq!(sides, plan.sides);
            assert!(make().is_ok_and(|again| again == made), "another picture the second time");
        }
        Err(Error::Undecodable(_) | Error::TooLarge(_)) => {}
        Err(error @ (Error::Cancelled | Error::Failed(_))) => panic!("{error} for {plan:?}"),
    }
}
