//! The state machine of a drive: assembles its parts, takes requests, plays events, returns
//! completions. It is compiled for each kind of mapping.

mod durability;
mod figures;
mod follow_ups;
mod gathering;
mod idling;
mod requests;
mod scrubbing;

use crate::ahead::FirmwareProgress;
use crate::buffer::Buffer;
use crate::completions::Completions;
use crate::counters::DriveCounters;
use crate::dies::Dies;
use crate::dispatch::Dispatch;
use crate::error::DriveError;
use crate::host_interface::HostInterface;
use crate::host_queue::HostQueue;
use crate::mapping::Mapping;
use crate::pages::Pages;
use crate::request::{Done, HostRequest};
use crate::shape::Shape;
use crate::space::Space;
use crate::spec::{DeviceSpec, PageMapped};
use durability::Durable;
use gathering::Gathering;
use idling::Idling;
use scrubbing::Scrubbing;
use softflash_base::Time;
use softflash_nand::timeline::{Step, WorkKinds};

/// The controller of a drive, with its flash.
pub(crate) struct Controller<M> {
    now: u64,
    host: HostQueue,
    host_interface: HostInterface,
    buffer: Option<Buffer>,
    /// Whether the buffer survives a power loss.
    is_protected: bool,
    durable: Durable,
    pages: Pages,
    space: Space<M>,
    dies: Dies,
    completions: Completions,
    /// Of a mapping whose pages fill flash pages together.
    gathering: Gathering,
    /// Of an SLC cache.
    idling: Idling,
    scrubbing: Scrubbing,
    /// The die of a read that waits for the next pages of its request.
    awaits_more: Option<u32>,
    /// All but those of programs and erases, which the space counts.
    counters: DriveCounters,
}

impl<M: Mapping> Controller<M> {
    /// An empty drive.
    pub(crate) fn new(
        device: &DeviceSpec,
        layout: &PageMapped,
        shape: Shape,
        mapping: M,
    ) -> Result<Controller<M>, DriveError> {
        let dies = Dies::new(device, layout, &shape)?;
        let buffer_pages = device.controller.write_buffer_bytes / u64::from(shape.page_bytes());
        let buffer = (layout.write_buffer && buffer_pages > 0).then(|| Buffer::new(buffer_pages));
        let scrubbing = Scrubbing::new(layout, &shape);
        let mut space = Space::new(shape, layout, mapping);
        space.set_pads(buffer.is_none());
        Ok(Controller {
            now: 0,
            host: HostQueue::new(device.controller.queue_depth),
            host_interface: HostInterface::new(device, buffer.is_some()),
            buffer,
            is_protected: device.controller.power_loss_protection,
            durable: Durable::default(),
            pages: Pages::default(),
            space,
            dies,
            completions: Completions::new(),
            gathering: Gathering::new(layout.gather_us),
            idling: Idling::new(layout),
            scrubbing,
            awaits_more: None,
            counters: DriveCounters::default(),
        })
    }

    /// The current virtual time.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        Time(self.now)
    }

    /// Prefetches the map entry of a later request.
    #[inline]
    pub(crate) fn prefetch(&self, offset_bytes: u64) {
        self.space.prefetch_lookup(self.space.shape().page_at(offset_bytes));
    }

    /// Prefetches the state of the page that a later write replaces. [`prefetch`](Drive::prefetch)
    /// comes first.
    #[inline]
    pub(crate) fn prefetch_write(&self, offset_bytes: u64) {
        let logical = self.space.shape().page_at(offset_bytes);
        if logical < self.space.shape().logical_pages() {
            self.space.prefetch_old_page(logical);
        }
    }

    /// Submits a request at `now`, which must not be before the current time nor after
    /// [`next_at`](Drive::next_at).
    #[inline(always)]
    pub(crate) fn submit(&mut self, now: Time, request: HostRequest) -> Result<(), DriveError> {
        let end_bytes = request.offset_bytes.saturating_add(request.bytes);
        if request.bytes == 0 || end_bytes > self.capacity_bytes() {
            return Err(self.refuse(&request));
        }
        self.pass_to(now.0);
        if M::GATHERS && self.space.shape().has_slc_cache() {
            self.idling.end();
            self.space.set_host_idle(false);
        }
        self.counters.submitted += 1;
        if self.host.admits(self.pages.requests()) {
            self.admit(now.0, &request);
        } else {
            self.host.add_waiting(now.0, request);
        }
        Ok(())
    }

    #[cold]
    fn refuse(&self, request: &HostRequest) -> DriveError {
        let HostRequest { offset_bytes, bytes, .. } = *request;
        if bytes == 0 {
            return DriveError::Empty { offset_bytes };
        }
        let end_bytes = offset_bytes.saturating_add(bytes);
        DriveError::BeyondEnd { offset_bytes, end_bytes, capacity_bytes: self.capacity_bytes() }
    }

    /// The time of the next event, unless a request is submitted before.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Time> {
        let other_at = self.completions.next_at().min(self.host_interface.event_at());
        let other_at = other_at.min(self.gathering_ends_at()).min(self.folding_begins_at());
        let other_at = other_at.min(self.scrubs_at());
        let next = self.dies.event_at().min(other_at);
        (next != u64::MAX).then_some(Time(next))
    }

    /// Plays the next event and appends the completed requests. False when nothing is under way.
    #[inline]
    pub(crate) fn step(&mut self, done: &mut Vec<Done>) -> bool {
        let played = self.play_event(u64::MAX);
        // A request without flash operations completes on submission.
        let completed = self.host.has_completed();
        self.host.move_completed(done);
        played || completed
    }

    /// Plays the events before `end` until requests complete, and appends those. False if none
    /// completes before `end`.
    #[inline]
    pub(crate) fn play_to_next_completion(&mut self, end: Time, done: &mut Vec<Done>) -> bool {
        while !self.host.has_completed() {
            if !self.play_event(end.0) {
                return false;
            }
        }
        self.host.move_completed(done);
        true
    }

    /// Advances the drive to `now`, which must not be before its current time, and appends the
    /// completed requests. Requests can be submitted at `now` afterwards.
    pub(crate) fn play_until(&mut self, now: Time, done: &mut Vec<Done>) {
        while self.play_event(now.0.saturating_add(1)) {}
        self.pass_to(now.0);
        self.host.move_completed(done);
    }

    /// Plays events until all that has been written is on flash.
    pub(crate) fn play_until_written(&mut self) {
        while self.buffer.as_ref().is_some_and(|buffer| !buffer.is_empty())
            && self.play_event(u64::MAX)
        {}
    }

    /// The position of a request that is submitted next; `None` if it never waits in the host
    /// interface.
    pub(crate) fn firmware_progress(&self, request: &HostRequest) -> Option<FirmwareProgress> {
        let pages = request.bytes.div_ceil(u64::from(self.page_bytes()));
        FirmwareProgress::behind(&self.host_interface, request.kind, pages)
    }

    /// A lower bound of the completion time of a request that has not completed; `None` if no event
    /// is pending.
    pub(crate) fn completes_not_before(&self, progress: Option<FirmwareProgress>) -> Option<Time> {
        let next = self.next_at()?;
        let Some(progress) = progress else { return Some(next) };
        Some(next.max(progress.completes_not_before(&self.host_interface, self.now)))
    }

    /// Plays the next event of flash, host interface or completions, if it is before `end`.
    #[inline(always)]
    fn play_event(&mut self, end: u64) -> bool {
        let (completes_at, interface_at) =
            (self.completions.next_at(), self.host_interface.event_at());
        let gathering_ends_at = self.gathering_ends_at();
        let folding_begins_at = self.folding_begins_at();
        let scrubs_at = self.scrubs_at();
        let waits_until = gathering_ends_at.min(folding_begins_at).min(scrubs_at);
        let other_at = completes_at.min(interface_at).min(waits_until);
        let fed = match self.dies.step_before(other_at.min(end)) {
            Some(step) => self.on_flash_step(step),
            None if other_at >= end => return false,
            None if gathering_ends_at == other_at => {
                self.end_gathering(other_at);
                None
            }
            None if folding_begins_at == other_at => {
                self.begin_folding(other_at);
                None
            }
            None if scrubs_at == other_at && scrubs_at != u64::MAX => {
                self.scrub(scrubs_at);
                None
            }
            None if completes_at <= interface_at => {
                self.complete_first();
                None
            }
            None => self.play_host_interface(),
        };
        if let Some((die, accepts)) = fed {
            self.dispatch(die, accepts);
        }
        true
    }

    /// Handles a step of the flash; returns its die with the kinds of work that it accepts.
    #[inline(always)]
    fn on_flash_step(&mut self, step: Step) -> Option<(u32, WorkKinds)> {
        self.now = step.at;
        if let Some(work) = step.ended {
            self.work_completed(step.die, work);
            // The completion may have admitted a request that has work for this die.
            return Some((step.die, self.dies.accepts(step.die)));
        }
        Some((step.die, step.accepts))
    }

    /// Plays the next event of the host interface; returns the die that has new work.
    #[inline(always)]
    fn play_host_interface(&mut self) -> Option<(u32, WorkKinds)> {
        self.pass_to(self.host_interface.event_at());
        let room = self.has_room();
        let passed = self.host_interface.pass_page(self.now, room);
        let die = passed.and_then(|page| self.page_arrived(page));
        self.host_interface_changed();
        die.map(|die| (die, self.dies.accepts(die)))
    }

    /// When the host counts as idle and its data move out of the SLC cache; `u64::MAX` if none do.
    #[inline(always)]
    fn folding_begins_at(&self) -> u64 {
        if !M::GATHERS || !self.space.awaits_idle_host() {
            return u64::MAX;
        }
        self.idling.counts_from().max(self.now)
    }

    /// When the scrub takes its next step; `u64::MAX` if it takes none. While no request is under
    /// way nothing waits for a die.
    #[inline(always)]
    fn scrubs_at(&self) -> u64 {
        if !M::GATHERS || self.scrubbing.next_at() == u64::MAX || self.pages.requests() == 0 {
            return u64::MAX;
        }
        self.scrubbing.next_at().max(self.now)
    }

    /// The scrub takes a step.
    #[inline(never)]
    fn scrub(&mut self, at: u64) {
        self.pass_to(at);
        if let Some(die) = self.scrub_page() {
            self.dispatch(die, self.dies.accepts(die));
        }
    }

    /// Begins to fold the SLC cache.
    #[cold]
    fn begin_folding(&mut self, at: u64) {
        self.pass_to(at);
        self.space.set_host_idle(true);
        for die in 0..self.space.shape().dies() {
            self.dispatch(die, self.dies.accepts(die));
        }
    }

    /// Updates the time of the host interface's next event.
    #[inline]
    fn host_interface_changed(&mut self) {
        self.host_interface.update(self.now, self.has_room());
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.buffer.as_ref().is_none_or(Buffer::has_room)
    }

    /// Completes the request with the next pending completion.
    #[inline(always)]
    fn complete_first(&mut self) {
        let (at, request) = self.completions.pop();
        self.pass_to(at);
        self.complete(at, request);
    }

    #[inline]
    fn pass_to(&mut self, now: u64) {
        self.now = now;
        self.dies.pass_to(now);
    }

    /// Starts work on a die as long as it accepts some.
    #[inline(always)]
    fn dispatch(&mut self, die: u32, accepts: WorkKinds) {
        let Controller { space, dies, pages, buffer, .. } = self;
        let wrote = Dispatch::new(space, dies, pages, buffer).dispatch(die, accepts);
        if wrote && self.space.has_follow_ups() {
            self.follow_up();
        }
    }
}
