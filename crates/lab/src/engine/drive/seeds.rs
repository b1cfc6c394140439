//! The names of a run's random numbers, each a fork of those of its seed.

/// The requests of the clients, and their popular places, which a settled state shares.
pub(in crate::engine) const ACCESSES: &str = "accesses";
/// The same of the threads that only write.
pub(in crate::engine) const WRITERS: &str = "writers";
/// The initial state.
pub(in crate::engine) const PRECONDITION: &str = "precondition";
