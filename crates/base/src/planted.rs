//! Bugs that can be planted to test the hunter.
//!
//! Product code calls [`bug`] at the line of a plausible mistake. Without the feature `planted`, as
//! in every release, it returns a constant false and the bug is not compiled. With it, as in the
//! build of `cargo xtask hunt --planted`, one bug at a time can be planted. The program `softflash`
//! does not compile with the feature.

/// Defines the table of bugs: variant, description, source file.
macro_rules! bugs {
    ($($variant:ident: $what:literal, $place:literal;)*) => {
        /// A bug that can be planted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the table describes each of them")]
        pub enum Bug { $($variant),* }

        impl Bug {
            /// All bugs.
            pub const ALL: &'static [Bug] = &[$(Bug::$variant),*];

            /// Description of the bug.
            pub fn what(self) -> &'static str {
                match self { $(Bug::$variant => $what),* }
            }

            /// Source file, relative to `crates`.
            pub fn place(self) -> &'static str {
                match self { $(Bug::$variant => $place),* }
            }
        }
    };
}

bugs! {
    // Writing the log.
    AcknowledgedBeforeWrite: "the log calls a batch durable and writes it then", "store/src/shard/log/writer.rs";
    AcknowledgedUnwritten: "events that come while a frame is written are acknowledged with it", "store/src/shard/log/writer.rs";
    FrameNotForced: "a frame stays in the device's volatile cache", "store/src/shard/log/writer.rs";
    StreamNotFlushed: "a stream of several frames is not flushed", "store/src/shard/log/writer.rs";
    DurableBeforeTooHigh: "a frame says of one more before it that it was durable", "store/src/shard/log/writer.rs";
    CheckpointAheadOfLog: "a checkpoint in the middle of the stream names its own segment as the start", "store/src/shard/log/mod.rs";
    HeldIsStable: "a batch is acknowledged behind a transaction that is undecided", "store/src/shard/log/mod.rs";
    SegmentUnannounced: "what is in a segment is acknowledged before another one tells of it", "store/src/shard/log/segments.rs";
    // Reading the log.
    FrameChecksumIgnored: "the checksum of a frame is not verified", "store/src/format/log/frame.rs";
    LastPageUnread: "the last page of a segment is not read", "store/src/shard/log/reader.rs";
    // Recovery.
    RemovalNotReplayed: "patches that an edit removes are kept", "store/src/shard/replay.rs";
    NumberReused: "the number of an edit is given to a batch after a restart", "store/src/shard/replay.rs";
    BatchFrozenInMiddle: "a batch that is replayed is frozen in its middle", "store/src/shard/replay.rs";
    RunNumberReused: "runs of level 0 are numbered anew after a restart", "store/src/shard/replay.rs";
    ReplayedForgotten: "what was replayed does not keep its segments of the log", "store/src/shard/replay.rs";
    UndecidedCounts: "a transaction without a commit counts", "store/src/shard/replay.rs";
    CommitsNotNoted: "commits that the coordinator told are not noted in the own log", "store/src/shard/transactions.rs";
    CutTailKept: "what was cut off the log is not taken out of it", "store/src/shard/open.rs";
    BlocksLeak: "blocks that nothing refers to are not given back at a restart", "store/src/shard/open.rs";
    // Transactions.
    CommitNotAwaited: "a transaction is acknowledged before its commit is written", "store/src/shard/transactions.rs";
    GatesInReverse: "gates behind the first are taken in reverse", "store/src/store.rs";
    CommitsOutOfOrder: "commits of transactions are written out of order", "store/src/shard/transactions.rs";
    PendingClearsForgotten: "what a removal needs that may be undone does not keep its segments of the log", "store/src/shard/flush.rs";
    CommittedHalfPrepared: "a transaction is committed when one of its shards is prepared", "store/src/shard/transactions.rs";
    // Flush and compaction.
    UndecidedFlushed: "a memtable is flushed before the log holds all of it for good", "store/src/shard/flush.rs";
    FlushedTooMuch: "a flush says that what came during it is in the tree", "store/src/shard/flush.rs";
    FrozenForgotten: "a checkpoint forgets the memtable that is being flushed", "store/src/kv/slice.rs";
    SegmentsFreedEarly: "segments of the log are given back before the edit is durable", "store/src/shard/flush.rs";
    CopyAgainNotFlushed: "a patch that rebuild or patrol writes again is still in the volatile cache when it replaces the old one", "store/src/shard/patrol.rs";
    PatchNotFlushed: "an edit is written while its patches are in the device's volatile cache", "store/src/kv/writer.rs";
    InputsFreedEarly: "the inputs of a compaction are given back before its edit is durable", "store/src/shard/compact.rs";
    InputsLeak: "the inputs of a compaction are not given back", "store/src/shard/compact.rs";
    FreedUnderReader: "a patch is given back while somebody reads it", "store/src/kv/patch.rs";
    MemoryStepSkipsKey: "a flush or scan loses a key after every 128 of a memtable", "store/src/kv/merge.rs";
    MergeKeepsOlder: "of two versions of a key a merge keeps the older", "store/src/kv/merge.rs";
    DeletionsDropped: "a compaction drops deletions above what they delete", "store/src/kv/compaction/leveled.rs";
    NewestRunsTaken: "level 0 gives its newest runs instead of its oldest", "store/src/kv/compaction/leveled.rs";
    OverlapMoved: "runs that overlap are moved down as if they did not", "store/src/shard/compact.rs";
    OlderRunFirst: "lookups ask the oldest run of level 0 first", "store/src/kv/tree.rs";
    CutNotWidened: "a compaction cuts a run in the middle of a value in fragments", "store/src/kv/compaction/leveled.rs";
    WidenedPartForgotten: "older versions are not looked for below what a compaction takes of the next level", "store/src/kv/compaction/leveled.rs";
    ExpiredNotBuried: "an expired version is dropped above older ones", "store/src/kv/merge.rs";
    FinishedPatchesLeak: "finished patches are not given back when their writer fails", "store/src/kv/writer.rs";
    // Space management.
    ReserveFourfold: "four times as many blocks are kept for compactions as they need", "store/src/shard/budget.rs";
    FreeCountStale: "free blocks are not counted anew when a block is given back", "store/src/block_layer/mod.rs";
    LargeValueNotExempt: "a value larger than the memtables may be waits for ever", "store/src/shard/admission.rs";
    SweepDropsLive: "the sweep of watches drops those that somebody holds", "store/src/shard/watch.rs";
    SweepKeepsOrphans: "the sweep of watches keeps those that nobody holds", "store/src/shard/watch.rs";
    // Reads.
    PatchBorderMissed: "the last key of a patch is taken for one of the next", "store/src/kv/tree.rs";
    FilterSaysNo: "a filter denies one key in 61", "store/src/format/patch/index.rs";
    CacheKeepsOld: "a write leaves what the read cache holds of its key", "store/src/shard/commit.rs";
    WindowOfAnotherPatch: "a scan takes up what was read of another patch", "store/src/kv/windows.rs";
    ScanSkipsKey: "a page of a scan begins one key late", "store/src/shard/scan.rs";
    GateStaysShut: "who waits at a gate is not let in when it opens", "store/src/shard/gate.rs";
    ClockRunsBack: "the expiry clock forgets at a restart how late it was", "store/src/shard/clock.rs";
    ExposedClockLogged: "the expiry clock counts as logged in a frame that a later write can take along", "store/src/shard/log/writer.rs";
    ClearForgottenByFlush: "a flush after a restart brings back patches that a removal of everything had taken", "store/src/shard/replay.rs";
    ClearNotReplayed: "the removal of everything is not replayed", "store/src/shard/replay.rs";
    // The flash translation layer.
    ProgramFailureIgnored: "a program that failed is taken for done", "ftl/src/completion.rs";
    HeaderNotForced: "the header of a superblock that is opened stays in the volatile cache", "ftl/src/lifecycle.rs";
    WrongPageRead: "the last page of a superblock is read one page early", "ftl/src/transfer.rs";
    NewestHeaderErased: "the superblock with the newest header is erased ahead of need", "ftl/src/erase_ahead.rs";
    WearLost: "erase counts are not taken from headers", "ftl/src/recovery.rs";
    FailedAttemptKept: "of two attempts to write a block the failed one is kept", "store/src/block_layer/mod.rs";
    // Copies and parity.
    SecondCopyUnwritten: "appends go to one of two copies", "store/src/block_layer/open_block.rs";
    FailedCopyHidden: "a copy whose program failed is taken for whole", "store/src/block_layer/open_block.rs";
    ParityForgetsPatch: "the second patch of a group is not in its parity", "store/src/block_layer/stripe.rs";
    GroupOnOneUnit: "patches of a group are not kept apart, and nobody looks whether they are", "store/src/block_layer/open_block.rs";
    // Concurrent removal of all keys.
    UndecidedDoomed: "the patches of a removal are given up while it is undecided itself", "store/src/shard/clear.rs";
    ClearKeepsCache: "a removal of everything leaves the read cache", "store/src/shard/clear.rs";
    ClearTouchesNoWatch: "a removal of everything does not end watches", "store/src/shard/clear.rs";
    ClearIgnoredByCommit: "a commit does not see that everything was removed since its reads", "store/src/shard/commit.rs";
    ClearToldEarly: "a read tells of a removal of everything before that is durable", "store/src/shard/read.rs";
    RememberedAcrossClear: "a read puts into the cache what was removed while it waited", "store/src/shard/read.rs";
    FlushedAcrossClear: "a flush brings back what was removed while it wrote", "store/src/shard/flush.rs";
    CompactedAcrossClear: "a compaction brings back what was removed while it merged", "store/src/shard/compact.rs";
    // Reads and watches of transactions.
    ExclusiveSeesExpired: "expired keys are there for transactions over several keys", "store/src/shard/read.rs";
    ScanHidesUnlogged: "a scan hides expired keys without noting in the log how late it is", "store/src/shard/scan.rs";
    AloneReadsBeforeGate: "a command over several shards reads before it has their gates", "protocol/src/write.rs";
    ExecChecksBeforeGate: "EXEC looks at its watches before it has the gates", "protocol/src/exec.rs";
    ExecKeepsWatches: "EXEC does not let go of its watches", "protocol/src/exec.rs";
    ExpiryNotWatched: "a watched key that expires does not end the transaction", "protocol/src/exec.rs";
    WatchStopsAtKnown: "WATCH ends at a key that is watched already", "protocol/src/exec.rs";
    DiscardKeepsWatches: "DISCARD does not let go of the watches", "protocol/src/commands/transaction.rs";
}

impl Bug {
    /// Its name on the command line: `skipped-barrier` for `SkippedBarrier`.
    pub fn name(self) -> String {
        let mut name = String::new();
        for char in format!("{self:?}").chars() {
            if char.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(char.to_ascii_lowercase());
        }
        name
    }
}

/// Whether bugs can be planted in this build.
pub const POSSIBLE: bool = cfg!(feature = "planted");

/// Whether this bug is planted: always false, except in a hunter built for planted bugs.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn bug(_: Bug) -> bool {
    false
}

#[cfg(feature = "planted")]
pub use switch::{bug, plant};

#[cfg(feature = "planted")]
mod switch {
    use super::Bug;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const NONE: usize = usize::MAX;
    static PLANTED: AtomicUsize = AtomicUsize::new(NONE);

    /// Plants one bug in the whole process, or removes the planted one.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(NONE, |bug| bug as usize), Ordering::Relaxed);
    }

    /// Whether this bug is planted.
    pub fn bug(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bugs_have_names_of_their_own() {
        assert_eq!(Bug::NumberReused.name(), "number-reused");
        let mut names: Vec<String> = Bug::ALL.iter().map(|bug| bug.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Bug::ALL.len());
    }
}
