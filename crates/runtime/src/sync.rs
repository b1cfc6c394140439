//! What the ready queue shares between threads. `tests/models.rs` has the same names from loom.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard};
