//! Maps from logical to physical pages.

pub mod page;
