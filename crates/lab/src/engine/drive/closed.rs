//! Clients in a closed loop.

use softflash_workload::Load;
use std::collections::VecDeque;

/// Clients in a closed loop.
pub(super) struct Closed {
    /// The times at which clients submit their next request; in time order, as all clients have the
    /// same think time.
    ready: VecDeque<(u64, u64)>,
    think_ns: u64,
    /// With a barrier: the requests of a batch, and those of each batch that have not completed.
    barrier: Option<(u32, Vec<u32>)>,
}

impl Closed {
    /// The clients of a load, whose first requests are at `begin_ns`.
    pub(super) fn new(load: &Load, begin_ns: u64) -> Closed {
        let outstanding = load.outstanding().unwrap_or(1);
        let (think_ns, barrier) = match *load {
            Load::Closed { think_ns, batch: Some(batch), barrier: true, .. } => {
                let batches = outstanding / u64::from(batch);
                (think_ns, Some((batch, vec![batch; batches as usize])))
            }
            Load::Closed { think_ns, .. } => (think_ns, None),
            Load::Open { .. } => (0, None),
        };
        let ready = (0..outstanding).map(|client| (begin_ns, client)).collect();
        Closed { ready, think_ns, barrier }
    }

    /// Lets the clients make their first requests at a time.
    pub(super) fn begin(&mut self, at: u64) {
        self.ready.iter_mut().for_each(|(ready, _)| *ready = at);
    }

    /// The time of the next request; `None` while all clients wait.
    #[inline]
    pub(super) fn next_at(&self) -> Option<u64> {
        self.ready.front().map(|&(at, _)| at)
    }

    /// The client that submits the next request; 0 if all wait.
    #[inline]
    pub(super) fn take(&mut self) -> u64 {
        self.ready.pop_front().map_or(0, |(_, client)| client)
    }

    /// Whether a client submits its next request at each completion, independent of the others.
    pub(super) fn answers_at_once(&self) -> bool {
        self.think_ns == 0 && self.barrier.is_none()
    }

    /// Handles the completion of a client's request.
    #[inline]
    pub(super) fn ended(&mut self, client: u64, at: u64) {
        let at = at + self.think_ns;
        let Some((batch, left)) = &mut self.barrier else {
            self.ready.push_back((at, client));
            return;
        };
        let first = client - client % u64::from(*batch);
        let Some(left) = left.get_mut((client / u64::from(*batch)) as usize) else { return };
        *left -= 1;
        if *left == 0 {
            *left = *batch;
            self.ready.extend((first..first + u64::from(*batch)).map(|client| (at, client)));
        }
    }
}
