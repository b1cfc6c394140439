//! Puts events together that were cut at the ends of frames.

use super::event::{self, LENGTH_BYTES, Replayed};
use super::frame::{FrameHeader, FrameRole};
use crate::format::FormatError;
use bytes::{Bytes, BytesMut};
use softflash_base::cast::index;

const WHAT: &str = "the event stream of a log";

/// Turns the payloads of frames, in order, into events.
///
/// It may start anywhere in a log: what is left of an event whose start was not seen is passed
/// over. An event whose end was never written, because the writer died, ends where the next
/// writer's first frame begins an event of its own; it is passed over too, as it was never
/// acknowledged.
#[derive(Debug, Default)]
pub struct EventStream {
    events: Joiner,
    checkpoint: Joiner,
    checkpoint_segment: Option<u64>,
    /// Whether the start of an event has been seen.
    aligned: bool,
    /// Events without an end.
    abandoned: u64,
    /// The sequence of the next frame.
    next: Option<u64>,
}

impl EventStream {
    /// Events that were begun and never ended.
    pub fn abandoned(&self) -> u64 {
        self.abandoned
    }

    /// Takes the next frame and hands each event that it completes to `sink`.
    ///
    /// # Errors
    /// Those of `sink`, and [`FormatError`] where an event cannot be decoded or frames do not fit
    /// together.
    pub fn feed<E: From<FormatError>>(
        &mut self,
        header: &FrameHeader,
        payload: Bytes,
        mut sink: impl FnMut(Replayed) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.next.is_some_and(|next| header.sequence > next) {
            // A repair passes over frames that are lost: what was begun in front of them has no
            // end.
            self.events = Joiner::default();
            self.aligned = false;
        }
        self.next = header.sequence.checked_add(1);
        if matches!(header.role, FrameRole::Padding | FrameRole::End | FrameRole::Announcement) {
            return Ok(());
        }
        if header.role.is_checkpoint() {
            // The checkpoint of a segment stands for itself; one that was never completed is not
            // continued.
            if self.checkpoint_segment != Some(header.segment) {
                self.checkpoint_segment = Some(header.segment);
                self.checkpoint = Joiner::default();
            }
            return self.checkpoint.feed(payload, &mut sink);
        }
        let payload = self.align(header, payload)?;
        self.events.feed(payload, &mut sink)
    }

    /// Compares where the next event should start with where the frame says that it does.
    fn align(&mut self, header: &FrameHeader, mut payload: Bytes) -> Result<Bytes, FormatError> {
        let first = index(header.first_event);
        let starts_event = first < payload.len();
        if !self.aligned {
            if !starts_event {
                return Ok(Bytes::new());
            }
            self.aligned = true;
            return Ok(payload.split_off(first));
        }
        let malformed = FormatError::Malformed { what: WHAT, reason: "frames do not fit together" };
        match self.events.missing() {
            0 if payload.is_empty() || first == 0 => Ok(payload),
            0 => Err(malformed),
            _ if first == 0 && starts_event => {
                self.abandoned += 1;
                self.events = Joiner::default();
                Ok(payload)
            }
            _ => {
                let whole = self.events.whole_len_with(&payload);
                let missing = whole.map(|whole| whole - self.events.partial.len());
                let fits = match missing {
                    Some(missing) if starts_event => missing == first,
                    Some(missing) => missing >= payload.len(),
                    None => !starts_event,
                };
                if fits { Ok(payload) } else { Err(malformed) }
            }
        }
    }
}

/// Cuts a stream into events.
#[derive(Debug, Default)]
struct Joiner {
    /// The start of an event whose end is still to come.
    partial: BytesMut,
}

impl Joiner {
    /// Bytes that are known to be missing of the event that was begun; 0 between events.
    fn missing(&self) -> usize {
        match (self.partial.len(), whole_len(&self.partial)) {
            (0, _) => 0,
            (len, Some(whole)) => whole - len,
            (len, None) => LENGTH_BYTES - len,
        }
    }

    /// The length of the event that was begun, once what follows is known too.
    fn whole_len_with(&self, next: &[u8]) -> Option<usize> {
        let mut length = [0; LENGTH_BYTES];
        let bytes = self.partial.iter().chain(next);
        let found = length.iter_mut().zip(bytes).map(|(place, byte)| *place = *byte).count();
        if found < LENGTH_BYTES { None } else { whole_len(&length) }
    }

    fn feed<E: From<FormatError>>(
        &mut self,
        mut payload: Bytes,
        sink: &mut impl FnMut(Replayed) -> Result<(), E>,
    ) -> Result<(), E> {
        while !payload.is_empty() {
            if self.partial.is_empty()
                && let Some(len) = whole_len(&payload)
                && len <= payload.len()
            {
                sink(event::decode(&payload.split_to(len).slice(LENGTH_BYTES..))?)?;
                continue;
            }
            let wanted = if self.partial.is_empty() { LENGTH_BYTES } else { self.missing() };
            self.partial.extend_from_slice(&payload.split_to(wanted.min(payload.len())));
            if whole_len(&self.partial) == Some(self.partial.len()) {
                let whole = self.partial.split().freeze();
                sink(event::decode(&whole.slice(LENGTH_BYTES..))?)?;
            }
        }
        Ok(())
    }
}

/// The length of the event that starts here, its length included, once its first bytes are known.
fn whole_len(bytes: &[u8]) -> Option<usize> {
    let len = u32::from_le_bytes(bytes.get(..LENGTH_BYTES)?.try_into().ok()?);
    Some(LENGTH_BYTES + index(len))
}
