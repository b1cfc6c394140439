//! The input of a wear policy, columns over the blocks of a group, and its form.

use crate::registry::Numbers;

/// The two choices of a wear policy.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub(super) choose_free: fn(&FreeView<'_>) -> Option<usize>,
    pub(super) level: fn(&WearView<'_>, Numbers) -> Option<u32>,
}

/// Moves no data.
pub(super) fn never(_: &WearView<'_>, _: Numbers) -> Option<u32> {
    None
}

/// The view of a policy on the free blocks of a group.
#[derive(Debug, Clone, Copy)]
pub struct FreeView<'a> {
    /// The free blocks in two parts, the one that was erased first at the front of the first.
    pub free: (&'a [u32], &'a [u32]),
    /// Erases of each block, by its number.
    pub erases: &'a [u32],
}

impl FreeView<'_> {
    /// The free blocks, the one that was erased first at the front.
    pub(super) fn blocks(&self) -> impl Iterator<Item = u32> {
        self.free.0.iter().chain(self.free.1).copied()
    }
}

/// The view of a policy on all blocks of a group.
#[derive(Debug, Clone, Copy)]
pub struct WearView<'a> {
    /// Valid pages of each block; `victim::NOT_CLOSED` is added where it cannot be collected.
    pub valid: &'a [u16],
    /// Erases of each block.
    pub erases: &'a [u32],
}
