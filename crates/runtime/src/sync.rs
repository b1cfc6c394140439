//! What threads share, or what stands for it where every order of their steps is tried.

#[cfg(feature = "loom")]
pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
#[cfg(feature = "loom")]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{Mutex, MutexGuard};
