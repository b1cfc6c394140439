//! Numbers as people read them.

/// The text in place of a missing number.
pub(crate) const NONE: &str = "–";

/// `value` to so many significant digits, with separated thousands. The digits before the point are
/// never cut.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return NONE.to_string();
    }
    if value == 0.0 {
        return "0".to_string();
    }
    let digits = digits.clamp(1, 17);
    // Rounding may carry into the next power of ten, so the exponent is that of the rounded number.
    let scientific = format!("{value:.*e}", digits - 1);
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok());
    let exponent: i32 = exponent.unwrap_or(0);
    if !(-6..15).contains(&exponent) {
        return scientific;
    }
    let decimals = (digits as i32 - 1 - exponent).max(0);
    fixed(value, decimals as usize)
}

/// As [`significant`], without zeros at the end of a fraction.
pub(crate) fn trimmed(value: f64, digits: usize) -> String {
    let text = significant(value, digits);
    if !text.contains('.') || text.contains('e') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// `value` with so many decimals and separated thousands.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{:.*}", decimals, value.abs());
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text.as_str(), None),
    };
    let is_zero = text.bytes().all(|byte| byte == b'0' || byte == b'.');
    let mut out = String::from(if value < 0.0 && !is_zero { "−" } else { "" });
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits_and_thousands() {
        let cases = [
            (0.0, 3, "0"),
            (1.5, 3, "1.50"),
            (9.996, 3, "10.0"),
            (1234567.0, 3, "1,234,567"),
            (-1234.5, 2, "−1,234"),
            (0.000012345, 2, "0.000012"),
            (1e20, 3, "1.00e20"),
            (f64::NAN, 3, "–"),
            (f64::INFINITY, 3, "–"),
        ];
        for (value, digits, expected) in cases {
            assert_eq!(significant(value, digits), expected, "{value} to {digits}");
        }
    }

    #[test]
    fn trimming_leaves_whole_numbers_alone() {
        assert_eq!(trimmed(1.5, 4), "1.5");
        assert_eq!(trimmed(100.0, 3), "100");
        assert_eq!(trimmed(8.0, 3), "8");
    }

    #[test]
    fn nothing_is_minus_zero() {
        assert_eq!(fixed(-0.001, 1), "0.0");
    }
}
