//! Tests of flash as tasks await it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends at its first failure"
)]

mod resizing;
mod support;
