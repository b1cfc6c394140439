//! Writes that end when they are on flash, behind a write buffer that a power loss empties.
//!
//! A write of this kind is not acknowledged when it is in the buffer: it waits until the versions
//! that it must outlive have been programmed, its own pages or all that the buffer held. Meanwhile
//! pages that gather do not wait for others.

use crate::buffer::Buffer;
use hashbrown::HashMap;
use softflash_base::Durability;

/// The writes that wait to be on flash.
#[derive(Default)]
pub(super) struct Durable {
    /// By request: the writes whose pages have not all come to the buffer.
    arriving: HashMap<u32, Arriving>,
    waiting: Vec<Waiting>,
}

/// A write whose pages come to the buffer.
struct Arriving {
    durability: Durability,
    /// Pages that have not come.
    left: u32,
    /// Those that have, as entries and as logical pages.
    pages: Vec<u32>,
    logical: Vec<u32>,
}

/// A write that waits for programs.
struct Waiting {
    pages: Vec<u32>,
    /// By logical page: versions that have not been programmed.
    versions: HashMap<u32, u32>,
}

impl Durable {
    /// A request for so many pages has been admitted, which ends when it is on flash.
    pub(super) fn admit(&mut self, request: u32, durability: Durability, left: u32) {
        let arriving = Arriving { durability, left, pages: Vec::new(), logical: Vec::new() };
        self.arriving.insert(request, arriving);
    }

    /// Whether no such write is under way.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.arriving.is_empty() && self.waiting.is_empty()
    }

    /// Whether a write waits for programs.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A page has come to the buffer. False if its request does not wait to be on flash.
    pub(super) fn buffered(
        &mut self,
        request: u32,
        (page, logical): (u32, u32),
        buffer: &Buffer,
    ) -> bool {
        let Some(arriving) = self.arriving.get_mut(&request) else { return false };
        arriving.pages.push(page);
        arriving.logical.push(logical);
        arriving.left -= 1;
        if arriving.left == 0
            && let Some(Arriving { durability, pages, logical, .. }) =
                self.arriving.remove(&request)
        {
            let mut versions: HashMap<u32, u32> = match durability {
                Durability::AllBefore => buffer.versions().collect(),
                _ => logical.iter().map(|&of| (of, buffer.versions_of(of))).collect(),
            };
            // The first pages of a long write may be on flash by now; the last one is not.
            versions.retain(|_, left| *left > 0);
            self.waiting.push(Waiting { pages, versions });
        }
        true
    }

    /// A version of a logical page is on flash; returns the pages whose writes end with it.
    pub(super) fn programmed(&mut self, logical: u32) -> Vec<u32> {
        let mut ended = Vec::new();
        self.waiting.retain_mut(|waiting| {
            if let Some(versions) = waiting.versions.get_mut(&logical) {
                *versions -= 1;
                if *versions == 0 {
                    waiting.versions.remove(&logical);
                }
            }
            let ends = waiting.versions.is_empty();
            if ends {
                ended.append(&mut waiting.pages);
            }
            !ends
        });
        ended
    }
}
