//! The bit error model: the number of bit errors of a page, and whether ECC corrects them. The
//! model is in this file alone, so that a better reliability model can replace it.
//!
//! The raw bit error rate grows exponentially with wear, linearly with the time since programming,
//! and by a constant with every read of the block; pages of a block that is not full have a
//! multiple of that rate. Bit errors are independent, so the number in a codeword is Poisson
//! distributed, and a page fails with its worst codeword. Every read retry has shifted thresholds
//! and multiplies the rate by a gain below 1.

use serde::{Deserialize, Serialize};
use softflash_base::random::Rng;

/// Parameters of the bit error model and of ECC. The default has no errors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ErrorLaw {
    /// Raw bit error rate of a fresh page in a new block; 0 turns all bit errors off.
    pub rber_fresh: f64,
    /// P/E cycles in which wear multiplies the rate by e; 0 for no effect of wear.
    pub wear_cycles: f64,
    /// Days after which retention doubles the rate of the block's wear; 0 for no effect of time.
    pub retention_days: f64,
    /// The increase of the rate of a block's pages with each read.
    pub disturb_per_read: f64,
    /// The factor on the rate of all pages of an open block, one that is programmed in part: finite
    /// and at least 0, 1 by default. IBM (IMW 2016) showed that open blocks have more errors,
    /// especially if they are read often before they are full; no factor is taken from that paper.
    pub open_block_factor: f64,
    /// Data bytes in a codeword.
    pub codeword_bytes: u32,
    /// Bit errors that ECC corrects in a codeword.
    pub correctable_bits: u32,
    /// Read retries before a page is uncorrectable.
    pub retry_steps: u8,
    /// The factor on the rate with each retry, above 0 and below 1.
    pub retry_gain: f64,
}

impl Default for ErrorLaw {
    fn default() -> ErrorLaw {
        ErrorLaw {
            rber_fresh: 0.0,
            wear_cycles: 0.0,
            retention_days: 0.0,
            disturb_per_read: 0.0,
            open_block_factor: 1.0,
            codeword_bytes: 1024,
            correctable_bits: 40,
            retry_steps: 8,
            retry_gain: 0.6,
        }
    }
}

/// The history of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exposure {
    /// Erases of the block.
    pub erase_count: u32,
    /// Reads in the block since its erase.
    pub reads: u32,
    /// Seconds since the block was last programmed.
    pub age_s: u64,
    /// Whether the block is programmed in part.
    pub open: bool,
}

/// The result of a read of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadVerdict {
    /// Whether the data was recovered.
    pub readable: bool,
    /// Bit errors in the worst codeword at the last try.
    pub worst_codeword_errors: u32,
    /// Retries it took; all of them if it failed.
    pub retries: u8,
}

impl ErrorLaw {
    /// Whether pages have bit errors at all.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.rber_fresh > 0.0 || self.disturb_per_read > 0.0
    }

    /// The raw bit error rate of a page, at most 0.5.
    pub fn raw_bit_error_rate(&self, exposure: Exposure) -> f64 {
        let mut rate = self.rber_fresh;
        if self.wear_cycles > 0.0 {
            rate *= (f64::from(exposure.erase_count) / self.wear_cycles).exp();
        }
        if self.retention_days > 0.0 {
            rate *= 1.0 + exposure.age_s as f64 / (86_400.0 * self.retention_days);
        }
        rate += self.disturb_per_read * f64::from(exposure.reads);
        if exposure.open {
            rate *= self.open_block_factor;
        }
        rate.min(0.5)
    }

    /// Reads a page of `page_bytes` once, with as many retries as it needs, up to `retry_steps`.
    pub fn read(&self, page_bytes: u32, exposure: Exposure, rng: &mut Rng) -> ReadVerdict {
        let codewords = f64::from(page_bytes.div_ceil(self.codeword_bytes));
        let bits = f64::from(self.codeword_bytes) * 8.0;
        let mut expected = bits * self.raw_bit_error_rate(exposure);
        let mut retries = 0;
        loop {
            let errors = worst_of(codewords, expected, rng.unit_f64());
            let readable = errors <= self.correctable_bits;
            if readable || retries == self.retry_steps {
                return ReadVerdict { readable, worst_codeword_errors: errors, retries };
            }
            retries += 1;
            expected *= self.retry_gain;
        }
    }
}

/// The greatest of `count` Poisson numbers of mean `expected`, from one uniform draw: the least `k`
/// whose distribution function to the power of `count` exceeds it.
fn worst_of(count: f64, expected: f64, uniform: f64) -> u32 {
    /// Beyond this mean the first term of the sum below nears underflow; no code corrects that many
    /// errors.
    const HOPELESS: f64 = 600.0;
    if expected > HOPELESS {
        return expected as u32;
    }
    let target = uniform.powf(1.0 / count);
    let mut term = (-expected).exp();
    let mut below = term;
    let mut errors = 0;
    // The bound is far in the tail, where the sum no longer grows.
    while below <= target && f64::from(errors) < expected * 3.0 + 100.0 {
        errors += 1;
        term *= expected / f64::from(errors);
        below += term;
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: ErrorLaw = ErrorLaw {
        rber_fresh: 1e-4,
        wear_cycles: 1000.0,
        retention_days: 30.0,
        disturb_per_read: 1e-9,
        open_block_factor: 3.0,
        codeword_bytes: 1024,
        correctable_bits: 8,
        retry_steps: 4,
        retry_gain: 0.5,
    };

    #[test]
    fn the_rate_grows_with_wear_time_and_reads() {
        let rate = |erase_count, reads, days: u64| {
            let age_s = days * 86_400;
            LAW.raw_bit_error_rate(Exposure { erase_count, reads, age_s, open: false })
        };
        assert!((rate(0, 0, 0) - 1e-4).abs() < 1e-12);
        assert!((rate(1000, 0, 0) - 1e-4 * std::f64::consts::E).abs() < 1e-12);
        assert!((rate(0, 0, 30) - 2e-4).abs() < 1e-12);
        assert!((rate(0, 100_000, 0) - 2e-4).abs() < 1e-12);
        assert!(rate(u32::MAX, u32::MAX, 1 << 40) <= 0.5);
    }

    #[test]
    fn pages_of_an_open_block_have_a_multiple() {
        let closed = Exposure { reads: 100_000, ..Exposure::default() };
        let open = Exposure { open: true, ..closed };
        assert!(
            (LAW.raw_bit_error_rate(open) - 3.0 * LAW.raw_bit_error_rate(closed)).abs() < 1e-12
        );
    }

    #[test]
    fn error_counts_are_poisson() {
        let mut rng = Rng::seeded(1);
        let draws = 200_000_u32;
        let sum: u64 = (0..draws).map(|_| u64::from(worst_of(1.0, 3.0, rng.unit_f64()))).sum();
        let mean = sum as f64 / f64::from(draws);
        assert!((mean - 3.0).abs() < 4.0 * (3.0 / f64::from(draws)).sqrt(), "{mean}");
    }

    #[test]
    fn the_share_of_first_reads_that_pass_is_the_closed_form() {
        // Four codewords of mean 4 errors, 8 correctable: F(8; 4)^4 = 0.97864^4 = 0.91728.
        let law = ErrorLaw { rber_fresh: 4.0 / 8192.0, wear_cycles: 0.0, ..LAW };
        let mut rng = Rng::seeded(2);
        let reads = 100_000;
        let passed = (0..reads)
            .filter(|_| law.read(4096, Exposure::default(), &mut rng).retries == 0)
            .count();
        assert!((passed as f64 / f64::from(reads) - 0.91728).abs() < 0.0035, "{passed}");
    }

    #[test]
    fn retries_help_until_they_are_used_up() {
        let mut rng = Rng::seeded(3);
        let worn = ErrorLaw { rber_fresh: 20.0 / 8192.0, ..LAW };
        let verdict = worn.read(4096, Exposure::default(), &mut rng);
        assert!(verdict.readable && verdict.retries > 0, "{verdict:?}");
        let dead = ErrorLaw { rber_fresh: 0.4, ..LAW };
        let verdict = dead.read(4096, Exposure::default(), &mut rng);
        assert!(!verdict.readable && verdict.retries == LAW.retry_steps, "{verdict:?}");
    }

    #[test]
    fn no_rate_no_errors() {
        assert!(!ErrorLaw::default().is_on());
        let verdict = ErrorLaw::default().read(8192, Exposure::default(), &mut Rng::seeded(4));
        assert_eq!((verdict.readable, verdict.worst_codeword_errors), (true, 0));
    }
}
