//! Analytic models: write amplification of cleaning under uniform random writes, and the queueing
//! delay at a die with random arrivals. Rows of experiments are compared with them, as others are
//! with published figures.

mod cleaning;
mod law;
mod queueing;
mod special;

pub use cleaning::{d_choices_waf, fifo_waf, greedy_waf};
pub use law::Law;
pub use queueing::md1_wait;
