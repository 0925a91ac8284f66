//! Client address of a request: the peer, or the address that a trusted proxy reports.
//!
//! The address is the peer of the connection. If the peer is a trusted proxy, the address is taken from
//! `X-Forwarded-For`, to which each proxy appends the address of its own peer; the list is therefore read from its end
//! while its entries are trusted proxies, since earlier entries may be forged. Guarantees: every header value yields an
//! address; at most `FORWARDED_HOPS_MAX` entries are read. Non-goals: use of the address; other forwarding headers.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName};

use crate::ip_network::{Network, any_contains};
use crate::limits::FORWARDED_HOPS_MAX;
use crate::peer::Peer;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Returns the client address; `None` for a local client without an IP address.
pub fn client_ip(peer: Peer, headers: &HeaderMap, proxies: &[Network]) -> Option<IpAddr> {
    let address = peer.ip()?;
    Some(match any_contains(address, proxies) {
        true => behind(address, headers, proxies),
        false => address,
    })
}

/// Returns the client behind a trusted proxy: the last entry of the list that is not itself a trusted proxy. Where the
/// list ends or has an invalid entry, the proxy that added it is the client.
fn behind(proxy: IpAddr, headers: &HeaderMap, proxies: &[Network]) -> IpAddr {
    let mut known = proxy;
    // Repeated headers form one list.
    let lines = headers.get_all(X_FORWARDED_FOR).iter().rev();
    let entries = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    for entry in entries.take(FORWARDED_HOPS_MAX) {
        let Some(address) = std::str::from_utf8(entry).ok().and_then(parse) else { break };
        known = address;
        if !any_contains(address, proxies) {
            break;
        }
    }
    known
}

/// Parses `192.0.2.7`, `192.0.2.7:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`. Rejects loopback
/// addresses, which are exempt from limits: a proxy that reports one forwards a forged value.
fn parse(text: &str) -> Option<IpAddr> {
    let text = text.trim_matches([' ', '\t']);
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address = match bare {
        Some(bare) => bare.parse().ok().filter(IpAddr::is_ipv6),
        None => text.parse().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip())),
    };
    let address = address?.to_canonical();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Returns the client of a request from `peer` with these header lines.
    fn client(peer: &str, lines: &[&[u8]]) -> String {
        let proxies = ["10.0.0.0/8", "127.0.0.1", "2001:db8:ffff::/48"];
        let proxies: Vec<_> = proxies.iter().map(|text| Network::parse(text).unwrap()).collect();
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_bytes(line).unwrap());
        }
        let peer = Peer::Address(SocketAddr::new(peer.parse().unwrap(), 40_000));
        client_ip(peer, &headers, &proxies).unwrap().to_string()
    }

    #[test]
    fn forwarded_for_is_honored_from_trusted_proxies_only() {
        assert_eq!(client("10.0.0.1", &[b"192.0.2.7"]), "192.0.2.7");
        assert_eq!(client("127.0.0.1", &[b"2001:db8::7"]), "2001:db8::7");
        assert_eq!(client("::ffff:10.0.0.1", &[b"192.0.2.7"]), "192.0.2.7");
        assert_eq!(client("2001:db8:ffff::1", &[b"::ffff:192.0.2.7"]), "192.0.2.7");
        for peer in ["192.0.2.1", "11.0.0.1", "127.0.0.2", "2001:db8::1", "::1"] {
            assert_eq!(client(peer, &[b"192.0.2.7"]), peer);
        }
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn forwarded_for_is_read_right_to_left() {
        for (lines, found) in [
            (&[&b"203.0.113.1, 192.0.2.7"[..]][..], "192.0.2.7"),
            (&[b"203.0.113.1, 192.0.2.7, 10.0.0.9"], "192.0.2.7"),
            (&[b"203.0.113.1, 192.0.2.7, 10.0.0.9, 10.0.0.8,10.1.1.1"], "192.0.2.7"),
            // All entries are proxies: the first one is the client.
            (&[b"10.0.0.9, 10.0.0.8"], "10.0.0.9"),
            // Several headers are one list, in their order.
            (&[b"203.0.113.1", b"192.0.2.7"], "192.0.2.7"),
            (&[b"192.0.2.7", b"10.0.0.9, 10.0.0.8"], "192.0.2.7"),
        ] {
            assert_eq!(client("10.0.0.1", lines), found, "{lines:?}");
        }
    }

    #[test]
    fn forwarded_for_ports_and_brackets_are_stripped() {
        for (entry, found) in [
            ("192.0.2.7:4711", "192.0.2.7"),
            ("[2001:db8::7]:4711", "2001:db8::7"),
            ("[2001:db8::7]", "2001:db8::7"),
            ("\t 192.0.2.7 \t", "192.0.2.7"),
        ] {
            assert_eq!(client("10.0.0.1", &[entry.as_bytes()]), found, "{entry}");
        }
    }

    #[test]
    fn forwarded_for_stops_at_invalid_entries() {
        for bad in [
            "",
            " ",
            ",",
            "unknown",
            "_hidden",
            "localhost",
            "192.0.2",
            "192.0.2.7.8",
            "0x7f000001",
            "192.0.2.7:",
            "192.0.2.7:99999",
            "[192.0.2.7]",
            "[2001:db8::7",
            "2001:db8::7]",
            "[]",
            "fe80::1%eth0",
            "192.0.2.7;a",
            "\"192.0.2.7\"",
            "for=192.0.2.7",
            "192.0.2.7 192.0.2.8",
            "127.0.0.1",
            "::1",
            "0.0.0.0",
            "::",
            "::ffff:127.0.0.1",
            "[::1]:80",
        ] {
            let line = format!("203.0.113.1, {bad}");
            assert_eq!(client("10.0.0.1", &[line.as_bytes()]), "10.0.0.1", "{bad:?}");
            // Only the trusted entry after it is evaluated.
            let line = format!("203.0.113.1, {bad}, 10.0.0.9");
            assert_eq!(client("10.0.0.1", &[line.as_bytes()]), "10.0.0.9", "{bad:?}");
        }
        assert_eq!(client("10.0.0.1", &[b"203.0.113.1, \xff\xfe"]), "10.0.0.1");
    }

    #[test]
    fn forwarded_for_hops_are_limited() {
        let long = vec!["10.0.0.9"; 1_500].join(", ");
        let line = format!("192.0.2.7, {long}");
        assert_eq!(client("10.0.0.1", &[line.as_bytes()]), "10.0.0.9");
        let many = vec![&b"10.0.0.9"[..]; 64];
        assert_eq!(client("10.0.0.1", &many), "10.0.0.9");
        let in_a_row = vec!["10.0.0.9"; FORWARDED_HOPS_MAX - 1].join(",");
        let line = format!("192.0.2.7,{in_a_row}");
        assert_eq!(client("10.0.0.1", &[line.as_bytes()]), "192.0.2.7");
    }
}
