//! Rendering: any bytes, and damaged pictures of every format.
//!
//! The input chooses the transform options; the remainder is a file, or a picture generated from it, encoded in a
//! format, with some bytes changed. No panic, in this project or in a library; the output is an upright picture of the
//! decided format and size; no output follows a cancellation. The header read from the start of a file equals the one
//! read from all of it.

use images::{
    Error, Fit, Format, OutputFormat, PlanOutcome, Source, TransformOptions, plan, read_source,
    read_source_of_start, render,
};

use crate::choice_sequence::ChoiceSequence;
use crate::synthetic_photo::{Encoding, SamplingFactor, SyntheticPhoto, Tables};

/// Pixel limit: larger pictures are skipped, to run many inputs.
const PIXELS_MAX: u64 = 1 << 14;

/// Checks the property.
pub fn run(input: &[u8]) {
    let mut choices = ChoiceSequence::new(input);
    let wish = transform(&mut choices);
    if choices.below(4) == 0 {
        any_file(choices.remaining(), &wish);
    } else {
        any_file(&corrupt_file(&mut choices), &wish);
    }
}

fn transform(choices: &mut ChoiceSequence<'_>) -> TransformOptions {
    let side = |choices: &mut ChoiceSequence<'_>| match choices.below(3) {
        0 => None,
        1 => Some(1 + choices.below(100) as u32),
        _ => Some(1 + u32::from(choices.pair())),
    };
    TransformOptions {
        format: match choices.below(32) {
            // The AVIF encoder takes as long as all the others together.
            0 => OutputFormat::Format(Format::Avif),
            1..=7 => OutputFormat::Format(Format::Jpeg),
            8..=13 => OutputFormat::Format(Format::Png),
            14..=20 => OutputFormat::Format(Format::WebP),
            21..=27 => OutputFormat::Format(Format::Gif),
            _ => OutputFormat::Original,
        },
        width: side(choices),
        height: side(choices),
        quality: (choices.below(2) == 0).then(|| 1 + choices.below(100) as u8),
        fit: choices.one_of(&[Fit::Contain, Fit::Cover, Fit::Fill]),
    }
}

/// Generates a picture in one of the formats, with some bytes changed or the end truncated.
fn corrupt_file(choices: &mut ChoiceSequence<'_>) -> Vec<u8> {
    let sides = (1 + choices.below(48) as u16, 1 + choices.below(48) as u16);
    let encoding = Encoding {
        sampling: choices.one_of(&[SamplingFactor::R_4_4_4, SamplingFactor::R_4_2_0]),
        is_grey: choices.below(5) == 0,
        progressive: choices.one_of(&[None, Some(4)]),
        restart_interval: choices.one_of(&[0, 2]),
        quality: 80,
        tables: Tables::Usual,
    };
    let jpeg = SyntheticPhoto::new(choices.number() >> 8, sides.0, sides.1).jpeg(&encoding);
    let format = choices.one_of(&[Format::Jpeg, Format::Png, Format::WebP, Format::Gif]);
    let mut file = if format == Format::Jpeg {
        jpeg
    } else {
        let wish = TransformOptions {
            format: OutputFormat::Format(format),
            ..TransformOptions::default()
        };
        let source = read_source(Format::Jpeg, &jpeg).expect("a whole file");
        let Ok(PlanOutcome::Transform(plan)) = plan(&source, &wish) else {
            panic!("nothing is planned")
        };
        render(&jpeg, &source, &plan, &|| false).expect("a whole file")
    };
    for _ in 0..choices.below(6) {
        let at = choices.below(file.len().min(1 << 16));
        for (old, new) in file.iter_mut().skip(at).zip(choices.short_bytes().iter().take(8)) {
            *old = *new;
        }
    }
    if choices.below(4) == 0 {
        file.truncate(usize::from(choices.pair()));
    }
    file
}

fn any_file(file: &[u8], wish: &TransformOptions) {
    let Some(format) = Format::detect(file) else { return };
    let source = read_source(format, file);
    for part in 1..8 {
        if let Some(early) = read_source_of_start(format, &file[..file.len() * part / 8]) {
            let whole = source.clone().ok().map(|whole| match early.has_complete_cost() {
                true => whole,
                false => Source { scanned_samples: None, ..whole },
            });
            assert_eq!(Some(early), whole, "by {part} eighths of the file");
        }
    }
    let Ok(source) = source else { return };
    assert_eq!(source.format, format);
    let Ok(PlanOutcome::Transform(plan)) = plan(&source, wish) else { return };
    if source.pixels() * u64::from(source.frames) > PIXELS_MAX {
        return;
    }
    assert!(render(file, &source, &plan, &|| true).is_err());
    match render(file, &source, &plan, &|| false) {
        Ok(made) => {
            assert_eq!(Format::detect(&made), Some(plan.format));
            let Source { sides, orientation, .. } = read_source(plan.format, &made).expect("ours");
            assert_eq!((sides, orientation), (plan.sides, Default::default()));
        }
        Err(Error::Undecodable(_) | Error::TooLarge(_)) => {}
        Err(error @ (Error::Cancelled | Error::Failed(_))) => panic!("{error} for {plan:?}"),
    }
}
