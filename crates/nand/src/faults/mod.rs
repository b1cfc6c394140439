//! Kinds of faults and their rates. The default array has no faults.
//!
//! [`FaultConfig`] has the rates, with a file for each family: `power_cut` has the outcomes of
//! interrupted operations, `silent` the operations acknowledged as success with a wrong effect,
//! `slow` the operations that take too long. `schedule` has faults planned one by one, `injected`
//! the counters of injected faults. Bit errors are in [`crate::error_law`].

mod check;
mod injected;
mod power_cut;
mod schedule;
mod silent;
mod slow;

pub use injected::InjectedFaults;
pub(crate) use power_cut::{CutErase, CutPage};
pub use power_cut::{CutErases, CutPages, UNSTABLE_MS_MAX, UNSTABLE_READS_MAX};
pub use schedule::{FaultPlace, FaultSchedule, FaultTime, PlannedFault, Strike};
pub use silent::SilentFaults;
pub(crate) use slow::SLOWED_STEP_NS_MAX;
pub use slow::{SLOW_FACTOR_MAX, SlowOperations};

use crate::config::ConfigError;
use crate::error_law::ErrorLaw;
use serde::{Deserialize, Serialize};

/// Kinds of faults and their rates. Every rate is a probability, 0 to 1, and 0 by default.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultConfig {
    /// A block is bad when the array is new.
    pub factory_bad_block: f64,
    /// A program of one page fails: the page is lost and its block goes bad.
    pub program_failure: f64,
    /// An erase of one block fails: the block goes bad.
    pub erase_failure: f64,
    /// Rated P/E cycles of a block; 0 for no limit.
    pub rated_cycles: u32,
    /// How many times more often programs and erases fail beyond the rated cycles.
    pub worn_failure_factor: f64,
    /// A power cut in the program of a page destroys an older page of the same word line. Applies
    /// to each of the older pages. Tseng et al., DAC 2011, observed the effect.
    pub paired_page_loss: f64,
    /// A page torn by a power cut reads without an error: its first part new, the rest erased, as a
    /// shorn write. Otherwise a torn page is uncorrectable. Ignored if `cut_pages` has weights.
    pub shorn_page_readable: f64,
    /// The outcomes of a power cut for pages whose program it interrupts.
    pub cut_pages: CutPages,
    /// The outcomes of a power cut for blocks whose erase it interrupts.
    pub cut_erases: CutErases,
    /// Operations acknowledged as success with a wrong effect.
    pub silent: SilentFaults,
    /// Operations that take too long.
    pub slow: SlowOperations,
    /// Bit errors of reads.
    pub bit_errors: ErrorLaw,
}

impl Default for FaultConfig {
    fn default() -> FaultConfig {
        FaultConfig {
            factory_bad_block: 0.0,
            program_failure: 0.0,
            erase_failure: 0.0,
            rated_cycles: 0,
            worn_failure_factor: 1.0,
            paired_page_loss: 0.0,
            shorn_page_readable: 0.0,
            cut_pages: CutPages::default(),
            cut_erases: CutErases::default(),
            silent: SilentFaults::default(),
            slow: SlowOperations::default(),
            bit_errors: ErrorLaw::default(),
        }
    }
}

impl FaultConfig {
    /// Checks that rates are probabilities and that the ECC parameters are possible.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let law = &self.bit_errors;
        check::rate("factory_bad_block", self.factory_bad_block)?;
        check::rate("program_failure", self.program_failure)?;
        check::rate("erase_failure", self.erase_failure)?;
        check::rate("paired_page_loss", self.paired_page_loss)?;
        check::rate("shorn_page_readable", self.shorn_page_readable)?;
        check::rate("rber_fresh", law.rber_fresh)?;
        check::rate("disturb_per_read", law.disturb_per_read)?;
        check::factor("worn_failure_factor", self.worn_failure_factor)?;
        check::factor("wear_cycles", law.wear_cycles)?;
        check::factor("retention_days", law.retention_days)?;
        check::factor("open_block_factor", law.open_block_factor)?;
        let gain = law.retry_gain;
        check::holds("retry_gain", gain, gain > 0.0 && gain < 1.0, "above 0 and below 1")?;
        check::holds("retry_steps", law.retry_steps, law.retry_steps <= 32, "at most 32")?;
        check::holds("codeword_bytes", law.codeword_bytes, law.codeword_bytes > 0, "at least 1")?;
        self.cut_pages.validate()?;
        self.cut_erases.validate()?;
        self.silent.validate()?;
        self.slow.validate()
    }

    /// The probability that a program fails in a block of this wear; `weak` if its last erase was
    /// interrupted. It may exceed 1.
    #[inline]
    pub(crate) fn program_failure_at(&self, erase_count: u32, weak: bool) -> f64 {
        if self.program_failure == 0.0 {
            return 0.0;
        }
        let weakness = if weak { self.cut_erases.program_failure_factor } else { 1.0 };
        self.program_failure * self.wear_factor(erase_count) * weakness
    }

    /// The probability that an erase of a block of this wear fails.
    pub(crate) fn erase_failure_at(&self, erase_count: u32) -> f64 {
        self.erase_failure * self.wear_factor(erase_count)
    }

    fn wear_factor(&self, erase_count: u32) -> f64 {
        let worn = self.rated_cycles > 0 && erase_count > self.rated_cycles;
        if worn { self.worn_failure_factor } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid_and_faultless() {
        let faults = FaultConfig::default();
        faults.validate().unwrap();
        assert!(faults.program_failure_at(u32::MAX, true) == 0.0 && !faults.bit_errors.is_on());
    }

    #[test]
    fn wear_beyond_the_rating_multiplies_failures() {
        let faults = FaultConfig {
            erase_failure: 1e-4,
            rated_cycles: 3000,
            worn_failure_factor: 10.0,
            ..FaultConfig::default()
        };
        assert!((faults.erase_failure_at(3000) - 1e-4).abs() < 1e-12);
        assert!((faults.erase_failure_at(3001) - 1e-3).abs() < 1e-12);
    }

    #[test]
    fn an_interrupted_erase_multiplies_failures_of_programs() {
        let cut_erases = CutErases { program_failure_factor: 50.0, ..CutErases::default() };
        let faults = FaultConfig { program_failure: 1e-3, cut_erases, ..FaultConfig::default() };
        assert!((faults.program_failure_at(0, false) - 1e-3).abs() < 1e-12);
        assert!((faults.program_failure_at(0, true) - 0.05).abs() < 1e-12);
    }

    #[test]
    fn impossible_rates_are_named() {
        let faults = FaultConfig { program_failure: 1.5, ..FaultConfig::default() };
        assert_eq!(
            faults.validate().unwrap_err().to_string(),
            "faults: program_failure is 1.5; it must be a probability, 0 to 1"
        );
        let nan = FaultConfig { erase_failure: f64::NAN, ..FaultConfig::default() };
        assert!(nan.validate().is_err());
        let law = ErrorLaw { retry_gain: 1.0, ..ErrorLaw::default() };
        let endless = FaultConfig { bit_errors: law, ..FaultConfig::default() };
        assert!(endless.validate().is_err());
    }
}
