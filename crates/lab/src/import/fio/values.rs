//! Values of options: bytes, times, shares, and values for reads and writes.

/// A number of bytes, or a percentage of the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bytes {
    Number(u64),
    Percent(f64),
}

/// A number of bytes with fio's units. With `kb_base` 1024, fio's default, `k` and `kb` are 1024
/// bytes and `kib` is 1000: the opposite of the standard, as in fio.
pub fn bytes(text: &str, kb_base: u64) -> Result<Bytes, String> {
    let wrong = || format!("`{text}` is no size, as 4096, 4k, 1g or 20%");
    let text = text.trim().to_lowercase();
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).map(Bytes::Number).map_err(|_| wrong());
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    if unit == "%" {
        let percent = number as f64;
        return if number <= 100 { Ok(Bytes::Percent(percent)) } else { Err(wrong()) };
    }
    let opposite = if kb_base == 1024 { 1000 } else { 1024 };
    let (power, base) = match (unit.get(..1).unwrap_or(""), unit.get(1..).unwrap_or("")) {
        ("", _) | ("b", "") => (0, kb_base),
        (letter, "" | "b") => (power(letter).ok_or_else(wrong)?, kb_base),
        (letter, "ib") => (power(letter).ok_or_else(wrong)?, opposite),
        (letter, "i") => (power(letter).ok_or_else(wrong)?, kb_base),
        _ => return Err(wrong()),
    };
    let bytes = base.checked_pow(power).and_then(|unit| number.checked_mul(unit));
    bytes.map(Bytes::Number).ok_or_else(wrong)
}

fn power(letter: &str) -> Option<u32> {
    "kmgtp".find(letter).map(|place| place as u32 + 1)
}

/// A number of bytes that may be no percentage.
pub fn plain_bytes(text: &str, kb_base: u64) -> Result<u64, String> {
    match bytes(text, kb_base)? {
        Bytes::Number(number) => Ok(number),
        Bytes::Percent(_) => Err(format!("`{text}` must be a number of bytes, as 4k")),
    }
}

/// Nanoseconds of a time; a number without a unit counts in units of `unit_ns`.
pub fn nanoseconds(text: &str, unit_ns: u64) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no time, as 30, 30s, 500ms or 2m");
    let text = text.trim().to_lowercase();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let unit_ns = match unit {
        "" => unit_ns,
        "us" | "usec" => 1000,
        "ms" | "msec" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit_ns).ok_or_else(wrong)
}

/// The parts of `reads,writes,trims`: one part is for all, and a part that is left out is none.
pub fn by_kind(text: &str) -> [Option<&str>; 3] {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let some = |part: &&str| !part.is_empty();
    let part = |index: usize| parts.get(index).copied().filter(some);
    match parts.len() {
        1 => [part(0); 3],
        // Trims have the value of writes unless they have their own.
        2 => [part(0), part(1), part(1)],
        _ => [part(0), part(1), part(2)],
    }
}

/// A whole number.
pub fn number(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("`{text}` is no whole number"))
}

/// Whether a flag is set.
pub fn flag(text: &str) -> Result<bool, String> {
    match text.trim() {
        "" | "1" => Ok(true),
        "0" => Ok(false),
        other => Err(format!("`{other}` is neither 0 nor 1")),
    }
}

/// A percentage from 0 to 100 as a share.
pub fn share(text: &str) -> Result<f64, String> {
    let percent = text.trim().trim_end_matches('%').parse::<f64>().ok();
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    percent
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("`{text}` is no percentage from 0 to 100"))
}
