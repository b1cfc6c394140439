//! The lanes in turn, whatever is written: consecutive writes lie on different channels even if
//! their addresses do not.

use super::view::Lanes;

pub(super) fn choose(lanes: &Lanes<'_>) -> Option<u32> {
    lanes.with_room().next()
}
