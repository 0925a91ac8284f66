//! AVIF files, modified box by box.

use fuzz::synthetic_photo::SyntheticPhoto;
use images::{Format, PlanOutcome, plan, read_source, render};

use super::child::to;
use crate::PLAIN;

/// Returns a small valid file.
pub(super) fn small() -> Vec<u8> {
    let jpeg = SyntheticPhoto::new(32, 64, 48).jpeg(&PLAIN);
    let source = read_source(Format::Jpeg, &jpeg).unwrap();
    let Ok(PlanOutcome::Transform(plan)) = plan(&source, &to(Format::Avif, None)) else {
        panic!("a plan")
    };
    render(&jpeg, &source, &plan, &|| false).unwrap()
}

/// Returns the file with this width and height in its container.
pub(super) fn with_sides(file: &[u8], width: u32, height: u32) -> Vec<u8> {
    let mut changed = file.to_vec();
    let at = file.windows(4).position(|name| name == b"ispe").expect("it has sides") + 8;
    changed[at..at + 4].copy_from_slice(&width.to_be_bytes());
    changed[at + 4..at + 8].copy_from_slice(&height.to_be_bytes());
    changed
}

/// Returns the file with nested boxes of a name, after its first box.
pub(super) fn nested(file: &[u8], name: &[u8; 4], depth: usize) -> Vec<u8> {
    let first = u32::from_be_bytes(file[..4].try_into().unwrap()) as usize;
    let mut nested = file[..first].to_vec();
    for level in 0..depth {
        let length = 12 * (depth - level) as u32;
        nested.extend(length.to_be_bytes());
        nested.extend(name);
        nested.extend([0; 4]);
    }
    nested
}
