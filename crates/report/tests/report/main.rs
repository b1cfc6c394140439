//! Tests of the report.

mod figures;
mod page;
mod support;
