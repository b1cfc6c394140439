//! Workloads: the kind, place, size and time of requests.
//!
//! A [`BlockWorkload`], a [`FlowWorkload`] of several at once, or a [`KvWorkload`] is a preset in
//! TOML; its source generates an endless sequence of accesses, a [`Load`] determines their times,
//! and a [`Precondition`] the state of the device before them. Time is virtual and an argument,
//! randomness comes from a seeded generator: equal seeds give equal accesses. `docs/workloads.md`
//! has fields, units and definitions.
//!
//! ```
//! use softflash_base::random::Rng;
//! use softflash_workload::{AccessKind, BlockWorkload, Pattern, RequestSize};
//! let mut workload = BlockWorkload::new("reads", RequestSize::Fixed(8192), Pattern::Random);
//! workload.read_fraction = 1.0;
//! let mut source = workload.source(1 << 30, Rng::seeded(1))?;
//! let access = source.next();
//! assert_eq!((access.kind, access.bytes), (AccessKind::Read, 8192));
//! assert_eq!(access.offset_bytes % 8192, 0);
//! # Ok::<(), softflash_workload::WorkloadError>(())
//! ```

mod access;
mod block;
mod error;
mod flows;
mod kv;
mod load;
mod one_of;
mod permutation;
mod precondition;

pub use access::Access;
pub use block::{
    Begin, BlockSource, BlockWorkload, Pattern, RequestSize, Scatter, SizeShare, Span,
};
pub use error::{Problem, WorkloadError};
pub use flows::{Flow, FlowWorkload, Mix, WriteSeeds};
pub use kv::{
    ContentsError, Key, KeyMaker, KvAccess, KvKind, KvOrder, KvSource, KvWorkload, Operation,
    ValueSize, check_value, fill_value, version_of,
};
pub use load::{ArrivalPattern, Arrivals, Load, RateCap, RateCaps};
pub use precondition::{NoSuchPrecondition, Precondition};
pub use softflash_base::AccessKind;
