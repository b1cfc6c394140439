//! The outcomes of a power cut for pages and blocks whose operation it interrupts.
//!
//! By default the outcome depends on the progress of the operation, as [`crate::array`] describes.
//! Weights replace these probabilities: a test that hunts for defects needs every outcome often.

use super::check::{self, Checked};
use serde::{Deserialize, Serialize};
use softflash_base::random::Rng;

/// The most reads that an unstable page can survive; a record has one byte for them.
pub const UNSTABLE_READS_MAX: u8 = 250;

/// The most milliseconds that an unstable page can last, 4.6 hours; a record has three bytes for
/// them.
pub const UNSTABLE_MS_MAX: u32 = 0x00ff_fffe;

/// The outcomes for a page whose program is interrupted. The first five fields are weights, finite
/// and at least 0: the probability of an outcome is its weight divided by their sum. All are 0 by
/// default; then the outcome depends on the progress of the program.
///
/// Tseng et al. (*Understanding the impact of power loss on flash memory*, DAC 2011) found that a
/// longer time before the cut does not always mean fewer errors, and that interrupted pages decay
/// faster; Zheng et al. (*Understanding the robustness of SSDs under power fault*, FAST 2013) found
/// shorn writes in drives. Neither gives frequencies of these outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CutPages {
    /// It still reads as erased. It cannot be programmed, as the contents of its cells are unknown.
    pub untouched: f64,
    /// It is fully programmed, without a completion.
    pub whole: f64,
    /// It reads well: a first part of the new data, in multiples of 512 bytes, then erased bytes.
    pub shorn: f64,
    /// Random bits: it is uncorrectable.
    pub random: f64,
    /// It reads well and whole, and becomes uncorrectable later.
    pub unstable: f64,
    /// Reads that an unstable page survives, 1 to [`UNSTABLE_READS_MAX`]; 0 for no limit.
    pub unstable_reads: u8,
    /// Milliseconds that an unstable page lasts, 1 to [`UNSTABLE_MS_MAX`]; 0 for no limit.
    pub unstable_ms: u32,
}

impl Default for CutPages {
    fn default() -> CutPages {
        CutPages {
            untouched: 0.0,
            whole: 0.0,
            shorn: 0.0,
            random: 0.0,
            unstable: 0.0,
            unstable_reads: 3,
            unstable_ms: 0,
        }
    }
}

/// An outcome of [`CutPages`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutPage {
    Untouched,
    Whole,
    Shorn,
    Random,
    Unstable,
}

impl CutPages {
    fn weights(&self) -> [f64; 5] {
        [self.untouched, self.whole, self.shorn, self.random, self.unstable]
    }

    pub(super) fn validate(&self) -> Checked {
        let names = ["untouched", "whole", "shorn", "random", "unstable"];
        for (field, given) in names.into_iter().zip(self.weights()) {
            check::factor(field, given)?;
        }
        let reads = self.unstable_reads;
        check::holds("unstable_reads", reads, reads <= UNSTABLE_READS_MAX, "at most 250")?;
        let ms = self.unstable_ms;
        check::holds("unstable_ms", ms, ms <= UNSTABLE_MS_MAX, "at most 16777214")?;
        let ends = self.unstable == 0.0 || reads > 0 || ms > 0;
        check::holds("unstable", self.unstable, ends, "0, or unstable_reads or unstable_ms above 0")
    }

    /// Draws an outcome, if any has a weight.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Option<CutPage> {
        use CutPage::{Random, Shorn, Unstable, Untouched, Whole};
        let outcomes = [Untouched, Whole, Shorn, Random, Unstable];
        weighted(self.weights(), rng).map(|drawn| outcomes[drawn])
    }
}

/// The outcomes for a block whose erase is interrupted. The first three fields are weights as in
/// [`CutPages`].
///
/// Tseng et al., DAC 2011, found that an interrupted erase makes later programs unreliable; they
/// give no rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CutErases {
    /// All its pages read as erased, and it can be programmed.
    pub looks_erased: f64,
    /// Half of its pages, drawn one by one, read as before; of the others half read as erased and
    /// half are uncorrectable. Programs continue at its write pointer.
    pub part_old: f64,
    /// All its pages are uncorrectable, and it must be erased before it can be programmed.
    pub random: f64,
    /// How many times more often programs fail in a block that looks erased or partly old, until
    /// its next complete erase. Finite and at least 0; 1 by default.
    pub program_failure_factor: f64,
}

impl Default for CutErases {
    fn default() -> CutErases {
        CutErases { looks_erased: 0.0, part_old: 0.0, random: 0.0, program_failure_factor: 1.0 }
    }
}

/// An outcome of [`CutErases`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutErase {
    LooksErased,
    PartOld,
    Random,
}

impl CutErases {
    pub(super) fn validate(&self) -> Checked {
        check::factor("looks_erased", self.looks_erased)?;
        check::factor("part_old", self.part_old)?;
        check::factor("random", self.random)?;
        check::factor("program_failure_factor", self.program_failure_factor)
    }

    /// Draws an outcome, if any has a weight.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Option<CutErase> {
        let outcomes = [CutErase::LooksErased, CutErase::PartOld, CutErase::Random];
        weighted([self.looks_erased, self.part_old, self.random], rng).map(|drawn| outcomes[drawn])
    }
}

/// Draws the index of a weight, with a probability of its share; `None`, without a draw, if all are
/// 0.
fn weighted<const N: usize>(weights: [f64; N], rng: &mut Rng) -> Option<usize> {
    let last = weights.iter().rposition(|&weight| weight > 0.0)?;
    let mut left = rng.unit_f64() * weights.iter().sum::<f64>();
    for (place, weight) in weights[..last].iter().enumerate() {
        if left < *weight {
            return Some(place);
        }
        left -= weight;
    }
    Some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_shares() {
        let mut rng = Rng::seeded(1);
        let mut seen = [0_u32; 4];
        for _ in 0..40_000 {
            seen[weighted([1.0, 0.0, 3.0, 0.0], &mut rng).unwrap()] += 1;
        }
        // Four standard deviations of a binomial with n = 40 000, p = 1/4.
        assert!(seen[0].abs_diff(10_000) < 347 && seen[0] + seen[2] == 40_000, "{seen:?}");
    }

    #[test]
    fn no_weights_draw_nothing() {
        let mut rng = Rng::seeded(2);
        let untouched = rng.clone();
        assert_eq!(CutPages::default().draw(&mut rng), None);
        assert_eq!(CutErases::default().draw(&mut rng), None);
        assert_eq!(rng, untouched);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let told = |cut: CutPages| cut.validate().unwrap_err().to_string();
        let endless = CutPages { unstable: 1.0, unstable_reads: 0, ..CutPages::default() };
        assert_eq!(
            told(endless),
            "faults: unstable is 1; it must be 0, or unstable_reads or unstable_ms above 0"
        );
        assert!(told(CutPages { shorn: -1.0, ..CutPages::default() }).contains("shorn is -1"));
        assert!(told(CutPages { whole: f64::INFINITY, ..CutPages::default() }).contains("whole"));
        assert!(told(CutPages { unstable_reads: 251, ..CutPages::default() }).contains("251"));
        let nan = CutErases { part_old: f64::NAN, ..CutErases::default() };
        assert!(nan.validate().unwrap_err().to_string().contains("part_old"));
    }
}
