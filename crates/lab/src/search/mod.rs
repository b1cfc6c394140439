//! Searches: the smallest or the largest value of a key for which a condition holds, by bisection
//! over the runs of one cell of an experiment.
//!
//! The caller runs the cells of the values that a [`Bisection`] asks for, and tells what a
//! [`Condition`] says of their outcomes.

mod bisection;
mod condition;
mod grid;
mod key;
mod question;
mod result;

pub use bisection::{Answer, Bisection, Ends, Want};
pub use condition::{Condition, ConditionError};
pub use grid::{Grid, GridError, Span};
pub use key::SearchedKey;
pub use question::{Question, Quorum};
pub use result::{Finding, SearchRun, ValueResult};
