//! `tools/deploy`, as far as this machine can run it: the units with systemd's own checks, the container's commands
//! without a container, nginx in front of a real server, and the restrictions of a service.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::DataFolder;
use tests::commands::{done, require_program, run, trug, trug_binary, without_settings};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns a file of the folder.
pub(crate) fn deployed(name: &str) -> String {
    let path = root().join("tools/deploy").join(name);
    fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// Returns the values of a directive of a unit, or of a key of settings in the same format.
fn values<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).collect()
}

#[test]
fn systemd_units_are_valid_and_hardened() {
    require_program("systemd-analyze", "--version");
    let folder = DataFolder::new();
    let service = deployed("trug.service");
    let own = format!("={} serve ", trug_binary().display());
    let service = service.replace("=/usr/local/bin/trug serve ", &own);
    assert!(service.contains(&own), "{service}");
    let paths = [("trug.service", &*service), ("trug.socket", &deployed("trug.socket"))];
    let paths = paths.map(|(name, text)| {
        let path = folder.parent().join(name);
        fs::write(&path, text).expect("it can be written");
        path
    });
    let ran = run(Command::new("systemd-analyze").arg("verify").args(&paths));
    // Units of the machine may have faults of their own, which are reported, too.
    let ours = ran.stderr.lines().filter(|line| line.contains("trug.")).collect::<Vec<_>>();
    assert!(ours.is_empty(), "{ours:?}");
    let words = ["security", "--offline=yes", "--no-pager", "--threshold=20"];
    let ran = run(Command::new("systemd-analyze").args(words).arg(&paths[0]));
    assert_eq!(ran.code, 0, "the exposure is more than 2.0: {}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("Overall exposure level"), "{ran:?}");
}

#[test]
fn systemd_stop_timeout_and_restart_limits_are_set() {
    let service = deployed("trug.service");
    let seconds = |name: &str| values(&service, name)[0].parse::<u64>().expect("a number");
    let shown = run(trug().args(["config", "show"])).stdout;
    let drain = shown.lines().find_map(|line| line.strip_prefix("drain_seconds = "));
    let drain: u64 = drain.expect("it is shown").parse().expect("a number");
    assert!(seconds("TimeoutStopSec") > drain + 10 && seconds("WatchdogSec") > 0);
    assert_eq!(values(&service, "RestartPreventExitStatus"), ["2 3 4 5"], "as the exit codes are");
    let [start] = values(&service, "ExecStart")[..] else { panic!("{service}") };
    let words: Vec<&str> = start.split(' ').collect();
    assert_eq!(words[0], "/usr/local/bin/trug");
    // With an option that ends it before it serves.
    done(trug().args(&words[1..]).arg("--help"));
    let compose = deployed("docker-compose.yml");
    assert!(compose.contains("stop_grace_period: 90s"), "{compose}");
}

/// Returns the instructions of a Dockerfile, without comments, with continued lines joined.
fn instructions(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    let lines = lines.replace("\\\n", " ");
    let lines = lines.lines().filter(|line| !line.trim().is_empty());
    let split = lines.map(|line| line.split_once(' ').expect("an instruction has arguments"));
    split.map(|(name, rest)| (name.to_owned(), rest.trim().to_owned())).collect()
}

/// Returns the words of an instruction in its exec form.
fn words(of: &str) -> Vec<String> {
    let list = &of[of.find('[').expect("it is a list")..];
    serde_json::from_str(list).unwrap_or_else(|why| panic!("{of}: {why}"))
}

#[test]
fn docker_image_builds_and_runs_unprivileged() {
    let text = deployed("Dockerfile");
    let all = instructions(&text);
    let of = |name: &str| -> Vec<&str> {
        all.iter().filter(|(it, _)| it == name).map(|(_, rest)| &**rest).collect()
    };
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("it is there");
    let rust = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let rust = rust.expect("it names a version").trim_matches('"');
    let [build, last] = of("FROM")[..] else { panic!("{all:?}") };
    assert!(build.starts_with(&format!("rust:{rust}.")), "{build} is not {rust}");
    for image in [build, last] {
        let (_, tag) = image.split_once(':').expect("a tag");
        let name = image.split(' ').next().unwrap_or_default();
        assert!(
            !tag.starts_with("latest") && name.contains(|c: char| c.is_ascii_digit()),
            "{image}"
        );
    }
    let mut copied = Vec::new();
    for copy in of("COPY") {
        let (flags, paths): (Vec<&str>, Vec<&str>) =
            copy.split(' ').partition(|word| word.starts_with("--"));
        if flags.iter().any(|flag| flag.starts_with("--from=")) {
            assert!(paths[0].starts_with("/out/"), "{copy}");
            continue;
        }
        for source in &paths[..paths.len() - 1] {
            assert!(root().join(source).exists(), "{copy}: there is no {source}");
            copied.push((*source).to_owned());
        }
    }
    // The lock file is valid only with all members of the workspace.
    let (_, members) = manifest.split_once("\nmembers = [").expect("members");
    let (members, _) = members.split_once(']').expect("the list ends");
    for member in
        members.split(',').map(|it| it.trim().trim_matches('"')).filter(|it| !it.is_empty())
    {
        let top = member.split('/').next().unwrap_or_default();
        assert!(copied.iter().any(|it| it == top), "{member} is not copied");
        assert!(deployed("Dockerfile.dockerignore").contains(&format!("\n!{top}\n")), "{member}");
    }
    assert_eq!(of("USER"), ["65532:65532"]);
    assert!(text.contains("--chown=65532:65532 /out/data /data"), "the volume is theirs");
    assert!(!text.contains("ADD ") && !text.to_lowercase().contains("secret"), "{text}");
    assert!(deployed("docker-compose.yml").contains("dockerfile: tools/deploy/Dockerfile"));
    assert!(deployed("docker-compose.yml").contains("image: trug:0.1.0"));
}

#[test]
fn docker_command_serves_and_checks_health() {
    let all = instructions(&deployed("Dockerfile"));
    let of = |name: &str| &all.iter().find(|(it, _)| it == name).expect("it is there").1;
    let folder = DataFolder::new();
    let [program] = &words(of("ENTRYPOINT"))[..] else { panic!("{all:?}") };
    let health = words(of("HEALTHCHECK"));
    assert_eq!(&health[0], program);
    let variables: Vec<(&str, &str)> = all
        .iter()
        .filter(|(name, _)| name == "ENV")
        .map(|(_, rest)| rest.split_once('=').expect("a name and a value"))
        .collect();
    assert_eq!(variables, [("TRUG_DATA", "/data"), ("TRUG_LISTEN", "0.0.0.0:8080")]);
    assert_eq!(of("EXPOSE"), "8080");
    let mut serve = trug();
    serve.args(words(of("CMD"))).env("TRUG_DATA", folder.path()).env("TRUG_LISTEN", "127.0.0.1:0");
    let server = tests::ServerProcess::start(&mut serve);
    let everywhere = format!("0.0.0.0:{}", server.address().port());
    let ask = || run(trug().args(&health[1..]).env("TRUG_LISTEN", &everywhere));
    let ran = ask();
    assert_eq!(ran.code, 0, "{ran:?}");
    server.stop();
    ask().check_failure(1, "is unhealthy");
}

#[test]
fn unusable_data_folder_error_suggests_a_command() {
    const NOBODY: u32 = 65_534;
    let folder = DataFolder::new();
    let closed = folder.parent().join("closed");
    fs::create_dir(&closed).expect("a folder can be made");
    fs::create_dir(closed.join("data")).expect("a folder can be made");
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    // The original binary may be in a folder that only its owner can enter. A copy that this process writes itself
    // cannot be executed while a concurrent test forks, whose child inherits the open file (ETXTBSY).
    let binary = folder.parent().join("trug");
    let copied = Command::new("cp").arg(trug_binary()).arg(&binary).status();
    assert!(copied.expect("cp runs").success());
    // Every user can enter, only root can write.
    for path in [folder.parent(), &closed, &closed.join("data")] {
        mode(path, 0o555);
    }
    let is_root = rustix::process::geteuid().is_root();
    let user = if is_root { NOBODY } else { rustix::process::geteuid().as_raw() };
    for (data, helps) in [("data", "chown -R "), ("missing", "install -d -m 0700 -o ")] {
        let data = closed.join(data);
        let mut command = without_settings(&binary);
        command.arg("serve").arg("--data").arg(&data).current_dir("/");
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().expect("every user can run the copy");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("trug runs as user {user}")), "{said}");
        assert!(said.contains(helps) && said.contains(data.to_str().expect("text")), "{said}");
    }
    mode(&closed, 0o755);
    mode(folder.parent(), 0o755);
}
