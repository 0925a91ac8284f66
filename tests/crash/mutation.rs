//! Mutation tests of this suite: a sync that does nothing, or a checksum that is not compared, must make one of its
//! checks fail; without a mutation, all pass (the other files of the suite).

use engine::disk::faults::Ignore;
use engine::format::CheckClass;
use engine::format::checksum::mutation::ignoring;

use crate::bit_rot::{Past, flip_everything};
use crate::index_loss::flip_under_an_open_store;
use crate::power_loss::{Survey, survey};
use crate::scenario::Act;

/// Checks power loss with some syncs ignored; fails when the mutation is detected.
fn survives_without(ignored: Ignore) -> Result<(), String> {
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
fn a_forgotten_data_sync_is_noticed() {
    must_be_noticed("every data sync", survives_without(Ignore::DataSync));
    for file in ["STORE", "log/0", "big/00/0"] {
        let ignored = Ignore::SyncOf(file.to_owned());
        must_be_noticed(&format!("the sync of {file}"), survives_without(ignored));
    }
}

#[test]
fn a_forgotten_folder_sync_is_noticed() {
    must_be_noticed("every folder sync", survives_without(Ignore::FolderSync));
    for folder in ["log", "big"] {
        let ignored = Ignore::SyncOf(folder.to_owned());
        must_be_noticed(&format!("the sync of the folder {folder}"), survives_without(ignored));
    }
}

/// Checks bit rot with one class of checksums not compared; fails when the mutation is detected.
fn finds_rot_without(class: CheckClass) -> Result<(), String> {
    ignoring(class, || {
        flip_under_an_open_store()?;
        for past in Past::ALL {
            flip_everything(past, 5)?;
        }
        Ok(())
    })
}

#[test]
fn a_forgotten_checksum_is_noticed() {
    for class in CheckClass::ALL {
        must_be_noticed(&format!("the checksum {class:?}"), finds_rot_without(class));
    }
}
