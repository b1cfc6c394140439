//! The 80-bit floating-point numbers of INCRBYFLOAT.
//!
//! Redis uses C's `long double`, which on x86-64 has a mantissa of 64 bits, and prints 17 digits
//! after the point. Rust has no such type and f64 gives other digits, so the three operations
//! needed (read, add, print) are implemented here with integers, each rounded to nearest, ties to
//! even.

/// `mantissa * 2^exponent`, the mantissa's highest bit set, or zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Finite {
    negative: bool,
    mantissa: u64,
    exponent: i32,
}

/// A number of type `long double`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LongDouble(Number);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Finite(Finite),
    /// Infinite, or not a number: cannot be stored.
    Unusable,
}

const MANTISSA_BITS: i32 = 64;
/// The greatest exponent of a number.
const MAX_EXPONENT: i32 = 16383;
/// Numbers below this power of two are zero.
const MIN_EXPONENT: i32 = -16446;
/// Redis does not accept longer text as a number.
const MAX_TEXT_BYTES: usize = 5 * 1024;
const FRACTION_DIGITS: usize = 17;
const ZERO: Finite = Finite { negative: false, mantissa: 0, exponent: 0 };

impl LongDouble {
    pub const ZERO: LongDouble = LongDouble(Number::Finite(ZERO));

    /// Parses what C's `strtold` parses, if it uses the whole text.
    pub fn parse(text: &[u8]) -> Option<LongDouble> {
        if text.is_empty() || text.len() >= MAX_TEXT_BYTES {
            return None;
        }
        let (negative, unsigned) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        if unsigned.eq_ignore_ascii_case(b"inf") || unsigned.eq_ignore_ascii_case(b"infinity") {
            return Some(LongDouble(Number::Unusable));
        }
        let scaled = match unsigned {
            [b'0', b'x' | b'X', digits @ ..] => Scaled::read_hexadecimal(digits)?,
            digits => Scaled::read_decimal(digits)?,
        };
        let (mantissa, exponent) = scaled.rounded();
        if mantissa == 0 {
            return Some(LongDouble::ZERO);
        }
        let top = exponent + MANTISSA_BITS - 1;
        let in_range = (MIN_EXPONENT..=MAX_EXPONENT).contains(&top);
        in_range.then_some(LongDouble(Number::Finite(Finite { negative, mantissa, exponent })))
    }

    /// The sum; none if it is infinite or not a number.
    pub fn add(self, other: LongDouble) -> Option<LongDouble> {
        let (Number::Finite(left), Number::Finite(right)) = (self.0, other.0) else { return None };
        let sum = left.add(right);
        let fits = sum.mantissa == 0 || sum.exponent + MANTISSA_BITS - 1 <= MAX_EXPONENT;
        fits.then_some(LongDouble(Number::Finite(sum)))
    }

    /// Like C's `%.17Lf`, without trailing zeros of the fraction.
    pub fn print(self) -> String {
        match self.0 {
            Number::Finite(number) => number.print(),
            Number::Unusable => "inf".into(),
        }
    }
}

impl Finite {
    fn add(self, other: Finite) -> Finite {
        let (large, small) = if other.mantissa == 0
            || (self.mantissa != 0
                && (self.exponent, self.mantissa) >= (other.exponent, other.mantissa))
        {
            (self, other)
        } else {
            (other, self)
        };
        if small.mantissa == 0 {
            return large;
        }
        // 62 guard bits below the mantissa; lost bits set the last one (sticky).
        const GUARD_BITS: i32 = 62;
        let aligned = u128::from(large.mantissa) << GUARD_BITS;
        let shift = u32::try_from(large.exponent - small.exponent).unwrap_or(u32::MAX);
        let shifted = shift_right_sticky(u128::from(small.mantissa) << GUARD_BITS, shift);
        let sum =
            if large.negative == small.negative { aligned + shifted } else { aligned - shifted };
        if sum == 0 {
            return ZERO;
        }
        let (mantissa, exponent) = round_u128(sum, large.exponent - GUARD_BITS);
        Finite { negative: large.negative, mantissa, exponent }
    }

    fn print(self) -> String {
        let mut digits = if self.exponent >= 0 {
            let mut whole = Big::from(self.mantissa);
            whole.shift_left(self.exponent.unsigned_abs());
            whole.to_decimal() + &"0".repeat(FRACTION_DIGITS)
        } else {
            // At most 64 + 57 bits.
            let scaled = u128::from(self.mantissa) * 10u128.pow(FRACTION_DIGITS as u32);
            round_shift(scaled, self.exponent.unsigned_abs()).to_string()
        };
        if digits.len() <= FRACTION_DIGITS {
            digits.insert_str(0, &"0".repeat(FRACTION_DIGITS + 1 - digits.len()));
        }
        digits.insert(digits.len() - FRACTION_DIGITS, '.');
        let printed = digits.trim_end_matches('0').trim_end_matches('.');
        if self.negative && printed != "0" { format!("-{printed}") } else { printed.to_owned() }
    }
}

fn shift_right_sticky(value: u128, shift: u32) -> u128 {
    if shift == 0 {
        value
    } else if shift >= 128 {
        u128::from(value != 0)
    } else {
        value >> shift | u128::from(value << (128 - shift) != 0)
    }
}

/// `value / 2^shift`, rounded to nearest, ties to even.
fn round_shift(value: u128, shift: u32) -> u128 {
    if shift == 0 {
        return value;
    }
    if shift > 127 {
        return 0;
    }
    let (whole, half) = (value >> shift, 1u128 << (shift - 1));
    let rest = value & ((half << 1) - 1);
    whole + u128::from(rest > half || (rest == half && whole & 1 == 1))
}

/// `value * 2^exponent` with a mantissa of 64 bits.
fn round_u128(value: u128, exponent: i32) -> (u64, i32) {
    let surplus = 64 - value.leading_zeros() as i32;
    if surplus <= 0 {
        return ((value << -surplus) as u64, exponent + surplus);
    }
    let rounded = round_shift(value, surplus.unsigned_abs());
    match u64::try_from(rounded) {
        Ok(mantissa) => (mantissa, exponent + surplus),
        // Rounding carried into a new bit.
        Err(_) => (1 << 63, exponent + surplus + 1),
    }
}

/// `digits * 10^decimal * 2^binary`, exactly.
struct Scaled {
    digits: Big,
    decimal: i32,
    binary: i32,
}

impl Scaled {
    fn read_decimal(text: &[u8]) -> Option<Scaled> {
        let (digits, fraction, rest) = read_digits(text, 10)?;
        let exponent = read_exponent(rest, b'e')?;
        Some(Scaled { digits, decimal: exponent.saturating_sub(fraction), binary: 0 })
    }

    fn read_hexadecimal(text: &[u8]) -> Option<Scaled> {
        let (digits, fraction, rest) = read_digits(text, 16)?;
        let exponent = read_exponent(rest, b'p')?;
        Some(Scaled { digits, decimal: 0, binary: exponent.saturating_sub(4 * fraction) })
    }

    fn rounded(self) -> (u64, i32) {
        let Scaled { mut digits, decimal, binary } = self;
        if digits.is_zero() {
            return (0, 0);
        }
        // Far out of range, whatever the digits are.
        if decimal > 10_000 {
            return (1 << 63, i32::MAX / 2);
        }
        if decimal < -20_000 {
            return (1 << 63, i32::MIN / 2);
        }
        if decimal >= 0 {
            digits.multiply_power_of_ten(decimal.unsigned_abs());
            let (top, exponent) = digits.top_bits();
            let (mantissa, exponent) = round_u128(top, exponent);
            return (mantissa, exponent.saturating_add(binary));
        }
        let mut divisor = Big::from(1);
        divisor.multiply_power_of_ten(decimal.unsigned_abs());
        let (quotient, exponent) = digits.divide(divisor);
        round_u128(quotient, exponent)
    }
}

/// Parses digits with at most one point; returns them, the number of digits after the point, and
/// the rest of the text.
fn read_digits(text: &[u8], base: u32) -> Option<(Big, i32, &[u8])> {
    let (mut number, mut fraction, mut any, mut point) = (Big::from(0), 0, false, false);
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        match (char::from(*byte).to_digit(base), byte) {
            (Some(digit), _) => {
                number.multiply_add(base, digit);
                any = true;
                fraction += i32::from(point);
            }
            (None, b'.') if !point => point = true,
            _ => break,
        }
        rest = after;
    }
    any.then_some((number, fraction, rest))
}

/// Parses an optional exponent: the letter and a signed number up to the end of the text.
fn read_exponent(text: &[u8], letter: u8) -> Option<i32> {
    let (negative, digits) = match text {
        [] => return Some(0),
        [first, b'-', digits @ ..] if first.to_ascii_lowercase() == letter => (true, digits),
        [first, b'+', digits @ ..] if first.to_ascii_lowercase() == letter => (false, digits),
        [first, digits @ ..] if first.to_ascii_lowercase() == letter => (false, digits),
        _ => return None,
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude = digits.iter().fold(0i32, |number, digit| {
        number.saturating_mul(10).saturating_add(i32::from(digit - b'0')).min(1 << 28)
    });
    Some(if negative { -magnitude } else { magnitude })
}

/// A natural number of any size, lowest 32 bits first, without leading zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Big(Vec<u32>);

impl From<u64> for Big {
    fn from(number: u64) -> Big {
        let mut big = Big(vec![number as u32, (number >> 32) as u32]);
        big.trim();
        big
    }
}

impl Big {
    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn bits(&self) -> u32 {
        self.0.last().map_or(0, |top| self.0.len() as u32 * 32 - top.leading_zeros())
    }

    fn bit(&self, index: u32) -> bool {
        self.0.get(index as usize / 32).is_some_and(|limb| limb >> (index % 32) & 1 == 1)
    }

    fn multiply_add(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for limb in &mut self.0 {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    fn multiply_power_of_ten(&mut self, power: u32) {
        (0..power / 9).for_each(|_| self.multiply_add(1_000_000_000, 0));
        self.multiply_add(10u32.pow(power % 9), 0);
    }

    fn shift_left(&mut self, bits: u32) {
        if self.is_zero() {
            return;
        }
        self.multiply_add(1 << (bits % 32), 0);
        self.0.splice(0..0, std::iter::repeat_n(0, bits as usize / 32));
    }

    /// The highest 127 bits, with a sticky last bit, and their power of two.
    fn top_bits(&self) -> (u128, i32) {
        let dropped = self.bits().saturating_sub(127);
        let top =
            (dropped..self.bits()).rev().fold(0, |top, bit| top << 1 | u128::from(self.bit(bit)));
        let sticky = (0..dropped).any(|bit| self.bit(bit));
        (top | u128::from(sticky), dropped as i32)
    }

    /// The quotient to at least 66 bits, with a sticky last bit, and its power of two.
    fn divide(mut self, mut divisor: Big) -> (u128, i32) {
        const STEPS: u32 = 68;
        let (numerator_bits, divisor_bits) = (self.bits() as i32, divisor.bits() as i32);
        // Scale both so that the quotient is between 1/2 and 2.
        let scale = divisor_bits - numerator_bits;
        if scale >= 0 {
            self.shift_left(scale as u32)
        } else {
            divisor.shift_left(-scale as u32)
        }
        let mut quotient = 0u128;
        for _ in 0..STEPS {
            quotient <<= 1;
            if self.at_least(&divisor) {
                self.subtract(&divisor);
                quotient |= 1;
            }
            self.multiply_add(2, 0);
        }
        let sticky = u128::from(!self.is_zero());
        (quotient << 1 | sticky, -scale - STEPS as i32)
    }

    fn at_least(&self, other: &Big) -> bool {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev())).is_ge()
    }

    fn subtract(&mut self, other: &Big) {
        let mut borrow = false;
        let others = other.0.iter().copied().chain(std::iter::repeat(0));
        for (limb, subtrahend) in self.0.iter_mut().zip(others) {
            let (less, first) = limb.overflowing_sub(subtrahend);
            let (less, second) = less.overflowing_sub(u32::from(borrow));
            *limb = less;
            borrow = first || second;
        }
        self.trim();
    }

    fn to_decimal(&self) -> String {
        let mut limbs = self.0.clone();
        let mut groups = Vec::new();
        while !limbs.is_empty() {
            let mut rest = 0u64;
            for limb in limbs.iter_mut().rev() {
                rest = rest << 32 | u64::from(*limb);
                *limb = (rest / 1_000_000_000) as u32;
                rest %= 1_000_000_000;
            }
            groups.push(rest);
            while limbs.last() == Some(&0) {
                limbs.pop();
            }
        }
        let mut text = groups.pop().unwrap_or(0).to_string();
        groups.iter().rev().for_each(|group| text.push_str(&format!("{group:09}")));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(left: &str, right: &str) -> Option<String> {
        let left = LongDouble::parse(left.as_bytes())?;
        Some(left.add(LongDouble::parse(right.as_bytes())?)?.print())
    }

    /// The right column is the output of redis-server 7.0.15 on x86-64.
    #[test]
    fn sums_are_those_of_a_long_double() {
        let cases = [
            ("10.50", "0.1", "10.6"),
            ("0.1", "0.2", "0.3"),
            ("5.0e3", "2.0e2", "5200"),
            ("3", "-3", "0"),
            ("-1.5", "1", "-0.5"),
            ("9e18", "0.5", "9000000000000000000.5"),
            ("1e20", "0.5", "100000000000000000000"),
            ("0x1p3", "0x.8", "8.5"),
            ("1e-18", "0", "0"),
            ("1.23456789012345678901", "0", "1.23456789012345679"),
            (".5", "5.", "5.5"),
        ];
        for (left, right, expected) in cases {
            assert_eq!(sum(left, right).as_deref(), Some(expected), "{left} + {right}");
        }
    }

    #[test]
    fn text_that_is_not_a_number_is_refused() {
        for text in
            ["", " 1", "1 ", "1e", "1e+", ".", "e5", "nan", "0x", "1e5000", "1e-5000", "1.2.3"]
        {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text}");
        }
        let infinite = LongDouble::parse(b"-Infinity").unwrap();
        assert_eq!(infinite.add(LongDouble::ZERO), None);
        let largest = LongDouble::parse(b"1.1e4932").unwrap();
        assert_eq!(largest.add(largest), None, "infinite");
    }
}
