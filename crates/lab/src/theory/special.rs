//! Two mathematical functions for the models that the standard library lacks.

/// Euler's constant.
const GAMMA: f64 = 0.577_215_664_901_532_9;

/// From here on the asymptotic series of the digamma function is exact to a double.
const ASYMPTOTIC_FROM: f64 = 24.0;

/// Steps of Halley's method; each triples the digits.
const MOST_STEPS: u32 = 50;

/// The harmonic number of `x`, continued to real `x` ≥ 0: ψ(x + 1) + γ.
pub fn harmonic(x: f64) -> f64 {
    let (mut x, mut sum) = (x + 1.0, GAMMA);
    while x < ASYMPTOTIC_FROM {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let tail = square
        * (1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0 - square * (1.0 / 240.0))));
    sum + x.ln() - 0.5 / x - tail
}

/// The principal branch of Lambert's function: the w ≥ −1 with w·eʷ = `x`, for `x` ≥ −1/e.
pub fn lambert_w(x: f64) -> f64 {
    // Near the branch point by its series, elsewhere between two bounds; Halley's method does the
    // rest.
    let above_branch = (std::f64::consts::E * x + 1.0).max(0.0);
    let p = (2.0 * above_branch).sqrt();
    let mut w =
        if p < 1.0 { -1.0 + p * (1.0 - p * (1.0 / 3.0 - p * 11.0 / 72.0)) } else { x.ln_1p() };
    for _ in 0..MOST_STEPS {
        let power = w.exp();
        let error = w * power - x;
        let slope = power * (w + 1.0);
        if error == 0.0 || slope == 0.0 {
            break;
        }
        let step = error / (slope - error * (w + 2.0) / (2.0 * (w + 1.0)));
        w -= step;
        if step.abs() <= f64::EPSILON * w.abs() {
            break;
        }
    }
    w
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmonic_numbers_are_those_of_whole_numbers() {
        let mut sum = 0.0;
        for n in 0..=300_u32 {
            sum += if n == 0 { 0.0 } else { 1.0 / f64::from(n) };
            let found = harmonic(f64::from(n));
            assert!((found - sum).abs() < 1e-13 * (1.0 + sum), "H({n}) = {sum}, not {found}");
        }
        // H(1/2) = 2 − 2 ln 2.
        assert!((harmonic(0.5) - (2.0 - 2.0 * 2.0_f64.ln())).abs() < 1e-14);
    }

    #[test]
    fn lambert_w_is_the_inverse_of_w_times_its_exponential() {
        for w in [-0.999_9, -0.99, -0.9, -0.5, -0.1, -1e-6, 0.0, 1e-6, 0.5, 1.0, 3.0, 20.0] {
            let found = lambert_w(w * f64::exp(w));
            // At the branch point the inverse is infinitely steep.
            let near = if w < -0.99 { 1e-7 } else { 1e-12 };
            assert!((found - w).abs() <= near, "{found} is not {w}");
        }
        assert!((lambert_w(1.0) - 0.567_143_290_409_783_8).abs() < 1e-15);
    }
}
