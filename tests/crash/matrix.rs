//! The full corruption matrix: every byte flipped, every sector of 512 bytes zeroed, replaced by another sector of the
//! same file, and reverted to earlier content. Each time the store is checked by `fsck --deep`, opened, read.
//!
//! Invariants: no wrong bytes, no object silently missing, no panic, and every cause of a failed read is found by the
//! check. The everyday run takes some of the bytes; the full run takes minutes: `cargo test -p tests --test crash --
//! --ignored matrix --nocapture`.

use std::collections::BTreeSet;

use engine::disk::sim::SimDisk;
use engine::{Error, ObjectName};
use tests::store::World;

use crate::bit_rot::{Noticed, Past, Specimen};
use crate::layout::flip;

const SECTOR: usize = 512;

/// Counts by outcome.
#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    tried: u64,
    /// The check reported damage.
    found: u64,
    /// The check reported a note.
    noted: u64,
    /// A read failed, with an error that names the object.
    failed_reads: u64,
    /// Opening the store reported or repaired it.
    reported_at_open: u64,
    /// Nothing was reported, and everything was as written.
    harmless: u64,
}

impl Outcomes {
    /// Damages a copy, checks it, opens it and reads everything.
    fn examine(&mut self, specimen: &Specimen, damage: &dyn Fn(&SimDisk)) -> Result<(), String> {
        let everything: BTreeSet<ObjectName> = specimen.model().objects.keys().cloned().collect();
        let world = World::on(specimen.fork(), 21);
        damage(&world.disk);
        let (is_clean, says_nothing) = match world.fsck(true) {
            Ok(report) => (report.is_clean(), report.findings.is_empty()),
            Err(Error::NotAStore(_)) => (false, false),
            Err(error) => return Err(format!("the check fails: {error}")),
        };
        let noticed = specimen.examine(&everything, damage)?;
        match noticed {
            Noticed::WhenRead if is_clean => return Err("fsck missed what a read found".into()),
            Noticed::AtOpening if says_nothing => {
                return Err("fsck missed what opening found".into());
            }
            _ => {}
        }
        self.tried += 1;
        self.found += u64::from(!is_clean);
        self.noted += u64::from(is_clean && !says_nothing);
        self.failed_reads += u64::from(noticed == Noticed::WhenRead);
        self.reported_at_open += u64::from(noticed == Noticed::AtOpening);
        self.harmless += u64::from(noticed == Noticed::No && says_nothing);
        Ok(())
    }
}

fn row(past: Past, what: &str, outcomes: &Outcomes) {
    println!(
        "| {past:?} | {what} | {} | {} | {} | {} | {} | {} |",
        outcomes.tried,
        outcomes.found,
        outcomes.noted,
        outcomes.failed_reads,
        outcomes.reported_at_open,
        outcomes.harmless
    );
}

fn flips(past: Past, stride: usize, index_stride: usize) {
    let specimen = Specimen::new(past);
    let mut outcomes = Outcomes::default();
    let index = "index.redb".to_owned();
    for path in specimen.paths().into_iter().chain([index]) {
        let stride = if path.ends_with(".redb") { index_stride } else { stride };
        for offset in (0..specimen.bytes(&path).len()).step_by(stride) {
            let examined = outcomes.examine(&specimen, &|disk| flip(disk, &path, offset));
            examined.unwrap_or_else(|what| panic!("{past:?}, {path} at {offset}: {what}"));
        }
    }
    row(past, "a byte flipped", &outcomes);
    assert!(outcomes.found > 0 && outcomes.failed_reads > 0, "{outcomes:?}");
}

fn sectors(index_stride: usize) {
    let past = Past::Closed;
    let specimen = Specimen::new(past);
    let (mut blank, mut moved, mut older) =
        (Outcomes::default(), Outcomes::default(), Outcomes::default());
    let index = "index.redb".to_owned();
    for path in specimen.paths().into_iter().chain([index]) {
        let bytes = specimen.bytes(&path);
        let earlier = specimen.earlier(&path);
        let stride = if path.ends_with(".redb") { index_stride } else { 1 };
        for start in (0..bytes.len()).step_by(SECTOR * stride) {
            let end = (start + SECTOR).min(bytes.len());
            let examine = |outcomes: &mut Outcomes, what: &str, with: &[u8]| {
                if with == &bytes[start..end] {
                    return;
                }
                let write = |disk: &SimDisk| disk.overwrite(&path, start as u64, with);
                let examined = outcomes.examine(&specimen, &write);
                examined.unwrap_or_else(|why| panic!("{path} from {start} {what}: {why}"));
            };
            examine(&mut blank, "blank", &vec![0; end - start]);
            let other = (start + bytes.len() / 2) / SECTOR * SECTOR % bytes.len();
            if let Some(other) = bytes.get(other..other + end - start) {
                examine(&mut moved, "from elsewhere", other);
            }
            if let Some(earlier) = earlier.get(start..end) {
                examine(&mut older, "as it was earlier", earlier);
            }
        }
    }
    row(past, "a sector blanked", &blank);
    row(past, "a sector from elsewhere", &moved);
    row(past, "a sector from earlier", &older);
    assert!(blank.found > 0 && moved.found > 0 && older.tried > 0, "{older:?}");
}

#[test]
fn byte_flip_matrix_sample_is_detected_or_harmless() {
    for past in [Past::Closed, Past::Killed] {
        flips(past, 61, 50_021);
    }
}

#[test]
fn blank_misplaced_or_stale_sector_is_detected_or_harmless() {
    sectors(211);
}

#[test]
#[ignore = "takes minutes: the whole corruption matrix"]
fn full_matrix_of_bytes_and_sectors() {
    println!(
        "| past | damage | tried | found | noted | failed reads | reported at opening | harmless |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for past in [Past::Closed, Past::Killed] {
        flips(past, 1, 101);
    }
    sectors(7);
}
