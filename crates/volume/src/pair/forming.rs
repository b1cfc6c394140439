//! A pair is formed of two domains: new ones, or those of a pair before a restart.

use super::changing::go_on_alone;
use super::comparing;
use super::copying;
use super::course::{Course, Member, partner};
use super::putting::operate;
use super::states::{building_states, states_to_build};
use super::{Pair, record, record_of, turns};
use crate::core::Shared;
use crate::error::VolumeError;
use crate::format::operation::Operation;
use crate::format::pair::PairRecord;
use crate::format::pair_state::PairState;
use softflash_base::planted::{self, Bug};
use std::rc::Rc;

/// How two domains are to become a pair.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    /// Both are new: they have nothing.
    New,
    /// One has everything, the other gets it.
    Build { from: Member },
    /// Both have everything, but for what has changed since their last turns. The newest data are
    /// those of this member.
    Resume { newest: Member },
}

/// Forms the pair of this number, under load: from then on both domains are one of it.
pub(crate) async fn form(
    members: [Shared; 2],
    pair: u64,
    window_ns: Option<u64>,
) -> Result<(), VolumeError> {
    let plan = plan(&members, pair)?;
    let is_new = members.iter().all(|member| record_of(member).is_none());
    let formed = match plan {
        Plan::New => {
            let (is_whole, is_partner_whole) = (true, true);
            let state = PairState { pair, epoch: 1, operations: 0, is_whole, is_partner_whole };
            record(&members[0], state).await?;
            record(&members[1], state).await?;
            Pair::new(members, Course::Together)
        }
        Plan::Build { from } => begin_to_build(members, pair, from).await?,
        Plan::Resume { newest } => resume(members, newest).await?,
    };
    let formed = Rc::new(formed);
    formed.window_ns.set(window_ns);
    formed.members.iter().for_each(|member| member.link().set(&formed));
    // What began before went past the pair: none of it is missed when a copy begins.
    for member in &formed.members {
        member.link().unpaired.ended().await;
    }
    let begun = begin(&formed).await;
    if begun.is_err() {
        formed.stop();
        formed.members.iter().for_each(|member| member.link().clear());
    }
    if begun.is_err() && is_new {
        // It never was one: the next mount would take what they record for that of a pair.
        for member in &formed.members {
            record(member, PairState::default()).await.ok();
        }
    }
    begun
}

/// Lets the tasks of a pair run.
async fn begin(pair: &Rc<Pair>) -> Result<(), VolumeError> {
    let exclusive = pair.exclusive().await?;
    let is_together = matches!(*pair.course.borrow(), Course::Together);
    let has_volume = pair.members.each_ref().map(|core| !is_empty(core));
    if is_together && has_volume[0] != has_volume[1] {
        // It came into being meanwhile.
        let from = usize::from(has_volume[1]);
        let states = building_states(pair, from);
        for (member, state) in states {
            pair.record(member, state).await?;
        }
        pair.lost[partner(from)].set(true);
        pair.go_on(Course::Alone { member: from, builds: true });
    } else if is_together && let Some(window_ns) = pair.window_ns.get() {
        pair.begin_turns(window_ns).await?;
    }
    let tasks = &pair.members[0].tasks;
    tasks.spawn(turns::run(Rc::clone(pair)));
    (0..2).for_each(|member| tasks.spawn(copying::run(Rc::clone(pair), member)));
    drop(exclusive);
    Ok(())
}

/// A domain serves the volumes of a pair alone, if it has all of them.
pub(crate) async fn alone(core: &Shared, pair: u64) -> Result<(), VolumeError> {
    let Some(PairRecord { state, .. }) = record_of(core) else { return Ok(()) };
    if state.pair != pair {
        return unsupported("it is one of another pair".to_owned()).map(drop);
    }
    check_whole(&state)?;
    if state.is_partner_whole {
        let epoch = state.epoch + 1;
        record(core, PairState { epoch, is_partner_whole: false, ..state }).await?;
    }
    Ok(())
}

/// A domain is none of a pair any more.
pub(crate) async fn forget(core: &Shared) -> Result<(), VolumeError> {
    let Some(PairRecord { state, .. }) = record_of(core) else { return Ok(()) };
    check_whole(&state)?;
    record(core, PairState::default()).await
}

fn check_whole(state: &PairState) -> Result<(), VolumeError> {
    match state.is_whole {
        true => Ok(()),
        false => {
            let reason = "its copy of the volumes is not complete, and the other set of the pair, \
                          which had all, holds nothing or cannot be mounted";
            unsupported(reason.to_owned()).map(drop)
        }
    }
}

fn plan(members: &[Shared; 2], pair: u64) -> Result<Plan, VolumeError> {
    let records = [0, 1].map(|member| record_of(&members[member]));
    for (core, record) in members.iter().zip(&records) {
        let other = record.as_ref().map(|record| record.state.pair).filter(|id| *id != pair);
        if other.is_some() {
            return unsupported(format!("set {} is one of another pair", core.config.domain));
        }
    }
    let is_empty = |member: Member| is_empty(&members[member]);
    match records {
        [None, None] => match [is_empty(0), is_empty(1)] {
            [true, true] => Ok(Plan::New),
            [has_none, true] => Ok(Plan::Build { from: usize::from(has_none) }),
            [true, false] => Ok(Plan::Build { from: 1 }),
            [false, false] => {
                unsupported("both have volumes; one of them must be empty".to_owned())
            }
        },
        [Some(first), None] if is_empty(1) => {
            check_whole(&first.state)?;
            Ok(Plan::Build { from: 0 })
        }
        [None, Some(second)] if is_empty(0) => {
            check_whole(&second.state)?;
            Ok(Plan::Build { from: 1 })
        }
        [Some(_), None] | [None, Some(_)] => {
            unsupported("one of them has volumes that are not those of the pair".to_owned())
        }
        [Some(first), Some(second)] => plan_of_old(&[first.state, second.state]),
    }
}

/// Whether a domain has no volume.
fn is_empty(core: &Shared) -> bool {
    core.map.borrow().images.iter().next().is_none()
}

fn plan_of_old(states: &[PairState; 2]) -> Result<Plan, VolumeError> {
    // Of equal epochs the first member counts.
    let newest = usize::from(states[1].epoch > states[0].epoch);
    let counts = |member: Member| states[member].is_whole;
    match [counts(0), counts(1)] {
        [false, false] => {
            let reason = "neither set of a pair has all volumes; give both up, and import a backup";
            Err(VolumeError::Damaged { reason: reason.to_owned() })
        }
        [true, false] => Ok(Plan::Build { from: 0 }),
        [false, true] => Ok(Plan::Build { from: 1 }),
        [true, true] if states[newest].is_partner_whole => Ok(Plan::Resume { newest }),
        [true, true] => Ok(Plan::Build { from: newest }),
    }
}

fn unsupported(reason: String) -> Result<Plan, VolumeError> {
    Err(VolumeError::Unsupported { reason: format!("the sets cannot be a pair: {reason}") })
}

/// One member is about to be built: both record that only the other one counts.
async fn begin_to_build(
    members: [Shared; 2],
    pair: u64,
    from: Member,
) -> Result<Pair, VolumeError> {
    let states = [0, 1].map(|member| super::state_of(&members[member]));
    assert!(states[from].pair == 0 || states[from].is_whole, "a part of a copy is copied");
    for (member, state) in states_to_build(pair, states, from) {
        record(&members[member], state).await?;
    }
    let formed = Pair::new(members, Course::Alone { member: from, builds: true });
    formed.lost[partner(from)].set(true);
    Ok(formed)
}

/// Both members go on: what one of them has not is copied from the other one.
async fn resume(members: [Shared; 2], newest: Member) -> Result<Pair, VolumeError> {
    let records = [0, 1].map(|member| record_of(&members[member]).unwrap_or_default());
    let [first, second] = &records;
    if first.state.operations != second.state.operations {
        let behind = usize::from(second.state.operations < first.state.operations);
        let ahead = &records[partner(behind)];
        let next = ahead.state.operations == records[behind].state.operations + 1;
        match ahead.last.clone().filter(|_| next) {
            Some(operation) => {
                let number = ahead.state.operations;
                let operation = Box::new(operation);
                let operation = Operation::OfPair { number, operation };
                let core = &members[behind];
                operate(core, &operation).await?;
            }
            None => {
                let pair = first.state.pair;
                return begin_to_build(members, pair, partner(behind)).await;
            }
        }
    }
    let differs = {
        let maps = [members[0].map.borrow(), members[1].map.borrow()];
        comparing::images(&maps[0].images, &maps[1].images)
    };
    if let Some(difference) = differs {
        tracing::warn!(difference, "a set of a pair has other volumes; it is made again");
        let pair = first.state.pair;
        return begin_to_build(members, pair, newest).await;
    }
    let formed = Pair::new(members, Course::Together);
    mark_changed(&formed, &records, newest);
    match formed.level().await {
        Ok(()) => formed.next_epoch(&[newest, partner(newest)]).await?,
        Err(error @ VolumeError::OutOfSpace { .. }) => {
            let Some(small) = formed.too_small() else { return Err(error) };
            let domain = formed.member(small).config.domain;
            tracing::error!(domain, "a set of a pair has too little space; the other one serves");
            // Before the small one counts as lost: it alone has what the other one lacks.
            copying::catch_up(&formed, partner(small)).await?;
            formed.lost[small].set(true);
            go_on_alone(&formed, partner(small)).await?;
        }
        Err(error) => return Err(error),
    }
    Ok(formed)
}

/// Marks what each member lacks: what the newest one has changed since its turn began, and of what
/// the other one has changed the rest.
fn mark_changed(pair: &Pair, records: &[PairRecord; 2], newest: Member) {
    let older = partner(newest);
    assert!(
        records[newest].state.epoch >= records[older].state.epoch,
        "the older data of a pair would replace the newer"
    );
    let of_newest = &records[newest].changed;
    let mut of_older = records[older].changed.clone();
    if !planted::bug(Bug::OlderMemberWins) {
        of_older.remove_all(of_newest);
    }
    if !planted::bug(Bug::ChangesOfTurnNotCopied) {
        of_newest.iter().for_each(|(image, range)| pair.behind[older].mark(image, range));
    }
    of_older.iter().for_each(|(image, range)| pair.behind[newest].mark(image, range));
    for member in [0, 1] {
        let lost: Vec<_> = pair.member(member).map.borrow().lost().collect();
        let of_volumes = lost.into_iter().filter(|(image, lba)| {
            let map = pair.member(member).map.borrow();
            let is_volume = map.images.get(*image).is_some_and(|image| image.is_volume());
            // The other one lacks it if it was written here since.
            is_volume && pair.behind[partner(member)].source(*image, *lba).is_none()
        });
        of_volumes.for_each(|(image, lba)| pair.behind[member].mark(image, lba..lba + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(epoch: u64, is_whole: bool, is_partner_whole: bool) -> PairState {
        PairState { pair: 1, epoch, operations: 0, is_whole, is_partner_whole }
    }

    #[test]
    fn the_member_with_the_greater_epoch_counts() {
        let plan = |first, second| plan_of_old(&[first, second]).ok();
        let whole = |epoch| state(epoch, true, true);
        assert_eq!(plan(whole(4), whole(5)), Some(Plan::Resume { newest: 1 }));
        assert_eq!(plan(whole(5), whole(4)), Some(Plan::Resume { newest: 0 }));
        assert_eq!(plan(whole(5), whole(5)), Some(Plan::Resume { newest: 0 }));
        let alone = |epoch| state(epoch, true, false);
        assert_eq!(plan(whole(5), alone(6)), Some(Plan::Build { from: 1 }));
        assert_eq!(plan(alone(6), whole(5)), Some(Plan::Build { from: 0 }));
        let unbuilt = |epoch| state(epoch, false, true);
        assert_eq!(plan(alone(6), unbuilt(6)), Some(Plan::Build { from: 0 }));
        // The built one was recorded first.
        assert_eq!(plan(alone(6), whole(7)), Some(Plan::Resume { newest: 1 }));
        assert_eq!(plan(unbuilt(6), unbuilt(6)), None);
    }
}
