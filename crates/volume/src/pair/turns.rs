//! The turns of a pair: with windows, the member that rests takes the writes, and the other one
//! comes to rest; without, both begin a new epoch from time to time, so that little has to be
//! compared after a power cut.

use super::Pair;
use super::building;
use super::copying::catch_up;
use super::course::{Course, Member, REVIVAL, partner};
use super::putting::is_fatal;
use super::states::building_states;
use crate::error::VolumeError;
use crate::resting::{rest, resume};
use softflash_base::Time;
use softflash_base::planted::{self, Bug};
use std::rc::Rc;
use std::time::Duration;

/// The longest epoch of a pair without windows, if there are writes.
const LONGEST_EPOCH: Duration = Duration::from_secs(10);

/// What the task of turns does next.
enum Next {
    /// It waits, at most until this time.
    Wait(Option<Time>),
    /// Both begin a new epoch.
    Renew,
    /// The windows begin.
    Begin(u64),
    /// The other member takes writes.
    Turn,
    /// A member takes no more writes: the other one goes on alone.
    Lose(Member),
    /// A copy of everything is made.
    Build,
    /// The lost member takes writes again: a copy of everything is made for it.
    Revive,
}

/// Makes the turns of a pair until it ends.
pub(super) async fn run(pair: Rc<Pair>) {
    let mut renewed_at = pair.member(0).tasks.now();
    while !pair.is_stopped() {
        let done = match next(&pair, renewed_at) {
            Next::Wait(until) => {
                wait(&pair, until).await;
                Ok(())
            }
            Next::Renew => {
                renewed_at = pair.member(0).tasks.now();
                renew(&pair).await
            }
            Next::Begin(window_ns) => begin(&pair, window_ns).await,
            Next::Turn => turn(&pair).await,
            Next::Lose(member) => pair.go_on_without(member).await,
            Next::Build => build(&pair).await,
            Next::Revive => revive(&pair).await,
        };
        pair.turned.notify_all();
        if let Err(VolumeError::OutOfSpace { .. }) = done
            && let Some(member) = pair.too_small()
        {
            // Clients would wait for ever for the next turn.
            pair.lose(member);
        } else if let Err(error) = done
            && !pair.is_stopped()
        {
            tracing::warn!(%error, "a turn of a pair has failed; it is tried again");
            let tasks = &pair.member(0).tasks;
            tasks.sleep_until(tasks.now() + Duration::from_secs(1)).await;
        }
    }
}

fn next(pair: &Pair, renewed_at: Time) -> Next {
    let now = pair.member(0).tasks.now();
    let is_full = |member: usize| {
        let (changed, most) = pair.changed(member);
        2 * changed >= most
    };
    if let Some(member) = pair.losing() {
        return Next::Lose(member);
    }
    match &*pair.course.borrow() {
        Course::Together => {
            let has_changed = (0..2).any(|member| pair.changed(member).0 > 0);
            let due = renewed_at + LONGEST_EPOCH;
            if let (true, Some(window_ns)) = (has_changed, pair.window_ns.get()) {
                return Next::Begin(window_ns);
            }
            match has_changed {
                true if now >= due || (0..2).any(is_full) => Next::Renew,
                true => Next::Wait(Some(due)),
                false => Next::Wait(None),
            }
        }
        course @ Course::Turns(windows) => {
            let (writer, later) = (course.lead(), partner(course.lead()));
            let ends_at = Time(windows.ends_at_ns().unwrap_or(0));
            let is_early = is_full(writer) || pair.behind[later].staged_bytes().1;
            if now < ends_at && !is_early {
                return Next::Wait(Some(ends_at));
            }
            // It has to have everything before the other one may count as the newer one.
            let is_level = pair.behind[writer].is_empty() || planted::bug(Bug::TurnBeforeLevel);
            match is_level || is_full(writer) {
                true => {
                    pair.figures.turn_ends(now < ends_at);
                    Next::Turn
                }
                false => {
                    pair.figures.turn_waits(now < ends_at);
                    Next::Wait(None)
                }
            }
        }
        Course::Alone { builds: true, .. } => Next::Build,
        Course::Alone { member, builds: false } => {
            let lost = pair.member(partner(*member));
            let takes_data = lost.staying_units().any(|unit| lost.takes_data(unit));
            let used = pair.member(*member).map.borrow().used();
            match takes_data && lost.space.usable() >= used && now >= pair.revived_at.get() {
                true => Next::Revive,
                false => Next::Wait(Some(pair.revived_at.get().max(now + REVIVAL))),
            }
        }
    }
}

/// Waits until the task is woken, or until a time.
async fn wait(pair: &Pair, until: Option<Time>) {
    let woken = pair.wake.notified();
    match until {
        Some(until) => {
            let elapsed = pair.member(0).tasks.sleep_until(until);
            futures_util::future::select(std::pin::pin!(woken), elapsed).await;
        }
        None => woken.await,
    }
}

/// Both members are level and begin a new epoch.
async fn renew(pair: &Rc<Pair>) -> Result<(), VolumeError> {
    let exclusive = pair.exclusive().await?;
    if !matches!(*pair.course.borrow(), Course::Together) {
        return Ok(());
    }
    pair.level().await?;
    pair.next_epoch(&[0, 1]).await?;
    drop(exclusive);
    Ok(())
}

/// Makes a copy of everything. A member that takes no writes, or too few, is tried again later.
async fn build(pair: &Rc<Pair>) -> Result<(), VolumeError> {
    let built = building::build(pair).await;
    let ends =
        |error: &VolumeError| is_fatal(error) || matches!(error, VolumeError::OutOfSpace { .. });
    if built.as_ref().is_err_and(ends)
        && let Course::Alone { builds, .. } = &mut *pair.course.borrow_mut()
    {
        *builds = false;
        pair.revived_at.set(pair.member(0).tasks.now() + REVIVAL);
    }
    built
}

/// A lost member takes writes again, as far as is known.
async fn revive(pair: &Rc<Pair>) -> Result<(), VolumeError> {
    let exclusive = pair.exclusive().await?;
    let alone = match *pair.course.borrow() {
        Course::Alone { member, builds: false } => member,
        _ => return Ok(()),
    };
    let tasks = &pair.member(alone).tasks;
    pair.revived_at.set(tasks.now() + REVIVAL);
    for (member, state) in building_states(pair, alone) {
        pair.record(member, state).await?;
    }
    pair.go_on(Course::Alone { member: alone, builds: true });
    drop(exclusive);
    Ok(())
}

/// The members take writes in turns.
async fn begin(pair: &Rc<Pair>, window_ns: u64) -> Result<(), VolumeError> {
    let exclusive = pair.exclusive().await?;
    if matches!(*pair.course.borrow(), Course::Together) {
        pair.begin_turns(window_ns).await?;
    }
    drop(exclusive);
    Ok(())
}

/// The writer comes to rest, and the other one takes the writes.
async fn turn(pair: &Rc<Pair>) -> Result<(), VolumeError> {
    let exclusive = pair.exclusive().await?;
    let writer = match &*pair.course.borrow() {
        course @ Course::Turns(_) => course.lead(),
        _ => return Ok(()),
    };
    if planted::bug(Bug::StagingLostOnRoleChange) {
        pair.behind[writer].forget_all();
    }
    if !planted::bug(Bug::TurnBeforeLevel) {
        catch_up(pair, writer).await?;
    }
    let later = partner(writer);
    pair.is_interrupted.set(false);
    let lacks = pair.behind[writer].units();
    assert!(
        lacks == 0 || planted::bug(Bug::TurnBeforeLevel),
        "the other member would count as the newer one, and {lacks} mapping units are lacking"
    );
    let tasks = &pair.member(writer).tasks;
    with_windows(pair, |windows, now| windows.drain(now), tasks.now().0);
    if planted::bug(Bug::BothInMaintenance) {
        resume(pair.member(later));
    }
    let rested = rest(pair.member(writer)).await;
    let rests = rested.is_ok();
    // Reads go to the one that rests from here on.
    with_windows(pair, |windows, now| windows.at_rest(now), tasks.now().0);
    if rests {
        resume(pair.member(later));
    }
    let begun = match rested {
        Ok(()) => pair.next_epoch(&[later]).await,
        Err(error) => Err(error),
    };
    if begun.is_err() {
        take_back(pair, writer).await;
    }
    if let Err(error) = &begun
        && is_fatal(error)
    {
        pair.lose(if rests { later } else { writer });
    }
    drop(exclusive);
    begun
}

/// A turn that has failed is taken back: the writer goes on.
async fn take_back(pair: &Pair, writer: Member) {
    let later = pair.member(partner(writer));
    if let Err(error) = rest(later).await {
        tracing::warn!(%error, "a set of a pair does not come to rest");
    }
    with_windows(pair, |windows, now| windows.drain(now), later.tasks.now().0);
    with_windows(pair, |windows, now| windows.at_rest(now), later.tasks.now().0);
    resume(pair.member(writer));
}

fn with_windows(
    pair: &Pair,
    change: impl FnOnce(&mut softflash_mapping::window::Windows, u64),
    now_ns: u64,
) {
    if let Course::Turns(windows) = &mut *pair.course.borrow_mut() {
        change(windows, now_ns);
    }
}
