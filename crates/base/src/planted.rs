//! Bugs that can be planted to test the hunter.
//!
//! Product code calls [`bug`] at the line of a plausible mistake. Without the feature `planted`, as
//! in every release, it returns a constant false and the bug is not compiled. With it, as in the
//! build of `cargo xtask hunt --planted` and the one of the gate, one bug at a time can be planted;
//! only the hunter for planted bugs does. A release build of `softflash` does not compile with it.

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
    // Pairs of volumes' sets.
    OlderStagedWriteWins: "of two writes of a mapping unit that are staged, the older one is kept", "volume/src/pair/writing.rs";
    StagingLostOnRoleChange: "a set of a pair takes its turn without what was staged for the other", "volume/src/pair/turns.rs";
    BothInMaintenance: "a set takes writes before its partner is at rest", "volume/src/pair/turns.rs";
    ReadFromStaleCopy: "a set is read although it lacks the newest data", "volume/src/pair/reading.rs";
    SnapshotWithoutBarrier: "an operation is carried out before both sets have the same data", "volume/src/pair/changing.rs";
    TurnBeforeLevel: "a set takes its turn before the other one has what it lacks", "volume/src/pair/turns.rs";
    FlushOfOtherSet: "a flush makes the data of the set durable that only reads", "volume/src/pair/changing.rs";
    WorkDuringRest: "a set that only reads goes on to collect", "volume/src/resting.rs";
    ErasesDuringRest: "a set that only reads erases superblocks ahead of need", "volume/src/resting.rs";
    TurnNotDurable: "a set takes writes before its turn is recorded durably", "volume/src/pair/mod.rs";
    BuiltTooEarly: "a set counts as whole before all data are copied to it", "volume/src/pair/building.rs";
    PartOfCopyCounts: "a set that a copy is being made for counts as whole after a restart", "volume/src/pair/states.rs";
    DiscardOfOneSet: "a set that only reads keeps what is discarded in the other", "volume/src/pair/writing.rs";
    OverlapsTogether: "writes to the same mapping units are under way in both sets at once", "volume/src/pair/traffic.rs";
    ChangesNotInRoots: "a root lacks what a set of a pair has changed since its turn", "volume/src/format/pair.rs";
    OperationOfOneSet: "writes begin before an operation is durable on both sets of a pair", "volume/src/pair/changing.rs";
    OlderMemberWins: "after a restart, the older data of a mapping unit replace the newer", "volume/src/pair/forming.rs";
    ChangesOfTurnNotCopied: "after a restart, what the last turn has changed is not copied", "volume/src/pair/forming.rs";
    // Writing the log.
    AcknowledgedBeforeWrite: "the log reports a batch as durable before it is written", "store/src/shard/log/writer.rs";
    AcknowledgedUnwritten: "events that arrive while a frame is written are acknowledged with it", "store/src/shard/log/writer.rs";
    FrameNotForced: "a frame stays in the device's volatile cache", "store/src/shard/log/writer.rs";
    StreamNotFlushed: "a stream of several frames is not flushed", "store/src/shard/log/writer.rs";
    SyncPostponed: "the interval until a sync begins anew with every frame", "store/src/shard/log/writer.rs";
    FrameNumbersKept: "an opening that fails keeps the numbers of its first frames", "store/src/shard/log/segments.rs";
    DurableBeforeTooHigh: "a frame declares one frame too many before it as durable", "store/src/shard/log/writer.rs";
    CheckpointAheadOfLog: "a checkpoint in the middle of the stream names its own segment as the start", "store/src/shard/log/mod.rs";
    HeldIsStable: "a batch is acknowledged although an earlier transaction is undecided", "store/src/shard/log/mod.rs";
    SegmentUnannounced: "data in a segment are acknowledged before the segment is announced in another one", "store/src/shard/log/segments.rs";
    SpanUndeclared: "data in several segments are acknowledged before the last segment declares the earlier ones durable", "store/src/shard/log/segments.rs";
    // Reading the log.
    FrameChecksumIgnored: "the checksum of a frame is not verified", "store/src/format/log/frame.rs";
    LastPageUnread: "the last page of a segment is not read", "store/src/shard/log/reader.rs";
    // Recovery.
    RemovalNotReplayed: "patches that an edit removes are kept", "store/src/shard/recovery/replay.rs";
    NumberReused: "the number of an edit is given to a batch after a restart", "store/src/shard/recovery/replay.rs";
    BatchFrozenInMiddle: "a memtable is frozen in the middle of a replayed batch", "store/src/shard/recovery/replay.rs";
    RunNumberReused: "runs of level 0 are renumbered after a restart", "store/src/shard/recovery/replay.rs";
    ReplayedForgotten: "replayed data do not retain their log segments", "store/src/shard/recovery/replay.rs";
    UndecidedCounts: "a transaction without a commit counts as committed", "store/src/shard/recovery/replay.rs";
    CommitsNotNoted: "commits reported by the coordinator are not recorded in the shard's own log", "store/src/shard/transactions/participant.rs";
    CutTailKept: "a truncated tail is not removed from the log", "store/src/shard/recovery/open.rs";
    BlocksLeak: "unreferenced blocks are not released at a restart", "store/src/shard/recovery/open.rs";
    // Transactions.
    CommitNotAwaited: "a transaction is acknowledged before its commit is written", "store/src/store/two_phase.rs";
    GatesInReverse: "all gates but the first are acquired in reverse order", "store/src/store/exclusive.rs";
    CommitsOutOfOrder: "commits of transactions are written out of order", "store/src/shard/transactions/table.rs";
    PendingClearsForgotten: "data that an undecided FLUSHALL may restore do not retain their log segments", "store/src/shard/maintenance/flush.rs";
    CommittedHalfPrepared: "a transaction is committed when only one of its shards is prepared", "store/src/shard/transactions/table.rs";
    // Flush and compaction.
    UndecidedFlushed: "a memtable is flushed before all of it is final in the log", "store/src/shard/maintenance/flush.rs";
    FlushedTooMuch: "a flush marks writes that arrived meanwhile as flushed", "store/src/shard/maintenance/flush.rs";
    FrozenForgotten: "a checkpoint leaves out the memtable that is being flushed", "store/src/kv/slice.rs";
    SegmentsFreedEarly: "log segments are released before the edit is durable", "store/src/shard/maintenance/flush.rs";
    CopyAgainNotFlushed: "a patch rewritten by rebuild or scrub is still in the volatile cache when it replaces the old one", "store/src/shard/maintenance/refresh.rs";
    PatchNotFlushed: "an edit is written while its patches are in the device's volatile cache", "store/src/kv/writer.rs";
    InputsFreedEarly: "the inputs of a compaction are released before its edit is durable", "store/src/shard/maintenance/merging.rs";
    InputsLeak: "the inputs of a compaction are not released", "store/src/shard/maintenance/merging.rs";
    FreedUnderReader: "a patch is released during a read", "store/src/kv/patch.rs";
    MemoryStepSkipsKey: "a flush or scan skips a key after every 128 of a memtable", "store/src/kv/merge.rs";
    MergeKeepsOlder: "a merge keeps the older of two versions of a key", "store/src/kv/merge.rs";
    DeletionsDropped: "a compaction drops deletions although older versions exist below", "store/src/kv/compaction/leveled.rs";
    NewestRunsTaken: "level 0 compacts its newest runs instead of its oldest", "store/src/kv/compaction/leveled.rs";
    OverlapMoved: "overlapping runs are moved down without a merge", "store/src/shard/maintenance/compact.rs";
    OlderRunFirst: "lookups search the oldest run of level 0 first", "store/src/kv/tree.rs";
    CutNotWidened: "a compaction cuts a run in the middle of a value in fragments", "store/src/kv/compaction/leveled.rs";
    WidenedPartForgotten: "the search for older versions in lower levels ignores the widened key range of a compaction", "store/src/kv/compaction/leveled.rs";
    ExpiredNotBuried: "an expired version is dropped above older ones", "store/src/kv/merge.rs";
    FinishedPatchesLeak: "finished patches are not released when their writer fails", "store/src/kv/writer.rs";
    // Space management.
    ReserveFourfold: "compactions reserve four times as many blocks as they need", "store/src/shard/resources/limits.rs";
    LogRoomTaken: "flushes, merges and values take the blocks that are kept for the log", "blocks/src/space.rs";
    FreeCountStale: "the count of free blocks is not updated when a block is released", "blocks/src/lifecycle.rs";
    LargeValueNotExempt: "a value larger than the memtables waits for ever", "store/src/shard/write/admission.rs";
    SweepDropsLive: "the sweep of watches drops watches that are in use", "store/src/shard/transactions/watch.rs";
    SweepKeepsOrphans: "the sweep of watches keeps watches that are not in use", "store/src/shard/transactions/watch.rs";
    // Reads.
    PatchBorderMissed: "the last key of a patch is searched for in the next patch", "store/src/kv/tree.rs";
    FilterSaysNo: "a filter has false negatives for one key in 61", "store/src/format/patch/index.rs";
    CacheKeepsOld: "a write does not invalidate its key in the read cache", "store/src/shard/write/commit.rs";
    WindowOfAnotherPatch: "a scan uses the readahead of another patch", "store/src/kv/scan_readahead.rs";
    SnapshotForgetsItsVersion: "a write drops the version that is the last one of a snapshot", "store/src/kv/memtable.rs";
    SnapshotWithoutLastWrite: "a scan does not see the last write before it", "store/src/shard/read/scan.rs";
    ScanSkipsKey: "a page of a scan begins one key late", "store/src/shard/read/scan.rs";
    GateStaysShut: "a task that waits at a gate is not woken when the gate opens", "store/src/shard/transactions/gate.rs";
    ClockRunsBack: "the expiry clock is not restored at a restart", "store/src/shard/clock.rs";
    OpenWordLineClockLogged: "the expiry clock counts as logged in a frame that a later write can destroy", "store/src/shard/log/writer.rs";
    ClearForgottenByFlush: "a flush after a restart restores patches that a FLUSHALL had removed", "store/src/shard/recovery/replay.rs";
    ClearNotReplayed: "a FLUSHALL is not replayed", "store/src/shard/recovery/replay.rs";
    // The flash translation layer.
    ProgramFailureIgnored: "a failed program counts as done", "ftl/src/ftl.rs";
    HeaderNotForced: "the opening header of a superblock stays in the volatile cache", "ftl/src/headers.rs";
    WrongPageRead: "reads of the last page of a superblock read the page before", "ftl/src/ftl/transfer.rs";
    NewestHeaderErased: "the superblock with the newest header is erased in advance", "ftl/src/unit/choice.rs";
    OpeningKept: "a superblock that is released unused keeps its old opening", "ftl/src/unit/reclaim.rs";
    OldestHeaderWins: "of two headers that name a block, the oldest one counts", "ftl/src/recovery.rs";
    WearLost: "erase counts are not restored from headers", "ftl/src/recovery.rs";
    FailedAttemptKept: "of two attempts to write a block the failed one is kept", "blocks/src/discovery.rs";
    // Copies and parity.
    SecondCopyUnwritten: "appends are written to one of two copies", "blocks/src/open_block.rs";
    FailedCopyHidden: "a copy with a failed program counts as intact", "blocks/src/open_block.rs";
    ParityForgetsPatch: "the second patch of a group is not in its parity", "blocks/src/redundancy/stripe.rs";
    GroupOnOneUnit: "patches of a parity group are placed without anti-affinity and without a check", "blocks/src/redundancy/membership.rs";
    FreeBlocksOfOneUnit: "the count of free blocks with copies is not bounded by the largest unit", "blocks/src/pool.rs";
    GroupFreedEarly: "the blocks of replaced parity groups are deleted before the replacement is durable", "store/src/shard/maintenance/parity.rs";
    RepairOfLowerLevels: "repair ignores the older runs of the level of a damaged patch", "store/src/repair/stale.rs";
    // The value log.
    ReferenceBeforeValue: "a frame is written before the values to which it refers", "store/src/shard/log/writer.rs";
    ValueNotForced: "a value stays in the device's volatile cache", "store/src/shard/values/frontier.rs";
    ValueWordLinesOpen: "a value counts as durable although a later program can destroy its word lines", "store/src/shard/values/frontier.rs";
    ValueBlockSealedEarly: "the collector may take a value block while values are being written to it", "store/src/shard/values/frontier.rs";
    SupersededValueLive: "a value that is superseded before it is written stays live for ever", "store/src/shard/values/writer.rs";
    ValueBlockFreedEarly: "an empty value block is deleted before the writes that emptied it are durable", "store/src/shard/values/collect.rs";
    ValueBlockFreedUnderScan: "a value block is deleted while a scan reads an older version", "store/src/shard/values/collect.rs";
    MovedOverWrite: "the collector moves a value over a newer write", "store/src/shard/values/moving.rs";
    ExpiredValueClockNotLogged: "a block of expired values is deleted before the expiry clock is logged", "store/src/shard/values/ledger.rs";
    ValueLiveForgotten: "values on flash are not listed as live after a restart", "store/src/shard/values/recovery.rs";
    // Concurrent removal of all keys.
    UndecidedDoomed: "the patches of an undecided FLUSHALL are released", "store/src/shard/transactions/pending_clears.rs";
    ClearKeepsCache: "a FLUSHALL does not invalidate the read cache", "store/src/shard/write/clear.rs";
    ClearTouchesNoWatch: "a FLUSHALL does not invalidate watches", "store/src/shard/write/clear.rs";
    ClearIgnoredByCommit: "a commit does not detect a FLUSHALL after its reads", "store/src/shard/transactions/read_mark.rs";
    ClearToldEarly: "a read shows a FLUSHALL before it is durable", "store/src/shard/read/lookup.rs";
    RememberedAcrossClear: "a read caches a value that was removed while it waited", "store/src/shard/read/lookup.rs";
    FlushedAcrossClear: "a flush restores data that were removed while it wrote", "store/src/shard/maintenance/flush.rs";
    CompactedAcrossClear: "a compaction restores data that were removed while it merged", "store/src/shard/maintenance/merging.rs";
    // Reads and watches of transactions.
    ExclusiveSeesExpired: "transactions over several keys see expired keys", "store/src/shard/read/lookup.rs";
    ScanHidesUnlogged: "a scan hides expired keys without logging the expiry clock", "store/src/shard/read/scan.rs";
    ChangeOvertakesReads: "a change that waits at a gate overtakes the reads before it in a pipeline", "protocol/src/pipeline/shard_pipeline.rs";
    AloneReadsBeforeGate: "a command over several shards reads before it holds their gates", "protocol/src/pipeline/write.rs";
    ExecChecksBeforeGate: "EXEC checks its watches before it holds the gates", "protocol/src/pipeline/exec.rs";
    ExecKeepsWatches: "EXEC does not drop its watches", "protocol/src/pipeline/exec.rs";
    ExpiryNotWatched: "the expiry of a watched key does not abort the transaction", "protocol/src/session/transaction.rs";
    WatchStopsAtKnown: "WATCH stops at a key that is watched already", "protocol/src/pipeline/exec.rs";
    DiscardKeepsWatches: "DISCARD does not drop the watches", "protocol/src/handlers/transaction.rs";
    // Volumes.
    MovesNotFlushed: "collected superblocks are released before the copies of their data are durable", "volume/src/releases.rs";
    MovesAsWrites: "collection records moved data as written: a snapshot keeps the old place", "volume/src/moving.rs";
    PinsIgnored: "superblocks are released before a root replaces their changes", "volume/src/superblocks.rs";
    TornUnitsTaken: "recovery does not verify data that were never durable", "volume/src/recovery/replay.rs";
    UncertainTrusted: "recovery neither writes uncertain data again nor makes a root of what they changed", "volume/src/domain.rs";
    MovesTakenForTheImages: "recovery gives moved data to an image although the rollback before them is lost", "volume/src/recovery/replay.rs";
    RolledBackZerosKept: "a volume that is rolled back keeps data where its snapshot has zeros", "volume/src/domain_map/rolling_back.rs";
    FormerParentSeesMore: "the former parent of a promoted clone shows data where it had discarded them", "volume/src/domain_map/promotion.rs";
    HeirForgotten: "a deleted snapshot does not leave its data to the older one", "volume/src/domain_map.rs";
    FrozenLeafChanged: "a leaf that changes while a checkpoint is made is written as it is later", "volume/src/domain_map.rs";
    GatePassed: "a checkpoint does not wait for the operation that is being written", "volume/src/checkpoint.rs";
    FailedFrameDropped: "the data of a frame whose program failed are not written elsewhere", "volume/src/writer.rs";
    SettingsNotInRoots: "a checkpoint loses the settings of volumes", "volume/src/format/root.rs";
    QuotaForgetsUnmapped: "writes under way do not count for the quota of a volume", "volume/src/quota.rs";
    LimitsIgnored: "requests do not wait for the limits of their volume", "volume/src/limits.rs";
    LostChangesIgnored: "recovery does not look for changes whose frames are lost", "volume/src/recovery/missing.rs";
    RecordsTogether: "the head of a frame records changes on its own unit, whose loss takes both", "volume/src/changes.rs";
    EndNotProven: "the last changes are not proven after a flush", "volume/src/proof.rs";
    LeafOfOtherLife: "an older leaf at the place of a leaf is taken for it", "volume/src/recovery/leaves.rs";
    FailedCheckpointCounts: "a checkpoint that fails leaves its leaves clean", "volume/src/checkpoint.rs";
    SettingsWakeNobody: "requests that wait for a limit do not see its change", "volume/src/tenant.rs";
    AbsenceSaved: "a volume that comes back has saved up the service of its absence", "policy/src/order/weighted_fair.rs";
    WordLinesNotPadded: "a flush leaves open word lines that a later cut destroys", "volume/src/flusher.rs";
    // Units that pass from one set to another.
    DrainedWithoutRoot: "a unit leaves a domain before a root is durable that needs nothing of it", "volume/src/draining.rs";
    DrainedUnitAllocated: "a unit that leaves a domain takes data", "volume/src/core.rs";
    SlotsRenumbered: "the units of a domain have slots in their order, whatever the table of sets says", "volume/src/unit_slots.rs";
    JoinedUnitNotReplayed: "recovery passes over the frames of units that have joined since the root", "volume/src/recovery.rs";
    JoinedUnitNotFlushed: "a flush leaves out units that have joined since the mount", "flash/src/flash.rs";
    WokenTakenForResting: "a collection that is woken while it works counts as resting when it works again", "volume/src/collection.rs";
    HeldWhileCollectionRests: "clients wait for credits of a collection that has nothing to do", "volume/src/collection.rs";
    UnseenAboveRoot: "a mount gives the numbers of frames that it could not read to its root", "volume/src/recovery.rs";
    JoinedUnitNotErased: "a unit joins a set with what its owner before has left there", "flash/src/erasing.rs";
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
