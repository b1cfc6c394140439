//! The flash array itself, as a state machine: geometry, timing, page and block states, wear, bit
//! errors, faults and power cuts.
//!
//! Time and randomness are arguments: the array reads no clock, starts no thread and opens no file.
//! The layer above submits a [`DieCommand`], asks for the time of the next event, and advances the
//! array to that time:
//!
//! ```
//! use softflash_base::Time;
//! use softflash_nand::{Array, CommandKind, DieCommand, DieIndex, FaultConfig, Storage, presets};
//!
//! let mut array = Array::new(&presets::small(), Storage::Ram, &FaultConfig::default(), 1)?;
//! let program = DieCommand::single(7, DieIndex(0), CommandKind::Program, 0, 0);
//! array.submit(Time::ZERO, &program, &[42; 4096])?;
//! let mut finished = Vec::new();
//! array.advance(Time::MAX, &mut finished);
//! assert_eq!(finished[0].latency_ns(), 10_000 + 200_000); // transfer, then program
//!
//! let read = DieCommand { kind: CommandKind::Read, ..program };
//! array.submit(array.now(), &read, &[])?;
//! finished.clear();
//! array.advance(Time::MAX, &mut finished);
//! assert_eq!(array.read_data(&finished[0]), [42; 4096]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The array enforces the physical rules: no program without erase, pages of a block in order, no
//! program or erase of a bad block, one operation at a time on a die and one transfer at a time on
//! a channel. A read of an unreadable page reports an error and never returns data.
//!
//! # Layout
//!
//! - [`geometry`], [`address`], [`cell`], [`timing`], [`config`], [`presets`]: the configuration of
//!   an array;
//! - [`command`]: commands of dies and their completions;
//! - [`mod@array`]: the state machine, on top of `tournament` (pending events), `die`, `channel`
//!   and [`block`];
//! - [`mod@timeline`]: the timing of an array alone, for simulated drives;
//! - [`storage`]: page contents; [`faults`]: fault injection; [`error_law`]: bit errors;
//! - [`mod@bench`]: a closed-loop benchmark of the simulator.

mod activity;
pub mod address;
pub mod array;
pub mod bench;
pub mod block;
pub mod cell;
mod channel;
pub mod command;
pub mod config;
mod damage;
pub mod error_law;
pub mod faults;
pub mod geometry;
mod prefetch;
pub mod presets;
pub mod storage;
pub mod timeline;
pub mod timing;
mod tournament;

pub use activity::Activity;
pub use address::{BlockAddress, BlockIndex, ChannelIndex, DieIndex, PageAddress, PageIndex};
pub use array::{Array, ArrayCounters, ImportError, PowerCutReport, Recorded};
pub use bench::{BenchmarkError, BenchmarkMix, BenchmarkResult, array_benchmark};
pub use block::{BlockRecord, BlockState, Health};
pub use cell::{Cell, Pairing};
pub use command::{CommandKind, DieCommand, Finished, PageStatus, Refused, RuleBroken};
pub use config::{ArrayConfig, ConfigError};
pub use damage::PageDamage;
pub use error_law::{ErrorLaw, Exposure, ReadVerdict};
pub use faults::{
    CutErases, CutPages, FaultConfig, FaultPlace, FaultSchedule, FaultTime, InjectedFaults,
    PlannedFault, SilentFaults, SlowOperations, Strike,
};
pub use geometry::{Geometry, GeometryError, MAX_PLANES};
pub use storage::{PackedPages, PageStore, Storage, StoreFailure};
pub use timeline::{Step, Timeline, Work, WorkKind};
pub use timing::{BusTiming, DieTiming, MAX_PARTS, SlcTiming, SuspendTiming, TimingError};
