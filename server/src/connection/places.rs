//! How many connections each address has, and may have.
//!
//! Never here: whom the bound does not apply to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{ConnectionOptions, Peer};
use crate::address::AddressKey;

/// How many connections each address has.
#[derive(Default)]
pub(super) struct Addresses(pub(super) Mutex<HashMap<AddressKey, usize>>);

/// A connection's place among those of its address, given back when it is dropped.
pub(super) struct AddressPlace(Option<(Arc<Addresses>, AddressKey)>);

impl Addresses {
    /// A place for one more connection; `None` when the address has its share.
    pub(super) fn enter(
        this: &Arc<Self>,
        peer: Peer,
        options: &ConnectionOptions,
    ) -> Option<AddressPlace> {
        let Some(ip) = peer.ip().filter(|ip| !(options.exempt)(*ip)) else {
            return Some(AddressPlace(None));
        };
        let key = AddressKey::of(ip);
        let mut counts = this.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(key).or_insert(0);
        if *count >= options.per_address_max {
            return None;
        }
        *count += 1;
        Some(AddressPlace(Some((this.clone(), key))))
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        let Some((addresses, key)) = &self.0 else { return };
        let mut counts = addresses.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(key);
            }
        }
    }
}
