//! Key-value workloads.

mod contents;
mod key;
mod source;
mod spec;

pub use contents::{ContentsError, check_value, fill_value, version_of};
pub use key::{Key, KeyMaker};
pub use source::{KvAccess, KvKind, KvSource};
pub use spec::{KvOrder, KvWorkload, Operation, ValueSize};
