//! Policies: pure functions that choose. They never touch a device; the mechanism executes the choice.

pub mod bad_block;
pub mod wear;
