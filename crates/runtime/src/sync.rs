//! Synchronization primitives of the standard library, or those of loom in its models.

#[cfg(feature = "loom")]
pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
#[cfg(feature = "loom")]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{Mutex, MutexGuard};
