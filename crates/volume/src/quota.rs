//! Quotas: a mapping unit that takes space of a volume with a quota is counted from its write until
//! the map names it, so that the volume and its snapshots never hold more.

use crate::core::Core;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::tenant::{Growth, Tenant};
use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use std::rc::Rc;

/// Whether a write of a mapping unit is inside the quota.
pub(crate) enum Inside {
    /// It is; with what it takes.
    Yes(Option<Growth>),
    /// That depends on those that the map does not name yet: they may take less than was counted.
    Unknown,
}

/// Compares a write of a mapping unit with the quota of its volume, and counts it.
pub(crate) fn count(core: &Core, tenant: &Rc<Tenant>, lba: u32) -> Result<Inside, VolumeError> {
    let Some(quota) = tenant.settings().quota_bytes else { return Ok(Inside::Yes(None)) };
    let map = core.map.borrow();
    let image = map.images.get(tenant.volume).ok_or(VolumeError::Deleted)?;
    if !map.grows(image, lba) {
        return Ok(Inside::Yes(None));
    }
    let (held, growing) = (map.held(tenant.volume), tenant.growing());
    let bytes = |units: u64| units * cast::wide(MAPPING_UNIT_BYTES);
    let counted = if planted::bug(Bug::QuotaForgetsUnmapped) { 0 } else { growing };
    if bytes(u64::from(held) + u64::from(counted) + 1) <= quota {
        return Ok(Inside::Yes(Some(Growth::of(tenant))));
    }
    if growing > 0 {
        return Ok(Inside::Unknown);
    }
    tenant.count(|counters| counters.quota_refusals += 1);
    Err(VolumeError::QuotaExceeded { quota, used: bytes(held.into()) })
}
