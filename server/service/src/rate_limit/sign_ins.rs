//! Rate limits of failed sign-ins: per address, per account name, and per known device of the account.
//!
//! An attempt is charged before the password is checked, so that concurrent attempts do not pass together, and refunded
//! on success. An attempt from an unknown device is charged to the address and to the name; if the limit of the name is
//! used up, the address is charged all the same. An attempt from a known device is charged to the device alone, so that
//! nobody else can use up the owner's attempts. Guarantees: memory is three tables of fixed size, whatever names are
//! tried; attempts count for a name from all addresses, including exempt ones, since a proxy there represents all its
//! clients. Non-goals: passwords, and which devices are known.

use std::net::IpAddr;
use std::num::NonZeroU32;

use engine::rng::Rng;
use governor::Quota;
use listener::ip_network::AddressKey;
use sha2::{Digest, Sha256};

use super::{LimiterClock, OfKeys, PerIpLimit, RateLimited};
use crate::limits::{
    FAILED_SIGN_IN_REFILL_INTERVAL, FAILED_SIGN_INS_PER_MINUTE, FAILED_SIGN_INS_PER_NAME_BURST,
};

/// All three limits.
pub(super) struct LoginLimits {
    addresses: PerIpLimit,
    names: OfKeys,
    devices: OfKeys,
    /// Salt of the hash of names. Without knowing it, a client cannot choose names that share a limit.
    salt: u64,
}

/// Charged attempt.
#[derive(Clone, Copy, Debug)]
pub enum LoginAttempt {
    UnknownDevice { address: Option<AddressKey>, name: AddressKey },
    KnownDevice(AddressKey),
}

impl LoginLimits {
    pub(super) fn new(time: &LimiterClock, rng: &dyn Rng) -> Self {
        let per_minute = NonZeroU32::new(FAILED_SIGN_INS_PER_MINUTE).unwrap_or(NonZeroU32::MIN);
        let at_once = NonZeroU32::new(FAILED_SIGN_INS_PER_NAME_BURST).unwrap_or(NonZeroU32::MIN);
        let of_name = Quota::with_period(FAILED_SIGN_IN_REFILL_INTERVAL);
        let of_name = of_name.unwrap_or(Quota::per_minute(NonZeroU32::MIN)).allow_burst(at_once);
        let of_address = Quota::per_minute(per_minute);
        Self {
            addresses: PerIpLimit::new("sign-in-address", of_address, time, rng),
            names: OfKeys::new("sign-in-name", of_name, time, rng),
            devices: OfKeys::new("sign-in-device", of_name, time, rng),
            salt: rng.next_u64(),
        }
    }

    /// Charges an attempt. An address of `None` is not counted; `device` is the id of a known device of the account.
    pub(super) fn charge(
        &self,
        address: Option<IpAddr>,
        name: &str,
        device: Option<&str>,
    ) -> Result<LoginAttempt, RateLimited> {
        if let Some(device) = device {
            let device = self.key_of(device);
            self.devices.take(device, NonZeroU32::MIN)?;
            return Ok(LoginAttempt::KnownDevice(device));
        }
        let (address, name) = (address.map(AddressKey::from_ip), self.key_of(name));
        if let Some(address) = address {
            self.addresses.take(address, NonZeroU32::MIN)?;
        }
        self.names.take(name, NonZeroU32::MIN)?;
        Ok(LoginAttempt::UnknownDevice { address, name })
    }

    /// Refunds an attempt.
    pub(super) fn refund(&self, taken: LoginAttempt) {
        match taken {
            LoginAttempt::KnownDevice(device) => self.devices.refund(device),
            LoginAttempt::UnknownDevice { address, name } => {
                if let Some(address) = address {
                    self.addresses.refund(address);
                }
                self.names.refund(name);
            }
        }
    }

    pub(super) fn known_count(&self) -> usize {
        self.addresses.known_count() + self.names.table.count() + self.devices.table.count()
    }

    fn key_of(&self, name: &str) -> AddressKey {
        let hash = Sha256::new().chain_update(self.salt.to_le_bytes()).chain_update(name);
        let [a, b, c, d, e, f, g, h, ..]: [u8; 32] = hash.finalize().into();
        AddressKey::synthetic(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
    }
}
