//! Tests of the NAND model through its interface: one binary, so that the shared code is built
//! once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests end at the first thing that is wrong"
)]

mod common;
mod cut_outcomes;
mod determinism;
mod faults;
mod model;
mod power_cut;
mod presets;
mod reference;
mod rules;
mod schedule;
mod silent_faults;
mod timing;
