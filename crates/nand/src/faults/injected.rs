//! Counts of the faults that were injected into an array without an error.

/// How often faults struck, so that a test can check that there was something to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InjectedFaults {
    /// Pages read with wrong bits, as success.
    pub miscorrected_reads: u64,
    /// Pages read from another block, as success.
    pub misdirected_reads: u64,
    /// Pages read as what a register still held, as success. Not drawn where contents are not kept.
    pub stale_reads: u64,
    /// Pages programmed in another block, or nowhere, as success.
    pub misdirected_programs: u64,
    /// Of these, pages that damaged one that was programmed before.
    pub pages_overwritten: u64,
    /// Pages not programmed, as success.
    pub phantom_programs: u64,
    /// Commands that failed because it was planned.
    pub planned_failures: u64,
    /// Commands that a dead die ended.
    pub dead_commands: u64,
    /// Senses, programs, erases, retries and transfers that took longer than they should.
    pub slowed_steps: u64,
}

impl InjectedFaults {
    /// Adds what happened elsewhere.
    pub fn add(&mut self, other: &InjectedFaults) {
        self.miscorrected_reads += other.miscorrected_reads;
        self.misdirected_reads += other.misdirected_reads;
        self.stale_reads += other.stale_reads;
        self.misdirected_programs += other.misdirected_programs;
        self.pages_overwritten += other.pages_overwritten;
        self.phantom_programs += other.phantom_programs;
        self.planned_failures += other.planned_failures;
        self.dead_commands += other.dead_commands;
        self.slowed_steps += other.slowed_steps;
    }
}
