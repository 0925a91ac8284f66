//! Start-up output of `trug serve`: addresses, the data folder, and the set-up link.
//!
//! Guarantees: indented commands and URLs can be pasted as they are; recovery and damage are shown only if any.
//! Non-goals: printing.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use engine::Store;
use engine::recovery::RecoveryReport;
use protocol::public_url::PublicUrl;
use server::StartupReport;
use service::config::Scheme;
use service::limits::SETUP_LINK_LIFETIME;

use crate::output::{count_text, plain};
use crate::units::bytes_text;

/// Store as it was opened.
pub(crate) struct Opened {
    pub(crate) report: RecoveryReport,
    pub(crate) duration: Duration,
}

/// Returns the text for a server that accepts requests. `program` is the path by which this binary was started.
pub(crate) fn text(
    program: &str,
    data: &Path,
    store: &Store,
    opened: &Opened,
    started: &StartupReport,
) -> String {
    let mut text = format!("trug {}\n", env!("CARGO_PKG_VERSION"));
    for (label, value) in rows(data, store, opened, started) {
        text.push_str(&format!("  {label:<11}  {value}\n"));
    }
    if let Some(link) = &started.set_up_link {
        let links = match network_url(started) {
            Some(url) => vec![link.as_str().to_owned(), url.as_str().to_owned() + path_of(link)],
            None => vec![link.clone()],
        };
        text.push_str(&set_up(program, data, &links, started.has_accounts));
    }
    text
}

fn rows(
    data: &Path,
    store: &Store,
    opened: &Opened,
    started: &StartupReport,
) -> Vec<(&'static str, String)> {
    let of_listener = |scheme, listen| PublicUrl::from_listener(scheme, listen).as_str().to_owned();
    let mut rows = vec![("Dashboard", format!("{}/", started.public_url.as_str()))];
    if let Some(url) = network_url(started) {
        rows.push(("Network", format!("{}/", url.as_str())));
    }
    rows.push(("Listening", of_listener(started.scheme, started.listen)));
    if let Some(listen) = started.upload_listen {
        rows.push(("Uploads", of_listener(started.scheme, listen)));
    }
    if let Some(listen) = started.admin_listen {
        rows.push(("Metrics", of_listener(Scheme::Http, listen)));
    }
    let data = plain(&data.display().to_string());
    let Opened { report, duration } = opened;
    rows.push((
        "Data folder",
        match store.stats() {
            _ if report.last_lsn == 0 => format!("{data} (new)"),
            Ok(stats) => {
                let objects = match stats.objects {
                    1 => "1 object".to_owned(),
                    count => format!("{} objects", count_text(count)),
                };
                let (bytes, seconds) = (bytes_text(stats.object_bytes), duration.as_secs_f64());
                format!("{data}, {objects}, {bytes}, opened in {seconds:.1} s")
            }
            Err(error) => format!("{data} ({error})"),
        },
    ));
    if let Some(recovered) = recovered(report) {
        rows.push(("Recovered", recovered));
    }
    if report.damage_count() > 0 {
        let places = match report.damage_count() {
            1 => "1 place".to_owned(),
            count => format!("{count} places"),
        };
        rows.push(("Damage", format!("{places}: stop the server, run trug fsck --data {data}")));
    }
    rows
}

/// Returns what was repaired after an unclean shutdown, or `None` after a clean one.
fn recovered(report: &RecoveryReport) -> Option<String> {
    let mut parts = Vec::new();
    if report.index_rebuilt {
        let reason = report.index_fault.as_deref().map(|fault| format!(" ({fault})"));
        let reason = reason.unwrap_or_default();
        parts.push(format!("index rebuilt from {} records{reason}", report.replayed_records));
    } else if report.replayed_records > 0 {
        parts.push(format!("{} records after an unclean shutdown", report.replayed_records));
    }
    if report.torn_tail.is_some() {
        parts.push("an unfinished write was discarded".to_owned());
    }
    if report.orphans_removed > 0 {
        parts.push(format!("{} unreferenced files deleted", report.orphans_removed));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns the URL of the server on its network, if it listens on all addresses and has no public URL.
fn network_url(started: &StartupReport) -> Option<PublicUrl> {
    let StartupReport { listen, scheme, .. } = started;
    let is_default = started.public_url == PublicUrl::from_listener(*scheme, *listen);
    if !is_default || !listen.ip().is_unspecified() {
        return None;
    }
    let address = SocketAddr::new(network_address()?, listen.port());
    Some(PublicUrl::from_listener(*scheme, address))
}

/// Returns the source address of packets to other networks. Connecting a UDP socket sends none.
fn network_address() -> Option<IpAddr> {
    /// Address of documentation (RFC 5737).
    const DOCUMENTATION_ADDRESS: (&str, u16) = ("192.0.2.1", 9);
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect(DOCUMENTATION_ADDRESS).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

fn path_of(link: &str) -> &str {
    link.find("/-/").and_then(|at| link.get(at..)).unwrap_or_default()
}

fn set_up(program: &str, data: &Path, links: &[String], has_accounts: bool) -> String {
    let minutes = SETUP_LINK_LIFETIME.as_secs() / 60;
    let (program, data) = (quoted(program), quoted(&data.display().to_string()));
    let (command, account) = match has_accounts {
        true => ("edit NAME --role operator", "NAME"),
        false => ("create me", "me"),
    };
    let links = links.iter().map(|link| format!("  {link}\n")).collect::<String>();
    format!(
        "\nFinish the set-up in a browser. The link works once and expires in {minutes} minutes;\n\
         restart the server for a new one:\n\n{links}\n\
         Without a browser, in a second terminal:\n\n  \
         {program} account {command} --data {data}\n  \
         {program} account password {account} --data {data}\n"
    )
}

/// Quotes a word for a POSIX shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_up_text_has_links_and_commands() {
        let links = ["http://127.0.0.1:8080/-/set-up#abc".to_owned()];
        let text = set_up("target/release/trug", Path::new("my data"), &links, false);
        assert!(text.contains("\n  http://127.0.0.1:8080/-/set-up#abc\n"), "{text}");
        assert!(text.contains(" 30 minutes"), "{text}");
        assert!(
            text.contains("  target/release/trug account create me --data 'my data'\n"),
            "{text}"
        );
        let text = set_up("trug", Path::new("data"), &links, true);
        let edit = "  trug account edit NAME --role operator --data data\n";
        assert!(text.contains(edit), "{text}");
    }

    #[test]
    fn recovery_is_shown_only_after_an_unclean_shutdown() {
        let clean = RecoveryReport { last_lsn: 7, ..RecoveryReport::default() };
        assert_eq!(recovered(&clean), None);
        let killed = RecoveryReport { replayed_records: 12, orphans_removed: 1, ..clean };
        assert_eq!(
            recovered(&killed).unwrap(),
            "12 records after an unclean shutdown, 1 unreferenced files deleted"
        );
    }

    #[test]
    fn shell_words_are_quoted() {
        for (word, want) in
            [("data", "data"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$x", "'$x'")]
        {
            assert_eq!(quoted(word), want);
        }
    }
}
