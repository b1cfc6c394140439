//! What decides between the oldest read and the oldest write of a die.

/// What decides whether the oldest read of a die goes before its oldest write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Their arrivals.
    Arrival,
    /// Reads always do.
    ReadsFirst,
    /// Their deadlines, which they get when they arrive.
    Deadline,
    /// The start tags that they get when they arrive.
    Share,
}
