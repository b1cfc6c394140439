//! A frame that is being filled.

use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::Entry;
use crate::frames::Completion;
use crate::stream::Stream;
use crate::tenant::Growth;
use softflash_base::{IoBuf, cast};
use softflash_flash::Flash;
use softflash_ftl::Hint;

/// A frame that is being filled: a buffer with a head and data.
pub(crate) struct OpenFrame {
    pub unit: u32,
    pub stream: Stream,
    pub hint: Hint,
    buffer: IoBuf,
    entries: Vec<Entry>,
    /// Entries that it takes at most.
    most: usize,
    /// What the entries take of quotas, until the map names them.
    pub growths: Vec<Growth>,
    completion: Completion,
}

impl OpenFrame {
    /// An empty frame of at most so many entries.
    pub fn new(flash: &Flash, unit: u32, stream: Stream, hint: Hint, most: u32) -> OpenFrame {
        let most = cast::index(most);
        let page_units = (flash.page_bytes() / MAPPING_UNIT_BYTES).max(1);
        let units = (most + 1).next_multiple_of(page_units);
        OpenFrame {
            unit,
            stream,
            hint,
            buffer: flash.buffer(units * MAPPING_UNIT_BYTES),
            entries: Vec::with_capacity(most),
            most,
            growths: Vec::new(),
            completion: Completion::default(),
        }
    }

    /// A frame of the map that was programmed, or could not be, for another superblock.
    pub fn again(unit: u32, buffer: IoBuf, entries: Vec<Entry>) -> OpenFrame {
        let (stream, hint, most) = (Stream::Map, Hint::MAP, entries.len());
        let (growths, completion) = (Vec::new(), Completion::default());
        OpenFrame { unit, stream, hint, buffer, entries, most, growths, completion }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.most
    }

    /// Adds a mapping unit.
    ///
    /// # Panics
    /// If the frame is full, or the data are no mapping unit.
    pub fn add(&mut self, entry: Entry, data: &[u8]) {
        assert!(!self.is_full(), "a frame of {} entries takes another one", self.most);
        assert!(data.len() <= MAPPING_UNIT_BYTES, "{} bytes in a mapping unit", data.len());
        let at = (self.entries.len() + 1) * MAPPING_UNIT_BYTES;
        self.buffer[at..at + data.len()].copy_from_slice(data);
        self.buffer[at + data.len()..at + MAPPING_UNIT_BYTES].fill(0);
        self.entries.push(entry);
    }

    /// Adds an entry without data. Such entries and others are not in one frame.
    pub fn add_without_data(&mut self, entry: Entry) {
        assert!(!entry.has_data(), "{entry:?} has no data in its frame");
        self.entries.push(entry);
    }

    pub fn completion(&self) -> Completion {
        self.completion.clone()
    }

    fn data_units(&self) -> usize {
        self.entries.iter().filter(|entry| entry.has_data()).count()
    }

    /// The pages of the frame, the last of them filled up with zeros.
    pub fn finished(self, page_units: u32) -> (IoBuf, Vec<Entry>) {
        let used = 1 + self.data_units();
        let units = used.next_multiple_of(cast::index(page_units));
        let mut buffer = self.buffer;
        buffer.truncate(units * MAPPING_UNIT_BYTES);
        buffer[used * MAPPING_UNIT_BYTES..].fill(0);
        (buffer, self.entries)
    }
}
