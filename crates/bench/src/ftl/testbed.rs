//! A domain on a null device, and one volume that takes all of its usable space.

use super::load::Load;
use super::null_device::{FILLER, NullQueue, PAGE_BYTES, SharedMedium};
use futures_util::future::try_join_all;
use softflash_base::cast;
use softflash_base::random::Rng;
use softflash_runtime::VirtualExecutor;
use softflash_volume::{Domain, DomainConfig, RecoveryReport, Volume, VolumeError};

/// Wall clock of the executor; nothing here has a date.
const WALL_MS: u64 = 1_000_000_000_000;
/// Bytes of a mapping unit.
const UNIT: u64 = PAGE_BYTES as u64;
/// Mapping units of a write that fills the volume.
const FILL_UNITS: u64 = 256;
/// Requests of a group.
const GROUP: usize = 16;
const NAME: &str = "bench";

/// A mounted domain with its executor.
pub struct Testbed {
    executor: VirtualExecutor,
    pub domain: Domain,
    pub report: RecoveryReport,
    /// Mapping units of the volume.
    pub units: u64,
    load: Load,
}

impl Testbed {
    /// Mounts the domain on a medium; an empty one gets its volume.
    pub fn mount(
        medium: &SharedMedium,
        config: &DomainConfig,
        load: Load,
    ) -> Result<Testbed, VolumeError> {
        let executor = VirtualExecutor::new(WALL_MS);
        let (runtime, queue) = (executor.handle(), Box::new(NullQueue::new(medium)));
        let mounted: Result<(Domain, RecoveryReport), VolumeError> = executor.block_on(async {
            let (domain, report) = Domain::mount(queue, config.clone(), runtime).await?;
            let size = domain.space().usable_bytes;
            if domain.list().is_empty() {
                domain.create(NAME, size).await?;
            }
            Ok((domain, report))
        });
        let (domain, report) = mounted?;
        let units = domain.volume(NAME)?.size_bytes()? / UNIT;
        Ok(Testbed { executor, domain, report, units, load })
    }

    /// Writes every mapping unit once, in order.
    pub fn fill(&self) -> Result<(), VolumeError> {
        let data = vec![FILLER; (FILL_UNITS * UNIT) as usize];
        let volume = self.volume()?;
        self.executor.block_on(async {
            let mut at = 0;
            while at < self.units {
                let units = FILL_UNITS.min(self.units - at);
                volume.write(at * UNIT, &data[..(units * UNIT) as usize]).await?;
                at += units;
            }
            volume.flush().await
        })
    }

    /// Writes so many mapping units at places of the load, in batches of concurrent requests of
    /// one mapping unit each; calls `after` behind every batch with the writes so far.
    pub fn overwrite(
        &self,
        writes: u64,
        rng: &mut Rng,
        mut after: impl FnMut(u64) -> bool,
    ) -> Result<(), VolumeError> {
        let data = vec![FILLER; PAGE_BYTES];
        let volume = self.volume()?;
        self.executor.block_on(async {
            let mut done = 0;
            while done < writes {
                let batch = cast::wide(self.load.batch).min(writes - done);
                together((0..batch).map(|_| volume.write(self.place(rng), &data))).await?;
                done += batch;
                if !after(done) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Reads as [`overwrite`](Testbed::overwrite) writes.
    pub fn read(&self, reads: u64, rng: &mut Rng) -> Result<(), VolumeError> {
        let volume = self.volume()?;
        let mut buffers = vec![vec![0; PAGE_BYTES]; self.load.batch];
        self.executor.block_on(async {
            let mut done = 0;
            while done < reads {
                let batch = cast::wide(self.load.batch).min(reads - done);
                let buffers = buffers.iter_mut().take(cast::index(cast::low_u32(batch)));
                together(buffers.map(|buffer| volume.read(self.place(rng), buffer))).await?;
                done += batch;
            }
            Ok(())
        })
    }

    /// Runs one request on the domain.
    pub fn run<T>(&self, request: impl Future<Output = T>) -> T {
        self.executor.block_on(request)
    }

    /// Ends the domain without an orderly end: for what comes next, the power is cut.
    pub fn cut(self) {
        self.domain.stop();
    }

    fn volume(&self) -> Result<Volume, VolumeError> {
        self.domain.volume(NAME)
    }

    fn place(&self, rng: &mut Rng) -> u64 {
        self.load.place(self.units, rng) * UNIT
    }
}

/// Runs requests concurrently. They are joined in groups: the joining of many futures at once makes
/// a task of each.
async fn together<F>(requests: impl Iterator<Item = F>) -> Result<(), VolumeError>
where
    F: Future<Output = Result<(), VolumeError>>,
{
    let mut requests = requests.peekable();
    let mut groups = Vec::new();
    while requests.peek().is_some() {
        groups.push(try_join_all(requests.by_ref().take(GROUP)));
    }
    try_join_all(groups).await.map(drop)
}
