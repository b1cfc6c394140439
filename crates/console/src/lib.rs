//! What the programs of SoftFlash share: a command's output, its errors, files and signals, and
//! what it asks the machine. No command is here, and no part of the system but `base`.

pub mod allocator;
pub mod cleanup;
mod error;
pub mod host;
pub mod input;
pub mod interrupt;
pub mod log;
pub mod measure;
pub mod new_file;
pub mod output;
pub mod plural;
mod program;
pub mod progress;
pub mod question;
mod signals;
pub mod sizes;
pub mod values;

pub use error::CliError;
pub use program::run;
