//! Tests of blocks, limits and retention.

use engine::ObjectKey;

use super::*;
use crate::event::EventKind;
use crate::tests::{World, account, new_bucket};
use crate::{Account, Plan};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn bucket_of(catalog: &Catalog, owner: &Account, name: &str) -> BucketName {
    catalog.buckets().create(new_bucket(owner, name)).unwrap().name.clone()
}

fn changes(catalog: &Catalog, bucket: &BucketName, files: usize) -> FileChanges {
    let file = |at| ChangedFile {
        kind: EventKind::CreatedByPost,
        key: ObjectKey::parse(&format!("{at}.txt")).unwrap(),
        bytes: Some(1),
    };
    FileChanges {
        at_ms: catalog.now_ms(),
        bucket: bucket.clone(),
        actor: Arc::default(),
        files: (0..files).map(file).collect(),
    }
}

fn add(catalog: &Catalog, bucket: &BucketName, files: usize) {
    catalog.state.file_changes.add(changes(catalog, bucket, files));
}

fn write(catalog: &Catalog, bucket: &BucketName, files: usize) {
    add(catalog, bucket, files);
    catalog.audit().write_file_changes().unwrap();
}

/// Returns the sizes of the stored blocks, and the changes of a bucket.
fn stored(world: &World, catalog: &Catalog, bucket: &BucketName) -> (Vec<usize>, usize) {
    let page = catalog.audit().file_page(Some(bucket.as_str()), |_| true, None, usize::MAX);
    let blocks = world.store.facts(PREFIX, None, 10_000).unwrap();
    (blocks.iter().map(|(_, value)| value.len()).collect(), page.unwrap().entries.len())
}

#[test]
fn small_writes_extend_a_block_and_large_ones_are_split() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "ann", Plan::Free).unwrap();
    let bucket = bucket_of(&catalog, &ann, "photos");
    for _ in 0..100 {
        write(&catalog, &bucket, 1);
    }
    let (sizes, files) = stored(&world, &catalog, &bucket);
    assert_eq!(files, 100);
    assert!((2..=4).contains(&sizes.len()), "{sizes:?}");
    assert!(sizes.iter().all(|bytes| *bytes < FILE_AUDIT_OPEN_BYTES + 300), "{sizes:?}");
    write(&catalog, &bucket, 5_000);
    let (sizes, files) = stored(&world, &catalog, &bucket);
    assert_eq!(files, 5_100);
    let largest = sizes.iter().max().unwrap();
    assert!((FILE_AUDIT_BLOCK_BYTES..FILE_AUDIT_BLOCK_BYTES + 500).contains(largest), "{sizes:?}");
    // Changes within a block keep their order, also after a restart.
    let page = world.catalog().audit().file_page(None, |_| true, None, 5_001).unwrap();
    let names: Vec<_> = page.entries.iter().map(|(_, it)| it.target.clone().unwrap()).collect();
    assert_eq!((&*names[0], &*names[4_999], &*names[5_000]), ("4999.txt", "0.txt", "0.txt"));
    assert_eq!(page.next, page.entries.last().map(|(id, _)| *id));
}

#[test]
fn limit_of_file_changes_hits_the_busiest_account() {
    let world = World::new();
    let catalog = world.catalog();
    let [ann, bob] = ["ann", "bob"].map(|name| account(&catalog, name, Plan::Free).unwrap());
    let (quiet, busy) = (bucket_of(&catalog, &ann, "photos"), bucket_of(&catalog, &bob, "videos"));
    write(&catalog, &quiet, 3);
    for _ in 0..=FILE_AUDIT_FILES_MAX / FILE_AUDIT_PENDING_MAX {
        write(&catalog, &busy, FILE_AUDIT_PENDING_MAX);
    }
    for catalog in [&catalog, &world.catalog()] {
        let table = catalog.state.file_audit.read();
        let files = table.files;
        assert!((FILE_AUDIT_FILES_MAX - 1_000..=FILE_AUDIT_FILES_MAX).contains(&files), "{files}");
        assert_eq!(table.accounts[ann.id.as_str()].0, 3);
        assert_eq!(table.blocks.values().map(|it| it.files).sum::<usize>(), files);
    }
}

#[test]
fn old_file_changes_are_deleted() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "ann", Plan::Free).unwrap();
    let bucket = bucket_of(&catalog, &ann, "photos");
    write(&catalog, &bucket, 100);
    world.clock.advance(200 * DAY_MS);
    write(&catalog, &bucket, 50);
    world.clock.advance(201 * DAY_MS);
    catalog.audit().sweep().unwrap();
    assert_eq!(stored(&world, &catalog, &bucket).1, 50);
    world.clock.advance(200 * DAY_MS);
    catalog.audit().sweep().unwrap();
    assert_eq!(stored(&world, &catalog, &bucket), (vec![], 0));
}

#[test]
fn unwritten_file_changes_are_bounded_and_tried_again() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "ann", Plan::Free).unwrap();
    let bucket = bucket_of(&catalog, &ann, "photos");
    world.store.close().unwrap();
    for _ in 0..3 {
        add(&catalog, &bucket, FILE_AUDIT_PENDING_MAX);
    }
    assert!(catalog.audit().write_file_changes().is_err());
    let pending = catalog.state.file_changes.take();
    assert_eq!((pending.files, pending.commits.len()), (FILE_AUDIT_PENDING_MAX, 1));
}

#[test]
fn deleted_bucket_leaves_its_file_changes_to_operators() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "ann", Plan::Free).unwrap();
    let bucket = bucket_of(&catalog, &ann, "photos");
    let early = changes(&catalog, &bucket, 1);
    world.clock.advance(1);
    catalog.buckets().delete(&bucket, crate::OnNonEmpty::Refuse).unwrap().finish().unwrap();
    let bob = account(&catalog, "bob", Plan::Free).unwrap();
    bucket_of(&catalog, &bob, "photos");
    catalog.state.file_changes.add(early);
    let page = catalog.audit().file_page(None, |_| true, None, 10).unwrap();
    assert_eq!(page.entries[0].1.accounts, Vec::<String>::new());
    write(&catalog, &bucket, 1);
    let page = catalog.audit().file_page(None, |_| true, None, 10).unwrap();
    assert_eq!(page.entries[0].1.accounts, [bob.id.to_string()]);
}
