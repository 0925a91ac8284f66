//! Time to decode a JPEG of 12 megapixels at an eighth, a quarter and half of its size, compared with a full decode.
//!
//! Expected: at an eighth each code is still read, but one coefficient of 64 is turned into a sample. Reading codes is
//! about a third of a full decode, and one table lookup decodes several of them: 3 to 5 times as fast. At half, 16 of
//! 64 coefficients and samples remain: 1.5 to 2 times. A progressive file at an eighth leaves most scans unread: more
//! than 5 times.
//!
//! The picture is synthetic (`fuzz/src/synthetic_photo.rs`) and has more noise than most: about 3 MB. `--file PATH`
//! uses another. Contestants take turns on one thread; the peer is `zune-jpeg`, which decodes all of it, to YCbCr.

use std::time::Duration;

use benches::arguments::Arguments;
use benches::rounds::{self, Sample};
use benches::table::{self, Table};
use fuzz::synthetic_photo::{Encoding, Full, SyntheticPhoto};
use scaled_jpeg::{DecodeStatus, Limits, Scale, decode};

const SCALES: [Scale; 3] = [Scale::Eighth, Scale::Quarter, Scale::Half];

fn main() {
    let arguments = Arguments::read();
    let (round_count, length) = if arguments.quick { (1, 50) } else { (9, 400) };
    let files = match arguments.value("--file") {
        Some(path) => vec![(path.to_owned(), std::fs::read(path).expect("a file"))],
        None => made_up(),
    };
    let mut table = Table::new(&[
        "file",
        "bytes",
        "1/8, ms",
        "1/4, ms",
        "1/2, ms",
        "whole, ms",
        "whole / 1/8",
        "whole / 1/4",
        "whole / 1/2",
    ]);
    for (label, file) in files {
        let samples = rounds::interleaved(round_count, SCALES.len() + 1, |contestant| {
            let scale = SCALES.get(contestant).copied();
            run(Duration::from_millis(length), &file, scale)
        });
        let ms = samples.iter().map(|samples| table::figure(rounds::cpu_us(samples) / 1e3));
        let whole = &samples[SCALES.len()];
        let ratios = samples.iter().take(SCALES.len()).map(|ours| {
            let (low, high) = rounds::spread(ours, whole);
            format!("{:.2} ({low:.2}-{high:.2})", rounds::ratio(ours, whole))
        });
        let head = [label, table::bytes(file.len() as u64)];
        table.row(head.into_iter().chain(ms).chain(ratios).collect());
    }
    table.print();
}

fn made_up() -> Vec<(String, Vec<u8>)> {
    let photograph = SyntheticPhoto::new(1, 4_000, 3_000);
    let progressive = Encoding { progressive: Some(4), ..Encoding::PLAIN };
    vec![
        ("baseline 4:2:0".to_owned(), photograph.jpeg(&Encoding::PLAIN)),
        ("progressive 4:2:0".to_owned(), photograph.jpeg(&progressive)),
    ]
}

fn run(length: Duration, file: &[u8], scale: Option<Scale>) -> Sample {
    rounds::repeat(length, || match scale {
        Some(scale) => {
            let decoded = decode(file, scale, &Limits::PHOTOGRAPH, &|| false);
            assert_eq!(decoded.expect("a whole file").condition, DecodeStatus::Complete);
        }
        None => assert!(Full::decode(file).is_some(), "a whole file"),
    })
}
