//! Damage in a compacted store: every result is right, or reported as damaged, with the index and without.

use std::ops::Range;

use engine::Error;
use engine::disk::sim::SimDisk;
use engine::format::checksum::mutation::ignoring;
use engine::format::{CheckClass, SEGMENT_HEADER_COPY_BYTES};
use tests::store::{Model, World, compact, name, read};

use crate::compaction::Grown;
use crate::layout::flip;

/// A closed store whose log was compacted.
struct Specimen {
    disk: SimDisk,
    model: Model,
}

/// Outcomes of the damage.
#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    tried: u64,
    reported_at_open: u64,
    reported_by_reads: u64,
    harmless: u64,
}

impl Specimen {
    fn new() -> Self {
        let (grown, store) = Grown::new(&[]).unwrap_or_else(|what| panic!("{what}"));
        let report = compact(&store).unwrap_or_else(|error| panic!("{error}"));
        assert!(report.segments_written > 0);
        store.close().unwrap_or_else(|error| panic!("{error}"));
        Self { disk: grown.world.disk.fork(), model: grown.model }
    }

    fn without_index(&self) -> SimDisk {
        let disk = self.disk.fork();
        engine::disk::Disk::remove(&disk, "index.redb").unwrap_or_else(|error| panic!("{error}"));
        disk
    }

    fn paths(&self) -> Vec<String> {
        self.disk.paths().into_iter().filter(|path| path.starts_with("compacted/")).collect()
    }

    /// Opens a damaged store and reads everything.
    fn examine(&self, disk: &SimDisk, total: &mut Outcomes) -> Result<(), String> {
        total.tried += 1;
        let world = World::on(disk.clone(), 6);
        let (store, report) = world.try_open().map_err(|error| format!("opening: {error}"))?;
        let is_reported = !report.damage.is_empty();
        let mut failed = 0;
        for (name, (bytes, _)) in &self.model.objects {
            match read(&store, name) {
                Ok(Some(found)) if found == *bytes => {}
                Err(Error::Corrupt(corruption)) if corruption.object.as_ref() == Some(name) => {
                    failed += 1;
                }
                // An object reported as lost at opening may be absent, or have its earlier version.
                Ok(_) if is_reported => {}
                Ok(Some(_)) => return Err(format!("{name} has wrong bytes; {report}")),
                Ok(None) => return Err(format!("{name} is gone without a word; {report}")),
                Err(error) => return Err(format!("{name} answers {error}")),
            }
        }
        let facts = store.facts("", None, 1_000).map_err(|error| error.to_string())?;
        if !is_reported && facts != self.model.facts.clone().into_iter().collect::<Vec<_>>() {
            return Err(format!("facts are {facts:?}; {report}"));
        }
        let deleted = store.get(&name("deleted-later")).map_err(|error| error.to_string())?;
        if !is_reported && deleted.is_some() {
            return Err(format!("what was deleted is back; {report}"));
        }
        match (is_reported, failed > 0) {
            (true, _) => total.reported_at_open += 1,
            (false, true) => total.reported_by_reads += 1,
            (false, false) => total.harmless += 1,
        }
        Ok(())
    }
}

/// Flips a bit in every so many-th byte of the compacted segments.
fn flip_compacted(stride: usize) -> Result<Outcomes, String> {
    let specimen = Specimen::new();
    let mut total = Outcomes::default();
    for path in specimen.paths() {
        for offset in (0..specimen.disk.bytes(&path).len()).step_by(stride) {
            let at = |what| format!("{path} at {offset}: {what}");
            for disk in [specimen.disk.fork(), specimen.without_index()] {
                flip(&disk, &path, offset);
                specimen.examine(&disk, &mut total).map_err(at)?;
            }
        }
    }
    Ok(total)
}

#[test]
fn bit_flip_in_compacted_segment_is_reported_or_harmless() {
    let total = flip_compacted(61).unwrap_or_else(|what| panic!("{what}"));
    println!("{total:?}");
    assert!(total.reported_by_reads > 100, "{total:?}");
}

#[test]
#[ignore = "every byte takes minutes: run it by name"]
fn byte_flip_in_compacted_segments_is_reported_or_harmless() {
    println!("{:?}", flip_compacted(1).unwrap_or_else(|what| panic!("{what}")));
}

#[test]
fn truncated_or_missing_compacted_segment_is_reported() {
    let specimen = Specimen::new();
    let mut total = Outcomes::default();
    for path in specimen.paths() {
        let length = specimen.disk.bytes(&path).len() as u64;
        for disk in [specimen.disk.fork(), specimen.without_index()] {
            for cut in [0, 100, 4_096, length / 2, length - 1] {
                let disk = disk.fork();
                let file = engine::disk::Disk::open(&disk, &path);
                file.and_then(|file| file.set_len(cut)).unwrap_or_else(|error| panic!("{error}"));
                specimen.examine(&disk, &mut total).unwrap_or_else(|what| {
                    panic!("{path} cut to {cut}: {what}");
                });
            }
            engine::disk::Disk::remove(&disk, &path).unwrap_or_else(|error| panic!("{error}"));
            specimen
                .examine(&disk, &mut total)
                .unwrap_or_else(|what| panic!("{path} taken away: {what}"));
        }
    }
    // With an index, the last byte of the footer is never missed.
    assert!(total.harmless <= specimen.paths().len() as u64, "{total:?}");
}

/// Flips a bit in each byte of some of a header page's copies, one at a time: the other copy replaces it.
fn flip_copies(bytes: Range<usize>) -> Result<(), String> {
    let specimen = Specimen::new();
    let mut total = Outcomes::default();
    for path in specimen.paths() {
        let copies = bytes.clone().chain(bytes.clone().map(|at| at + SEGMENT_HEADER_COPY_BYTES));
        for offset in copies {
            for disk in [specimen.disk.fork(), specimen.without_index()] {
                flip(&disk, &path, offset);
                specimen
                    .examine(&disk, &mut total)
                    .map_err(|what| format!("{path} at {offset}: {what}"))?;
            }
        }
    }
    match total.harmless == total.tried {
        true => Ok(()),
        false => Err(format!("one copy does not make up for the other: {total:?}")),
    }
}

/// Bytes of the origin in a header copy, with some of the zeros after it.
const ORIGIN: Range<usize> = 104..170;

#[test]
fn one_damaged_header_or_origin_copy_is_harmless() {
    flip_copies(0..ORIGIN.end).unwrap_or_else(|what| panic!("{what}"));
}

#[test]
fn mutation_missing_origin_checksum_is_detected() {
    match ignoring(CheckClass::Header, || flip_copies(ORIGIN)) {
        Ok(()) => panic!("nobody notices that origins are not compared"),
        Err(noticed) => println!("without the checksum of origins: {noticed}"),
    }
}

#[test]
fn mutation_missing_copied_checksum_is_detected() {
    match ignoring(CheckClass::Block, || flip_compacted(61)) {
        Ok(total) => panic!("nobody notices that blocks are not compared: {total:?}"),
        Err(noticed) => println!("without the checksum of blocks: {noticed}"),
    }
}
