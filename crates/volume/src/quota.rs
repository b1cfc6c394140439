//! Admission of writes by space: a mapping unit that takes space is counted from its write until
//! the map names it, so that a volume and its snapshots never hold more than their quota, and a
//! domain never more than it can.

use crate::core::Core;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::tenant::{Growth, Tenant};
use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use std::rc::Rc;

/// Whether there is space for a write of a mapping unit.
pub(crate) enum Inside {
    /// There is; with what it takes.
    Yes(Option<Growth>),
    /// That depends on those that the map does not name yet: they may take less than was counted.
    Unknown,
}

/// Compares a write of a mapping unit with the quota of its volume and with the space that
/// collection leaves, and counts it.
pub(crate) fn count(core: &Core, tenant: &Rc<Tenant>, lba: u32) -> Result<Inside, VolumeError> {
    let map = core.map.borrow();
    let image = map.images.get(tenant.volume).ok_or(VolumeError::Deleted)?;
    if !map.grows(image, lba) {
        return Ok(Inside::Yes(None));
    }
    if let Some(quota) = tenant.settings().quota_bytes {
        let (held, growing) = (map.held(tenant.volume), tenant.growing());
        let bytes = |units: u64| units * cast::wide(MAPPING_UNIT_BYTES);
        let counted = if planted::bug(Bug::QuotaForgetsUnmapped) { 0 } else { growing };
        if bytes(u64::from(held) + u64::from(counted) + 1) > quota {
            if growing > 0 {
                return Ok(Inside::Unknown);
            }
            tenant.count(|counters| counters.quota_refusals += 1);
            return Err(VolumeError::QuotaExceeded { quota, used: bytes(held.into()) });
        }
    }
    if map.leaves.held() > core.space.leaves() {
        core.renew_usable();
    }
    let (used, growing) = (map.used(), core.space.growing());
    if used + growing.units() < core.space.usable() {
        return Ok(Inside::Yes(Some(Growth::of(tenant, growing))));
    }
    match growing.units() {
        0 => Err(core.out_of_space(used)),
        _ => Ok(Inside::Unknown),
    }
}
