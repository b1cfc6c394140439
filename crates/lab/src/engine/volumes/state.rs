//! Preconditioning: brings a volume into its initial state before the run, with the requests of
//! clients, as there is no shortcut through the code that serves.

use super::disk::{Disk, SECTOR};
use crate::cell::{Control, Settling};
use crate::engine::client_loop::{self, Pace};
use crate::engine::drive::seeds::PRECONDITION;
use crate::engine::drive::writing::writes_of;
use crate::engine::level::Level;
use crate::engine::progress::prepared;
use crate::error::LabError;
use crate::outcome::Settled;
use futures_util::future::try_join_all;
use softflash_base::AccessKind;
use softflash_base::random::Rng;
use softflash_workload::{BlockSource, BlockWorkload, Pattern, Precondition, RequestSize};
use std::cell::{Cell, RefCell};

/// Requests outstanding where the workload does not say it.
const OUTSTANDING: u64 = 256;

/// The length of a write that fills.
const FILL_BYTES: u64 = 256 << 10;

/// The most rewrites of a volume, fewer than of a drive: each takes far longer.
const MOST_REWRITES: u32 = 16;

/// Level windows that are enough.
const LEVEL_WINDOWS: u32 = 1;

/// Requests between two reports of progress, and checks for a stop.
const REPORT_EVERY: u64 = 1 << 14;

/// The share of the progress of a state that its fill has.
const FILL_SHARE: f64 = 0.05;

/// Idle time after a fill, in which the FTL erases ahead. After random writes there is none:
/// collection would use it to come ahead of the writes.
const IDLE_NS: u64 = 100_000_000;

/// Brings a volume into an initial state; returns how it was settled, if it was.
pub(super) async fn prepare(
    disk: &Disk,
    state: Precondition,
    workload: Option<&BlockWorkload>,
    run: &Rng,
    control: &Control<'_>,
) -> Result<Option<Settled>, LabError> {
    // Fewer requests at once make shorter frames, of whose heads there are more.
    let outstanding = match state {
        Precondition::Steady { .. } => workload.and_then(|workload| workload.load.outstanding()),
        _ => None,
    };
    let outstanding = outstanding.unwrap_or(OUTSTANDING).max(1);
    let preparation = Preparation { disk, control, outstanding };
    let rng = run.fork(PRECONDITION);
    let mut settled = None;
    match state {
        Precondition::None => {}
        Precondition::Fill => preparation.fill(1.0).await?,
        Precondition::Overwrite { times } => {
            preparation.fill(FILL_SHARE).await?;
            preparation.overwrite(times, rng).await?;
        }
        Precondition::Steady { rewrites } => {
            preparation.fill(FILL_SHARE).await?;
            settled = Some(preparation.settle(rewrites, workload, run).await?);
        }
        Precondition::Random4k { seconds } => {
            preparation.fill(FILL_SHARE).await?;
            preparation.write_for(u64::from(seconds) * 1_000_000_000, rng).await?;
        }
    }
    disk.flush().await?;
    if matches!(state, Precondition::None | Precondition::Fill) {
        disk.runtime.sleep_until(disk.now() + IDLE_NS).await;
    }
    Ok(settled)
}

struct Preparation<'a> {
    disk: &'a Disk,
    control: &'a Control<'a>,
    /// Requests under way at once.
    outstanding: u64,
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
            self.tell(count, || done * offset as f64 / capacity as f64)?;
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
            self.tell(count, || after_fill(count as f64 / all.max(1) as f64))?;
            Ok((count < all).then(|| self.random(&rng)))
        })
        .await
    }

    /// Writes mapping units at random for so long.
    async fn write_for(&self, time_ns: u64, rng: Rng) -> Result<(), LabError> {
        let (begin, rng) = (self.disk.now(), RefCell::new(rng));
        self.many(|count| {
            let past_ns = self.disk.now().since_ns(begin);
            self.tell(count, || after_fill(past_ns as f64 / time_ns.max(1) as f64))?;
            Ok((past_ns < time_ns).then(|| self.random(&rng)))
        })
        .await
    }

    /// Makes the writes and trims of a workload, exactly so many rewrites of the volume or until
    /// write amplification is level. Without a workload that writes, uniform writes of mapping
    /// units.
    async fn settle(
        &self,
        exactly: Option<u32>,
        workload: Option<&BlockWorkload>,
        run: &Rng,
    ) -> Result<Settled, LabError> {
        let uniform = BlockWorkload {
            read_fraction: 0.0,
            ..BlockWorkload::new("uniform", RequestSize::Fixed(SECTOR as u32), Pattern::Random)
        };
        let writing = workload.filter(|workload| workload.writes()).unwrap_or(&uniform);
        let source = RefCell::new(writes_of(writing, self.disk.capacity_bytes, run)?);
        let enough = exactly.is_none().then_some(LEVEL_WINDOWS);
        let mut level = Level::new(exactly.unwrap_or(MOST_REWRITES), enough);
        while let Some(rewrites) = level.next_window() {
            if !self.window(&mut level, rewrites, &source).await? {
                break;
            }
        }
        Ok(level.settled())
    }

    /// Writes so many times the capacity, and adds their write amplification to the level. False if
    /// the caller's limit of time ends it before.
    async fn window(
        &self,
        level: &mut Level,
        rewrites: u32,
        source: &RefCell<BlockSource>,
    ) -> Result<bool, LabError> {
        let (base, capacity) = (self.disk.counts(), self.disk.capacity_bytes);
        let all = capacity.saturating_mul(rewrites.into());
        let (written, goes_on) = (Cell::new(0_u64), Cell::new(true));
        self.many(|count| {
            if count.is_multiple_of(REPORT_EVERY) {
                let rewrites = written.get() as f64 / capacity as f64;
                let rewrites = f64::from(level.rewrites()) + rewrites;
                let waf = self.disk.counts().since(&base).waf();
                let settling = Settling { rewrites, most: level.most(), waf };
                goes_on.set((self.control.on_settling)(&settling));
                prepared(self.control, after_fill(rewrites / f64::from(level.most())))?;
            }
            if written.get() >= all || !goes_on.get() {
                return Ok(None);
            }
            let access = source.borrow_mut().next();
            if access.kind == AccessKind::Write {
                written.set(written.get() + u64::from(access.bytes));
            }
            Ok(Some((access.kind, access.offset_bytes, access.bytes.into())))
        })
        .await?;
        let whole = u32::try_from(written.get() / capacity).unwrap_or(u32::MAX);
        level.add(whole.min(rewrites), self.disk.counts().since(&base).waf());
        Ok(goes_on.get())
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
        let clients = (0..self.outstanding).map(|_| client_loop::closed(&pace, 1, one));
        try_join_all(clients).await?;
        failed.into_inner().map_or(Ok(()), Err)
    }

    /// Reports the progress every so many requests; an error if the run is to stop.
    fn tell(&self, count: u64, share: impl Fn() -> f64) -> Result<(), LabError> {
        if count.is_multiple_of(REPORT_EVERY) { prepared(self.control, share()) } else { Ok(()) }
    }
}

/// The progress of a preparation that has come so far after its fill.
fn after_fill(share: f64) -> f64 {
    FILL_SHARE + (1.0 - FILL_SHARE) * share
}
