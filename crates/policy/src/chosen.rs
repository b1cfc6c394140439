//! The policies that a user chooses for flash in use: `victim=cost-benefit,wear=static:100`.

use crate::lifetime::Lifetime;
use crate::order::Order;
use crate::placement::Placement;
use crate::registry::{Kind, PolicyError};
use crate::victim::Victim;
use crate::wear::Wear;
use crate::{LifetimePolicy, PlacementPolicy, Schedule, VictimPolicy, WearPolicy};
use std::str::FromStr;
use thiserror::Error;

/// The policies that were chosen, one of a kind at most; the user of each other kind has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chosen {
    /// Which superblock, or block of values, is collected next.
    pub victim: Option<VictimPolicy>,
    /// How the erases of a unit are levelled.
    pub wear: Option<WearPolicy>,
    /// Which unit takes the next block or frame.
    pub placement: Option<PlacementPolicy>,
    /// The order of the commands that wait for a die.
    pub order: Option<Schedule>,
    /// Which data without hints share superblocks.
    pub lifetime: Option<LifetimePolicy>,
}

/// A choice that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChoiceError {
    /// No kind of this name, or no name.
    #[error(
        "`{0}` chooses nothing; write KIND=POLICY, where KIND is `victim`, `wear`, `placement`, \
         `order` or `lifetime`"
    )]
    Kind(String),
    /// An order of drives.
    #[error(
        "the order `{0}` needs the times of the flash, so it is for the laboratory's drives only"
    )]
    OfDrives(Schedule),
    /// A lifetime policy that sees requests to come.
    #[error("the lifetime policy `{0}` needs the requests to come, so it is for drives only")]
    Foretold(LifetimePolicy),
    /// The kind is chosen twice.
    #[error("`{0}` is chosen twice")]
    Twice(&'static str),
    /// A placement of pages.
    #[error("the placement `{0}` depends on the numbers of pages, so it is for drives only")]
    OfPages(PlacementPolicy),
    /// No policy of this name.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

impl Chosen {
    /// Adds a lifetime policy.
    ///
    /// # Errors
    /// [`ChoiceError::Twice`] if there is one, [`ChoiceError::Foretold`].
    pub fn choose_lifetime(&mut self, policy: LifetimePolicy) -> Result<(), ChoiceError> {
        if policy.is_foretold() {
            return Err(ChoiceError::Foretold(policy));
        }
        match self.lifetime.replace(policy) {
            Some(_) => Err(ChoiceError::Twice(Lifetime::NAME)),
            None => Ok(()),
        }
    }
}

impl FromStr for Chosen {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Chosen, ChoiceError> {
        let mut chosen = Chosen::default();
        for choice in text.split(',') {
            let unknown = || ChoiceError::Kind(choice.to_owned());
            let (kind, policy) = choice.split_once('=').ok_or_else(unknown)?;
            match kind {
                Victim::NAME => set::<Victim>(&mut chosen.victim, policy)?,
                Wear::NAME => set::<Wear>(&mut chosen.wear, policy)?,
                Placement::NAME => set::<Placement>(&mut chosen.placement, policy)?,
                Order::NAME => set::<Order>(&mut chosen.order, policy)?,
                Lifetime::NAME => chosen.choose_lifetime(policy.parse()?)?,
                _ => return Err(unknown()),
            }
        }
        if let Some(of_pages) = chosen.placement.filter(|it| it.is_static()) {
            return Err(ChoiceError::OfPages(of_pages));
        }
        match chosen.order {
            Some(of_drives) if of_drives.allowances().is_none() => {
                Err(ChoiceError::OfDrives(of_drives))
            }
            _ => Ok(chosen),
        }
    }
}

fn set<K: Kind>(place: &mut Option<crate::Policy<K>>, text: &str) -> Result<(), ChoiceError> {
    match place.replace(text.parse()?) {
        Some(_) => Err(ChoiceError::Twice(K::NAME)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_in_any_order_and_each_wrong_one_has_its_error() {
        let chosen: Chosen = "wear=static:9,victim=d-choices:3".parse().unwrap();
        assert_eq!(chosen.victim, Some(VictimPolicy::d_choices(3)));
        assert_eq!((chosen.wear, chosen.placement), (Some(WearPolicy::level_by(9)), None));
        assert_eq!("order=fifo".parse::<Chosen>().unwrap().order, Some(Schedule::FIFO));
        for (text, part) in [
            ("", "write KIND=POLICY"),
            ("greedy", "`greedy` chooses nothing"),
            ("vctim=greedy", "`vctim=greedy` chooses nothing"),
            ("victim=gredy", "unknown victim policy `gredy`"),
            ("victim=greedy,victim=fifo", "`victim` is chosen twice"),
            ("placement=by-hint:2", "for drives only"),
            ("order=weighted-fair:1:1", "laboratory"),
            ("lifetime=oracle:8", "requests to come"),
        ] {
            let error = text.parse::<Chosen>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
