//! Theory in closed form: write amplification of cleaning under uniform random writes, and the wait
//! at a die that is asked at random times. Rows of experiments stand beside it as others stand
//! beside published figures.

mod cleaning;
mod law;
mod queueing;
mod special;

pub use cleaning::{fifo_waf, greedy_waf};
pub use law::Law;
pub use queueing::md1_wait;
