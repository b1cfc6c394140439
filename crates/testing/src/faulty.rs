//! Faults on demand: a decorator around any device or queue pair, for tests of the layers above.
//!
//! A [`Faults`] handle stays with the test while the queue pair belongs to the code under test, so
//! faults can be armed at any moment. A command chosen to fail does not reach the device.
//!
//! ```
//! use softflash_device::DeviceError;
//! use softflash_testing::faulty::{Faults, OperationKind};
//! let faults = Faults::default();
//! // The third program from now on fails, once.
//! faults.fail_nth(3, OperationKind::Program, DeviceError::ProgramFailed);
//! ```

use softflash_base::{Time, UnitId, UnitSet};
use softflash_device::backend::Accepted;
use softflash_device::{
    Command, Completion, Decorator, Device, DeviceError, DeviceInfo, Hint, OpenError, Operation,
    QueuePair, Submit, Tag, Target, Wake,
};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kind of a command, without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// [`Operation::Read`].
    Read,
    /// [`Operation::Program`].
    Program,
    /// [`Operation::Erase`].
    Erase,
    /// [`Operation::Flush`].
    Flush,
    /// [`Operation::MarkBad`].
    MarkBad,
}

impl OperationKind {
    /// The kind of `operation`.
    pub fn of(operation: &Operation) -> OperationKind {
        match operation {
            Operation::Read(_) => OperationKind::Read,
            Operation::Program { .. } => OperationKind::Program,
            Operation::Erase => OperationKind::Erase,
            Operation::Flush => OperationKind::Flush,
            Operation::MarkBad => OperationKind::MarkBad,
        }
    }
}

/// Decides about one command: the error it shall fail with, if it shall.
type Rule = Box<dyn FnMut(&Command) -> Option<DeviceError> + Send>;

/// Changes what a read has brought, in place: the medium gives other bytes than were written.
type Alteration = Box<dyn FnMut(&Target, &mut [u8]) + Send>;

#[derive(Default)]
struct Armed {
    rules: Vec<Rule>,
    alterations: Vec<Alteration>,
    seen: u64,
    failed: u64,
}

/// The faults armed now. A clone is the same set.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<Armed>>);

impl Faults {
    /// Arms a rule. It sees every command from now on that no earlier rule failed, and says with
    /// which error it fails.
    pub fn fail_if(
        &self,
        rule: impl FnMut(&Command) -> Option<DeviceError> + Send + 'static,
    ) -> &Faults {
        self.armed().rules.push(Box::new(rule));
        self
    }

    /// Arms one fault: the `nth` command of that kind from now on, counted from 1, fails.
    pub fn fail_nth(&self, nth: u64, kind: OperationKind, error: DeviceError) -> &Faults {
        let mut count = 0;
        self.fail_if(move |command| {
            if OperationKind::of(&command.operation) != kind {
                return None;
            }
            count += 1;
            (count == nth).then(|| error.clone())
        })
    }

    /// Every command of that kind to one block of a unit fails (plane 0 of die 0 first).
    pub fn fail_block(
        &self,
        unit: UnitId,
        block: u32,
        kind: OperationKind,
        error: DeviceError,
    ) -> &Faults {
        self.fail_if(move |command| {
            let here = command.target.unit == unit && command.target.blocks[0] == block;
            (here && OperationKind::of(&command.operation) == kind).then(|| error.clone())
        })
    }

    /// Arms a change of what reads bring: it sees every read that succeeds from now on, with all of
    /// its bytes.
    pub fn alter_reads(&self, alter: impl FnMut(&Target, &mut [u8]) + Send + 'static) -> &Faults {
        self.armed().alterations.push(Box::new(alter));
        self
    }

    /// Records the kind and the hint of every command from now on.
    pub fn watch_hints(&self) -> Arc<Mutex<Vec<(OperationKind, Hint)>>> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&seen);
        self.fail_if(move |command| {
            let kind = OperationKind::of(&command.operation);
            record.lock().unwrap().push((kind, command.hint));
            None
        });
        seen
    }

    /// Disarms everything; commands that failed stay failed.
    pub fn clear(&self) {
        let mut armed = self.armed();
        armed.rules.clear();
        armed.alterations.clear();
    }

    /// Commands submitted through the decorator since the handle was made.
    pub fn commands_seen(&self) -> u64 {
        self.armed().seen
    }

    /// Commands failed since the handle was made.
    pub fn commands_failed(&self) -> u64 {
        self.armed().failed
    }

    fn judge(&self, command: &Command) -> Option<DeviceError> {
        let mut armed = self.armed();
        armed.seen += 1;
        let error = armed.rules.iter_mut().find_map(|rule| rule(command));
        armed.failed += u64::from(error.is_some());
        error
    }

    fn alter(&self, target: &Target, bytes: &mut [u8]) {
        self.armed().alterations.iter_mut().for_each(|alter| alter(target, bytes));
    }

    /// A command that the device did not take was not seen.
    fn forget_one(&self) {
        self.armed().seen -= 1;
    }

    fn armed(&self) -> MutexGuard<'_, Armed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let armed = self.armed();
        write!(f, "Faults({} rules, {} failed of {})", armed.rules.len(), armed.failed, armed.seen)
    }
}

/// A queue pair some of whose commands fail.
pub struct FaultyQueuePair {
    inner: Box<dyn QueuePair>,
    faults: Faults,
    failed: Vec<(Command, DeviceError)>,
    /// Reads that the device is at.
    reading: HashMap<Tag, Target>,
}

impl FaultyQueuePair {
    /// Wraps `inner`.
    pub fn new(inner: Box<dyn QueuePair>, faults: Faults) -> FaultyQueuePair {
        FaultyQueuePair { inner, faults, failed: Vec::new(), reading: HashMap::new() }
    }
}

impl Decorator for FaultyQueuePair {
    fn inner(&self) -> &dyn QueuePair {
        &*self.inner
    }
}

impl QueuePair for FaultyQueuePair {
    fn submit(&mut self, now: Time, command: Command) -> Submit {
        if let Some(error) = self.faults.judge(&command) {
            self.failed.push((command, error));
            return Submit::Accepted;
        }
        if let Operation::Read(_) = &command.operation {
            self.reading.insert(command.tag, command.target);
        }
        let submitted = self.inner.submit(now, command);
        if let Submit::Full(command) = &submitted {
            self.reading.remove(&command.tag);
            self.faults.forget_one();
        }
        submitted
    }

    fn poll(&mut self, now: Time, completions: &mut Vec<Completion>) {
        completions.extend(self.failed.drain(..).map(|(command, error)| {
            let buffer = match command.operation {
                Operation::Read(buffer) | Operation::Program { data: buffer, .. } => Some(buffer),
                Operation::Erase | Operation::Flush | Operation::MarkBad => None,
            };
            Accepted::new(command.tag, now, 0).ended(now, buffer, Err(error))
        }));
        let first = completions.len();
        self.inner.poll(now, completions);
        for completion in completions.iter_mut().skip(first) {
            if let (Some(target), Ok(())) =
                (self.reading.remove(&completion.tag), &completion.result)
                && let Some(buffer) = &mut completion.buffer
            {
                self.faults.alter(&target, buffer);
            }
        }
    }

    fn wake(&self) -> Wake {
        if self.failed.is_empty() { self.inner.wake() } else { Wake::Now }
    }

    fn give_up(&mut self, unit: UnitId) {
        self.inner.give_up(unit);
    }
}

/// A device whose queue pairs all draw from one set of [`Faults`].
pub struct FaultyDevice {
    inner: Arc<dyn Device>,
    faults: Faults,
}

impl FaultyDevice {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn Device>, faults: Faults) -> FaultyDevice {
        FaultyDevice { inner, faults }
    }
}

impl Device for FaultyDevice {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn open_queue_pair(&self, units: &UnitSet) -> Result<Box<dyn QueuePair>, OpenError> {
        let inner = self.inner.open_queue_pair(units)?;
        Ok(Box::new(FaultyQueuePair::new(inner, self.faults.clone())))
    }
}
