//! Tests of the executors.

mod real_executor;
mod virtual_executor;
mod waiting;
