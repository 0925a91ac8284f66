//! `tools/deploy/nginx.conf` in front of a real server: nginx passes requests and responses through unchanged. The
//! Caddyfile is checked by Caddy where it is installed.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tests::commands::{Ran, done, require_program, run};
use tests::free_address::free_port;
use tests::{DataFolder, ServerProcess};

use crate::deploy::deployed;

const NAME: &str = "cdn.example.com";
const PREMIUM: &str = "upload.example.com";

/// Host name of the server without a cache.
const FILES: &str = "files.example.com";

/// An nginx process with the files of the repository, in which only the placeholders are changed.
pub(crate) struct Nginx {
    child: Child,
    https: u16,
    http: u16,
}

/// Replaces the placeholders, as an operator does.
fn filled_in(text: &str, places: &[(&str, String)]) -> String {
    places.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from:?} is not in {text}");
        text.replace(from, to)
    })
}

fn text_of(path: &Path) -> String {
    path.to_str().expect("the path is text").to_owned()
}

impl Nginx {
    /// Starts the proxy without a cache.
    fn start(folder: &Path, server: &ServerProcess, upload: u16) -> Self {
        Self::with_sites(folder, server, upload, &[("nginx.conf", vec![])])
    }

    /// Starts the cache, and the proxy under another host name.
    pub(crate) fn with_cache(folder: &Path, server: &ServerProcess, upload: u16) -> Self {
        let cache = text_of(&folder.join("cache"));
        let sites = [
            ("nginx.conf", vec![(NAME, FILES.to_owned())]),
            ("nginx_cache.conf", vec![("/var/cache/nginx/trug", cache)]),
        ];
        Self::with_sites(folder, server, upload, &sites)
    }

    fn with_sites(
        folder: &Path,
        server: &ServerProcess,
        upload: u16,
        sites: &[(&str, Vec<(&str, String)>)],
    ) -> Self {
        let (https, http) = (free_port(), free_port());
        let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        let names = [NAME, PREMIUM, FILES].map(str::to_owned).to_vec();
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate can be made");
        fs::write(&certificate, made.cert.pem()).expect("it can be written");
        fs::write(&key, made.signing_key.serialize_pem()).expect("it can be written");
        let everywhere = [
            ("listen [::]:443 ssl http2;", String::new()),
            ("listen 443 ssl http2;", format!("listen 127.0.0.1:{https} ssl http2;")),
            ("/etc/ssl/cdn.example.com.pem", text_of(&certificate)),
            ("/etc/ssl/cdn.example.com.key", text_of(&key)),
            ("/etc/nginx/trug_proxy.conf", text_of(&folder.join("trug_proxy.conf"))),
        ];
        let first = [
            ("127.0.0.1:8080", server.address().to_string()),
            ("127.0.0.1:8081", format!("127.0.0.1:{upload}")),
            ("listen [::]:80;", String::new()),
            ("listen 80;", format!("listen 127.0.0.1:{http};")),
        ];
        let mut includes = String::new();
        for (name, places) in sites {
            let of_first: &[_] = if *name == "nginx.conf" { &first } else { &[] };
            let places = everywhere.iter().chain(of_first).chain(places);
            let site = filled_in(&deployed(name), &places.cloned().collect::<Vec<_>>());
            let path = folder.join(name);
            fs::write(&path, site).expect("it can be written");
            includes.push_str(&format!(" include {};", text_of(&path)));
        }
        fs::write(folder.join("trug_proxy.conf"), deployed("nginx_trug_proxy.conf"))
            .expect("it can be written");
        Self::run(folder, &includes, [https, http])
    }

    fn run(folder: &Path, includes: &str, [https, http]: [u16; 2]) -> Self {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {};", text_of(&folder.join("nginx").join(name))));
        fs::create_dir(folder.join("nginx")).expect("a folder can be made");
        let main = folder.join("main.conf");
        let text = format!(
            "daemon off; worker_processes 1; pid {pid}; error_log stderr warn;\n\
             events {{ worker_connections 512; }}\n\
             http {{ access_log off; {temporary}\n{includes} }}\n",
            pid = text_of(&folder.join("nginx.pid")),
            temporary = temporary.join(" "),
        );
        fs::write(&main, text).expect("it can be written");
        let nginx = || {
            let mut command = Command::new("nginx");
            command.arg("-c").arg(&main).args(["-e", "stderr"]);
            command
        };
        let ran = done(nginx().arg("-t"));
        assert!(!ran.stderr.contains("[warn]"), "{}", ran.stderr);
        let child = nginx().stderr(Stdio::null()).spawn().expect("nginx starts");
        let this = Self { child, https, http };
        for _ in 0..200 {
            if std::net::TcpStream::connect(("127.0.0.1", https)).is_ok() {
                return this;
            }
            thread::sleep(Duration::from_millis(25));
        }
        panic!("nginx does not listen");
    }

    /// Runs curl with the names resolved to this server.
    pub(crate) fn curl(&self, words: &[&str]) -> Ran {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--insecure", "--max-time", "60"]);
        for (name, from, to) in
            [(NAME, 443, self.https), (PREMIUM, 443, self.https), (NAME, 80, self.http)]
        {
            command.arg("--connect-to").arg(format!("{name}:{from}:127.0.0.1:{to}"));
        }
        run(command.args(words))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may have ended already. Its workers end when it does.
        if let Ok(pid) = i32::try_from(self.child.id())
            && let Some(pid) = rustix::process::Pid::from_raw(pid)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

#[test]
fn nginx_passes_uploads_downloads_and_ranges_unchanged() {
    require_program("nginx", "-v");
    let (folder, key) = DataFolder::with_bucket();
    folder.done(&["account", "edit", "--account", "ann", "--plan", "Pro"]);
    let upload = free_port();
    let server = folder.serve_with(&[
        "--listen",
        "127.0.0.1:0",
        "--upload-listen",
        &format!("127.0.0.1:{upload}"),
        "--public-url",
        "https://cdn.example.com",
    ]);
    let nginx = Nginx::start(folder.parent(), &server, upload);
    let bearer = format!("Authorization: Bearer {key}");

    // From http to https, and the address in the response is the external one.
    let file = folder.parent().join("large.bin");
    let bytes: Vec<u8> = (0..30_000_000_u32).map(|at| (at * 7 / 3) as u8).collect();
    fs::write(&file, &bytes).expect("it can be written");
    let form = format!("file=@{};filename=a b+c.bin", file.display());
    for address in ["http://cdn.example.com/photos/", "https://cdn.example.com/photos/"] {
        let ran = nginx.curl(&["--location-trusted", "-H", &bearer, "-F", &form, address]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains("\"success\":true"), "{ran:?}");
        assert!(ran.stdout.contains("https://cdn.example.com/photos/a%20b"), "{ran:?}");
    }

    let got = folder.parent().join("got.bin");
    let path = "https://cdn.example.com/photos/a%20b%2Bc.bin";
    let fetch = |words: &[&str]| {
        let out = got.to_str().expect("text");
        let shown =
            ["--output", out, "--write-out", "%{http_code} %{content_type} %{size_download}"];
        let ran = nginx.curl(&[&shown[..], words].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        (ran.stdout, fs::read(&got).expect("it was fetched"))
    };
    let (line, whole) = fetch(&[path]);
    assert!(line.starts_with("200 ") && whole == bytes, "{line}");
    let (line, part) = fetch(&["--range", "29999990-", path]);
    assert!(line.starts_with("206 ") && part == bytes[29_999_990..], "{line}");
    let (line, part) = fetch(&["--http1.1", "--range", "5-9", path]);
    assert!(line.starts_with("206 ") && part == bytes[5..10], "{line}");
    let (line, _) = fetch(&["--path-as-is", "https://cdn.example.com/photos/../-/health"]);
    assert!(line.starts_with("400 "), "the proxy forwards the request target unchanged: {line}");

    // The host name is forwarded: the dashboard responds under this one, and not under that of the premium endpoint.
    let (line, page) = fetch(&["https://cdn.example.com/-/"]);
    assert!(line.starts_with("200 text/html"), "{line}");
    assert!(page.starts_with(b"<!"), "a page");

    // Larger than body_bytes_max: rejected at nginx, and accepted by the premium endpoint.
    let larger = folder.parent().join("larger.bin");
    fs::File::create(&larger).and_then(|it| it.set_len(110 << 20)).expect("it can be made");
    let form = format!("file=@{}", larger.display());
    let (line, _) = fetch(&["-H", &bearer, "-F", &form, "https://cdn.example.com/photos/"]);
    assert!(line.starts_with("413 "), "{line}");
    let (line, answer) = fetch(&["-H", &bearer, "-F", &form, "https://upload.example.com/photos/"]);
    assert!(line.starts_with("200 "), "{line}: {}", String::from_utf8_lossy(&answer));
    let (line, _) = fetch(&["--head", "https://cdn.example.com/photos/larger.bin"]);
    assert!(line.starts_with("200 "), "{line}");
    drop(nginx);
    server.stop();
}

#[test]
#[ignore = "needs caddy, which the build server does not install"]
fn caddy_configuration_is_valid() {
    let folder = DataFolder::new();
    let file = folder.parent().join("Caddyfile");
    fs::write(&file, deployed("Caddyfile")).expect("it can be written");
    let mut caddy = Command::new("caddy");
    caddy.env("HOME", folder.parent()).args(["validate", "--adapter", "caddyfile", "--config"]);
    let ran = done(caddy.arg(&file));
    assert!(ran.stdout.contains("Valid configuration"), "{ran:?}");
}
