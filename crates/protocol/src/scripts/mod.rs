//! Scripts that client libraries send unasked, such as those of their locks. Nothing runs Lua: a
//! script whose text is known stands for an operation of the store.

mod known;
mod loaded;
mod lua;

pub(crate) use known::{Known, Operation};
pub(crate) use loaded::Scripts;
