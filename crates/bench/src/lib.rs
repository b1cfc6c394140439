//! The benchmarks that `softflash bench` has: of the store, of the device, and of the translation
//! layer of volumes. The program `softflash-bench` of this crate has others beside them.

pub mod device;
pub mod ftl;
pub mod kv;
