//! Parity groups as data: which patches share which parity block.

/// A patch in a parity group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its block.
    pub block: u64,
    /// Its written pages; the parity counts the pages behind them as zeros.
    pub pages: u32,
}

/// Patches that share a parity block: page by page, the XOR of all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParityGroup {
    /// The parity block, whose id names the group.
    pub parity: u64,
    /// The patches, at least one.
    pub members: Vec<Member>,
}

/// A change of the groups. It is idempotent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupChange {
    /// New groups.
    pub added: Vec<ParityGroup>,
    /// Parity blocks of dissolved groups. Their patches are in added groups or deleted.
    pub removed: Vec<u64>,
}

impl ParityGroup {
    /// Pages of the parity block.
    pub fn pages(&self) -> u32 {
        self.members.iter().map(|member| member.pages).max().unwrap_or(0)
    }

    /// All blocks and their pages: the patches, then the parity.
    pub fn blocks(&self) -> impl Iterator<Item = Member> {
        let parity = Member { block: self.parity, pages: self.pages() };
        self.members.iter().copied().chain([parity])
    }
}
