//! The FTL on the model and on files: one binary, so that what all of these share is built once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests end at the first thing that is wrong"
)]

mod bad_blocks;
mod data;
mod file_backend;
mod random_failures;
mod recovery;
mod scheduling;
mod support;
mod wear;
