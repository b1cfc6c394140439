//! The program `softflash-bench`, driven as its users do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests end at the first thing that is wrong"
)]

mod models;
mod report;
mod support;
