//! A separated value: written to a value block; log and tree have only a reference to it. Until it
//! is written, memory has the value.

use super::FormatError;
use super::record::{Body, Record};
use super::reference::Reference;
use super::value::checksum_of;
use crate::value::{Entry, Value};
use bytes::Bytes;
use smallvec::SmallVec;
use softflash_base::cast::saturating_u16;
use std::cell::{Cell, RefCell};

/// The references of a value, one for each fragment.
pub type References = SmallVec<[Reference; 1]>;

/// A separated value of one version of a key.
#[derive(Debug)]
pub struct Separated {
    /// When it expires, in milliseconds since the Unix epoch; 0 for never.
    pub expires_at_ms: u64,
    /// The version was superseded before its value was written.
    pub is_superseded: Cell<bool>,
    /// The collector moves it, and the flash has no room for it.
    pub is_given_up: Cell<bool>,
    state: RefCell<State>,
}

#[derive(Debug)]
enum State {
    /// Some fragments are not written.
    Waiting {
        value: Value,
        checksums: SmallVec<[u64; 1]>,
        places: SmallVec<[Option<Reference>; 1]>,
    },
    /// All fragments are written.
    Placed(References),
}

impl Separated {
    /// A value of `key` that is to be written, in fragments as they will be stored.
    pub fn waiting(key: &[u8], entry: Entry) -> Separated {
        let Entry { value, expires_at_ms } = entry;
        let checksums: SmallVec<[u64; 1]> =
            value.fragments().iter().map(|fragment| checksum_of(key, fragment)).collect();
        let places = SmallVec::from_elem(None, checksums.len());
        let state = RefCell::new(State::Waiting { value, checksums, places });
        Separated::new(expires_at_ms, state)
    }

    fn new(expires_at_ms: u64, state: RefCell<State>) -> Separated {
        let (is_superseded, is_given_up) = Default::default();
        Separated { expires_at_ms, is_superseded, is_given_up, state }
    }

    /// A value that is written.
    pub fn placed(references: References, expires_at_ms: u64) -> Separated {
        let state = RefCell::new(State::Placed(references));
        Separated::new(expires_at_ms, state)
    }

    /// The references, once all fragments are written.
    pub fn references(&self) -> Option<References> {
        match &*self.state.borrow() {
            State::Placed(references) => Some(references.clone()),
            State::Waiting { .. } => None,
        }
    }

    /// Whether all fragments are written.
    pub fn is_placed(&self) -> bool {
        matches!(&*self.state.borrow(), State::Placed(_))
    }

    /// The value, until all fragments are written.
    pub fn value(&self) -> Option<Value> {
        match &*self.state.borrow() {
            State::Waiting { value, .. } => Some(value.clone()),
            State::Placed(_) => None,
        }
    }

    /// The length of the value; once it is written with the heads of its fragments.
    pub fn stored_bytes(&self) -> u64 {
        match &*self.state.borrow() {
            State::Waiting { value, .. } => value.len() as u64,
            State::Placed(references) => {
                references.iter().map(|reference| u64::from(reference.len())).sum()
            }
        }
    }

    /// The checksum of a fragment.
    pub fn checksum(&self, fragment: usize) -> u64 {
        match &*self.state.borrow() {
            State::Waiting { checksums, .. } => checksums.get(fragment).copied().unwrap_or(0),
            State::Placed(places) => places.get(fragment).map_or(0, Reference::checksum),
        }
    }

    /// The number of fragments.
    pub fn fragments(&self) -> usize {
        match &*self.state.borrow() {
            State::Waiting { checksums, .. } => checksums.len(),
            State::Placed(places) => places.len(),
        }
    }

    /// A fragment is written. Returns whether all are.
    pub fn place(&self, fragment: usize, reference: Reference) -> bool {
        let mut state = self.state.borrow_mut();
        let State::Waiting { places, .. } = &mut *state else { return true };
        if let Some(place) = places.get_mut(fragment) {
            *place = Some(reference);
        }
        let all: Option<References> = places.iter().copied().collect();
        match all {
            Some(references) => {
                *state = State::Placed(references);
                true
            }
            None => false,
        }
    }

    /// The collector has moved a fragment. Returns whether it is one of a value that waits for
    /// others: that is not in the log, and will be with the new place.
    pub fn move_waiting(&self, old: &Reference, new: Reference) -> bool {
        let State::Waiting { places, .. } = &mut *self.state.borrow_mut() else { return false };
        let Some(place) = places.iter_mut().find(|place| place.as_ref() == Some(old)) else {
            return false;
        };
        *place = Some(new);
        true
    }

    /// The records that the log and the tree keep: one for each reference. Until the value is
    /// written, records that have the value itself, for readers of memory.
    pub(crate) fn bodies(&self) -> SmallVec<[Body; 1]> {
        let expires_at_ms = self.expires_at_ms;
        match &*self.state.borrow() {
            State::Placed(references) => {
                let fragments = saturating_u16(references.len());
                let bodies = references.iter().zip(0..).map(|(reference, fragment)| {
                    Body::Reference { reference: *reference, expires_at_ms, fragment, fragments }
                });
                bodies.collect()
            }
            State::Waiting { value, .. } => {
                let fragments = saturating_u16(value.fragments().len());
                let bodies = value.fragments().iter().cloned().zip(0..).map(|(value, fragment)| {
                    Body::Put { value, expires_at_ms, fragment, fragments }
                });
                bodies.collect()
            }
        }
    }

    /// The sealed record of a fragment that is written.
    ///
    /// # Errors
    /// As [`Record::seal`].
    pub fn record(
        &self,
        key: &Bytes,
        seq: u64,
        fragment: usize,
    ) -> Result<Option<Record>, FormatError> {
        let Some(reference) = self.references().and_then(|all| all.get(fragment).copied()) else {
            return Ok(None);
        };
        let fragments = saturating_u16(self.fragments());
        let (expires_at_ms, fragment) = (self.expires_at_ms, saturating_u16(fragment));
        let body = Body::Reference { reference, expires_at_ms, fragment, fragments };
        Record::seal(key.clone(), seq, body).map(Some)
    }
}

impl PartialEq for Separated {
    fn eq(&self, other: &Separated) -> bool {
        self.expires_at_ms == other.expires_at_ms
            && self.references() == other.references()
            && self.value() == other.value()
    }
}

impl Eq for Separated {}
