//! Changes of a pair itself: operations on its images, its windows, and the loss of a member. One
//! at a time, while no client writes.

use super::copying::catch_up;
use super::course::{Course, Figures, Member, REVIVAL, partner};
use super::putting::{is_fatal, operate};
use super::{Pair, record};
use crate::core::Shared;
use crate::error::VolumeError;
use crate::flusher::flush as flush_domain;
use crate::format::operation::Operation;
use crate::format::pair_state::PairState;
use crate::frames::Completion;
use crate::image::Images;
use crate::operations::Change;
use crate::resting::{rest, resume};
use futures_util::future::join;
use softflash_base::planted::{self, Bug};
use softflash_mapping::window::Windows;
use softflash_runtime::BytePermit;
use std::rc::Rc;

/// The time of one change: nothing is written, and no other change begins.
pub(super) struct Exclusive {
    pair: Rc<Pair>,
    _permit: BytePermit,
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        self.pair.traffic.open();
        self.pair.turned.notify_all();
        self.pair.wake.notify_one();
        self.pair.wake_copies.iter().for_each(|wake| wake.notify_one());
    }
}

impl Pair {
    /// Waits for the time of a change.
    pub(super) async fn exclusive(self: &Rc<Self>) -> Result<Exclusive, VolumeError> {
        let permit = self.changing.acquire(1).await;
        self.traffic.close().await;
        let exclusive = Exclusive { pair: Rc::clone(self), _permit: permit };
        self.traffic.ended().await;
        self.check_running()?;
        assert!(!self.traffic.is_busy(), "a pair changes while clients write");
        Ok(exclusive)
    }

    /// Does the work of a change in a task of its own: it is done whole, also if nobody waits any
    /// more.
    pub(super) async fn whole(
        self: &Rc<Self>,
        exclusive: Exclusive,
        work: impl Future<Output = Result<(), VolumeError>> + 'static,
    ) -> Result<(), VolumeError> {
        let completion = Completion::default();
        let ended = completion.clone();
        self.lead().tasks.spawn(async move {
            let result = work.await;
            drop(exclusive);
            ended.end(result);
        });
        completion.wait().await
    }

    /// Carries out an operation on the images, by both members.
    pub async fn change<T>(
        self: &Rc<Self>,
        plan: impl Fn(&Images) -> Result<(Change, T), VolumeError>,
    ) -> Result<T, VolumeError> {
        let exclusive = self.exclusive().await?;
        // A plan that fails changes nothing.
        let (planned, result) = plan(&self.lead().map.borrow().images)?;
        let Change::Operation(operation) = planned else {
            return Err(VolumeError::Unsupported {
                reason: "a discard is no operation".to_owned(),
            });
        };
        let pair = Rc::clone(self);
        self.whole(exclusive, async move { pair.carry_out(operation).await }).await?;
        Ok(result)
    }

    /// Carries out an operation. The time is that of a change.
    async fn carry_out(self: Rc<Self>, operation: Operation) -> Result<(), VolumeError> {
        let (lead, in_turns, alone) = {
            let course = self.course.borrow();
            let alone = matches!(*course, Course::Alone { .. });
            (course.lead(), matches!(*course, Course::Turns(_)), alone)
        };
        let number = self.state(lead).operations + 1;
        let deleted = operation.deletes();
        let operation = Operation::OfPair { number, operation: Box::new(operation) };
        if alone {
            operate(self.member(lead), &operation).await?;
            self.mark_effect(partner(lead), operation.inner());
        } else {
            Figures::add(&self.figures.operations, u64::from(in_turns));
            let follower = partner(lead);
            if in_turns {
                self.interrupt(follower);
            }
            let done = self.on_both(lead, &operation).await;
            if in_turns && let Err(error) = self.rest_again(follower).await {
                tracing::warn!(%error, "a set of a pair does not come to rest");
            }
            done?;
        }
        if let Some(image) = deleted {
            self.forget(image);
        }
        Ok(())
    }

    /// A member that is being built lacks what an operation has changed in a volume.
    fn mark_effect(&self, member: Member, operation: &Operation) {
        let changed = match operation {
            // What was beyond the end reads as zeros, also once the volume is larger again.
            Operation::Resize { image, size } => (*image, *size..u32::MAX),
            Operation::RollBack { image, .. } => (*image, 0..u32::MAX),
            _ => return,
        };
        let (image, range) = changed;
        self.behind[member].mark(image, range);
    }

    /// Both members have the same data durably before an operation, so that a snapshot is the same.
    async fn on_both(
        self: &Rc<Self>,
        lead: Member,
        operation: &Operation,
    ) -> Result<(), VolumeError> {
        if !planted::bug(Bug::SnapshotWithoutBarrier) {
            match self.level().await {
                // A deletion makes the space that a member has too little of to be level.
                Err(VolumeError::OutOfSpace { .. }) if operation.deletes().is_some() => {
                    self.flush_both().await?;
                }
                leveled => leveled?,
            }
        }
        operate(self.member(lead), operation).await?;
        self.member(lead).tasks.flush().await?;
        // Durable before the next write: a mount that finds the write on one member, and not the
        // operation, would carry the operation out behind it.
        let follower = partner(lead);
        let mut followed = operate(self.member(follower), operation).await;
        if followed.is_ok() && !planted::bug(Bug::OperationOfOneSet) {
            followed = self.member(follower).tasks.flush().await;
        }
        if let Err(error) = followed {
            tracing::error!(%error, "an operation failed on one set of a pair");
            self.lose(follower);
        }
        Ok(())
    }

    /// Copies what both members lack and makes it durable. The time is that of a change.
    pub(super) async fn level(&self) -> Result<(), VolumeError> {
        // A read that finds lost data lets a member lack them.
        while !self.behind.iter().all(|behind| behind.is_empty()) {
            catch_up(self, 0).await?;
            catch_up(self, 1).await?;
        }
        self.flush_both().await
    }

    async fn flush_both(&self) -> Result<(), VolumeError> {
        let [first, second] = &self.members;
        let (first, second) = join(flush_domain(first), flush_domain(second)).await;
        first.and(second)
    }

    /// As [`level`](Pair::level), of which the one that rests comes to rest again.
    pub(super) async fn at_level(&self) -> Result<(), VolumeError> {
        let resting = match &*self.course.borrow() {
            course @ Course::Turns(_) => Some(partner(course.lead())),
            Course::Together | Course::Alone { .. } => None,
        };
        resting.into_iter().for_each(|member| self.interrupt(member));
        let leveled = self.level().await;
        if let Some(member) = resting {
            self.rest_again(member).await?;
        }
        leveled
    }

    /// A member leaves its deterministic window, to which it comes back.
    fn interrupt(&self, member: Member) {
        self.is_interrupted.set(true);
        resume(self.member(member));
    }

    async fn rest_again(&self, member: Member) -> Result<(), VolumeError> {
        rest(self.member(member)).await?;
        self.is_interrupted.set(false);
        Ok(())
    }

    /// Sets or ends the windows.
    pub async fn set_window(self: &Rc<Self>, window_ns: Option<u64>) -> Result<(), VolumeError> {
        let exclusive = self.exclusive().await?;
        let pair = Rc::clone(self);
        self.whole(exclusive, async move { pair.change_window(window_ns).await }).await
    }

    async fn change_window(&self, window_ns: Option<u64>) -> Result<(), VolumeError> {
        self.window_ns.set(window_ns);
        let (is_alone, in_turns) = {
            let course = self.course.borrow();
            (matches!(*course, Course::Alone { .. }), matches!(*course, Course::Turns(_)))
        };
        // A pair that is built has them from its end on.
        if !is_alone {
            if in_turns {
                self.end_turns().await?;
            }
            if let Some(window_ns) = window_ns {
                self.begin_turns(window_ns).await?;
            }
        }
        Ok(())
    }

    /// The first member takes writes, and the second one rests. The time is that of a change.
    pub(super) async fn begin_turns(&self, window_ns: u64) -> Result<(), VolumeError> {
        self.level().await?;
        self.next_epoch(&[0]).await?;
        self.rest_again(1).await?;
        let now = self.member(0).tasks.now().0;
        self.go_on(Course::Turns(Windows::new(2, window_ns, now)));
        Ok(())
    }

    /// Both members take writes again. The time is that of a change.
    pub(super) async fn end_turns(&self) -> Result<(), VolumeError> {
        (0..2).for_each(|member| self.interrupt(member));
        self.level().await?;
        let lead = self.course.borrow().lead();
        self.next_epoch(&[lead, partner(lead)]).await?;
        self.go_on(Course::Together);
        Ok(())
    }

    /// Members begin the next epoch, the first of them first. Both have everything: a member that
    /// was copied from may not know that yet, if the power was cut when the copy was complete.
    pub(super) async fn next_epoch(&self, members: &[Member]) -> Result<(), VolumeError> {
        let epoch =
            1 + [0, 1].map(|member| self.state(member).epoch).into_iter().max().unwrap_or(0);
        for &member in members {
            let before = self.state(member);
            assert!(before.is_whole && epoch > before.epoch, "epoch {epoch} follows {before:?}");
            let state = PairState { epoch, is_partner_whole: true, ..before };
            self.record(member, state).await?;
        }
        Ok(())
    }

    /// The pair ends, and one member keeps the volumes.
    pub async fn part(self: &Rc<Self>, core: &Shared) -> Result<(), VolumeError> {
        let Some(member) = self.place_of(core) else { return Ok(()) };
        let exclusive = self.exclusive().await?;
        let pair = Rc::clone(self);
        self.whole(exclusive, async move { pair.part_now(member).await }).await
    }

    async fn part_now(&self, member: Member) -> Result<(), VolumeError> {
        if self.is_lost(member) {
            let reason = "the set has not all volumes; keep the other one of the pair".to_owned();
            return Err(VolumeError::Unsupported { reason });
        }
        if matches!(*self.course.borrow(), Course::Turns(_)) {
            self.end_turns().await?;
        } else {
            catch_up(self, member).await?;
        }
        self.record(member, PairState::default()).await?;
        // Requests that wait are carried out without it.
        self.members.iter().for_each(|member| member.link().clear());
        self.stop();
        Ok(())
    }

    /// The pair goes on without a member: what clients wrote since is durable on the other one
    /// alone.
    pub(super) async fn go_on_without(self: &Rc<Self>, member: Member) -> Result<(), VolumeError> {
        let exclusive = self.exclusive().await?;
        let result = go_on_alone(self, partner(member)).await;
        if let Err(error) = &result {
            tracing::error!(%error, "neither set of a pair takes writes");
        }
        self.alone_failure.replace(result.err());
        drop(exclusive);
        Ok(())
    }

    /// Returns when all completed changes are durable, on each member that takes writes.
    pub async fn flush(self: &Rc<Self>) -> Result<(), VolumeError> {
        loop {
            self.check_running()?;
            // The data of the other one count only then.
            self.found_alone().await;
            self.check_running()?;
            if let Some(failure) = &*self.alone_failure.borrow() {
                return Err(failure.clone());
            }
            let writers = self.course.borrow().writers();
            let of = |member: Member| self.flush_writer(member, writers[member]);
            let result = match join(of(0), of(1)).await {
                (Ok(()), Ok(())) => return Ok(()),
                (Err(error), Ok(())) if writers[1] => self.flush_failed(0, error),
                (Ok(()), Err(error)) if writers[0] => self.flush_failed(1, error),
                (first, second) => first.and(second),
            };
            if self.losing().is_none() {
                return result;
            }
        }
    }

    /// A member could not make durable what the other one has made durable.
    fn flush_failed(
        self: &Rc<Self>,
        member: Member,
        error: VolumeError,
    ) -> Result<(), VolumeError> {
        if is_fatal(&error) {
            self.lose(member);
        }
        Err(error)
    }

    async fn flush_writer(&self, member: Member, writes: bool) -> Result<(), VolumeError> {
        match writes {
            true if planted::bug(Bug::FlushOfOtherSet) => {
                let is_alone = matches!(*self.course.borrow(), Course::Alone { .. });
                let flushed = if is_alone { member } else { partner(member) };
                flush_domain(self.member(flushed)).await
            }
            true => flush_domain(self.member(member)).await,
            false => Ok(()),
        }
    }
}

/// A member goes on alone. The time is that of a change.
pub(super) async fn go_on_alone(pair: &Pair, member: Member) -> Result<(), VolumeError> {
    let core = pair.member(member);
    (0..2).for_each(|member| pair.interrupt(member));
    // What is staged for it is nowhere else any more.
    let caught_up = catch_up(pair, member).await;
    pair.behind.iter().for_each(|behind| behind.forget_all());
    pair.go_on(Course::Alone { member, builds: false });
    let own = pair.state(member);
    assert!(own.is_whole, "a part of a copy goes on alone: {own:?}");
    let epoch = own.epoch.max(pair.state(partner(member)).epoch) + 1;
    let state = PairState { epoch, is_partner_whole: false, ..own };
    record(core, state).await?;
    pair.revived_at.set(core.tasks.now() + REVIVAL);
    caught_up
}
