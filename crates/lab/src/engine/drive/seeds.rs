//! The names of a run's random numbers, each a fork of those of its seed.

/// The requests of the clients, and their popular places, which a settled state shares.
pub(super) const ACCESSES: &str = "accesses";
/// The same of the threads that only write.
pub(super) const WRITERS: &str = "writers";
/// The initial state.
pub(super) const PRECONDITION: &str = "precondition";
