//! Mutation tests of this suite: a sync that does nothing, or a checksum that is not compared, must make one of its
//! checks fail; without a mutation, all pass (the other files of the suite).

use engine::disk::faults::IgnoredSync;
use engine::format::CheckClass;
use engine::format::checksum::mutation::ignoring;

use crate::bit_rot::{Past, flip_every_bit};
use crate::index_loss::flip_in_open_store;
use crate::power_loss::{Survey, survey};
use crate::scenario::Act;

/// Checks power loss with some syncs ignored; fails when the mutation is detected.
fn survives_without(ignored: IgnoredSync) -> Result<(), String> {
    let ignored = [ignored];
    let mut total = Survey::default();
    survey(&[], &ignored, 4, &mut total)?;
    for act in Act::ALL {
        survey(&[act], &ignored, 4, &mut total)?;
    }
    for first in [Act::Checkpoint, Act::PutBig, Act::Fill] {
        for second in [Act::Checkpoint, Act::PutBig, Act::Fill, Act::RollOver] {
            survey(&[first, second, Act::Checkpoint], &ignored, 4, &mut total)?;
        }
    }
    Ok(())
}

fn must_be_noticed(what: &str, checked: Result<(), String>) {
    match checked {
        Ok(()) => panic!("nobody notices that {what} is left out"),
        Err(noticed) => println!("without {what}: {noticed}"),
    }
}

#[test]
fn mutation_missing_data_sync_is_detected() {
    must_be_noticed("every data sync", survives_without(IgnoredSync::DataSync));
    for file in ["STORE", "log/0", "big/00/0"] {
        let ignored = IgnoredSync::SyncOf(file.to_owned());
        must_be_noticed(&format!("the sync of {file}"), survives_without(ignored));
    }
}

#[test]
fn mutation_missing_folder_sync_is_detected() {
    must_be_noticed("every folder sync", survives_without(IgnoredSync::FolderSync));
    for folder in ["log", "big"] {
        let ignored = IgnoredSync::SyncOf(folder.to_owned());
        must_be_noticed(&format!("the sync of the folder {folder}"), survives_without(ignored));
    }
}

/// Checks bit rot with one class of checksums not compared; fails when the mutation is detected.
fn finds_rot_without(class: CheckClass) -> Result<(), String> {
    ignoring(class, || {
        flip_in_open_store()?;
        for past in Past::ALL {
            flip_every_bit(past, 5)?;
        }
        Ok(())
    })
}

#[test]
fn mutation_missing_checksum_is_detected() {
    for class in CheckClass::ALL {
        must_be_noticed(&format!("the checksum {class:?}"), finds_rot_without(class));
    }
}
