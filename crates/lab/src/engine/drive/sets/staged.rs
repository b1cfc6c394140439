//! Writes that a set has not programmed: they wait in memory for its window.

use softflash_drive::HostRequest;
use std::collections::{HashMap, HashSet, VecDeque};

/// The grain in which a read finds them.
const GRAIN_BYTES: u64 = 4096;

/// The writes, the oldest first.
#[derive(Default)]
pub(super) struct Staged {
    order: VecDeque<HostRequest>,
    /// Their offsets and lengths: a newer write of the same place takes that of the older one.
    places: HashSet<(u64, u64)>,
    /// The number of writes of each grain.
    grains: HashMap<u64, u32>,
    bytes: u64,
    most_bytes: u64,
}

impl Staged {
    /// Adds a write.
    pub(super) fn add(&mut self, request: HostRequest) {
        if !self.places.insert((request.offset_bytes, request.bytes)) {
            return;
        }
        for grain in grains(&request) {
            *self.grains.entry(grain).or_insert(0) += 1;
        }
        self.bytes += request.bytes;
        self.most_bytes = self.most_bytes.max(self.bytes);
        self.order.push_back(request);
    }

    /// Takes the oldest write.
    pub(super) fn take(&mut self) -> Option<HostRequest> {
        let request = self.order.pop_front()?;
        self.places.remove(&(request.offset_bytes, request.bytes));
        for grain in grains(&request) {
            if let Some(writes) = self.grains.get_mut(&grain) {
                *writes -= 1;
                if *writes == 0 {
                    self.grains.remove(&grain);
                }
            }
        }
        self.bytes -= request.bytes;
        Some(request)
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether all of a read is in memory.
    pub(super) fn has(&self, request: &HostRequest) -> bool {
        grains(request).all(|grain| self.grains.contains_key(&grain))
    }

    /// The measured part of the run begins: only from now on [`most_bytes`](Staged::most_bytes)
    /// counts.
    pub(super) fn begin_measured(&mut self) {
        self.most_bytes = self.bytes;
    }

    /// The most bytes that have waited at a time.
    pub(super) fn most_bytes(&self) -> u64 {
        self.most_bytes
    }
}

fn grains(request: &HostRequest) -> std::ops::Range<u64> {
    let end_bytes = request.offset_bytes + request.bytes;
    request.offset_bytes / GRAIN_BYTES..end_bytes.div_ceil(GRAIN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_drive::AccessKind;

    #[test]
    fn a_read_finds_what_waits_and_equal_places_wait_once() {
        let access = |kind, offset_bytes, bytes| HostRequest::new(0, kind, offset_bytes, bytes);
        let mut staged = Staged::default();
        for offset_bytes in [16_384, 49_152, 16_384] {
            staged.add(access(AccessKind::Write, offset_bytes, 16_384));
        }
        let finds = |staged: &Staged, offset_bytes| {
            staged.has(&access(AccessKind::Read, offset_bytes, 4096))
        };
        assert!(finds(&staged, 20_480) && !finds(&staged, 32_768));
        assert_eq!(staged.take().map(|write| write.offset_bytes), Some(16_384));
        assert!(!finds(&staged, 20_480) && finds(&staged, 49_152));
        assert_eq!(staged.take().map(|write| write.offset_bytes), Some(49_152));
        assert!(staged.take().is_none() && staged.is_empty());
        assert_eq!(staged.most_bytes(), 32_768);
    }
}
