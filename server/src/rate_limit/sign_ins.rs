//! How often somebody may present a wrong password: from one address, and for one name.
//!
//! A try is taken before the password is looked at, so that many at once do not pass together, and given back when it
//! was right. Promises: memory is two tables of fixed size, whatever names are tried; a name is counted from
//! everywhere, also from addresses that nothing else is counted of, since a proxy there speaks for everybody.
//! Never here: passwords.

use std::net::IpAddr;
use std::num::NonZeroU32;

use engine::Entropy;
use governor::Quota;
use sha2::{Digest, Sha256};

use super::{OfAddresses, Refused, Time};
use crate::address::AddressKey;
use crate::limits::{
    FAILED_SIGN_IN_OF_NAME_WAIT, FAILED_SIGN_INS_OF_NAME, FAILED_SIGN_INS_PER_MINUTE,
};

/// Both allowances.
pub(super) struct SignIns {
    addresses: OfAddresses,
    names: OfAddresses,
    /// Whoever does not know it cannot choose names that share an allowance.
    salt: u64,
}

/// A try that was taken.
#[derive(Clone, Copy, Debug)]
pub struct SignInTry {
    address: Option<AddressKey>,
    name: AddressKey,
}

impl SignIns {
    pub(super) fn new(time: &Time, entropy: &dyn Entropy) -> Self {
        let per_minute = NonZeroU32::new(FAILED_SIGN_INS_PER_MINUTE).unwrap_or(NonZeroU32::MIN);
        let at_once = NonZeroU32::new(FAILED_SIGN_INS_OF_NAME).unwrap_or(NonZeroU32::MIN);
        let of_name = Quota::with_period(FAILED_SIGN_IN_OF_NAME_WAIT);
        let of_name = of_name.unwrap_or(Quota::per_minute(NonZeroU32::MIN)).allow_burst(at_once);
        let of_address = Quota::per_minute(per_minute);
        Self {
            addresses: OfAddresses::new("sign-in-address", of_address, time, entropy),
            names: OfAddresses::new("sign-in-name", of_name, time, entropy),
            salt: entropy.number(),
        }
    }

    /// Takes a try. An address of `None` is not counted.
    pub(super) fn take(&self, address: Option<IpAddr>, name: &str) -> Result<SignInTry, Refused> {
        let taken = SignInTry { address: address.map(AddressKey::of), name: self.key_of(name) };
        if let Some(address) = taken.address {
            self.addresses.take(address, NonZeroU32::MIN)?;
        }
        self.names.take(taken.name, NonZeroU32::MIN).inspect_err(|_| {
            // What is refused takes nothing.
            if let Some(address) = taken.address {
                self.addresses.give_back(address);
            }
        })?;
        Ok(taken)
    }

    /// Gives a try back.
    pub(super) fn give_back(&self, taken: SignInTry) {
        if let Some(address) = taken.address {
            self.addresses.give_back(address);
        }
        self.names.give_back(taken.name);
    }

    pub(super) fn known_count(&self) -> usize {
        self.addresses.table.count() + self.names.table.count()
    }

    fn key_of(&self, name: &str) -> AddressKey {
        let hash = Sha256::new().chain_update(self.salt.to_le_bytes()).chain_update(name);
        let [a, b, c, d, e, f, g, h, ..]: [u8; 32] = hash.finalize().into();
        AddressKey::of_number(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
    }
}
