//! Errors that programs show to their users.

use std::error::Error;

/// An error that a program prints as it is: one line that names the object, the place and the
/// remedy.
pub trait UserError: Error + Send + Sync + 'static {
    /// Whether the options of the command are wrong, rather than that its work failed.
    fn is_usage(&self) -> bool {
        false
    }
}
