//! Requests of the host, and the parts of them that have not ended: copies, and pieces on several
//! groups of sets.

use softflash_drive::HostRequest;

/// A request under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnderWay {
    /// The request, with the host's tag.
    pub(super) request: HostRequest,
    /// When it arrived, in nanoseconds.
    pub(super) at_ns: u64,
    left: u32,
}

/// The requests under way, by the tags of their parts.
#[derive(Default)]
pub(super) struct Parts {
    slots: Vec<UnderWay>,
    free: Vec<u32>,
}

impl Parts {
    /// Adds a request of so many parts; returns their tag.
    pub(super) fn begin(&mut self, request: HostRequest, at_ns: u64, parts: u32) -> u64 {
        let under_way = UnderWay { request, at_ns, left: parts };
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = under_way;
                u64::from(slot)
            }
            None => {
                self.slots.push(under_way);
                self.slots.len() as u64 - 1
            }
        }
    }

    /// Ends a part; returns the request if it was the last.
    pub(super) fn end(&mut self, tag: u64) -> Option<UnderWay> {
        let under_way = self.slots.get_mut(tag as usize)?;
        under_way.left -= 1;
        if under_way.left > 0 {
            return None;
        }
        self.free.push(tag as u32);
        Some(*under_way)
    }

    /// The number of requests under way.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
