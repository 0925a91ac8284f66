//! Simulated remote store in memory with fault injection.
//!
//! Every call has a number, from 1. A fault hits a call of a given number, or all calls during an outage. With the same
//! calls and faults the content is the same.
//!
//! Guarantees: those of [`RemoteStore`], unless conditions are ignored.
//! Non-goals: the network, time-outs.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::{Created, Part, ReadPiece, RemoteBytes, RemoteObject, RemoteStore};
use crate::clock::Clock;

/// Fault of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteFault {
    /// The call fails and has no effect.
    Refused(io::ErrorKind),
    /// The call takes effect, and its reply is lost: it fails.
    ReplyLost,
    /// The call fails now, and takes effect after this many further calls. Only for writes; reads are refused.
    Delayed(u64),
    /// The call takes effect and succeeds, and takes effect again after this many further calls. Only for writes.
    Repeated(u64),
}

/// Remote store in memory. Clones share the same objects; [`SimRemote::fork`] copies them.
#[derive(Clone)]
pub struct SimRemote(Arc<Mutex<State>>);

#[derive(Clone)]
struct State {
    clock: Arc<dyn Clock>,
    objects: BTreeMap<String, (Bytes, u64)>,
    calls: u64,
    faults: BTreeMap<u64, RemoteFault>,
    outage: Option<io::ErrorKind>,
    cut_after: Option<u64>,
    ignores_conditions: bool,
    late: Vec<(u64, Write)>,
}

#[derive(Clone)]
enum Write {
    Create(String, Bytes),
    Upload(String, Bytes),
    Remove(String),
}

impl SimRemote {
    /// Creates an empty remote store with this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Mutex::new(State {
            clock,
            objects: BTreeMap::new(),
            calls: 0,
            faults: BTreeMap::new(),
            outage: None,
            cut_after: None,
            ignores_conditions: false,
            late: Vec::new(),
        })))
    }

    /// Returns a deep copy with the same objects and calls under way, without faults.
    pub fn fork(&self) -> Self {
        let state = State {
            faults: BTreeMap::new(),
            outage: None,
            cut_after: None,
            ..State::clone(&self.state())
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns the number of calls so far.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Injects a fault into the call of this number.
    pub fn inject(&self, call: u64, fault: RemoteFault) {
        self.state().faults.insert(call, fault);
    }

    /// Begins an outage, in which every call is refused, or ends it.
    pub fn set_outage(&self, outage: Option<io::ErrorKind>) {
        self.state().outage = outage;
    }

    /// Refuses every call after this many, as if the caller had lost power.
    pub fn cut_after(&self, calls: Option<u64>) {
        self.state().cut_after = calls;
    }

    /// Makes [`RemoteStore::create`] overwrite, like a store that ignores conditional requests.
    pub fn ignore_conditions(&self, ignores: bool) {
        self.state().ignores_conditions = ignores;
    }

    /// Removes all injected faults that did not happen yet.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// Lets all delayed and repeated writes take effect now.
    pub fn deliver_late_writes(&self) {
        let mut state = self.state();
        for (_, write) in std::mem::take(&mut state.late) {
            state.apply(write);
        }
    }

    /// Returns the names of all objects, in order.
    pub fn names(&self) -> Vec<String> {
        self.state().objects.keys().cloned().collect()
    }

    /// Returns the content of an object; `None` if there is none.
    pub fn object(&self, name: &str) -> Option<Bytes> {
        self.state().objects.get(name).map(|(bytes, _)| bytes.clone())
    }

    /// Replaces the content of an object, or removes it, as damage does.
    pub fn damage(&self, name: &str, content: Option<Bytes>) {
        let mut state = self.state();
        let now_ms = state.clock.unix_ms();
        match content {
            Some(content) => drop(state.objects.insert(name.to_owned(), (content, now_ms))),
            None => drop(state.objects.remove(name)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call. Returns its fault, and an error if it has no effect.
    fn begin(&self) -> io::Result<(MutexGuard<'_, State>, Option<RemoteFault>)> {
        let mut state = self.state();
        if let Some(kind) = state.outage {
            return Err(kind.into());
        }
        if state.cut_after.is_some_and(|calls| state.calls >= calls) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        state.calls += 1;
        let now = state.calls;
        let due: Vec<_> = state.late.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, write) in due {
            state.apply(write);
        }
        match state.faults.remove(&now) {
            Some(RemoteFault::Refused(kind)) => Err(kind.into()),
            fault => Ok((state, fault)),
        }
    }

    fn write(&self, write: Write) -> io::Result<Created> {
        let (mut state, fault) = self.begin()?;
        let now = state.calls;
        match fault {
            Some(RemoteFault::Delayed(calls)) => {
                state.late.push((now + calls, write));
                Err(io::ErrorKind::TimedOut.into())
            }
            Some(RemoteFault::Repeated(calls)) => {
                state.late.push((now + calls, write.clone()));
                Ok(state.apply(write))
            }
            Some(RemoteFault::ReplyLost) => {
                state.apply(write);
                Err(io::ErrorKind::ConnectionReset.into())
            }
            _ => Ok(state.apply(write)),
        }
    }

    fn look(&self) -> io::Result<MutexGuard<'_, State>> {
        match self.begin()? {
            (_, Some(RemoteFault::Delayed(_) | RemoteFault::ReplyLost)) => {
                Err(io::ErrorKind::TimedOut.into())
            }
            (state, _) => Ok(state),
        }
    }
}

impl State {
    fn apply(&mut self, write: Write) -> Created {
        let now_ms = self.clock.unix_ms();
        match write {
            Write::Create(name, bytes) => {
                if self.objects.contains_key(&name) && !self.ignores_conditions {
                    return Created::Exists;
                }
                self.objects.insert(name, (bytes, now_ms));
            }
            Write::Upload(name, bytes) => drop(self.objects.insert(name, (bytes, now_ms))),
            Write::Remove(name) => drop(self.objects.remove(&name)),
        }
        Created::New
    }
}

impl RemoteStore for SimRemote {
    fn create(&self, name: &str, pieces: &[Bytes]) -> io::Result<Created> {
        self.write(Write::Create(name.to_owned(), pieces.concat().into()))
    }

    fn upload(&self, name: &str, bytes: u64, read: &mut ReadPiece<'_>) -> io::Result<()> {
        let length = usize::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut content = vec![0; length];
        for (at, piece) in content.chunks_mut(PIECE_BYTES).enumerate() {
            read((at * PIECE_BYTES) as u64, piece)?;
        }
        self.write(Write::Upload(name.to_owned(), content.into())).map(drop)
    }

    fn read(&self, name: &str, part: Part) -> io::Result<Option<RemoteBytes>> {
        let state = self.look()?;
        Ok(state.objects.get(name).map(|(bytes, _)| {
            let end = bytes.len();
            let at = |offset: u64| usize::try_from(offset).unwrap_or(end).min(end);
            let range = match part {
                Part::Whole => 0..end,
                Part::Range(range) => at(range.start)..at(range.end).max(at(range.start)),
                Part::Suffix(length) => end - at(length)..end,
            };
            RemoteBytes { bytes: bytes.slice(range), object_bytes: end as u64 }
        }))
    }

    fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> io::Result<Vec<RemoteObject>> {
        let state = self.look()?;
        let listed = state.objects.range(prefix.to_owned()..);
        let listed = listed.take_while(|(name, _)| name.starts_with(prefix));
        let listed = listed.filter(|(name, _)| after.is_none_or(|after| name.as_str() > after));
        let described = listed.map(|(name, (bytes, modified_ms))| RemoteObject {
            name: name.clone(),
            bytes: bytes.len() as u64,
            modified_ms: *modified_ms,
        });
        Ok(described.take(limit).collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.write(Write::Remove(name.to_owned())).map(drop)
    }
}

impl fmt::Debug for SimRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

const PIECE_BYTES: usize = 1 << 20;
