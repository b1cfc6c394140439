//! Policies: pure functions that choose a superblock or block. They never access a device.

pub mod bad_block;
pub mod wear;
