//! Numbers of things in messages.

/// A number of things in English: `1 trim`, `2 flushes`.
pub fn plural(count: u64, noun: &str) -> String {
    let ending = match (count, noun.ends_with("sh")) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_singular() {
        assert_eq!(plural(0, "trim"), "0 trims");
        assert_eq!(plural(1, "trim"), "1 trim");
        assert_eq!(plural(2, "flush"), "2 flushes");
    }
}
