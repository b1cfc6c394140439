//! Foresight: the lifetimes of what a workload or a trace writes, from its requests to come, for
//! the lifetime policy `oracle`.
//!
//! Requests are drawn ahead of the run, until their writes make up the capacity of the drive: what
//! is not overwritten by then is of the longest-lived class anyhow. Only the order of the requests
//! matters, so a closed loop is foreseen as well as a trace.

use super::ahead::Next;
use crate::error::LabError;
use softflash_drive::Drive;
use softflash_drive::spec::PageMapped;
use softflash_workload::{Access, AccessKind};
use std::collections::VecDeque;

/// A request whose lifetime can be foretold.
pub(super) trait Foreseeable: Copy {
    fn kind(&self) -> AccessKind;
    /// Its offset and length.
    fn range(&self) -> (u64, u64);
    /// The same with the lifetime of its pages as its hint.
    fn foretold(self, lifetime: u32) -> Self;
}

impl Foreseeable for Access {
    fn kind(&self) -> AccessKind {
        self.kind
    }

    fn range(&self) -> (u64, u64) {
        (self.offset_bytes, self.bytes.into())
    }

    fn foretold(self, lifetime: u32) -> Access {
        Access { hint: lifetime, ..self }
    }
}

impl Foreseeable for Next {
    fn kind(&self) -> AccessKind {
        self.request.kind
    }

    fn range(&self) -> (u64, u64) {
        (self.request.offset_bytes, self.request.bytes)
    }

    fn foretold(mut self, lifetime: u32) -> Next {
        self.request.hint = lifetime;
        self
    }
}

/// A request that is drawn ahead.
struct Drawn<T> {
    request: T,
    /// Pages written before it.
    clock: u64,
    /// Pages written from it until the first of its pages is overwritten or discarded.
    lifetime: u32,
}

/// The requests that are drawn ahead.
pub(super) struct Foresight<T> {
    page_bytes: u64,
    /// Pages of the drive.
    capacity: u64,
    window: VecDeque<Drawn<T>>,
    /// The number of the first request of the window, counted from 1.
    first: u64,
    /// The number of the last request that writes each page; 0 for none.
    writer: Vec<u64>,
    /// Pages written by all that were drawn.
    clock: u64,
}

impl<T: Foreseeable> Foresight<T> {
    /// Of a drive with this layout; `None` if its pages need no foretold lifetimes.
    pub(super) fn of(drive: &Drive, layout: &PageMapped) -> Option<Foresight<T>> {
        let page_bytes = u64::from(drive.page_bytes());
        let pages = drive.capacity_bytes() / page_bytes;
        layout.lifetime.is_foretold().then(|| Foresight::new(page_bytes, pages))
    }

    fn new(page_bytes: u64, capacity: u64) -> Foresight<T> {
        Foresight {
            page_bytes,
            capacity,
            window: VecDeque::new(),
            first: 1,
            writer: vec![0; capacity as usize],
            clock: 0,
        }
    }

    /// The next request, from those that `draw` gives; `None` after the last one.
    pub(super) fn next(&mut self, mut draw: impl FnMut() -> Option<T>) -> Option<T> {
        while self.window.front().is_none_or(|first| self.clock - first.clock < self.capacity)
            && let Some(request) = draw()
        {
            self.add(request);
        }
        let Drawn { request, lifetime, .. } = self.window.pop_front()?;
        self.first += 1;
        Some(request.foretold(lifetime))
    }

    /// Adds a request to the window, which ends the lifetimes of what it replaces.
    pub(super) fn add(&mut self, request: T) {
        let (number, clock) = (self.first + self.window.len() as u64, self.clock);
        self.window.push_back(Drawn { request, clock, lifetime: u32::MAX });
        let writes = match request.kind() {
            AccessKind::Read => return,
            AccessKind::Write => true,
            AccessKind::Trim => false,
        };
        let (offset_bytes, bytes) = request.range();
        let first = offset_bytes / self.page_bytes;
        let end = (offset_bytes + bytes).div_ceil(self.page_bytes).min(self.capacity);
        for page in first..end {
            let writer = &mut self.writer[page as usize];
            let before = std::mem::replace(writer, if writes { number } else { 0 });
            if before >= self.first && before < number {
                let replaced = &mut self.window[(before - self.first) as usize];
                let lifetime = u32::try_from(clock - replaced.clock).unwrap_or(u32::MAX);
                replaced.lifetime = replaced.lifetime.min(lifetime);
            }
        }
        if writes {
            self.clock += end.saturating_sub(first);
        }
    }
}

/// The next request of a source that does not end, foretold where there is foresight.
#[inline]
pub(super) fn foretold(
    foresight: &mut Option<Foresight<Access>>,
    mut draw: impl FnMut() -> Access,
) -> Access {
    match foresight {
        None => draw(),
        Some(foresight) => {
            let next = foresight.next(|| Some(draw()));
            next.unwrap_or_else(|| unreachable!("a source of accesses has no end"))
        }
    }
}

/// Foresight follows the requests of one source; the order of several depends on the drive.
pub(in crate::engine) fn check_one_source(
    layout: &PageMapped,
    is_one: bool,
) -> Result<(), LabError> {
    match layout.lifetime.is_foretold() && !is_one {
        false => Ok(()),
        true => Err(LabError::Parameter(format!(
            "lifetime = \"{}\" foresees one workload without threads that only write, or a trace; use another \
             lifetime policy for several flows",
            layout.lifetime
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cell, run};
    use super::*;
    use crate::Precondition;
    use crate::layout::LayoutKind;
    use softflash_base::Durability;
    use softflash_workload::{Load, Pattern};

    const PAGE_BYTES: u64 = 4096;

    fn access(kind: AccessKind, page: u64, pages: u32) -> Access {
        let (offset_bytes, bytes) = (page * PAGE_BYTES, pages * PAGE_BYTES as u32);
        Access { kind, offset_bytes, bytes, hint: 0, durability: Durability::Accepted }
    }

    /// The lifetimes of these requests on a drive of eight pages.
    fn lifetimes(requests: &[(AccessKind, u64, u32)]) -> Vec<u32> {
        let mut foresight = Foresight::new(PAGE_BYTES, 8);
        let mut left = requests.iter().map(|&(kind, page, pages)| access(kind, page, pages));
        let mut next = || foresight.next(|| left.next());
        let all: Vec<Access> = std::iter::from_fn(&mut next).collect();
        let asked: Vec<_> = requests.iter().map(|&(kind, page, _)| (kind, page)).collect();
        let given: Vec<_> =
            all.iter().map(|given| (given.kind, given.offset_bytes / PAGE_BYTES)).collect();
        assert_eq!(given, asked, "all requests, in their order");
        all.iter().map(|access| access.hint).collect()
    }

    #[test]
    fn a_lifetime_is_the_pages_written_until_the_next_write_or_trim() {
        use AccessKind::{Read, Trim, Write};
        let far = u32::MAX;
        assert_eq!(lifetimes(&[(Write, 0, 1), (Write, 0, 1)]), [1, far]);
        assert_eq!(
            lifetimes(&[(Write, 0, 1), (Read, 0, 1), (Write, 1, 3), (Trim, 0, 1)]),
            [4, far, far, far]
        );
        // The first of several pages that is overwritten counts.
        assert_eq!(lifetimes(&[(Write, 0, 4), (Write, 3, 1), (Write, 0, 1)]), [4, far, far]);
        // A trimmed page is not trimmed again.
        assert_eq!(lifetimes(&[(Write, 5, 1), (Trim, 5, 1), (Trim, 5, 1)]), [1, far, far]);
    }

    #[test]
    fn a_lifetime_beyond_the_capacity_is_not_looked_for() {
        use AccessKind::Write;
        let others = |count| std::iter::repeat_n((Write, 1, 1), count);
        let with = |count| {
            let requests: Vec<_> =
                [(Write, 0, 1)].into_iter().chain(others(count)).chain([(Write, 0, 1)]).collect();
            lifetimes(&requests)[0]
        };
        assert_eq!([with(0), with(6), with(7), with(8)], [1, 7, u32::MAX, u32::MAX]);
    }

    #[test]
    fn only_one_source_can_be_foreseen() {
        let mut layout = PageMapped::default();
        assert!(check_one_source(&layout, false).is_ok());
        layout.lifetime = "oracle:4".parse().unwrap();
        assert!(check_one_source(&layout, true).is_ok());
        let error = check_one_source(&layout, false).unwrap_err().to_string();
        assert!(error.contains("oracle:4") && error.contains("several flows"), "{error}");
    }

    #[test]
    fn no_prediction_is_better_than_the_oracle() {
        let waf = |lifetime: &str| {
            let (mut workload, mut cell) = cell(Load::closed(1, 8), 50_000);
            workload.pattern = Pattern::HotCold { hot_space: 0.1, hot_accesses: 0.9 };
            cell.device.geometry.blocks_per_plane = 256;
            cell.parameters.precondition = Precondition::Steady { rewrites: Some(4) };
            let LayoutKind::PageMapped(layout) = &mut cell.layout.kind else { unreachable!() };
            layout.lifetime = lifetime.parse().unwrap();
            run((workload, cell)).programs.waf()
        };
        let [none, sepbit, oracle] = ["none", "sepbit", "oracle:8"].map(waf);
        assert!(oracle < 0.9 * none && oracle < sepbit, "{none}, {sepbit}, {oracle} of the oracle");
    }
}
