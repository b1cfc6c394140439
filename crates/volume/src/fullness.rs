//! Whether the space of a domain is full, told once when it becomes so and once when it has room
//! again.

use crate::format::MAPPING_UNIT_BYTES;
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

impl Fullness {
    /// A write was refused, where so many bytes are used and can be. The log has the
    /// number of the set, as `set list` does.
    pub fn note_refusal(&self, domain: u16, used: u64, usable: u64) {
        if !self.is_full.replace(true) {
            tracing::warn!(
                set = domain,
                used,
                usable,
                "the volumes' space is full: writes are refused until data are discarded, or \
                 volumes or snapshots deleted"
            );
        }
    }

    /// Whether writes that take more space are refused, where so many mapping units are used and
    /// can be.
    pub fn is_full(&self, domain: u16, used: u32, usable: u32) -> bool {
        if self.is_full.get() && used <= usable - usable / FREE_AGAIN {
            self.is_full.set(false);
            let bytes = |units: u32| u64::from(units) * cast::wide(MAPPING_UNIT_BYTES);
            let (used, usable) = (bytes(used), bytes(usable));
            tracing::warn!(set = domain, used, usable, "the volumes' space has room again");
        }
        self.is_full.get() || used >= usable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_full_until_enough_is_free_again() {
        let fullness = Fullness::default();
        assert!(!fullness.is_full(1, 639, 640));
        assert!(fullness.is_full(1, 640, 640));
        assert!(!fullness.is_full(1, 639, 640), "nothing was refused");
        fullness.note_refusal(1, 640, 640);
        assert!(fullness.is_full(1, 631, 640), "a little is free");
        assert!(!fullness.is_full(1, 630, 640));
        assert!(!fullness.is_full(1, 639, 640));
    }
}
