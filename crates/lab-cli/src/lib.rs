//! The commands of the laboratory: experiments, simulations of one drive, and traces. The program
//! `softflash` has them beside its own, `softflash-lab` has nothing else, so that a change of a
//! policy is built in seconds.

mod flow;
pub mod lab;
pub mod replay;
pub mod sim;
pub mod simulated;
pub mod states;
pub mod trace;
