//! Transactions: atomic changes of one shard and of several, and what tells their conflicts.

pub(super) mod coordinator;
pub(super) mod gate;
pub(super) mod history;
pub(super) mod participant;
pub(super) mod pending_clears;
pub(super) mod read_mark;
pub(super) mod table;
pub(super) mod watch;
