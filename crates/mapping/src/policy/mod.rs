//! The choices of a page-mapped FTL: pure functions over plain columns that return a block, each in
//! a file of its own. [`Blocks`](crate::Blocks) keeps the columns and executes the choices. The
//! orders of admission are for the queues of their callers.

pub mod order;
pub mod placement;
mod text;
pub mod victim;
pub mod wear;

use softflash_base::random::Rng;
pub use text::PolicyError;
pub(crate) use text::number;
use victim::VictimPolicy;
use wear::WearPolicy;

/// The policies of a drive or of a volume, with the random numbers that they draw.
#[derive(Debug, Clone)]
pub struct Policies {
    /// Which block is collected next.
    pub victim: VictimPolicy,
    /// Which blocks are used next, and whether cold data are moved.
    pub wear: WearPolicy,
    pub(crate) rng: Rng,
}

impl Policies {
    /// These policies, with a generator of their own: equal seeds give equal choices.
    pub fn new(victim: VictimPolicy, wear: WearPolicy, rng: Rng) -> Policies {
        Policies { victim, wear, rng }
    }
}
