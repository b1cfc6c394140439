//! Policies: the choices of a flash translation layer, each in a file of its own.
//!
//! A policy is a pure function from a view, which is plain columns, to a choice. Its file has an
//! [`Entry`]: name, parameters, meaning, function. One line in the list of its kind registers it;
//! then every user has it: the laboratory's drives, volumes, the block layer, the value log and the
//! FTL, and `lab keys`, the error texts and the command line know its name.
//!
//! ```
//! use softflash_base::random::Rng;
//! use softflash_policy::victim::{self, Candidates, VictimPolicy};
//!
//! // Of three closed blocks of eight pages the second has the fewest valid ones.
//! let blocks = Candidates { valid: &[5, 2, 7], closed: &[0, 1, 2], now: 3, pages: 8 };
//! let policy: VictimPolicy = "greedy".parse()?;
//! assert_eq!(victim::choose(policy, &blocks, &mut Rng::seeded(1)), Some(1));
//! # Ok::<(), softflash_policy::PolicyError>(())
//! ```

mod chosen;
pub mod lifetime;
mod list;
pub mod order;
pub mod placement;
mod registry;
pub mod victim;
pub mod wear;

pub use chosen::{ChoiceError, Chosen};
pub use lifetime::LifetimePolicy;
pub use list::{Listed, ListedParameter, all};
pub use order::Schedule;
pub use placement::PlacementPolicy;
pub use registry::{Entry, Kind, Numbers, Parameter, Policy, PolicyError};
use softflash_base::random::Rng;
pub use victim::VictimPolicy;
pub use wear::WearPolicy;

/// The policies that choose among the blocks of a drive or of a volume, with the random numbers
/// that they draw.
#[derive(Debug, Clone)]
pub struct Policies {
    /// Which block is collected next.
    pub victim: VictimPolicy,
    /// Which blocks are used next, and whether cold data are moved.
    pub wear: WearPolicy,
    /// The generator of their random numbers.
    pub rng: Rng,
}

impl Policies {
    /// These policies, with a generator of their own: equal seeds give equal choices.
    pub fn new(victim: VictimPolicy, wear: WearPolicy, rng: Rng) -> Policies {
        Policies { victim, wear, rng }
    }
}
