//! The durations of a connection's commands, for the slow log and for its turns.

use crate::command::{CommandId, Flags, Spec};
use crate::session::Origin;
use bytes::Bytes;
use softflash_base::Time;
use softflash_store::Store;
use std::cell::Cell;
use std::time::Duration;

/// A client that always has more requests at hand lets the other clients of its thread run after
/// this time.
pub const TURN: Duration = Duration::from_micros(250);

/// Measures commands that run one after the other: each begins when the one before it has ended, so
/// that a command costs one reading of the clock.
pub(crate) struct Stopwatch<'a> {
    store: &'a Store,
    origin: &'a Origin,
    begun: Cell<Time>,
    /// When others could last run.
    turn_began: Cell<Time>,
}

impl<'a> Stopwatch<'a> {
    /// The first command began at `begun`.
    pub fn new(store: &'a Store, origin: &'a Origin, begun: Time) -> Stopwatch<'a> {
        Stopwatch { store, origin, begun: Cell::new(begun), turn_began: Cell::new(begun) }
    }

    /// When the current command began.
    pub fn begun(&self) -> Time {
        self.begun.get()
    }

    /// The next command begins now.
    pub fn restart(&self) {
        self.begun.set(self.store.runtime().now());
    }

    /// Lets others run if the commands have taken long together.
    pub async fn take_turns(&self) {
        if self.begun.get() - self.turn_began.get() > TURN {
            self.store.runtime().turn().await;
            self.restart();
            self.turn_began.set(self.begun.get());
        }
    }

    /// The current command has ended, and the next one begins.
    pub fn lap(&self, spec: &Spec, words: &[Bytes]) {
        let now = self.store.runtime().now();
        self.enter(spec, words, now.since_ns(self.begun.replace(now)));
    }

    /// A command that began at `since`, and let others run while it waited, has ended.
    pub fn end(&self, spec: &Spec, words: &[Bytes], since: Time) {
        self.enter(spec, words, self.store.runtime().now().since_ns(since));
    }

    fn enter(&self, spec: &Spec, words: &[Bytes], took_ns: u64) {
        let (slowlog, took_us) = (&self.origin.context.slowlog, took_ns / 1000);
        if slowlog.is_slow(took_us) && is_logged(spec) {
            let (client, name) = (&self.origin.client, self.origin.client.activity().name);
            slowlog.enter(words, took_us, self.store.now_ms(), &client.address, name);
        }
    }
}

/// Whether a command may enter the slow log: none with passwords among its words, and not EXEC,
/// whose commands enter it themselves.
fn is_logged(spec: &Spec) -> bool {
    let may_have_password =
        matches!(spec.id, CommandId::Auth | CommandId::Hello) || spec.name.starts_with("acl|");
    !may_have_password && !spec.flags.has(Flags::SKIP_SLOWLOG)
}
