//! The laboratory: runs experiments on simulated devices, to predict the performance of a design
//! under a workload.
//!
//! An [`Experiment`] is a file that describes runs. Its [`Plan`] has the [`Cell`]s, each with one
//! device, one layout, one workload and one set of parameters, and the rows of the results. An
//! [`engine`] runs a cell in virtual time, on the FTL and store that `serve` runs, or on a model of
//! a conventional drive, and returns an [`Outcome`]. [`results`] compares outcomes with the
//! published figures, and [`report`] draws them. The caller provides threads, clocks and progress
//! bars; here equal inputs give equal bytes.
//!
//! `docs/laboratory.md` describes the files.

pub mod cell;
pub mod engine;
mod error;
pub mod experiment;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod host;
pub mod import;
pub mod keys;
pub mod layout;
pub mod measure;
pub mod outcome;
pub mod presets;
pub mod report;
pub mod results;
pub mod search;
mod states;
pub mod theory;
pub mod toml_text;
mod trace_workload;
pub mod workload;

pub use cell::{Cell, Control, Limits, LoggedRequest, Parameters, Settling};
pub use error::LabError;
pub use experiment::{Experiment, Form, Plan};
pub use layout::{Layout, LayoutKind, Units};
pub use outcome::{Backlog, Drift, FlowOutcome, Outcome, Programs, Sample, Settled, Span};
pub use softflash_drive::spec::{DeviceSpec, PageMapped};
pub use softflash_workload::{Flow, FlowWorkload, Precondition};
pub use states::StateCache;
pub use trace_workload::TraceWorkload;
pub use workload::Workload;
