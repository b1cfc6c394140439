//! Reference models, checkers and harnesses for tests. Not part of the product.

#![expect(clippy::unwrap_used, reason = "tests end at the first error")]

pub mod bed;
pub mod blocks;
pub mod clients;
pub mod driver;
pub mod faulty;
pub mod model;
pub mod virtual_bed;
pub mod volatile_file;

pub use bed::Bed;
pub use blocks::{array, on_blocks};
pub use model::Model;
pub use virtual_bed::VirtualBed;
pub use volatile_file::{CallFaults, VolatileFile};
