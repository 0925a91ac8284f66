//! Files that `tools/deploy/release` builds: the static binary in a root without libraries, the Debian package in a
//! fresh Debian.
//!
//! Needs root (for chroot), debootstrap and a release build. Non-goals: what the server does beyond start, upload,
//! resize and stop; other suites test that on the debug build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use tests::ServerProcess;
use tests::commands::{require_program, run};

/// Release of Debian that the package is installed in.
const DEBIAN: &str = "bookworm";
/// Image of the repository that is uploaded.
const IMAGE: &str = "../server/assets/screenshots/files.png";

/// Folder with the files of the release.
fn release() -> PathBuf {
    let folder = Path::new("../target/release-files");
    assert!(folder.exists(), "no release files: run tools/deploy/release first");
    folder.canonicalize().unwrap()
}

/// Release file whose name ends like this.
fn release_file(end: &str) -> PathBuf {
    let mut files = fs::read_dir(release()).unwrap().map(|entry| entry.unwrap().path());
    let found = files.find(|file| file.to_str().unwrap().ends_with(end));
    found.unwrap_or_else(|| panic!("no file *{end} in {}", release().display()))
}

/// Runs a command that must succeed and returns its stdout.
fn done(command: &mut Command) -> String {
    let ran = run(command);
    assert_eq!(ran.code, 0, "{command:?}: {ran:?}");
    ran.stdout
}

/// A root folder of its own, entered by chroot.
struct Root {
    folder: TempDir,
}

impl Root {
    fn new() -> Self {
        assert!(rustix::process::geteuid().is_root(), "chroot needs root");
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A minimal Debian from the package source of this machine.
    fn debian() -> Self {
        require_program("debootstrap", "--version");
        let root = Self::new();
        let targets = ["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"];
        let sources = done(Command::new("apt-get").args(targets));
        let source = sources.lines().next().expect("apt has a package source");
        let mut bootstrap = Command::new("debootstrap");
        bootstrap.args(["--variant=minbase", DEBIAN]).arg(root.path("")).arg(source);
        done(&mut bootstrap);
        root
    }

    /// Path of a file of this root as seen from outside.
    fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    /// Command with these words in this root, without this process's environment.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("chroot");
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.arg(self.folder.path()).args(words);
        command
    }

    fn done(&self, words: &[&str]) -> String {
        done(&mut self.command(words))
    }
}

/// Uploads an image with this key and downloads it resized.
fn upload_and_resize(server: &ServerProcess, key: &str) {
    let address = format!("http://{}/pics/", server.address());
    let upload = ["-sSf", "-H", &format!("Authorization: Bearer {key}"), "-F"];
    done(Command::new("curl").args(upload).arg(format!("file=@{IMAGE}")).arg(&address));
    download_resized(server);
}

fn download_resized(server: &ServerProcess) {
    let resized = format!("http://{}/pics/files.png?width=40&format=webp", server.address());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.webp");
    done(Command::new("curl").args(["-sSf", "-o"]).arg(&file).arg(resized));
    let webp = fs::read(file).unwrap();
    assert_eq!((&webp[..4], &webp[8..12]), (&b"RIFF"[..], &b"WEBP"[..]));
}

#[test]
#[ignore = "needs root and the files of tools/deploy/release"]
fn release_static_binary_runs_without_libraries() {
    let root = Root::new();
    let unpacked = tempfile::tempdir().unwrap();
    let mut tar = Command::new("tar");
    tar.arg("xf").arg(release_file("-x86_64-linux.tar.gz")).arg("--strip-components=1");
    done(tar.arg("-C").arg(unpacked.path()));
    for file in
        ["README.md", "OPERATING.md", "LICENSE-MIT", "man1/trug-serve.1", "deploy/trug.service"]
    {
        assert!(unpacked.path().join(file).exists(), "{file}");
    }
    // By `cp`: a file that this process writes cannot be executed while a concurrent test forks (ETXTBSY).
    done(Command::new("cp").arg(unpacked.path().join("trug")).arg(root.path("trug")));
    root.done(&["/trug", "account", "create", "me", "--data", "/data"]);
    root.done(&["/trug", "bucket", "create", "pics", "--account", "me", "--data", "/data"]);
    let key = root.done(&["/trug", "apikey", "create", "--account", "me", "--data", "/data"]);
    let serve = ["/trug", "serve", "--data", "/data", "--listen", "127.0.0.1:0"];
    let server = ServerProcess::start(&mut root.command(&serve));
    upload_and_resize(&server, key.trim());
    server.stop();
}

#[test]
#[ignore = "needs root, debootstrap and the files of tools/deploy/release"]
fn release_package_installs_serves_upgrades_and_is_removed() {
    let root = Root::debian();
    let package = release_file("_amd64.deb");
    install(&root, &package);
    root.done(&["sh", "-c", "command -v trug && test -s /usr/share/man/man1/trug.1.gz"]);
    assert_eq!(root.done(&["stat", "-c", "%U %a", "/var/lib/trug"]).trim(), "trug 700");
    assert_eq!(root.done(&["stat", "-c", "%G %a", "/etc/trug/trug.env"]).trim(), "trug 640");
    let enabled = "etc/systemd/system/multi-user.target.wants/trug.service";
    assert!(root.path(enabled).symlink_metadata().is_ok(), "the unit is not enabled");

    let trug = |words: &[&str]| as_unit(&root, &[&["/usr/bin/trug"], words].concat());
    let data = ["--data", "/var/lib/trug"];
    done(&mut trug(&[&["account", "create", "me"][..], &data].concat()));
    done(&mut trug(&[&["bucket", "create", "pics", "--account", "me"][..], &data].concat()));
    let key = done(&mut trug(&[&["apikey", "create", "--account", "me"][..], &data].concat()));
    let server = start_unit(&root);
    upload_and_resize(&server, key.trim());
    server.stop();

    fs::write(root.path("etc/trug/trug.env"), "# changed by its operator\n").unwrap();
    install(&root, &next_revision(&package));
    assert_eq!(root.done(&["dpkg-query", "-W", "-f", "${Version}", "trug"]), "9.9.9-1");
    let settings = fs::read_to_string(root.path("etc/trug/trug.env")).unwrap();
    assert_eq!(settings, "# changed by its operator\n");
    let server = start_unit(&root);
    download_resized(&server);
    server.stop();

    root.done(&["dpkg", "--remove", "trug"]);
    assert!(!root.path("usr/bin/trug").exists());
    assert!(root.path("etc/trug/trug.env").exists());
    root.done(&["dpkg", "--purge", "trug"]);
    assert!(!root.path("etc/trug").exists());
    assert!(!root.path(enabled).exists());
    assert!(root.path("var/lib/trug/STORE").exists(), "a purge must leave the data");
}

/// Installs a package; a changed settings file stays as its operator wrote it.
fn install(root: &Root, package: &Path) {
    fs::copy(package, root.path("trug.deb")).unwrap();
    root.done(&["dpkg", "--install", "--force-confold", "/trug.deb"]);
}

/// The package with a later version.
fn next_revision(package: &Path) -> PathBuf {
    let folder = tempfile::tempdir().unwrap();
    let unpacked = folder.path().join("unpacked");
    done(Command::new("dpkg-deb").arg("--raw-extract").arg(package).arg(&unpacked));
    let control = unpacked.join("DEBIAN/control");
    let text = fs::read_to_string(&control).unwrap();
    let lines = text.lines().map(|line| match line.starts_with("Version: ") {
        true => "Version: 9.9.9-1\n".to_owned(),
        false => format!("{line}\n"),
    });
    fs::write(&control, lines.collect::<String>()).unwrap();
    let settings = unpacked.join("etc/trug/trug.env");
    fs::write(&settings, fs::read_to_string(&settings).unwrap() + "# A later comment.\n").unwrap();
    let built = folder.keep().join("next.deb");
    done(
        Command::new("dpkg-deb").args(["--build", "--root-owner-group"]).arg(unpacked).arg(&built),
    );
    built
}

/// Starts the server with the command line and the environment of the unit.
fn start_unit(root: &Root) -> ServerProcess {
    let unit = ["usr/lib/systemd/system/trug.service", "lib/systemd/system/trug.service"];
    let unit = unit.iter().find_map(|path| fs::read_to_string(root.path(path)).ok());
    let unit = unit.expect("the package has its unit");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[0], "/usr/bin/trug");
    let mut command = as_unit(root, &words);
    ServerProcess::start(command.env("TRUG_LISTEN", "127.0.0.1:0"))
}

/// Command that runs as the user of the unit.
fn as_unit(root: &Root, words: &[&str]) -> Command {
    let user = ["setpriv", "--reuid=trug", "--regid=trug", "--clear-groups", "--no-new-privs"];
    root.command(&[&user, words].concat())
}

#[test]
#[ignore = "needs the files of tools/deploy/release"]
fn release_checksums_and_sbom_name_what_is_shipped() {
    let checked = ["--check", "--strict", "--quiet", "SHA256SUMS"];
    done(Command::new("sha256sum").args(checked).current_dir(release()));
    let sums = fs::read_to_string(release().join("SHA256SUMS")).unwrap();
    assert_eq!(sums.lines().count(), 3, "{sums}");
    let sbom: Value =
        serde_json::from_slice(&fs::read(release_file(".cdx.json")).unwrap()).unwrap();
    assert_eq!(sbom["bomFormat"], "CycloneDX");
    let components = sbom["components"].as_array().unwrap();
    for name in ["axum", "redb", "tokio", "engine"] {
        assert!(components.iter().any(|component| component["name"] == name), "{name}");
    }
    assert!(components.iter().all(|component| component["name"] != "proptest"));
}
