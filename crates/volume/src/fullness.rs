//! Whether the space of a domain is full, told once when it becomes so and once when it has room
//! again.

use crate::core::Core;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::tenant::Tenant;
use softflash_base::cast;
use std::cell::Cell;

/// The part of the space that must be free again until the domain counts as not full: it would be
/// full again soon, and would be told so again and again.
const FREE_AGAIN: u32 = 64;

/// The state of a domain.
#[derive(Debug, Default)]
pub(crate) struct Fullness {
    /// Writes have been refused, and there has not been enough room since.
    is_full: Cell<bool>,
}

/// Notes how a write has ended.
pub(crate) fn note(core: &Core, tenant: &Tenant, written: &Result<(), VolumeError>) {
    match written {
        Err(VolumeError::OutOfSpace { used, usable }) => {
            tenant.count(|counters| counters.full_refusals += 1);
            core.counters.update(|counters| counters.refused += 1);
            if !core.fullness.is_full.replace(true) {
                tracing::warn!(
                    domain = core.config.domain,
                    used,
                    usable,
                    "the volumes' space is full: writes are refused until data are discarded, or \
                     volumes or snapshots deleted"
                );
            }
        }
        Ok(()) if core.fullness.is_full.get() => _ = is_full(core),
        _ => {}
    }
}

/// Whether writes that take more space are refused.
pub(crate) fn is_full(core: &Core) -> bool {
    let (used, usable) = (core.map.borrow().used(), core.usable.get());
    if core.fullness.is_full.get() && used <= usable - usable / FREE_AGAIN {
        core.fullness.is_full.set(false);
        let bytes = |units: u32| u64::from(units) * cast::wide(MAPPING_UNIT_BYTES);
        tracing::warn!(
            domain = core.config.domain,
            used = bytes(used),
            usable = bytes(usable),
            "the volumes' space has room again"
        );
    }
    core.fullness.is_full.get() || used >= usable
}
