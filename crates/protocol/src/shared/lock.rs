//! Locking of state shared by threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, even after a panic of another thread: the guarded state is valid after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
