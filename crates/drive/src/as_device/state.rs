//! The state that the queue pairs of a drive share: the drive, its contents, and the owners of the
//! requests under way.

use super::contents::Contents;
use crate::ahead::Ticket;
use crate::drive::Drive;
use crate::error::DriveError;
use crate::request::{Done, HostRequest};
use softflash_base::Time;
use std::collections::BTreeMap;

/// The requests of one queue pair.
#[derive(Default)]
struct Mailbox {
    /// Reads, writes and trims under way, by the drive's tags. They reach the firmware in this
    /// order, so of each kind it is the first whose end is bounded the lowest, however many there
    /// are.
    under_way: [BTreeMap<u64, Option<Ticket>>; 3],
    /// Those that have ended, until the queue pair asks.
    ended: Vec<Done>,
}

/// Bits of a drive's tag that count requests; those above name the queue pair.
const SERIAL_BITS: u32 = 48;

pub(super) struct State {
    pub(super) drive: Drive,
    pub(super) contents: Contents,
    /// By the first unit of the queue pair.
    mailboxes: BTreeMap<u16, Mailbox>,
    serial: u64,
    /// Reused whenever time is played.
    done: Vec<Done>,
}

impl State {
    pub(super) fn new(drive: Drive, contents: Contents) -> State {
        State { drive, contents, mailboxes: BTreeMap::new(), serial: 0, done: Vec::new() }
    }

    /// A queue pair is opened.
    pub(super) fn open(&mut self, owner: u16) {
        self.mailboxes.insert(owner, Mailbox::default());
    }

    /// A queue pair is gone. The drive goes on with its requests; their completions are dropped.
    pub(super) fn close(&mut self, owner: u16) {
        self.mailboxes.remove(&owner);
    }

    /// Plays the drive to `now`, or leaves it where it is if that is further, and returns the time
    /// reached.
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

    /// Gives the drive a request at the time that it was played to; returns the tag that its end
    /// will bear.
    pub(super) fn start(
        &mut self,
        owner: u16,
        mut request: HostRequest,
    ) -> Result<u64, DriveError> {
        self.serial = (self.serial + 1) % (1 << SERIAL_BITS);
        request.tag = u64::from(owner) << SERIAL_BITS | self.serial;
        let ticket = self.drive.ticket(&request);
        let now = self.drive.now();
        self.drive.submit(now, request)?;
        let mailbox = self.mailboxes.entry(owner).or_default();
        mailbox.under_way[request.kind as usize].insert(request.tag, ticket);
        // What took no time has ended.
        self.play(now);
        Ok(request.tag)
    }

    /// Takes the completions that a queue pair has not polled.
    pub(super) fn take_ended(&mut self, owner: u16, into: &mut Vec<Done>) {
        if let Some(mailbox) = self.mailboxes.get_mut(&owner) {
            into.append(&mut mailbox.ended);
        }
    }

    /// Whether there are such.
    pub(super) fn has_ended(&self, owner: u16) -> bool {
        self.mailboxes.get(&owner).is_some_and(|mailbox| !mailbox.ended.is_empty())
    }

    /// A time before which a queue pair has no completion; `None` if it has nothing under way.
    pub(super) fn ends_not_before(&self, owner: u16) -> Option<Time> {
        let under_way = &self.mailboxes.get(&owner)?.under_way;
        let firsts = under_way.iter().filter_map(|of_kind| of_kind.values().next());
        firsts.map(|ticket| self.drive.ends_not_before(*ticket)).min()?
    }
}
