//! A queue pair behind the host path.

use super::Shared;
use super::gathering::{Gathering, earlier};
use super::link::Direction;
use softflash_base::{Time, UnitId};
use softflash_device::{Command, Completion, Operation, Tag, Target};
use softflash_device::{Decorator, QueuePair, Submit, Wake};
use std::collections::VecDeque;
use std::sync::Arc;

/// An accepted command that the device has not completed.
struct UnderWay {
    tag: Tag,
    die: usize,
    is_read: bool,
    /// The part of the submission time that is added to the completion, as it was not spent before
    /// the device received the command.
    owed_ns: u64,
}

/// A queue pair whose commands and data take time on the host path.
pub(super) struct HostQueuePair {
    inner: Box<dyn QueuePair>,
    shared: Arc<Shared>,
    /// By the device's tag.
    under_way: Vec<Option<UnderWay>>,
    free: Vec<usize>,
    /// Programs that each die has or will receive.
    programs: Vec<u16>,
    /// Programs whose data are on the link, by the time of their arrival.
    outbound: VecDeque<(Time, Command)>,
    /// Programs that have arrived and that the device has not accepted yet.
    arrived: VecDeque<Command>,
    inbound: Gathering,
    /// Reused by every poll.
    scratch: Vec<Completion>,
}

impl HostQueuePair {
    pub(super) fn new(inner: Box<dyn QueuePair>, shared: Arc<Shared>) -> HostQueuePair {
        let dies = inner.units().len() * usize::from(inner.geometry().dies);
        HostQueuePair {
            inbound: Gathering::new(&shared.config),
            inner,
            shared,
            under_way: Vec::new(),
            free: Vec::new(),
            programs: vec![0; dies],
            outbound: VecDeque::new(),
            arrived: VecDeque::new(),
            scratch: Vec::new(),
        }
    }

    /// The die of a target; 0 for an invalid target, which the device will refuse.
    fn die_of(&self, target: &Target) -> usize {
        let unit = self.inner.units().position(target.unit.0).unwrap_or(0);
        let die = unit * usize::from(self.inner.geometry().dies) + usize::from(target.die);
        if die < self.programs.len() { die } else { 0 }
    }

    fn note(&mut self, under_way: UnderWay) -> Tag {
        let place = self.free.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            self.under_way.len() - 1
        });
        self.under_way[place] = Some(under_way);
        Tag(place as u64)
    }

    fn forget(&mut self, tag: Tag) -> Option<UnderWay> {
        let place = tag.0 as usize;
        let under_way = self.under_way.get_mut(place)?.take();
        self.free.push(place);
        under_way
    }

    /// Sends a program's data over the link.
    fn send_program(&mut self, now: Time, mut command: Command, bytes: usize) -> Submit {
        let die = self.die_of(&command.target);
        if self.programs[die] >= self.inner.geometry().die_queue_depth {
            return Submit::Full(command);
        }
        self.programs[die] += 1;
        let ready = now + self.shared.config.submit_ns;
        let arrives = self.cross(Direction::ToDevice, ready, bytes);
        let under_way = UnderWay { tag: command.tag, die, is_read: false, owed_ns: 0 };
        command.tag = self.note(under_way);
        self.outbound.push_back((arrives, command));
        Submit::Accepted
    }

    /// Submits a command without data to the device.
    fn pass_on(&mut self, now: Time, mut command: Command) -> Submit {
        let is_read = matches!(command.operation, Operation::Read(_));
        let owed_ns = self.shared.config.submit_ns;
        let (tag, die) = (command.tag, usize::MAX);
        command.tag = self.note(UnderWay { tag, die, is_read, owed_ns });
        match self.inner.submit(now, command) {
            Submit::Accepted => Submit::Accepted,
            Submit::Full(mut command) => {
                self.forget(command.tag);
                command.tag = tag;
                Submit::Full(command)
            }
        }
    }

    fn cross(&self, direction: Direction, ready: Time, bytes: usize) -> Time {
        let mut path = self.shared.path();
        let (arrives, takes_ns) = path.link.send(direction, ready, bytes as u64);
        let (count, busy_ns) = match direction {
            Direction::ToHost => {
                let traffic = &mut path.traffic;
                (&mut traffic.read_bytes, &mut traffic.read_busy_ns)
            }
            Direction::ToDevice => {
                let traffic = &mut path.traffic;
                (&mut traffic.written_bytes, &mut traffic.write_busy_ns)
            }
        };
        *count += bytes as u64;
        *busy_ns += takes_ns;
        arrives
    }

    /// Handles the arrival of a program's data. It queues after the programs that arrived before
    /// and still wait.
    fn arrive(&mut self, at: Time) {
        let Some((_, command)) = self.outbound.pop_front() else { return };
        self.arrived.push_back(command);
        self.hand_over(at);
    }

    /// Polls the device, and sends its completions to the host.
    fn collect(&mut self, at: Time) {
        let mut ended = std::mem::take(&mut self.scratch);
        self.inner.poll(at, &mut ended);
        let any = !ended.is_empty();
        for completion in ended.drain(..) {
            self.send_back(completion);
        }
        self.scratch = ended;
        if any {
            self.hand_over(at);
        }
    }

    fn send_back(&mut self, completion: Completion) {
        let Some(UnderWay { tag, die, is_read, owed_ns }) = self.forget(completion.tag) else {
            return;
        };
        if let Some(programs) = self.programs.get_mut(die) {
            *programs -= 1;
        }
        let ready = completion.finished_at + owed_ns;
        let at = match &completion.buffer {
            Some(data) if is_read && completion.result.is_ok() => {
                self.cross(Direction::ToHost, ready, data.len())
            }
            _ => ready,
        };
        self.inbound.send(at, Completion { tag, ..completion });
    }

    /// Submits again the programs that the device had no room for. The programs of a die stay in
    /// order: none is submitted after one that was refused.
    fn hand_over(&mut self, at: Time) {
        let place = |command: &Command| (command.target.unit, command.target.die);
        let mut still_full = Vec::new();
        for _ in 0..self.arrived.len() {
            let Some(command) = self.arrived.pop_front() else { break };
            let die = place(&command);
            if still_full.contains(&die) {
                self.arrived.push_back(command);
            } else if let Submit::Full(command) = self.inner.submit(at, command) {
                still_full.push(die);
                self.arrived.push_back(command);
            }
        }
    }

    /// The time of the device's next event, where it is known.
    fn device_at(&self) -> Option<Time> {
        match self.inner.wake() {
            Wake::At(at) => Some(at),
            _ => None,
        }
    }
}

impl Decorator for HostQueuePair {
    fn inner(&self) -> &dyn QueuePair {
        &*self.inner
    }
}

impl QueuePair for HostQueuePair {
    fn submit(&mut self, now: Time, command: Command) -> Submit {
        match &command.operation {
            Operation::Program { data, .. } => {
                let bytes = data.len();
                self.send_program(now, command, bytes)
            }
            _ => self.pass_on(now, command),
        }
    }

    fn poll(&mut self, now: Time, completions: &mut Vec<Completion>) {
        // In time order, so that a late poll changes nothing.
        loop {
            let arrives_at = self.outbound.front().map(|(at, _)| *at);
            let Some(at) = earlier(arrives_at, self.device_at()).filter(|at| *at <= now) else {
                break;
            };
            if arrives_at == Some(at) { self.arrive(at) } else { self.collect(at) }
        }
        self.collect(now);
        let before = completions.len();
        let interrupts = self.inbound.deliver(now, completions);
        let mut path = self.shared.path();
        path.traffic.interrupts += interrupts;
        path.traffic.completions += (completions.len() - before) as u64;
    }

    fn wake(&self) -> Wake {
        let arrives_at = self.outbound.front().map(|(at, _)| *at);
        let ours = earlier(arrives_at, self.inbound.next_at());
        match (self.inner.wake(), ours) {
            (Wake::At(device), Some(ours)) => Wake::At(device.min(ours)),
            (Wake::Idle, Some(ours)) => Wake::At(ours),
            (device, _) => device,
        }
    }

    fn give_up(&mut self, unit: UnitId) {
        self.inner.give_up(unit);
    }
}
