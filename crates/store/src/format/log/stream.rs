//! Joins events that frames have split.

use super::event::{self, LENGTH_BYTES, Replayed};
use super::frame::{FrameHeader, FrameRole};
use crate::format::FormatError;
use bytes::{Bytes, BytesMut};
use softflash_base::cast::index;

const WHAT: &str = "the event stream of a log";

/// Turns the payloads of frames, in order, into events.
///
/// It may start anywhere in a log: the rest of an event whose start was not read is skipped. An
/// event whose end was never written, because the writer died, ends where the next writer's first
/// frame begins an event; it was never acknowledged and is skipped too.
#[derive(Debug, Default)]
pub struct EventStream {
    events: Joiner,
    checkpoint: Joiner,
    checkpoint_segment: Option<u64>,
    /// Whether the start of an event has been read.
    aligned: bool,
    /// Events without an end.
    abandoned: u64,
    /// The sequence of the next frame.
    next: Option<u64>,
}

impl EventStream {
    /// Events without an end.
    #[cfg(test)]
    pub fn abandoned(&self) -> u64 {
        self.abandoned
    }

    /// Whether all events that have begun are complete.
    pub fn is_between_events(&self) -> bool {
        self.events.missing() == 0
    }

    /// Adds the next frame and passes each completed event to `sink`.
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
            // A repair skips lost frames: an event that began before them has no end.
            self.events = Joiner::default();
            self.aligned = false;
        }
        self.next = header.sequence.checked_add(1);
        if matches!(header.role, FrameRole::Padding | FrameRole::End | FrameRole::Announcement) {
            return Ok(());
        }
        if header.role.is_checkpoint() {
            // Each segment has its own checkpoint; an incomplete one of an earlier segment is
            // dropped.
            if self.checkpoint_segment != Some(header.segment) {
                self.checkpoint_segment = Some(header.segment);
                self.checkpoint = Joiner::default();
            }
            return self.checkpoint.feed(payload, &mut sink);
        }
        let payload = self.align(header, payload)?;
        self.events.feed(payload, &mut sink)
    }

    /// Compares the expected start of the next event with the frame header.
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
    /// The start of an event without its end.
    partial: BytesMut,
}

impl Joiner {
    /// Missing bytes of the begun event, or of its length; 0 between events.
    fn missing(&self) -> usize {
        match (self.partial.len(), whole_len(&self.partial)) {
            (0, _) => 0,
            (len, Some(whole)) => whole - len,
            (len, None) => LENGTH_BYTES - len,
        }
    }

    /// The length of the begun event, with `next` behind the bytes so far.
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

/// The length of the event at the start of `bytes`, including the length field, if that field is
/// complete.
fn whole_len(bytes: &[u8]) -> Option<usize> {
    let len = u32::from_le_bytes(bytes.get(..LENGTH_BYTES)?.try_into().ok()?);
    Some(LENGTH_BYTES + index(len))
}
