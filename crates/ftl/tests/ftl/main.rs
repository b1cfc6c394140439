//! Tests of the FTL on the model and on files, in one binary so that the shared code is built once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test ends at its first failure"
)]

mod bad_blocks;
mod data;
mod file_backend;
mod hints;
mod leaving;
mod owners;
mod random_failures;
mod recovery;
mod scheduling;
mod support;
mod wear;
