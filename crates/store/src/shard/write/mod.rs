//! Writes: what a commit does, and when it may.

pub(super) mod admission;
pub(super) mod clear;
pub(super) mod commit;
pub(super) mod merge_pace;
pub(super) mod write_room;
pub(super) mod writes;
