//! Write amplification of page-mapped cleaning under uniform random writes of single pages, in the
//! steady state.
//!
//! α is physical / logical pages of the blocks that are cleaned together, *without the block that
//! is being written*, as its pages cannot be collected. Including it causes an error of 12 % on
//! small drives.

use super::special::{harmonic, lambert_w};

/// Steps of the bisection for the level of collection: more than a double has bits.
const HALVINGS: u32 = 64;

/// Greedy cleaning of blocks of `pages` pages: the finite-block mean field.
///
/// A block with i valid pages loses the next at a rate in proportion to i, so closed blocks are
/// spread over their levels, from full down to the level j at which they are collected, in
/// proportion to 1/i. Their mean level is (b − j) / (H_b − H_j), and it has to be b/α. Each block
/// that is collected at level j gives b − j pages to the host for b that are programmed.
///
/// Robinson, *Analysis of steady-state segment storage utilizations in a log-structured file system
/// with least-utilized segment cleaning*, SIGOPS OSR 30(4), 1996; Bux and Iliadis, *Performance of
/// greedy garbage collection in flash-based solid-state drives*, Performance Evaluation 67(11),
/// 2010; Desnoyers, *Analytic modeling of SSD write performance*, SYSTOR 2012; Van Houdt, *A mean
/// field model for a class of garbage collection algorithms in flash-based solid state drives*,
/// SIGMETRICS 2013.
pub fn greedy_waf(alpha: f64, pages: u32) -> f64 {
    let b = f64::from(pages);
    let mean_level = |j: f64| (b - j) / (harmonic(b) - harmonic(j));
    let (mut low, mut high) = (0.0, b);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if mean_level(middle) < b / alpha { low = middle } else { high = middle }
    }
    b / (b - low)
}

/// Cleaning in the order of writing (FIFO, LRU, a circular log): α / (α + W(−α·e^−α)), W Lambert's
/// function.
///
/// A page is collected after all others were, so it survives with probability e^−(α/WAF); surviving
/// pages are written again. The number of pages of a block does not matter.
///
/// Menon, *A performance comparison of RAID-5 and log-structured arrays*, HPDC 1995; Desnoyers,
/// SYSTOR 2012; Li, Lee and Lui, *Stochastic modeling of large-scale solid-state storage systems*,
/// SIGMETRICS 2013.
pub fn fifo_waf(alpha: f64) -> f64 {
    alpha / (alpha + lambert_w(-alpha * (-alpha).exp()))
}

/// Cleaning of the block with the fewest valid pages of `d` random ones, for blocks of `pages`
/// pages: the mean field. With 1 it is random cleaning, α / (α − 1); with many, greedy cleaning.
///
/// s_i is the share of blocks with at least i valid pages, so a victim has at least i with
/// probability s_i^d. A full block joins for each that is collected, so blocks lose their i-th page
/// 1 − s_i^d times for each collection. That rate is in proportion to the pages of such blocks:
/// i·(s_i − s_{i+1}) = c·(1 − s_i^d), with the c for which the mean level, Σ s_i, is b/α. The host
/// writes b/(α·c) pages for each collection.
///
/// Van Houdt, *A mean field model for a class of garbage collection algorithms in flash-based solid
/// state drives*, SIGMETRICS 2013.
pub fn d_choices_waf(alpha: f64, pages: u32, d: u32) -> f64 {
    let b = f64::from(pages);
    let d = f64::from(d);
    let mean_level = |c: f64| {
        let (mut above, mut sum) = (0.0, 0.0);
        for level in (1..=pages).rev() {
            let of_level = c / f64::from(level);
            above = rising_root(|s| s - above - of_level * (1.0 - s.powf(d)), 1.0);
            sum += above;
        }
        sum
    };
    // Random cleaning, the worst, has c = 1 / (α − 1).
    let c = rising_root(|c| mean_level(c) - b / alpha, 2.0 / (alpha - 1.0));
    alpha * c
}

/// The root in `0..high` of a function that rises.
fn rising_root(f: impl Fn(f64) -> f64, mut high: f64) -> f64 {
    let mut low = 0.0;
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, wanted: f64, tolerance: f64) {
        assert!((found / wanted - 1.0).abs() < tolerance, "{found} is not {wanted}");
    }

    #[test]
    fn fifo_is_the_fixed_point_of_survival() {
        for spare in [0.05, 0.1, 0.25, 0.4] {
            let alpha = 1.0 / (1.0 - spare);
            let waf = fifo_waf(alpha);
            // A share e^-(α/WAF) of the collected pages is written again.
            near(waf, 1.0 / (1.0 - (-alpha / waf).exp()), 1e-9);
        }
        // Published values of the asymptotic model.
        for (spare, waf) in [(0.05, 10.17), (0.25, 2.20), (0.40, 1.48)] {
            near(fifo_waf(1.0 / (1.0 - spare)), waf, 0.002);
        }
    }

    #[test]
    fn greedy_is_below_fifo_and_comes_to_it_with_large_blocks() {
        for spare in [0.05, 0.1, 0.2, 0.3, 0.4] {
            let alpha = 1.0 / (1.0 - spare);
            let mut before = 1.0;
            for pages in [8, 64, 256, 4096] {
                let waf = greedy_waf(alpha, pages);
                assert!(before < waf && waf < fifo_waf(alpha), "{spare} {pages}: {waf}");
                before = waf;
            }
            near(greedy_waf(alpha, 1 << 22), fifo_waf(alpha), 1e-4);
        }
    }

    #[test]
    fn choices_of_one_are_random_and_choices_of_many_are_greedy() {
        for spare in [0.05, 0.2, 0.4] {
            let alpha = 1.0 / (1.0 - spare);
            for pages in [4, 64] {
                let waf = [1, 2, 4, 16, 64].map(|d| d_choices_waf(alpha, pages, d));
                near(waf[0], alpha / (alpha - 1.0), 1e-6);
                assert!(waf.is_sorted_by(|fewer, more| fewer > more), "{waf:?}");
            }
            near(d_choices_waf(alpha, 64, 100_000), greedy_waf(alpha, 64), 0.02);
        }
    }

    #[test]
    fn a_block_of_one_page_is_never_moved() {
        near(greedy_waf(1.25, 1), 1.0, 1e-9);
    }
}
