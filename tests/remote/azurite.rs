//! Remote store in Azurite, the emulator of Azure Blob Storage.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tests::Connection;
use tests::commands::{done, require_program};
use tests::free_address::free_address;
use tests::moto::wait_for_server;

use crate::endpoint::connect_to;
use crate::promises;

/// Account and key that every Azurite has.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Ends the process with its value.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the signature of a request without body and with the headers `x-ms-date` and `x-ms-version`.
fn signature(method: &str, date: &str, version: &str, resource: &str) -> String {
    let headers = format!("x-ms-date:{date}\nx-ms-version:{version}");
    let text = format!("{method}\n\n\n\n\n\n\n\n\n\n\n\n{headers}\n/{ACCOUNT}{resource}");
    let key = STANDARD.decode(KEY).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(text.as_bytes());
    format!("SharedKey {ACCOUNT}:{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[test]
#[ignore = "needs Azurite"]
fn azurite_keeps_the_promises_of_a_remote_store() {
    require_program("azurite-blob", "--version");
    let address = free_address();
    let port = address.port().to_string();
    let mut command = Command::new("azurite-blob");
    command.args(["--inMemoryPersistence", "--skipApiVersionCheck", "--blobPort", &port]);
    let emulator = Emulator(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_for_server(address, Duration::from_secs(60));
    let (version, path) = ("2021-08-06", format!("/{ACCOUNT}/pics"));
    let mut date = Command::new("date");
    date.args(["-u", "+%a, %d %b %Y %H:%M:%S GMT"]).env("LC_ALL", "C");
    let date = done(&mut date).stdout;
    let signed = signature("PUT", date.trim(), version, &format!("{path}\nrestype:container"));
    let headers = [
        ("x-ms-date", date.trim()),
        ("x-ms-version", version),
        ("authorization", &signed),
        ("content-length", "0"),
    ];
    let mut connection = Connection::connect(address).unwrap();
    let created = connection.send("PUT", &format!("{path}?restype=container"), &headers, b"");
    let created = created.unwrap();
    assert_eq!(created.status, 201, "{}", created.text());
    let endpoint = format!("http://{address}/{ACCOUNT}");
    let remote = connect_to("az://pics/trug", &endpoint, &format!("{ACCOUNT}\n{KEY}"));
    promises::check_all(&remote);
    promises::check_races(&[remote], 40, &[1, 2_000, 70_000]);
    drop(emulator);
}
