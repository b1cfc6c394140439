//! Units of keys. Names end in their unit, so most follow from the name.

/// Endings of names, and the unit that each says.
const ENDINGS: [(&str, &str); 8] = [
    ("bytes_per_second", "bytes/s"),
    ("requests_per_second", "requests/s"),
    ("_ns", "ns"),
    ("_ms", "ms"),
    ("_bytes", "bytes"),
    ("_percent", "%"),
    ("_fraction", "share"),
    ("tolerance", "share"),
];

/// The unit of the number that a key of this name has, unless it is a plain count.
pub fn unit(name: &str) -> Option<&'static str> {
    if name == "bytes" || name == "data_bytes_per_slice" {
        return Some("bytes");
    }
    ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, unit)| *unit)
}

/// A unit that a field states because its name does not.
pub fn stated(unit: &str) -> Option<&'static str> {
    ENDINGS.iter().map(|(_, known)| *known).find(|known| *known == unit)
}
