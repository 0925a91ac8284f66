//! Client address keys of per-address limits, and CIDR networks of the configuration.
//!
//! Non-goals: which address a request comes from (`client_address`), and what is counted.

use std::fmt;
use std::net::IpAddr;

/// Subject of a per-address limit: one IPv4 address, or one IPv6 /64, since one customer usually has a whole /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressKey(u64);

/// CIDR network: an address and the length of its prefix in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl AddressKey {
    /// Returns the key of an address. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn from_ip(address: IpAddr) -> Self {
        match address.to_canonical() {
            // Disjoint from every allocated IPv6 network: none starts with a zero byte.
            IpAddr::V4(address) => Self(0xffff << 32 | u64::from(address.to_bits())),
            IpAddr::V6(address) => Self((address.to_bits() >> 64) as u64),
        }
    }

    /// Returns the key of the /48 of an IPv6 address, for a separate table: a customer may own all of it, or a /56 of
    /// it. `None` for IPv4.
    pub fn network(self) -> Option<Self> {
        let is_ipv6 = self.0 >> 48 != 0;
        is_ipv6.then_some(Self(self.0 & !0xffff))
    }

    /// Returns a key for a number that is not an address, for a separate table.
    pub fn synthetic(number: u64) -> Self {
        Self(number)
    }

    /// Returns the key as a number, for hash tables.
    pub fn to_u64(self) -> u64 {
        self.0
    }
}

impl Network {
    /// Parses `10.0.0.0/8`, `2001:db8::/32`, or a single address.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(bits_max);
        (bits <= bits_max).then_some(Self { address, bits })
    }

    /// Returns whether the network contains an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(asked)) => {
                let differing = ours.to_bits() ^ asked.to_bits();
                differing.checked_shr(32 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(ours), IpAddr::V6(asked)) => {
                let differing = ours.to_bits() ^ asked.to_bits();
                differing.checked_shr(128 - self.bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// Returns whether an address is loopback or in one of the networks, and therefore exempt from per-address limits.
pub fn is_local_or_trusted(address: IpAddr, networks: &[Network]) -> bool {
    address.to_canonical().is_loopback() || any_contains(address, networks)
}

/// Returns whether an address is in one of the networks.
pub fn any_contains(address: IpAddr, networks: &[Network]) -> bool {
    networks.iter().any(|network| network.contains(address))
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(address: &str) -> AddressKey {
        AddressKey::from_ip(address.parse().unwrap())
    }

    #[test]
    fn ipv4_counts_alone_and_ipv6_by_64_prefix() {
        assert_eq!(key("192.0.2.7"), key("::ffff:192.0.2.7"));
        assert_ne!(key("192.0.2.7"), key("192.0.2.8"));
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::9"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_ne!(key("0.0.0.0"), key("::"));
    }

    #[test]
    fn ipv6_addresses_of_one_48_share_a_network() {
        assert_eq!(key("2001:db8:1:2::1").network(), key("2001:db8:1:ffff::1").network());
        assert_ne!(key("2001:db8:1:2::1").network(), key("2001:db8:2:2::1").network());
        assert_eq!(key("192.0.2.7").network(), None);
    }

    #[test]
    fn cidr_networks_match_by_prefix() {
        let holds = |network: &str, address: &str| {
            Network::parse(network).unwrap().contains(address.parse().unwrap())
        };
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("10.1.2.3", "10.1.2.3") && !holds("10.1.2.3", "10.1.2.4"));
        assert!(holds("0.0.0.0/0", "203.0.113.9") && !holds("0.0.0.0/0", "2001:db8::1"));
        assert!(holds("10.0.0.0/8", "::ffff:10.0.0.9"));
        assert!(holds("2001:db8::/32", "2001:db8:ffff::1"));
        assert!(!holds("2001:db8::/32", "2001:db9::1") && holds("::/0", "2001:db8::1"));
        for bad in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/", "10.0.0.0/-1", "a/8"] {
            assert_eq!(Network::parse(bad), None, "{bad}");
        }
        assert_eq!(Network::parse("10.0.0.0/8").unwrap().to_string(), "10.0.0.0/8");
    }
}
