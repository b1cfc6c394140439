//! The sets with copies of the same addresses: the choice of the copy that serves a read, the
//! admission of writes, and the windows.

use super::staged::Staged;
use crate::error::LabError;
use softflash_base::Time;
use softflash_drive::{AccessKind, Done, Drive, HostRequest};
use softflash_mapping::{Window, Windows};
use std::collections::VecDeque;

/// The tag of a write from memory, for which no client waits.
const FROM_MEMORY: u64 = u64::MAX;

/// Writes from memory for each one of a client, while there are any: fewer would leave more and
/// more of them, and only they would keep clients waiting for a part of the window.
const FROM_MEMORY_FOR_ONE: u32 = 2;

/// A set.
pub(super) struct Set {
    drive: Drive,
    /// Writes under way, and the most of them.
    writes: u32,
    most_writes: u32,
    /// Whether it collects only for its writes, never in idle time.
    is_pressed: bool,
    staged: Staged,
}

impl Set {
    /// A set with so many writes under way at a time, at most. One that is pressed collects only
    /// for them, so that no more dies program.
    pub(super) fn new(drive: Drive, most_writes: u32, is_pressed: bool) -> Set {
        let mut set = Set { drive, writes: 0, most_writes, is_pressed, staged: Staged::default() };
        set.program(true);
        set
    }

    /// From now on it programs, or only reads.
    fn program(&mut self, programs: bool) {
        self.drive.hold_collection(!programs || self.is_pressed);
    }

    pub(super) fn drive(&self) -> &Drive {
        &self.drive
    }

    /// The measured part of the run begins.
    pub(super) fn begin_measured(&mut self) {
        self.drive.clear_counters();
        self.staged.begin_measured();
    }

    /// The most bytes that have waited in memory for its windows.
    pub(super) fn most_staged_bytes(&self) -> u64 {
        self.staged.most_bytes()
    }

    fn has_room(&self) -> bool {
        self.writes < self.most_writes
    }

    fn write(&mut self, now: Time, request: HostRequest) -> Result<(), LabError> {
        self.writes += 1;
        Ok(self.drive.submit(now, request)?)
    }

    /// How long the die that has the data of a read is busy, in nanoseconds.
    fn wait_ns(&self, now: Time, request: &HostRequest) -> u64 {
        let until = self.drive.read_waits_until(request.offset_bytes);
        until.map_or(0, |until| until.0.saturating_sub(now.0))
    }

    /// Whether nothing is under way on it. Its collection must be held.
    fn is_at_rest(&self) -> bool {
        self.writes == 0 && self.drive.next_at().is_none()
    }
}

/// The sets with copies of the same addresses.
pub(super) struct Group {
    sets: Vec<Set>,
    windows: Option<Windows>,
    /// Writes of clients that are not admitted.
    waiting: VecDeque<HostRequest>,
    /// Writes from memory since the last one of a client.
    from_memory: u32,
    /// Reads that memory serves, and when they end.
    served: VecDeque<(Time, u64)>,
    /// How long that takes, in nanoseconds.
    memory_ns: u64,
}

impl Group {
    /// Sets that begin with windows of this length, if there are any.
    pub(super) fn new(mut sets: Vec<Set>, window_ns: Option<u64>, memory_ns: u64) -> Group {
        let windows = window_ns.map(|length_ns| Windows::new(sets.len(), length_ns, 0));
        if let Some(windows) = &windows {
            for (number, set) in sets.iter_mut().enumerate() {
                set.program(windows.of(number) == Window::Maintenance);
            }
        }
        Group {
            sets,
            windows,
            waiting: VecDeque::new(),
            from_memory: 0,
            served: VecDeque::new(),
            memory_ns,
        }
    }

    pub(super) fn sets(&self) -> &[Set] {
        &self.sets
    }

    pub(super) fn sets_mut(&mut self) -> &mut [Set] {
        &mut self.sets
    }

    pub(super) fn windows(&self) -> Option<&Windows> {
        self.windows.as_ref()
    }

    /// The copies that a write completes with.
    pub(super) fn copies_of_write(&self) -> u32 {
        if self.windows.is_some() { 1 } else { self.sets.len() as u32 }
    }

    /// Takes a request.
    pub(super) fn take(&mut self, now: Time, request: HostRequest) -> Result<(), LabError> {
        match request.kind {
            AccessKind::Read => self.read(now, request),
            AccessKind::Write | AccessKind::Trim => {
                self.waiting.push_back(request);
                self.admit(now)
            }
        }
    }

    /// Reads from the copy whose die is free first, of a set that only reads if there are windows.
    fn read(&mut self, now: Time, request: HostRequest) -> Result<(), LabError> {
        let windows = self.windows.as_ref();
        let reads = |set: usize| windows.is_none_or(|it| it.of(set) == Window::Deterministic);
        let sets = self.sets.iter().enumerate().filter(|&(number, _)| reads(number));
        let chosen =
            sets.min_by_key(|(_, set)| set.wait_ns(now, &request)).map(|(number, _)| number);
        let Some(set) = chosen.and_then(|number| self.sets.get_mut(number)) else {
            return Err(LabError::Simulation("no set reads".to_owned()));
        };
        if set.staged.has(&request) {
            self.served.push_back((now + self.memory_ns, request.tag));
            return Ok(());
        }
        Ok(set.drive.submit(now, request)?)
    }

    /// Admits writes to the sets that program and have room.
    fn admit(&mut self, now: Time) -> Result<(), LabError> {
        let Some(windows) = &self.windows else {
            while self.sets.iter().all(Set::has_room)
                && let Some(request) = self.waiting.pop_front()
            {
                self.sets.iter_mut().try_for_each(|set| set.write(now, request))?;
            }
            return Ok(());
        };
        let Some(programs) = windows.programs() else { return Ok(()) };
        while self.sets[programs].has_room() {
            let set = &mut self.sets[programs];
            let client_is_next = set.staged.is_empty() || self.from_memory >= FROM_MEMORY_FOR_ONE;
            if client_is_next && let Some(request) = self.waiting.pop_front() {
                self.from_memory = 0;
                set.write(now, request)?;
                let others = self.sets.iter_mut().enumerate();
                others
                    .filter(|&(number, _)| number != programs)
                    .for_each(|(_, other)| other.staged.add(request));
            } else if let Some(request) = set.staged.take() {
                self.from_memory += 1;
                set.write(now, HostRequest { tag: FROM_MEMORY, ..request })?;
            } else {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The time of the next event; `None` if nothing happens without a request.
    pub(super) fn next_at(&self) -> Option<Time> {
        let of_sets = self.sets.iter().filter_map(|set| set.drive.next_at());
        let of_windows = self.windows.as_ref().and_then(Windows::ends_at_ns).map(Time);
        let of_memory = self.served.front().map(|&(at, _)| at);
        of_sets.chain(of_windows).chain(of_memory).min()
    }

    /// Plays the next event; appends the tags of the parts that end.
    pub(super) fn step(&mut self, ended: &mut Vec<u64>) -> Result<(), LabError> {
        let Some(now) = self.next_at() else { return Ok(()) };
        if let Some(&(at, tag)) = self.served.front()
            && at == now
        {
            self.served.pop_front();
            ended.push(tag);
            return Ok(());
        }
        if let Some(windows) = &mut self.windows
            && windows.ends_at_ns() == Some(now.0)
        {
            windows.drain(now.0);
            let draining = windows.drains().and_then(|number| self.sets.get_mut(number));
            draining.into_iter().for_each(|set| set.program(false));
        } else {
            let mut done = Vec::new();
            for set in &mut self.sets {
                if set.drive.next_at() == Some(now) {
                    set.drive.play_until(now, &mut done);
                    set.writes -= done.iter().filter(|done| is_write(done)).count() as u32;
                    ended.extend(done.drain(..).map(|done| done.tag));
                    break;
                }
            }
            ended.retain(|&tag| tag != FROM_MEMORY);
        }
        self.end_draining(now);
        self.admit(now)
    }

    /// Gives the turn to the next set if the one that drains is at rest.
    fn end_draining(&mut self, now: Time) {
        let Some(windows) = &mut self.windows else { return };
        let Some(draining) = windows.drains() else { return };
        if !self.sets[draining].is_at_rest() {
            return;
        }
        windows.at_rest(now.0);
        if let Some(set) = windows.programs().and_then(|number| self.sets.get_mut(number)) {
            set.program(true);
        }
    }
}

fn is_write(done: &Done) -> bool {
    done.kind != AccessKind::Read
}
