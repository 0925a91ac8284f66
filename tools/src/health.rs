//! `trug health`: checks a running server, for containers, timers and people.
//!
//! Sends one request to the listen address of the same settings, or to `--url`. Guarantees: ends within its time-out;
//! only a trug server is healthy. Non-goals: what healthy means, which the server decides.

mod tls_verifier;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use protocol::public_url::PublicUrl;
use rustls::pki_types::ServerName;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use self::tls_verifier::Trust;
use crate::exit::{self, Failure};
use crate::{output, settings};

/// Check the health of a running server.
///
/// Checks the listen address that `trug serve` has with the same options and environment, or --url. Healthy: the
/// process responds; with --ready: it accepts requests, and its store at least deletions. Otherwise the exit code is 1,
/// with the reason in one line. The certificate of an https:// --url is verified; that of the listen address is not.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug health --url http://127.0.0.1:8080 --ready"))]
pub(crate) struct Args {
    /// URL of the server, such as http://127.0.0.1:8080. [default: the listen address]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Root certificates (PEM) for an https:// --url, in addition to Mozilla's.
    #[arg(long, value_name = "FILE", requires = "url")]
    ca_file: Option<PathBuf>,
    /// Check readiness too.
    #[arg(long)]
    ready: bool,
    /// Time-out in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    /// Print the response as one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: settings::Flags,
}

/// Maximum size of a valid response in bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Response of a healthy or unhealthy server.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum HealthReply {
    Well { status: String, store: String },
    NotWell { error: String, code: String },
}

/// Endpoint of the health check.
#[derive(Debug, PartialEq, Eq)]
struct HealthEndpoint {
    /// Host and port.
    authority: String,
    /// The host, where TLS is spoken with it.
    tls_name: Option<ServerName<'static>>,
    /// With what stands before the server's own paths.
    path: String,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { url, ca_file, ready, timeout, json, settings } = args;
    let (url, trust) = match url {
        Some(url) => {
            let url = PublicUrl::parse(&url);
            let url = url.map_err(|error| Failure::wrong_usage(format!("--url: {error}")))?;
            let added = ca_file.map(|path| settings::read_roots("--ca-file", &path)).transpose()?;
            (url, Trust::Vouched(added.unwrap_or_default()))
        }
        None => (listener_of(settings)?, Trust::AnyCertificate),
    };
    let place = HealthEndpoint::of(&url, if ready { "/-/ready" } else { "/-/health" })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let timeout_after = Duration::from_secs(timeout);
    let asked =
        runtime.block_on(async { tokio::time::timeout(timeout_after, place.fetch(&trust)).await });
    let not_well = |why: String| Failure::failed(format!("{} is unhealthy: {why}", url.as_str()));
    let answer = match asked {
        Err(_) => return Err(not_well(format!("no response within {timeout} s"))),
        Ok(Err(error)) => return Err(not_well(error.to_string())),
        Ok(Ok(answer)) => answer,
    };
    let (status, store, body) = read(&answer).map_err(not_well)?;
    match json {
        true => output::result(&format!("{}\n", output::plain(body))),
        false => {
            let (status, store) = (output::plain(&status), output::plain(&store));
            output::result(&format!(
                "{} is healthy: {status}, the store is {store}\n",
                url.as_str()
            ))
        }
    }
}

fn listener_of(settings: settings::Flags) -> Result<PublicUrl, Failure> {
    let config = settings::config(&settings.sources()?)?;
    let listen = config.listen;
    if listen.port() == 0 {
        let why = "the configured port is 0: pass the server's address with --url";
        return Err(Failure::wrong_usage(why));
    }
    Ok(PublicUrl::from_listener(config.scheme(), listen))
}

impl HealthEndpoint {
    fn of(url: &PublicUrl, path: &str) -> Result<Self, Failure> {
        let rest = url.as_str().split_once("://").map(|(_, rest)| rest).unwrap_or_default();
        let (authority, before) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let port_may_begin = authority.rfind(']').unwrap_or(0);
        let has_port = authority[port_may_begin..].contains(':');
        let (host, _) = authority.rsplit_once(':').filter(|_| has_port).unwrap_or((authority, ""));
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let named = |error| Failure::wrong_usage(format!("--url: {host:?}: {error}"));
        let name = || ServerName::try_from(host.clone()).map_err(named);
        let tls_name = if url.is_https() { Some(name()?) } else { None };
        let port = if tls_name.is_some() { 443 } else { 80 };
        let authority = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
        Ok(Self { authority, tls_name, path: format!("{before}{path}") })
    }

    async fn fetch(&self, trust: &Trust) -> io::Result<Vec<u8>> {
        let stream = TcpStream::connect(&self.authority).await?;
        match self.tls_name.clone() {
            None => self.fetch_over(stream).await,
            Some(name) => {
                let client = trust.client().map_err(io::Error::other)?;
                let stream = TlsConnector::from(client).connect(name, stream).await?;
                self.fetch_over(stream).await
            }
        }
    }

    async fn fetch_over(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
    ) -> io::Result<Vec<u8>> {
        let Self { authority, path, .. } = self;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {authority}\r\nAccept: application/json\r\n\
             User-Agent: trug-health\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
        Ok(answer)
    }
}

/// Parses a response into the state of the process, the state of the store and the response text; fails with the
/// reason if the server is unhealthy.
fn read(answer: &[u8]) -> Result<(String, String, &str), String> {
    let not_trug = || "the server there is not trug".to_owned();
    let text = std::str::from_utf8(answer).map_err(|_| not_trug())?;
    if text.is_empty() {
        return Err("it closed the connection without a response".to_owned());
    }
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(not_trug)?;
    let code = head.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).ok_or_else(not_trug)?;
    match (code, serde_json::from_str::<HealthReply>(body)) {
        ("200", Ok(HealthReply::Well { status, store })) => Ok((status, store, body)),
        (_, Ok(HealthReply::NotWell { error, code })) => {
            Err(format!("{} ({})", output::plain(&error), output::plain(&code)))
        }
        _ => Err(not_trug()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_target_is_host_port_and_path() {
        for (url, authority, path, tls_name) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", "/-/health", None),
            ("http://example.com", "example.com:80", "/-/health", None),
            ("http://[::1]", "[::1]:80", "/-/health", None),
            ("http://[::1]:81/files/", "[::1]:81", "/files/-/health", None),
            ("https://example.com", "example.com:443", "/-/health", Some("example.com")),
            ("https://127.0.0.1:8443", "127.0.0.1:8443", "/-/health", Some("127.0.0.1")),
            ("https://[::1]:81", "[::1]:81", "/-/health", Some("::1")),
        ] {
            let place = HealthEndpoint::of(&PublicUrl::parse(url).unwrap(), "/-/health").unwrap();
            assert_eq!((&*place.authority, &*place.path), (authority, path));
            let name = tls_name.map(|it| ServerName::try_from(it).unwrap());
            assert_eq!(place.tls_name, name);
        }
    }

    #[test]
    fn health_requires_a_healthy_response() {
        let of = |head: &str, body: &str| read(format!("{head}\r\n\r\n{body}").as_bytes()).is_ok();
        let well = r#"{"success":true,"status":"ok","store":"writable"}"#;
        assert!(of("HTTP/1.1 200 OK", well));
        for (head, body) in [
            ("HTTP/1.1 503 Service Unavailable", well),
            ("HTTP/1.1 200 OK", "<html>"),
            ("HTTP/1.1 200 OK", "{}"),
            ("HTTP/1.1 200 OK", ""),
            ("SSH-2.0", well),
            ("HTTP/1.1 2", well),
        ] {
            assert!(!of(head, body), "{head} {body}");
        }
        assert!(read(b"").is_err() && read(b"\xff").is_err());
        let draining =
            r#"{"success":false,"error":"The server is shutting down","code":"not_ready"}"#;
        let why = read(format!("HTTP/1.1 503 x\r\n\r\n{draining}").as_bytes()).unwrap_err();
        assert_eq!(why, "The server is shutting down (not_ready)");
    }
}
