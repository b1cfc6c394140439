//! Preconditioning: brings a volume into its initial state before the run, with the requests of
//! clients, as there is no shortcut through the code that serves.

use super::disk::{Disk, SECTOR, since};
use crate::cell::Control;
use crate::engine::client_loop::{self, Pace};
use crate::engine::drive::seeds::{ACCESSES, PRECONDITION};
use crate::engine::progress::prepared;
use crate::error::LabError;
use crate::outcome::Settled;
use futures_util::future::try_join_all;
use softflash_base::random::Rng;
use softflash_base::{AccessKind, Time};
use softflash_workload::{BlockWorkload, Pattern, Precondition, RequestSize};
use std::cell::{Cell, RefCell};

/// Requests outstanding.
const OUTSTANDING: usize = 256;

/// The length of a write that fills.
const FILL_BYTES: u64 = 256 << 10;

/// The largest relative change of write amplification from a window to the next, twice in a row, as
/// on drives.
const BOUND: f64 = 0.01;

/// The most rewrites of the volume.
const MOST_REWRITES: u32 = 64;

/// Requests between two reports of progress, and checks for a stop.
const REPORT_EVERY: u64 = 1 << 12;

/// The share of the progress of a state that its fill has, and where a number of rewrites is not
/// known, that of all rewrites.
const FILL_SHARE: f64 = 0.1;

/// Brings a volume into an initial state; returns how it was settled, if it was.
pub(super) async fn prepare(
    disk: &Disk,
    state: Precondition,
    workload: Option<&BlockWorkload>,
    rng: &Rng,
    control: &Control<'_>,
) -> Result<Option<Settled>, LabError> {
    let preparation = Preparation { disk, control };
    let rng_of_state = rng.fork(PRECONDITION);
    match state {
        Precondition::None => return Ok(None),
        Precondition::Fill => preparation.fill(1.0).await?,
        Precondition::Overwrite { times } => {
            preparation.fill(FILL_SHARE).await?;
            preparation.overwrite(times, rng_of_state).await?;
        }
        Precondition::Steady => {
            preparation.fill(FILL_SHARE).await?;
            return preparation.settle(workload, rng).await.map(Some);
        }
        Precondition::Random4k { seconds } => {
            preparation.fill(FILL_SHARE).await?;
            let time_ns = u64::from(seconds) * 1_000_000_000;
            preparation.write_for(time_ns, rng_of_state).await?;
        }
    }
    Ok(None)
}

struct Preparation<'a> {
    disk: &'a Disk,
    control: &'a Control<'a>,
}

/// The kind, the offset and the length of a request.
type Next = (AccessKind, u64, u64);

impl Preparation<'_> {
    /// Writes all of the volume in order; then the share `done` of the preparation is over.
    async fn fill(&self, done: f64) -> Result<(), LabError> {
        let capacity = self.disk.capacity_bytes;
        let at = Cell::new(0);
        self.many(|count| {
            let offset = at.get();
            self.tell(count, done * offset as f64 / capacity as f64)?;
            let bytes = FILL_BYTES.min(capacity - offset);
            at.set(offset + bytes);
            Ok((bytes > 0).then_some((AccessKind::Write, offset, bytes)))
        })
        .await
    }

    /// Writes mapping units at random, `times` times the number of the volume's.
    async fn overwrite(&self, times: u32, rng: Rng) -> Result<(), LabError> {
        let all = self.disk.capacity_bytes / SECTOR * u64::from(times);
        let rng = RefCell::new(rng);
        self.many(|count| {
            let share = count as f64 / all.max(1) as f64;
            self.tell(count, FILL_SHARE + (1.0 - FILL_SHARE) * share)?;
            Ok((count < all).then(|| self.random(&rng)))
        })
        .await
    }

    /// Writes mapping units at random for so long.
    async fn write_for(&self, time_ns: u64, rng: Rng) -> Result<(), LabError> {
        let (begin, rng) = (self.disk.now(), RefCell::new(rng));
        let until = begin + time_ns;
        self.many(|count| {
            let now: Time = self.disk.now();
            let share = now.since_ns(begin) as f64 / time_ns.max(1) as f64;
            self.tell(count, FILL_SHARE + (1.0 - FILL_SHARE) * share)?;
            Ok((now < until).then(|| self.random(&rng)))
        })
        .await
    }

    /// Makes the writes and trims of a workload until write amplification is level, by windows of
    /// rewrites that double in length, as on drives. Without a workload that writes, uniform writes
    /// of mapping units.
    async fn settle(
        &self,
        workload: Option<&BlockWorkload>,
        rng: &Rng,
    ) -> Result<Settled, LabError> {
        let uniform = BlockWorkload {
            read_fraction: 0.0,
            ..BlockWorkload::new("uniform", RequestSize::Fixed(SECTOR as u32), Pattern::Random)
        };
        let writing = workload.filter(|workload| workload.writes()).unwrap_or(&uniform);
        // Threads that only write beside readers are the writes then.
        let of_writers = writing.of_writers().filter(|_| writing.read_fraction == 1.0);
        let writing = of_writers.as_ref().unwrap_or(writing);
        let trims = writing.trim_fraction / (1.0 - writing.read_fraction).max(f64::MIN_POSITIVE);
        let source = writing.source(self.disk.capacity_bytes, rng.fork(ACCESSES))?;
        let source = source.without_reads(trims.min(0.99), rng.fork(PRECONDITION));
        let source = RefCell::new(source);
        let mut rewrites = 0;
        let mut before = self.rewritten(&source, &mut rewrites, 1).await?;
        let mut was_level = false;
        loop {
            let as_many = rewrites;
            let now = self.rewritten(&source, &mut rewrites, as_many).await?;
            let change = now / before - 1.0;
            let is_level = change.abs() <= BOUND;
            if (is_level && was_level) || rewrites >= MOST_REWRITES {
                return Ok(Settled { rewrites, change, is_level });
            }
            (before, was_level) = (now, is_level);
        }
    }

    /// Writes so many times the capacity; returns the write amplification of these writes.
    async fn rewritten(
        &self,
        source: &RefCell<softflash_workload::BlockSource>,
        rewrites: &mut u32,
        more: u32,
    ) -> Result<f64, LabError> {
        let base = self.disk.domain_counts();
        let all = self.disk.capacity_bytes.saturating_mul(more.into());
        let (written, past) = (Cell::new(0_u64), f64::from(*rewrites));
        self.many(|count| {
            let share = (past + written.get() as f64 / self.disk.capacity_bytes as f64)
                / f64::from(MOST_REWRITES);
            self.tell(count, FILL_SHARE + (1.0 - FILL_SHARE) * share)?;
            if written.get() >= all {
                return Ok(None);
            }
            let access = source.borrow_mut().next();
            if access.kind == AccessKind::Write {
                written.set(written.get() + u64::from(access.bytes));
            }
            Ok(Some((access.kind, access.offset_bytes, access.bytes.into())))
        })
        .await?;
        *rewrites += more;
        let risen = since(self.disk.domain_counts(), base);
        Ok(risen.programmed() as f64 / risen.written.max(1) as f64)
    }

    fn random(&self, rng: &RefCell<Rng>) -> Next {
        let unit = rng.borrow_mut().below(self.disk.capacity_bytes / SECTOR);
        (AccessKind::Write, unit * SECTOR, SECTOR)
    }

    /// Makes requests, many at a time, until there is none left; `next` gets the number of those
    /// before.
    async fn many(
        &self,
        next: impl Fn(u64) -> Result<Option<Next>, LabError>,
    ) -> Result<(), LabError> {
        let pace = Pace { runtime: &self.disk.runtime, control: self.control, think_ns: 0 };
        let (count, failed) = (Cell::new(0), RefCell::new(None));
        let one = |_: usize| match next(count.get()) {
            Ok(Some((kind, offset, bytes))) => {
                count.set(count.get() + 1);
                Some(self.disk.request(kind, offset, bytes))
            }
            Ok(None) => None,
            Err(error) => {
                failed.borrow_mut().get_or_insert(error);
                None
            }
        };
        let clients = (0..OUTSTANDING).map(|_| client_loop::closed(&pace, 1, one));
        try_join_all(clients).await?;
        failed.into_inner().map_or(Ok(()), Err)
    }

    /// Reports the progress every so many requests; an error if the run is to stop.
    fn tell(&self, count: u64, share: f64) -> Result<(), LabError> {
        if count.is_multiple_of(REPORT_EVERY) { prepared(self.control, share) } else { Ok(()) }
    }
}
