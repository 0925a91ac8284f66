//! JPEG files of any encoder options compared with `djpeg` of libjpeg-turbo: the picture is the same at every size,
//! with every decoder and scale.
//!
//! Options come from a seed: sampling factors, scan scripts, restart intervals, progressive, grey, RGB. `TRUG_SEED=N`
//! runs the files of one seed.

use fuzz::choice_sequence::ChoiceSequence;
use fuzz::synthetic_photo::SyntheticPhoto;
use image::RgbImage;
use image::imageops::{self, FilterType};
use images::{Format, OutputFormat, PlanOutcome, TransformOptions, plan, read_source, render};
use tests::pictures::{cjpeg, djpeg};

/// Maximum mean difference to `djpeg`, of 255, at the full size. Measured: up to 0.39.
const FULL_SIZE_MAX: f64 = 0.5;
/// Maximum mean difference at reduced sizes, to the picture of `djpeg` resized by Lanczos: a scaled decoder keeps the
/// lowest frequencies of a block as they are. Measured: up to 4.5, where chroma has a quarter of the samples in one
/// direction; a picture of other blocks is beyond 30.
const REDUCED_MAX: f64 = 5.0;

/// Seeds of everyday runs.
const SEEDS: std::ops::Range<u64> = 1..81;

/// Ratio of source width to requested width where the scale changes: 1/8, 1/4, 3/8, 1/2, full size.
const BOUNDARIES: [f64; 4] = [9.0, 5.0, 11.0 / 3.0, 3.0];

fn rendered(file: &[u8], width: Option<u32>) -> Result<RgbImage, String> {
    let wish = TransformOptions {
        format: OutputFormat::Format(Format::Png),
        width,
        ..TransformOptions::default()
    };
    let source = read_source(Format::Jpeg, file).map_err(|error| error.to_string())?;
    let Ok(PlanOutcome::Transform(plan)) = plan(&source, &wish) else { panic!("nothing to do") };
    let made = render(file, &source, &plan, &|| false).map_err(|error| error.to_string())?;
    Ok(image::load_from_memory(&made).unwrap().to_rgb8())
}

fn mean_difference(ours: &RgbImage, full: &RgbImage) -> f64 {
    let (width, height) = ours.dimensions();
    let same_size = imageops::resize(full, width, height, FilterType::Lanczos3);
    let theirs = if ours.dimensions() == full.dimensions() { full } else { &same_size };
    let sum: u64 = ours.iter().zip(theirs.iter()).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    sum as f64 / ours.len() as f64
}

/// Compares the full size, and the widths just above and just below each change of the scale. Returns the largest
/// differences, at the full size and at others.
fn compare(file: &[u8], what: &str) -> (f64, f64) {
    let full = djpeg(file).unwrap();
    let at = |width| {
        let ours = rendered(file, width).unwrap_or_else(|error| panic!("{what}: {error}"));
        if width.is_none() {
            assert_eq!(ours.dimensions(), full.dimensions(), "{what}");
        }
        mean_difference(&ours, &full)
    };
    let far = at(None);
    assert!(far <= FULL_SIZE_MAX, "{far:.2} at the full size: {what}");
    let mut far_reduced: f64 = 0.0;
    for boundary in BOUNDARIES {
        let below = (f64::from(full.width()) / boundary).floor().max(1.0) as u32;
        for width in [below, below + 1] {
            let far = at(Some(width));
            assert!(far <= REDUCED_MAX, "{far:.2} at width {width}: {what}");
            far_reduced = far_reduced.max(far);
        }
    }
    (far, far_reduced)
}

/// Returns the arguments of `cjpeg`, and a scan script.
fn options(choices: &mut ChoiceSequence<'_>) -> (Vec<String>, Option<&'static str>) {
    let mut arguments = vec!["-quality".to_owned(), (60 + choices.below(36)).to_string()];
    let is_grey = choices.below(8) == 0;
    if is_grey {
        arguments.push("-grayscale".to_owned());
    } else if choices.below(8) == 0 {
        arguments.push("-rgb".to_owned());
    }
    let sampling = match choices.below(3) {
        0 => choices.one_of(&["1x1", "2x1", "1x2", "2x2", "4x1", "1x4", "4x2"]).to_owned(),
        1 => choices.one_of(&["3x1", "1x3", "3x3", "3x2", "1x1,2x1,2x1", "1x1,2x2,1x1"]).to_owned(),
        _ => {
            let factor = |choices: &mut ChoiceSequence<'_>| 1 + choices.below(4);
            let pair = |choices: &mut ChoiceSequence<'_>| {
                format!("{}x{}", factor(choices), factor(choices))
            };
            [pair(choices), pair(choices), pair(choices)].join(",")
        }
    };
    arguments.extend(["-sample".to_owned(), sampling]);
    let restart = match choices.below(4) {
        0 => Some(format!("{}B", 1 + choices.below(40))),
        1 => Some((1 + choices.below(3)).to_string()),
        _ => None,
    };
    arguments.extend(restart.into_iter().flat_map(|restart| ["-restart".to_owned(), restart]));
    let script = match choices.below(6) {
        0 | 1 if !is_grey => Some(choices.one_of(&[
            "0;\n1;\n2;\n",
            "2;\n0;\n1;\n",
            "0,1;\n2;\n",
            "0;\n1,2;\n",
            "0,1,2: 0-0, 0, 1;\n0: 1-5, 0, 2;\n2: 1-63, 0, 1;\n1: 1-63, 0, 1;\n0: 6-63, 0, 2;\n\
             0: 1-63, 2, 1;\n0,1,2: 0-0, 1, 0;\n2: 1-63, 1, 0;\n1: 1-63, 1, 0;\n0: 1-63, 1, 0;\n",
            "0: 0-0, 0, 0;\n1: 0-0, 0, 0;\n2: 0-0, 0, 0;\n0: 1-63, 0, 0;\n1: 1-63, 0, 0;\n\
             2: 1-63, 0, 0;\n",
            "1,2: 0-0, 0, 0;\n0: 0-0, 0, 0;\n0: 1-2, 0, 0;\n0: 3-63, 0, 0;\n2: 1-63, 0, 0;\n\
             1: 1-63, 0, 0;\n",
        ])),
        2 | 3 => {
            arguments.push("-progressive".to_owned());
            None
        }
        4 => {
            arguments.push("-optimize".to_owned());
            None
        }
        _ => None,
    };
    (arguments, script)
}

#[test]
fn jpeg_of_random_options_agrees_with_libjpeg_turbo() {
    let seed = std::env::var("TRUG_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = seed.map_or(SEEDS, |seed| seed..seed + 1);
    let (mut compared, mut far, mut far_reduced) = (0, 0.0_f64, 0.0_f64);
    for seed in seeds.clone() {
        let mut file = None;
        // cjpeg rejects factors that do not divide each other, and MCUs of more than ten blocks.
        for attempt in 0..20_u64 {
            let bytes = bytes(seed << 8 | attempt);
            let mut choices = ChoiceSequence::new(&bytes);
            let sides = (150 + choices.below(150) as u16, 40 + choices.below(150) as u16);
            let photograph = SyntheticPhoto::new(seed, sides.0, sides.1);
            let (arguments, script) = options(&mut choices);
            if let Ok(made) = cjpeg(&photograph.rgb, sides, &arguments, script) {
                file = Some((made, format!("seed {seed}: {sides:?} {arguments:?} {script:?}")));
                break;
            }
        }
        let Some((file, what)) = file else { continue };
        let found = compare(&file, &what);
        (far, far_reduced) = (far.max(found.0), far_reduced.max(found.1));
        compared += 1;
    }
    println!("{compared} files, at most {far:.2} at the full size and {far_reduced:.2} at others");
    assert!(compared * 10 >= seeds.count() * 9, "cjpeg made {compared} files only");
}

/// Returns bytes from a seed, by a plain recurrence.
fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..64).map(|_| next()).collect()
}

const SCANS_RESTART_7: &[u8] = include_bytes!("../fixtures/jpeg/scans_restart_7.jpg");

#[test]
fn jpeg_that_one_decoder_misread_agrees_with_libjpeg_turbo() {
    for (name, file) in [
        ("a scan for each component, with restarts", SCANS_RESTART_7),
        ("three samples of luma", include_bytes!("../fixtures/jpeg/sampling_3x1.jpg")),
        ("more chroma than luma", include_bytes!("../fixtures/jpeg/chroma_finer.jpg")),
        ("RGB by Adobe's transform 0", include_bytes!("../fixtures/jpeg/adobe0_rgb.jpg")),
        ("JFIF with components R, G, B", include_bytes!("../fixtures/jpeg/ids_rgb_jfif.jpg")),
        ("unknown Adobe transform", include_bytes!("../fixtures/jpeg/adobe_transform_3.jpg")),
        ("no Huffman tables", include_bytes!("../fixtures/jpeg/no_dht.jpg")),
    ] {
        compare(file, name);
    }
    for (name, segment) in [
        ("TEM marker", &b"\xff\x01"[..]),
        ("short Adobe segment", b"\xff\xee\0\x0bAdobe\0\x64\0\0"),
        ("Adobe transform 2 of three components", b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\x02"),
    ] {
        let plain = include_bytes!("../fixtures/jpeg/420.jpg");
        let jfif_end = 4 + usize::from(plain[5]);
        compare(&[&plain[..jfif_end], segment, &plain[jfif_end..]].concat(), name);
        // Without JFIF Adobe's segment decides.
        compare(&[&plain[..2], segment, &plain[jfif_end..]].concat(), name);
    }
}

/// Pillow, ImageMagick, ffmpeg and Chromium show (130, 131, 141) there, with Adobe's segment and without it.
#[test]
fn cmyk_jpeg_without_adobe_segment_is_not_its_negative() {
    let file = include_bytes!("../fixtures/jpeg/cmyk_no_adobe.jpg");
    let adobe = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0";
    let with_adobe = [&file[..2], adobe, &file[2..]].concat();
    for width in [None, Some(96), Some(32)] {
        let seen = rendered(file, width).unwrap();
        let (x, y) = (80 * seen.width() / 160, 60 * seen.height() / 120);
        let pixel = seen.get_pixel(x, y).0;
        let is_near = pixel.iter().zip([130_u8, 131, 141]).all(|(a, b)| a.abs_diff(b) < 12);
        assert!(is_near, "{pixel:?} at {width:?}");
        assert_eq!(rendered(&with_adobe, width).unwrap(), seen, "at {width:?}");
    }
}
