//! Reference models, checkers and harnesses for tests. Not part of the product.

#![expect(clippy::unwrap_used, reason = "tests end at the first error")]

pub mod blocks;
pub mod clients;
pub mod driver;
pub mod faulty;
pub mod model;
pub mod testbed;
pub mod virtual_testbed;
pub mod volatile_file;

pub use blocks::{array, on_blocks};
pub use model::Model;
pub use testbed::Testbed;
pub use virtual_testbed::VirtualTestbed;
pub use volatile_file::{CallFaults, VolatileFile};
