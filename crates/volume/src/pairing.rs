//! Domains that are one of a pair: what their handles do.

use crate::core::Shared;
use crate::domain::{Domain, DomainSpace};
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::image::Images;
use crate::operations::{self, Change};
use crate::pair::{self, Pair};
use serde::Serialize;
use softflash_base::cast;
use std::rc::Rc;
use std::time::Duration;

/// The state of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PairFigures {
    /// Whether both domains have all volumes.
    pub is_whole: bool,
    /// Whether a copy of everything is being made for one of them.
    pub is_building: bool,
    /// Bytes that the second domain, or the one that rests, has still to get.
    pub behind_bytes: u64,
    /// Bytes of them in memory.
    pub staged_bytes: u64,
    /// The most mapping units that were in memory at a time.
    pub most_staged_units: u64,
    /// Windows that have ended.
    pub turns: u64,
    /// Windows that ended before their time, because much was staged or had changed.
    pub early_turns: u64,
    /// Windows that took longer than their time, because the domain had still to get data.
    pub late_turns: u64,
    /// The longest time until a domain was at rest, in nanoseconds.
    pub longest_drain_ns: u64,
    /// Operations for which a domain left its deterministic window.
    pub operations: u64,
    /// Mapping units that were read from memory.
    pub staged_reads: u64,
    /// Mapping units that one domain could not read and the other one could.
    pub healed_units: u64,
    /// Mapping units whose newest data neither domain could read.
    pub lost_units: u64,
}

/// The window of a domain of a pair, with the estimates of NVM Express' predictable latency mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WindowState {
    /// Whether the domain only reads.
    pub is_deterministic: bool,
    /// The length of windows, in nanoseconds.
    pub length_ns: u64,
    /// The time until the window ends, if nothing ends it early, in nanoseconds.
    pub left_ns: u64,
    /// Bytes that clients may write before the window has to end.
    pub writes_left_bytes: u64,
}

impl Domain {
    /// Makes a pair of this domain and another one of the same thread, with a copy each of the same
    /// volumes: new ones, or those of this pair before a restart. If one of them is empty, it gets
    /// a copy of everything while clients use the volumes. With windows, one of them takes writes
    /// for so long while the other one only reads, in turns.
    ///
    /// Volumes are used by this domain's handles from then on; those of the other one serve its
    /// units only. `number` is never that of another pair.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`] where both have volumes of their own.
    pub async fn pair(
        &self,
        other: &Domain,
        number: u64,
        window: Option<Duration>,
    ) -> Result<(), VolumeError> {
        let window_ns = window.map(|window| window.as_nanos() as u64);
        let members = [&self.core, &other.core].map(Rc::clone);
        Box::pin(pair::form(members, number, window_ns)).await
    }

    /// Serves the volumes of a pair whose other domain cannot be mounted, if this one has all.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`] where it has not, or is one of another pair.
    pub async fn serve_alone(&self, number: u64) -> Result<(), VolumeError> {
        pair::alone(&self.core, number).await
    }

    /// The domain is none of a pair any more, by the table of sets: it keeps its volumes.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`] where it has not all of them.
    pub async fn forget_pair(&self) -> Result<(), VolumeError> {
        pair::forget(&self.core).await
    }

    /// Ends the pair, under load: this domain keeps the volumes, and the other one counts no more.
    ///
    /// # Errors
    /// Those of the last copies; the pair goes on then.
    pub async fn unpair(&self) -> Result<(), VolumeError> {
        match pair::of(&self.core) {
            None => Ok(()),
            Some(pair) => pair.part(&self.core).await,
        }
    }

    /// Whether the domain is one of a pair that has two copies of its volumes, or will have.
    pub fn is_paired(&self) -> bool {
        pair::of(&self.core).is_some()
    }

    /// Sets the windows of a pair, or ends them.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`] of a domain that is none of a pair.
    pub async fn set_window(&self, window: Option<Duration>) -> Result<(), VolumeError> {
        let Some(pair) = pair::of(&self.core) else {
            let reason = "a set has windows only as one of a pair".to_owned();
            return Err(VolumeError::Unsupported { reason });
        };
        pair.set_window(window.map(|window| window.as_nanos() as u64)).await
    }

    /// The state of the pair.
    pub fn pair_figures(&self) -> Option<PairFigures> {
        Some(pair::of(&self.core)?.figures())
    }

    /// The window of the domain; `None` without windows.
    pub fn window(&self) -> Option<WindowState> {
        let pair = pair::of(&self.core)?;
        pair.window_of(pair.place_of(&self.core)?)
    }

    /// Compares the two copies of a pair by their maps; the first difference, or nothing. Waits
    /// until both have everything.
    ///
    /// # Errors
    /// Those of copies.
    pub async fn compare_copies(&self) -> Result<Option<String>, VolumeError> {
        match pair::of(&self.core) {
            None => Ok(None),
            Some(pair) => pair.compare().await,
        }
    }

    /// Whether the domain has everything: it takes writes, or both do.
    pub fn leads(&self) -> bool {
        pair::of(&self.core).is_none_or(|pair| pair.has_everything(&self.core))
    }

    /// Whether the handles of the other domain of the pair serve the volumes.
    pub fn is_second(&self) -> bool {
        pair::of(&self.core).is_some_and(|pair| pair.place_of(&self.core) == Some(1))
    }

    /// The domain that has everything: of a pair the one that takes writes.
    pub(crate) fn here(&self) -> Shared {
        match pair::of(&self.core) {
            None => Rc::clone(&self.core),
            Some(pair) => Rc::clone(pair.lead()),
        }
    }

    /// Carries out an operation, of a pair on both domains.
    pub(crate) async fn change<T>(
        &self,
        plan: impl Fn(&Images) -> Result<(Change, T), VolumeError>,
    ) -> Result<T, VolumeError> {
        match pair::of(&self.core) {
            None => {
                let _under_way = self.core.link().unpaired.begin();
                operations::change(&self.core, plan).await
            }
            Some(pair) => Pair::change(&pair, plan).await,
        }
    }

    /// The space of a pair is that of the smaller domain.
    pub(crate) fn space_of_pair(&self, own: DomainSpace) -> DomainSpace {
        let Some(pair) = pair::of(&self.core) else { return own };
        let usable = pair
            .usable_units()
            .map(|units| units * cast::wide(MAPPING_UNIT_BYTES))
            .unwrap_or(own.usable_bytes);
        let is_full = own.is_full || pair.is_full();
        DomainSpace { usable_bytes: own.usable_bytes.min(usable), is_full, ..own }
    }
}
