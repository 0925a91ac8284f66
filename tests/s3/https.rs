//! aws-cli over HTTPS, where it sends its bodies in chunks with a trailing checksum
//! (`STREAMING-UNSIGNED-PAYLOAD-TRAILER`): through nginx, which terminates TLS.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tests::commands::{done, require_program, run};
use tests::free_address::free_port;

use crate::place::{Place, aws, bytes, client};

/// An nginx in front of the server.
struct Nginx {
    child: Child,
    port: u16,
    certificate: PathBuf,
}

impl Nginx {
    fn start(folder: &Path, place: &Place) -> Self {
        fs::create_dir(folder).unwrap();
        let port = free_port();
        let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        fs::write(&certificate, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let word = |path: &Path| path.to_str().unwrap().to_owned();
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {};", word(&folder.join(name))));
        let main = folder.join("main.conf");
        let text = format!(
            "daemon off; worker_processes 1; pid {pid}; error_log stderr warn;\n\
             events {{ worker_connections 512; }}\n\
             http {{ log_format said '$request_method $http_x_amz_content_sha256 $http_x_amz_trailer';\n\
             access_log {log} said; {temporary}\n\
             server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {certificate};\n\
             ssl_certificate_key {key}; client_max_body_size 0; location / {{\n\
             proxy_pass http://{server}; proxy_set_header Host $http_host;\n\
             proxy_http_version 1.1; proxy_request_buffering off; proxy_buffering off; }} }} }}\n",
            pid = word(&folder.join("nginx.pid")),
            log = word(&folder.join("said.log")),
            temporary = temporary.join(" "),
            certificate = word(&certificate),
            key = word(&key),
            server = place.server.address(),
        );
        fs::write(&main, text).unwrap();
        let mut nginx = Command::new("nginx");
        nginx.arg("-c").arg(&main).args(["-e", "stderr"]).stderr(Stdio::null());
        let this = Self { child: nginx.spawn().unwrap(), port, certificate };
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return this;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!(
            "nginx does not start: {:?}",
            run(Command::new("nginx").arg("-t").arg("-c").arg(&main))
        );
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // SIGKILL would leave its workers behind; SIGTERM ends them first.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs aws-cli from PyPI and nginx"]
fn aws_chunked_trailing_checksums_are_verified() {
    require_program("nginx", "-v");
    let aws = aws();
    let place = Place::new();
    let folder = place.temp_path("nginx");
    let nginx = Nginx::start(&folder, &place);
    let ran = |words: &[&str]| {
        let mut aws = client(&aws, &place.keys, place.data.parent());
        aws.env("AWS_CA_BUNDLE", &nginx.certificate);
        aws.arg("--endpoint-url").arg(format!("https://localhost:{}", nginx.port));
        done(aws.args(words)).stdout
    };
    let (file, back) = (place.temp_path("a.bin"), place.temp_path("back.bin"));
    let (from, to) = (file.to_str().unwrap(), back.to_str().unwrap());
    for size in [0, 1, 70_000, 3_000_000, 20_000_001] {
        fs::write(&file, bytes(size, 9)).unwrap();
        ran(&["s3", "cp", from, "s3://photos/a.bin"]);
        ran(&["s3", "cp", "s3://photos/a.bin", to]);
        assert!(fs::read(&back).unwrap() == fs::read(&file).unwrap(), "{size}");
    }
    let put = ["s3api", "put-object", "--bucket", "photos", "--key", "b.bin", "--body", from];
    for algorithm in ["CRC32", "SHA1", "SHA256"] {
        ran(&[&put[..], &["--checksum-algorithm", algorithm]].concat());
    }
    let said = fs::read_to_string(folder.join("said.log")).unwrap();
    assert!(said.contains("PUT STREAMING-UNSIGNED-PAYLOAD-TRAILER x-amz-checksum-"), "{said}");
}
