//! Maps from logical to physical pages.

pub mod cached;
mod kind;
pub mod page;

pub use kind::{MapKind, Share, UnknownMap};
