//! The mean of replicates, and how far from it they spread.

use serde::{Deserialize, Serialize};

/// The spread of the figures of equal runs with different seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Their sample standard deviation.
    pub stddev: f64,
    /// Half the width of the 95 % confidence interval of their mean, by Student's t distribution.
    pub ci95: f64,
}

/// The mean of figures, and their spread if there are several.
pub(crate) fn mean_and_spread(figures: &[f64]) -> (f64, Option<Spread>) {
    let count = figures.len() as f64;
    let mean = figures.iter().sum::<f64>() / count.max(1.0);
    if figures.len() < 2 {
        return (mean, None);
    }
    let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
    let stddev = (squares / (count - 1.0)).sqrt();
    let ci95 = student_t(figures.len() - 1, 0.95) * stddev / count.sqrt();
    (mean, Some(Spread { stddev, ci95 }))
}

/// The t that the absolute value of Student's t does not exceed with this probability, with so many
/// degrees of freedom.
fn student_t(freedom: usize, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while within(high, freedom) < probability {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if within(middle, freedom) < probability { low = middle } else { high = middle }
    }
    high
}

/// The probability that the absolute value of Student's t is at most `t`, as a finite sum
/// (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn within(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    let first = if odd { cos } else { 1.0 };
    // The terms' factors are 2/3, 4/5 ... where the degrees of freedom are odd, else 1/2, 3/4 ...
    let (mut term, mut sum) = (first, if freedom == 1 { 0.0 } else { first });
    let mut even = if odd { 2 } else { 1 };
    while even + 2 < freedom {
        term *= cos * cos * even as f64 / (even + 1) as f64;
        sum += term;
        even += 2;
    }
    if odd { (angle + sin * sum) / std::f64::consts::FRAC_PI_2 } else { sin * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_is_that_of_the_tables() {
        // Two-sided 95 %, from any table of Student's t.
        for (freedom, expected) in
            [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (30, 2.042)]
        {
            let found = student_t(freedom, 0.95);
            assert!((found - expected).abs() < 0.0006, "{freedom}: {found}");
        }
        assert!((student_t(100_000, 0.95) - 1.95996).abs() < 1e-3, "the normal distribution");
    }

    #[test]
    fn one_run_has_no_spread_and_equal_runs_have_none_either() {
        assert_eq!(mean_and_spread(&[7.0]), (7.0, None));
        let (mean, spread) = mean_and_spread(&[7.0; 3]);
        assert_eq!((mean, spread), (7.0, Some(Spread { stddev: 0.0, ci95: 0.0 })));
        let (mean, spread) = mean_and_spread(&[1.0, 2.0, 3.0]);
        let spread = spread.unwrap();
        assert_eq!((mean, spread.stddev), (2.0, 1.0));
        assert!((spread.ci95 - 4.3027 / 3.0_f64.sqrt()).abs() < 1e-3, "{spread:?}");
    }
}
