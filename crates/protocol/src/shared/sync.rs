//! What a kill switch shares between threads. `tests/models.rs` has the same names from loom.

pub(crate) use futures_util::task::AtomicWaker;
pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
