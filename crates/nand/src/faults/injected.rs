//! Counters of the faults injected into an array.

/// Counters of injected faults, so that a test can check that faults occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InjectedFaults {
    /// Pages read with wrong bits, as success.
    pub miscorrected_reads: u64,
    /// Pages read from another block, as success.
    pub misdirected_reads: u64,
    /// Pages read as the previous contents of the register, as success. Always 0 if the array
    /// stores no data.
    pub stale_reads: u64,
    /// Pages programmed in another block, or nowhere, as success.
    pub misdirected_programs: u64,
    /// Of these, pages that destroyed a programmed page.
    pub pages_overwritten: u64,
    /// Pages not programmed, as success.
    pub phantom_programs: u64,
    /// Planned failures of commands.
    pub planned_failures: u64,
    /// Commands completed by dead dies, without effect.
    pub dead_commands: u64,
    /// Senses, programs, erases, retries and transfers that were slowed.
    pub slowed_steps: u64,
}

impl InjectedFaults {
    /// Adds the counters of another array.
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
