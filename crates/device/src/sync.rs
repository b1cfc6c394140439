//! What the queue pairs of a device share. `tests/models.rs` has the same names from loom.

pub(crate) use std::sync::atomic::{AtomicI32, Ordering};
