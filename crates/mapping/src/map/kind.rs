//! The kinds of maps of a drive, and their text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// How a drive keeps its map. In text: `page`, `cached:1/8`, `cached:12.5%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(!try_from, !into, rename_all = "kebab-case")]
pub enum MapKind {
    /// All of it in memory.
    #[default]
    Page,
    /// Pages of it on flash; this share of them is cached in memory.
    #[schemars(extend("form" = "cached:SHARE"))]
    Cached(#[schemars(with = "String")] Share),
}

/// The text of a map that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "unknown map `{0}`; there are `page` and `cached:SHARE` (a share above 0 and at most 1, as 1/8 \
     or 12.5%)"
)]
pub struct UnknownMap(String);

/// A share above 0 and up to 1, as a fraction in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    part: u32,
    whole: u32,
}

impl Share {
    /// `part / whole`; `None` if that is 0, or above 1.
    pub fn new(part: u32, whole: u32) -> Option<Share> {
        let (mut common, mut rest) = (part, whole);
        while rest > 0 {
            (common, rest) = (rest, common % rest);
        }
        (part > 0 && part <= whole).then(|| Share { part: part / common, whole: whole / common })
    }

    /// The share of `all`, rounded up: at least 1 unless there are none.
    pub fn of(self, all: u32) -> u32 {
        let part = u64::from(all) * u64::from(self.part);
        part.div_ceil(u64::from(self.whole)) as u32
    }

    /// The share of the text `1/8`, `12.5%` or `1`.
    pub fn parse(text: &str) -> Option<Share> {
        if let Some((part, whole)) = text.split_once('/') {
            return Share::new(number(part)?, number(whole)?);
        }
        let Some(percent) = text.strip_suffix('%') else {
            return (text == "1").then_some(Share { part: 1, whole: 1 });
        };
        let (whole, digits) = percent.split_once('.').unwrap_or((percent, ""));
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || digits.len() > 4 || !plain(whole) || !plain(digits) {
            return None;
        }
        let part = format!("{whole}{digits}").parse().ok()?;
        Share::new(part, 100 * 10_u32.pow(digits.len() as u32))
    }
}

/// A whole number of at least 1.
fn number(text: &str) -> Option<u32> {
    // Signs, which `parse` accepts, are no part of the form.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&number| digits && number > 0)
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whole {
            1 => write!(f, "{}", self.part),
            whole => write!(f, "{}/{whole}", self.part),
        }
    }
}

impl FromStr for MapKind {
    type Err = UnknownMap;

    fn from_str(text: &str) -> Result<MapKind, UnknownMap> {
        if text == "page" {
            return Ok(MapKind::Page);
        }
        let share = text.strip_prefix("cached:").and_then(Share::parse);
        share.map(MapKind::Cached).ok_or_else(|| UnknownMap(text.to_owned()))
    }
}

impl fmt::Display for MapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapKind::Page => f.write_str("page"),
            MapKind::Cached(Share { part, whole }) => write!(f, "cached:{part}/{whole}"),
        }
    }
}

impl TryFrom<String> for MapKind {
    type Error = UnknownMap;

    fn try_from(text: String) -> Result<MapKind, UnknownMap> {
        text.parse()
    }
}

impl From<MapKind> for String {
    fn from(kind: MapKind) -> String {
        kind.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_kind_gives_the_kind() {
        for (text, part, whole) in [
            ("cached:1/8", 1, 8),
            ("cached:2/16", 1, 8),
            ("cached:12.5%", 1, 8),
            ("cached:100%", 1, 1),
            ("cached:1", 1, 1),
            ("cached:0.01%", 1, 10_000),
        ] {
            let kind: MapKind = text.parse().unwrap();
            assert_eq!(kind, MapKind::Cached(Share { part, whole }), "{text}");
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!(("page".parse(), MapKind::Page.to_string()), (Ok(MapKind::Page), "page".into()));
    }

    #[test]
    fn no_share_above_one_or_of_nothing_is_taken() {
        for text in [
            "",
            "cached",
            "cached:",
            "cached:0/8",
            "cached:9/8",
            "cached:1/0",
            "cached:101%",
            "cached:0%",
            "cached:+1/8",
            "cached:.5%",
            "cached:1.%x",
            "cached:8",
            "pages",
        ] {
            let error = text.parse::<MapKind>().unwrap_err();
            assert!(error.to_string().contains("cached:SHARE"), "{text}: {error}");
        }
    }

    #[test]
    fn the_text_of_a_share_gives_the_share() {
        for (text, shown) in [("1", "1"), ("1/8", "1/8"), ("2/16", "1/8"), ("12.5%", "1/8")] {
            let share = Share::parse(text).unwrap();
            assert_eq!(share.to_string(), shown);
            assert_eq!(Share::parse(shown), Some(share));
        }
    }

    #[test]
    fn a_share_of_pages_is_rounded_up() {
        let share = |part, whole| Share::new(part, whole).unwrap();
        assert_eq!([share(1, 8).of(16), share(1, 8).of(17), share(1, 1).of(5)], [2, 3, 5]);
        assert_eq!([share(1, 1000).of(1), share(1, 8).of(0)], [1, 0]);
    }
}
