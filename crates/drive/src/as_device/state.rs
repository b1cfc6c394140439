//! The state that the queue pairs of a drive share: the drive, its contents, and the owners of the
//! requests under way.

use super::contents::Contents;
use crate::ahead::FirmwareProgress;
use crate::drive::Drive;
use crate::error::DriveError;
use crate::request::{Done, HostRequest};
use softflash_base::Time;
use std::collections::BTreeMap;

/// The requests of one queue pair.
#[derive(Default)]
struct Mailbox {
    /// Reads, writes and trims under way, by the drive's tags. They reach the firmware in this
    /// order, so the first of each kind has the lowest bound of its completion time.
    under_way: [BTreeMap<u64, Option<FirmwareProgress>>; 3],
    /// Completed requests that the queue pair has not polled.
    ended: Vec<Done>,
}

/// Bits of a drive's tag that count requests; the bits above identify the queue pair.
const SERIAL_BITS: u32 = 48;

pub(super) struct State {
    pub(super) drive: Drive,
    pub(super) contents: Contents,
    /// By the key of the queue pair.
    mailboxes: BTreeMap<u16, Mailbox>,
    serial: u64,
    /// Reused whenever time is played.
    done: Vec<Done>,
}

impl State {
    pub(super) fn new(drive: Drive, contents: Contents) -> State {
        State { drive, contents, mailboxes: BTreeMap::new(), serial: 0, done: Vec::new() }
    }

    /// Registers an opened queue pair by its first unit; returns its key. That is the unit, or the
    /// next number if a queue pair that gave the unit up still has that key.
    pub(super) fn open(&mut self, first_unit: u16) -> u16 {
        let mut keys = (first_unit..=u16::MAX).chain(0..first_unit);
        let key = keys.find(|key| !self.mailboxes.contains_key(key)).unwrap_or(first_unit);
        self.mailboxes.insert(key, Mailbox::default());
        key
    }

    /// Removes a dropped queue pair. The drive executes its requests; their completions are
    /// dropped.
    pub(super) fn close(&mut self, owner: u16) {
        self.mailboxes.remove(&owner);
    }

    /// Advances the drive to `now`, unless it is already further; returns the time of the drive.
    pub(super) fn play(&mut self, now: Time) -> Time {
        let now = now.max(self.drive.now());
        self.drive.play_until(now, &mut self.done);
        for done in self.done.drain(..) {
            let owner = (done.tag >> SERIAL_BITS) as u16;
            if let Some(mailbox) = self.mailboxes.get_mut(&owner)
                && mailbox.under_way[done.kind as usize].remove(&done.tag).is_some()
            {
                mailbox.ended.push(done);
            }
        }
        now
    }

    /// Submits a request at the current time of the drive; returns the tag of its completion.
    pub(super) fn submit_for(
        &mut self,
        owner: u16,
        mut request: HostRequest,
    ) -> Result<u64, DriveError> {
        self.serial = (self.serial + 1) % (1 << SERIAL_BITS);
        request.tag = u64::from(owner) << SERIAL_BITS | self.serial;
        let progress = self.drive.firmware_progress(&request);
        let now = self.drive.now();
        self.drive.submit(now, request)?;
        let mailbox = self.mailboxes.entry(owner).or_default();
        mailbox.under_way[request.kind as usize].insert(request.tag, progress);
        // Collects the completion of a request that takes no time.
        self.play(now);
        Ok(request.tag)
    }

    /// Takes the completions that a queue pair has not polled.
    pub(super) fn take_ended(&mut self, owner: u16, into: &mut Vec<Done>) {
        if let Some(mailbox) = self.mailboxes.get_mut(&owner) {
            into.append(&mut mailbox.ended);
        }
    }

    /// Whether a queue pair has completions that it has not polled.
    pub(super) fn has_ended(&self, owner: u16) -> bool {
        self.mailboxes.get(&owner).is_some_and(|mailbox| !mailbox.ended.is_empty())
    }

    /// A lower bound of the time of a queue pair's next completion; `None` if it has nothing under
    /// way.
    pub(super) fn completes_not_before(&self, owner: u16) -> Option<Time> {
        let under_way = &self.mailboxes.get(&owner)?.under_way;
        let firsts = under_way.iter().filter_map(|of_kind| of_kind.values().next());
        firsts.map(|progress| self.drive.completes_not_before(*progress)).min()?
    }
}
