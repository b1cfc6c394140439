//! Tests of the command layer on bytes: one binary, so that shared code is built once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests end at the first error"
)]

mod acl;
mod beside_redis;
mod connections;
mod differential;
mod generator;
mod parser;
mod pipelines;
mod recording;
mod scripts;
mod sessions;
mod support;
