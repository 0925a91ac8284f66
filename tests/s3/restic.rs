//! restic: create a repository, a backup, a check of every byte, and a restore.

use std::path::Path;
use std::process::Command;

use tests::commands::{done, require_program};

use crate::place::{Place, bytes, client, files, make_files};

#[test]
#[ignore = "needs restic"]
fn restic_backup_is_checked_and_restored() {
    let place = Place::new();
    require_program("restic", "version");
    let restic = || -> Command {
        let mut restic = client(Path::new("restic"), &place.keys, place.data.parent());
        let repository = format!("s3:{}/backups/of ann", place.address());
        restic.env("RESTIC_REPOSITORY", repository).env("RESTIC_PASSWORD", "a secret of ann");
        restic.env("RESTIC_CACHE_DIR", place.temp_path("cache"));
        restic
    };
    let here = place.temp_path("here");
    make_files(&here, 200);
    std::fs::write(here.join("large.bin"), bytes(40_000_000, 3)).unwrap();
    // The bucket does not exist: restic creates it.
    done(restic().arg("init"));
    done(restic().arg("backup").arg("--quiet").arg(".").current_dir(&here));
    std::fs::write(here.join("more.txt"), "more").unwrap();
    done(restic().args(["backup", "--quiet", "."]).current_dir(&here));
    done(restic().args(["check", "--read-data"]));
    let back = place.temp_path("back");
    done(restic().args(["restore", "latest", "--target"]).arg(&back));
    assert!(files(&here) == files(&back));
    done(restic().args(["forget", "--prune", "--keep-last", "1"]));
    done(restic().args(["check", "--read-data"]));
    let buckets = place.data.json(&["bucket", "list"]).to_string();
    assert!(buckets.contains("backups") && buckets.contains("private"), "{buckets}");
}
