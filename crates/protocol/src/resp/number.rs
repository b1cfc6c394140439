//! Decimal integers in Redis' syntax.

/// Parses a signed 64-bit integer without a leading plus, space or zero, and without trailing
/// characters. Accepts the same strings as Redis' `string2ll`.
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [] => return None,
        [b'0'] => return (!negative).then_some(0),
        [b'0', ..] => return None,
        _ if digits.len() > 19 => return None,
        _ => {}
    }
    let mut magnitude = 0u64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude * 10 + u64::from(digit);
    }
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Parses a SCAN cursor like C's `strtoul`, which accepts signs and reads an empty text as 0.
pub(crate) fn parse_cursor(text: &[u8]) -> Option<u64> {
    let (negative, digits) = match text {
        [] => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let cursor: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if negative { cursor.wrapping_neg() } else { cursor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_of_redis() {
        for good in ["0", "1", "-1", "9223372036854775807", "-9223372036854775808", "100"] {
            assert_eq!(parse_i64(good.as_bytes()), good.parse().ok(), "{good}");
        }
        let bad = [
            "",
            "-",
            "-0",
            "+1",
            "01",
            "00",
            " 1",
            "1 ",
            "1a",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
            "0x10",
            "1.0",
            "--1",
        ];
        for text in bad {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn cursors_are_parsed_as_in_c() {
        assert_eq!(parse_cursor(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_cursor(b"18446744073709551616"), None);
        assert_eq!(parse_cursor(b"-1"), Some(u64::MAX));
        assert_eq!(parse_cursor(b""), Some(0));
        assert_eq!(parse_cursor(b"-"), None);
        assert_eq!(parse_cursor(b"1x"), None);
    }
}
