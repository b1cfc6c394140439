//! A client, and what all of its requests have in common.

use super::paces::Paces;
use super::reading::rest;
use super::reference::{Name, Reference};
use crate::medium::Medium;
use crate::volume_shape::VolumeShape;
use softflash_base::random::Rng;
use softflash_runtime::RuntimeHandle;
use softflash_volume::{Domain, VolumeError};
use std::cell::RefCell;

/// Rests in a row, as long as flushes fail in them.
const MOST_RESTS: u32 = 3;

/// An error of a request, or a wrong result.
#[derive(Debug)]
pub enum Ended {
    Failed(VolumeError),
    /// Flushes fail: it is not known whether a loss would be reported.
    Unproven,
    Wrong(String),
}

impl From<VolumeError> for Ended {
    fn from(error: VolumeError) -> Ended {
        Ended::Failed(error)
    }
}

pub struct Client<'a> {
    pub domain: &'a Domain,
    pub runtime: &'a RuntimeHandle,
    pub shape: &'a VolumeShape,
    pub reads: f64,
    pub reference: &'a RefCell<Reference>,
    pub rng: Rng,
    /// The writes of each volume, for its limits.
    pub paces: Paces,
    pub medium: &'a Medium,
    /// The drive's flushes may fail.
    pub may_fail_flushes: bool,
    /// The flash may lose data: reads may say so, and a flush or an operation that has completed
    /// counts as done after a rest, from which on its loss is known.
    pub may_lose: bool,
    /// The mean time of an operation of the flash over that of one that is not slow.
    pub slowdown: f64,
    /// Set when the domain was full.
    pub full: bool,
}

impl Client<'_> {
    /// One of the names, if there is any.
    pub(super) fn one(&mut self, names: Vec<Name>) -> Option<Name> {
        if names.is_empty() {
            return None;
        }
        let at = self.rng.below(names.len() as u64) as usize;
        names.into_iter().nth(at)
    }

    /// An operation has completed, and all writes before it are durable.
    pub(super) async fn completed(&mut self, result: Result<(), VolumeError>) -> Result<(), Ended> {
        result?;
        if !self.rest().await {
            return Err(Ended::Unproven);
        }
        let mut reference = self.reference.borrow_mut();
        reference.complete();
        reference.settle();
        Ok(())
    }

    /// Where the flash may lose data: until a loss would be known. False if it would not, as
    /// flushes fail again and again: the end of the frames is proved by frames behind it that are
    /// durable.
    pub(super) async fn rest(&self) -> bool {
        if !self.may_lose {
            return true;
        }
        for _ in 0..MOST_RESTS {
            let failed = self.medium.failed_flushes();
            rest(self.runtime).await;
            // There is no proof until a flush succeeds, and none may be tried in this rest.
            if self.medium.flushes_stay_failed() {
                return false;
            }
            if self.medium.failed_flushes() == failed {
                return true;
            }
        }
        false
    }
}
