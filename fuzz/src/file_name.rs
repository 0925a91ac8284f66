//! File names from clients: sanitizing yields a valid name, which stays valid through every later change.
//!
//! Three properties, for any text as a file name. A sanitized name is a fixed point and a valid key in any folder. A
//! final name is a valid key too and has its extension. A numbered name is a key in the same folder with the same
//! extension, and differs for each number.

use engine::{FolderKey, ObjectKey};
use protocol::file_name::{
    ConflictRule, Naming, file_name, is_random, sanitize, split_extension, with_number,
};
use protocol::limits::FILE_NAME_BYTES_MAX;
use protocol::object_path::{key_in_folder, normalize};

use crate::choice_sequence::ChoiceSequence;

/// A random UUID of version 4.
const UUID: &str = "01234567-89ab-4def-8123-456789abcdef";

/// Checks the property.
pub fn run(input: &[u8]) {
    let mut choices = ChoiceSequence::new(input);
    let number = u32::from(choices.pair());
    let extension = choices.one_of(&[None, Some("png"), Some("txt")]);
    let text = String::from_utf8_lossy(choices.remaining());
    cleaned(&text);
    final_name(&text, extension);
    if let Ok(key) = ObjectKey::parse(&normalize(&text)) {
        check_with_number(&key, number);
    }
}

fn cleaned(text: &str) {
    let Some(name) = sanitize(text) else { return };
    assert_eq!(sanitize(&name).as_deref(), Some(&*name), "sanitizing is idempotent");
    assert!(name.len() <= FILE_NAME_BYTES_MAX);
    assert_eq!(key_of(&name).file_name(), name);
    if let (stem, Some(extension)) = split_extension(&name) {
        assert_eq!(format!("{stem}.{extension}"), name);
    }
}

fn final_name(text: &str, content_extension: Option<&str>) {
    let name_by = |naming| {
        let uuid = || UUID.parse().expect("a valid UUID");
        file_name(naming, Some(text), || content_extension, uuid)
    };
    let (named, random) = (name_by(Naming::ClientName), name_by(Naming::Random));
    assert!(is_random(&random) && random.starts_with(UUID), "{random}");
    for name in [&named, &random] {
        assert_eq!(key_of(name).file_name(), name);
    }
    let extension = sanitize(text).and_then(|name| split_extension(&name).1.map(str::to_owned));
    if let Some(extension) = extension {
        assert_eq!(split_extension(&named).1, Some(&*extension));
        assert_eq!(split_extension(&random).1, Some(&*extension.to_ascii_lowercase()));
    }
}

fn check_with_number(key: &ObjectKey, number: u32) {
    let Some(other) = with_number(key, number) else { return };
    assert_eq!(other.folder(), key.folder());
    assert_ne!(with_number(key, number + 1), Some(other.clone()), "two numbers, one name");
    let (stem, extension) = split_extension(other.file_name());
    assert_eq!(extension, split_extension(key.file_name()).1);
    assert!(stem.ends_with(&format!(" ({number})")), "{other}");

    let is_taken = |candidate: &ObjectKey| Ok::<bool, ()>(candidate == key);
    let suffixed = ConflictRule::Rename.proposal(key, is_taken).ok().flatten();
    assert_eq!(suffixed.map(|proposal| proposal.key), with_number(key, 1));
    let over = ConflictRule::Overwrite.proposal(key, is_taken).ok().flatten();
    assert_eq!(over.map(|proposal| proposal.key).as_ref(), Some(key));
}

fn key_of(name: &str) -> ObjectKey {
    key_in_folder(&FolderKey::root(), name)
        .unwrap_or_else(|refusal| panic!("{name:?}: {refusal:?}"))
}
