//! The handle of a volume or of a snapshot.

use crate::admission::Permit;
use crate::core::Shared;
use crate::domain_map::{self, Difference};
use crate::error::VolumeError;
use crate::flusher;
use crate::format::MAPPING_UNIT_BYTES;
use crate::image::{Image, ImageId};
use crate::latencies::{Latencies, VolumeLatencies};
use crate::limits;
use crate::operations::{Change, change};
use crate::pair;
use crate::reader;
use crate::tenant::{Access, Tenant};
use crate::writer;
use softflash_base::{Time, cast};
use softflash_ftl::Hint;
use softflash_runtime::Event;
use std::rc::Rc;

/// A volume, or a snapshot, which can only be read. A clone is the same volume.
#[derive(Clone)]
pub struct Volume {
    core: Shared,
    image: ImageId,
    /// The volume of a snapshot, or the volume itself.
    tenant: Rc<Tenant>,
    hint: Hint,
    /// Whether requests wait for the limits of the volume.
    is_limited: bool,
    /// Once it is set, they wait for them no longer, and fail.
    given_up: Option<Event>,
}

/// A range in which a volume or snapshot differs from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// Its start.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// Whether it holds data, everywhere; otherwise it reads as zeros.
    pub has_data: bool,
}

impl Volume {
    pub(crate) fn new(core: Shared, image: ImageId) -> Volume {
        let map = core.map.borrow();
        let tenant = core.clients.tenant(map.volume_of(image), &map.images);
        drop(map);
        Volume { core, image, tenant, hint: Hint::FOREGROUND, is_limited: true, given_up: None }
    }

    /// The same volume, whose requests have this hint. Data of an unknown lifetime have that of the
    /// volume's settings; others go to the class of the domain whose data live about as long. (When
    /// collection moves them, the volume's settings decide.)
    pub fn hinted(self, hint: Hint) -> Volume {
        Volume { hint, ..self }
    }

    /// The same volume, whose requests do not wait for its limits: for copies while nobody else
    /// uses it. The quota holds for them, too.
    pub fn without_limits(self) -> Volume {
        Volume { is_limited: false, ..self }
    }

    /// The same volume, whose requests fail, without having begun, if they wait for its limits when
    /// this is set, or later. Those that have begun go on.
    pub fn giving_up_at(self, given_up: Event) -> Volume {
        Volume { given_up: Some(given_up), ..self }
    }

    /// The current size.
    pub fn size_bytes(&self) -> Result<u64, VolumeError> {
        let here = self.here();
        let map = here.map.borrow();
        let image = map.images.get(self.image).ok_or(VolumeError::Deleted)?;
        Ok(u64::from(image.size) * cast::wide(MAPPING_UNIT_BYTES))
    }

    /// Whether it is a snapshot.
    pub fn is_read_only(&self) -> bool {
        let here = self.here();
        let map = here.map.borrow();
        map.images.get(self.image).is_none_or(|image| !image.is_volume())
    }

    /// Reads whole mapping units from `offset` on. Those that were never written, or were
    /// discarded, read as zeros.
    pub async fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), VolumeError> {
        let bytes = cast::wide(into.len());
        let lba = self.check(offset, bytes)?;
        let _timed = self.time(|latencies| &mut latencies.read);
        let _permit = self.begin(Access::Read, bytes).await?;
        match pair::of(&self.core) {
            None => reader::read(&self.core, self.image, lba, into, self.hint).await,
            Some(pair) => pair::read(&pair, self.image, lba, into, self.hint).await,
        }
    }

    /// Writes whole mapping units from `offset` on. Each is written wholly or not at all, also if
    /// the power fails. Durable after a [`flush`](Volume::flush).
    pub async fn write(&self, offset: u64, data: &[u8]) -> Result<(), VolumeError> {
        let bytes = cast::wide(data.len());
        let lba = self.check_write(offset, bytes)?;
        let _timed = self.time(|latencies| &mut latencies.write);
        let _permit = self.begin(Access::Write, bytes).await?;
        let written = self.put(lba, data).await;
        let units = cast::saturating_u32(data.len() / MAPPING_UNIT_BYTES);
        self.core.residence().note(self.image, lba..lba.saturating_add(units));
        self.note_space(&written);
        written
    }

    /// Lets a range of whole mapping units read as zeros, and frees its space.
    pub async fn discard(&self, offset: u64, bytes: u64) -> Result<(), VolumeError> {
        let lba = self.check_write(offset, bytes)?;
        let count = u32::try_from(bytes / cast::wide(MAPPING_UNIT_BYTES)).unwrap_or(u32::MAX);
        if count == 0 {
            return Ok(());
        }
        let _timed = self.time(|latencies| &mut latencies.discard);
        let _permit = self.begin(Access::Discard, 0).await?;
        let done = self.clear(lba, count).await;
        self.core.residence().note(self.image, lba..lba.saturating_add(count));
        done
    }

    async fn clear(&self, lba: u32, count: u32) -> Result<(), VolumeError> {
        let image = self.image;
        while let Some(pair) = pair::of(&self.core) {
            let done = pair::discard(&pair, image, lba..lba.saturating_add(count)).await;
            if !self.has_left(&done) {
                return done;
            }
        }
        let _under_way = self.core.link().unpaired.begin();
        change(&self.core, |images| match images.get(image) {
            Some(_) => Ok((Change::Discard { image, lba, count }, ())),
            None => Err(VolumeError::Deleted),
        })
        .await
    }

    async fn put(&self, lba: u32, data: &[u8]) -> Result<(), VolumeError> {
        while let Some(pair) = pair::of(&self.core) {
            let done = pair::write(&pair, (self.image, lba), data, self.hint).await;
            if !self.has_left(&done) {
                return done;
            }
        }
        let _under_way = self.core.link().unpaired.begin();
        writer::write(&self.core, &self.tenant, lba, data, self.hint).await
    }

    /// Whether a request to a pair has failed only because the domain has left it.
    fn has_left(&self, done: &Result<(), VolumeError>) -> bool {
        matches!(done, Err(VolumeError::Stopped))
            && !self.core.tasks.is_stopped()
            && pair::of(&self.core).is_none()
    }

    /// Returns when all completed writes and discards are durable.
    pub async fn flush(&self) -> Result<(), VolumeError> {
        let _timed = self.time(|latencies| &mut latencies.flush);
        match pair::of(&self.core) {
            None => flusher::flush(&self.core).await,
            Some(pair) => pair.flush().await,
        }
    }

    /// Whether each mapping unit of a range holds data; those that do not read as zeros.
    pub fn allocated(&self, offset: u64, bytes: u64) -> Result<Vec<bool>, VolumeError> {
        let lba = self.check(offset, bytes)?;
        let count = u32::try_from(bytes / cast::wide(MAPPING_UNIT_BYTES)).unwrap_or(u32::MAX);
        let units = lba..lba.saturating_add(count);
        if let Some(pair) = pair::of(&self.core) {
            return Ok(units.map(|lba| pair.holds(self.image, lba)).collect());
        }
        let map = self.core.map.borrow();
        let is_mapped = |lba: u32| map.find(self.image, lba) != domain_map::Found::Zeros;
        Ok(units.map(is_mapped).collect())
    }

    /// A range of whole mapping units in runs that hold data, and that do not, from front to back:
    /// their lengths in bytes, and whether they do.
    pub fn runs(&self, offset: u64, bytes: u64) -> Result<Vec<(u64, bool)>, VolumeError> {
        let mut runs: Vec<(u64, bool)> = Vec::new();
        for is_held in self.allocated(offset, bytes)? {
            let unit = cast::wide(MAPPING_UNIT_BYTES);
            match runs.last_mut() {
                Some((bytes, held)) if *held == is_held => *bytes += unit,
                _ => runs.push((unit, is_held)),
            }
        }
        Ok(runs)
    }

    /// The first range from `offset` on, of at most `most_bytes`, in which this volume or snapshot
    /// differs from `base`, one of the same domain, or from zeros without one. It is found in the
    /// map, without a read: data that were written again count as different, also if they are the
    /// same. What is beyond the end of `base` reads as zeros there.
    ///
    /// # Errors
    /// [`VolumeError::Deleted`]; [`VolumeError::Unsupported`] where the sets of a pair have not the
    /// same data, as with windows.
    pub fn next_change(
        &self,
        base: Option<&Volume>,
        offset: u64,
        most_bytes: u64,
    ) -> Result<Option<Changed>, VolumeError> {
        let unit = cast::wide(MAPPING_UNIT_BYTES);
        let units = |bytes: u64| u32::try_from(bytes / unit).unwrap_or(u32::MAX);
        if pair::of(&self.core).is_some_and(|pair| !pair.is_level()) {
            let reason = "the sets of the pair have not the same data; end its windows".to_owned();
            return Err(VolumeError::Unsupported { reason });
        }
        let here = self.here();
        let map = here.map.borrow();
        let exists = |volume: &Volume| map.images.get(volume.image).is_some();
        if !exists(self) || base.is_some_and(|base| !exists(base)) {
            return Err(VolumeError::Deleted);
        }
        let base = base.map(|base| base.image);
        let found = map.next_difference(self.image, base, units(offset), units(most_bytes));
        Ok(found.map(|Difference { start, count, has_data }| {
            let (offset, bytes) = (u64::from(start) * unit, u64::from(count) * unit);
            Changed { offset, bytes, has_data }
        }))
    }

    /// Waits until a request may begin: for the limits of the volume, then for its turn.
    async fn begin(&self, access: Access, bytes: u64) -> Result<Permit<'_>, VolumeError> {
        self.tenant.count(|counters| match access {
            Access::Read => {
                counters.reads += 1;
                counters.read_bytes += bytes;
            }
            Access::Write => {
                counters.writes += 1;
                counters.written_bytes += bytes;
            }
            Access::Discard => counters.discards += 1,
        });
        if self.is_limited {
            limits::wait(&self.core, &self.tenant, bytes, self.given_up.as_ref()).await?;
        }
        Ok(self.core.clients.enter(&self.tenant, bytes).await)
    }

    /// Notes whether there was space for a write.
    fn note_space(&self, written: &Result<(), VolumeError>) {
        if let Err(VolumeError::OutOfSpace { used, usable }) = *written {
            self.tenant.count(|counters| counters.full_refusals += 1);
            self.core.count(|counters| counters.refused += 1);
            self.core.space.note_refusal(used, usable);
        } else if written.is_ok() {
            self.core.is_full();
        }
    }

    /// Measures a request until the result is dropped.
    fn time(&self, of: fn(&mut VolumeLatencies) -> &mut Latencies) -> Timed<'_> {
        Timed { volume: self, of, began: self.core.tasks.now() }
    }

    fn check_write(&self, offset: u64, bytes: u64) -> Result<u32, VolumeError> {
        let here = self.here();
        here.tasks.check_running()?;
        let map = here.map.borrow();
        let image = map.images.get(self.image).ok_or(VolumeError::Deleted)?;
        if !image.is_volume() {
            return Err(VolumeError::ReadOnly);
        }
        let first = first_unit(image, offset, bytes)?;
        map.prefetch(image, first);
        Ok(first)
    }

    fn check(&self, offset: u64, bytes: u64) -> Result<u32, VolumeError> {
        let here = self.here();
        let map = here.map.borrow();
        let image = map.images.get(self.image).ok_or(VolumeError::Deleted)?;
        first_unit(image, offset, bytes)
    }

    /// The domain that knows the volume: of a pair the one that has everything.
    fn here(&self) -> Shared {
        match pair::of(&self.core) {
            None => Rc::clone(&self.core),
            Some(pair) => Rc::clone(pair.lead()),
        }
    }
}

/// A request whose latency is measured.
struct Timed<'a> {
    volume: &'a Volume,
    of: fn(&mut VolumeLatencies) -> &mut Latencies,
    began: Time,
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        let Volume { core, tenant, .. } = self.volume;
        let ns = core.tasks.now().since_ns(self.began);
        (self.of)(&mut tenant.latencies.borrow_mut()).add(ns);
    }
}

/// The first mapping unit of a range inside an image.
fn first_unit(image: &Image, offset: u64, bytes: u64) -> Result<u32, VolumeError> {
    let unit = cast::wide(MAPPING_UNIT_BYTES);
    if !offset.is_multiple_of(unit) || !bytes.is_multiple_of(unit) {
        return Err(VolumeError::Unaligned { offset, bytes });
    }
    let (end, size) = (offset.saturating_add(bytes), u64::from(image.size) * unit);
    if end > size {
        return Err(VolumeError::BeyondEnd { offset, end, size });
    }
    u32::try_from(offset / unit).map_err(|_| VolumeError::BeyondEnd { offset, end, size })
}
