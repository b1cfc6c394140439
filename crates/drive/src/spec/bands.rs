//! Bands of a drive: superblocks over some or all of its write frontiers.

use crate::error::DriveError;
use schemars::JsonSchema;
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use softflash_mapping::Share;
use std::fmt;
use std::str::FromStr;

/// Blocks that are opened, filled row by row and closed together, one in each of several planes or
/// dies. In TOML: `"none"`, a width as `"1/8"`, or a list of two as `["1", "1/8"]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Bands {
    /// Every write frontier has its own block.
    #[default]
    None,
    /// Bands over this share of the planes (`write_frontier = "plane"`) or dies (`"die"`): `"1"`
    /// for all of them, or a list of two widths.
    #[schemars(extend("form" = "WIDTH"))]
    Widths(#[schemars(with = "String")] Vec<Share>),
}

/// What collection takes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Collect {
    /// A whole band: the victim policy compares the valid pages of bands.
    #[default]
    Band,
    /// A single block of any band (Partial GC).
    Block,
}

/// The class of pages that collection moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GcClass {
    /// The one that they had, or the next one that `lifetime` gives (FDP: persistently isolated).
    #[default]
    Kept,
    /// One for all of them (FDP: initially isolated).
    Mixed,
}

/// Which of two widths takes a page of the host. In text: `shape:256KiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(!try_from, !into, rename_all = "kebab-case")]
pub enum BandChoice {
    /// The wide one for requests of so many bytes or more, alone or with those that they continue;
    /// the narrow one for others, and while few blocks are free.
    #[schemars(extend("form" = "shape:SIZE"))]
    Shape(u64),
}

/// The text of a choice that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown band_choice `{0}`; there is `shape:SIZE`, as shape:256KiB")]
pub struct UnknownChoice(String);

/// Units of sizes, the largest first.
const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("", 1)];

impl Bands {
    /// The widths; none without bands.
    pub fn widths(&self) -> &[Share] {
        match self {
            Bands::None => &[],
            Bands::Widths(widths) => widths,
        }
    }

    /// An error of bands: what does not fit, and what to change.
    pub(crate) fn refused(problem: impl Into<String>, remedy: impl Into<String>) -> DriveError {
        DriveError::Bands { problem: problem.into(), remedy: remedy.into() }
    }
}

impl FromStr for BandChoice {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<BandChoice, UnknownChoice> {
        let bytes = text.strip_prefix("shape:").and_then(|size| {
            let (number, unit) =
                UNITS.iter().find_map(|(name, unit)| Some((size.strip_suffix(name)?, *unit)))?;
            let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
            let number: u64 = number.parse().ok().filter(|&number| is_plain && number > 0)?;
            number.checked_mul(unit)
        });
        bytes.map(BandChoice::Shape).ok_or_else(|| UnknownChoice(text.to_owned()))
    }
}

impl fmt::Display for BandChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BandChoice::Shape(bytes) = *self;
        let (name, unit) =
            UNITS.into_iter().find(|(_, unit)| bytes.is_multiple_of(*unit)).unwrap_or(("", 1));
        write!(f, "shape:{}{name}", bytes / unit)
    }
}

impl TryFrom<String> for BandChoice {
    type Error = UnknownChoice;

    fn try_from(text: String) -> Result<BandChoice, UnknownChoice> {
        text.parse()
    }
}

impl From<BandChoice> for String {
    fn from(choice: BandChoice) -> String {
        choice.to_string()
    }
}

impl Serialize for Bands {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Bands::None => to.serialize_str("none"),
            Bands::Widths(widths) => match widths.as_slice() {
                [one] => to.collect_str(one),
                several => {
                    let mut list = to.serialize_seq(Some(several.len()))?;
                    several
                        .iter()
                        .try_for_each(|width| list.serialize_element(&width.to_string()))?;
                    list.end()
                }
            },
        }
    }
}

impl<'de> Deserialize<'de> for Bands {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Bands, D::Error> {
        from.deserialize_any(Text)
    }
}

struct Text;

impl Text {
    fn width<E: Error>(text: &str) -> Result<Share, E> {
        Share::parse(text).ok_or_else(|| {
            E::custom(format!("bands: the width `{text}` is no share of 1, as \"1\" or \"1/8\""))
        })
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Bands;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "\"none\", a width as \"1/8\", or a list of widths as [\"1\", \"1/8\"]")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bands, E> {
        match text {
            "none" => Ok(Bands::None),
            _ => Ok(Bands::Widths(vec![Text::width(text)?])),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Bands, A::Error> {
        let mut widths = Vec::new();
        while let Some(text) = list.next_element::<String>()? {
            widths.push(Text::width(&text)?);
        }
        match widths.is_empty() {
            true => Err(A::Error::custom("bands: the list has no width; write \"none\"")),
            false => Ok(Bands::Widths(widths)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_choice_gives_the_choice() {
        for (text, bytes) in [("shape:256KiB", 256 << 10), ("shape:1MiB", 1 << 20), ("shape:7", 7)]
        {
            let choice: BandChoice = text.parse().unwrap();
            assert_eq!((choice, choice.to_string()), (BandChoice::Shape(bytes), text.to_owned()));
        }
        for text in ["", "shape", "shape:", "shape:0KiB", "shape:-1", "shape:x", "size:4KiB"] {
            assert!(text.parse::<BandChoice>().is_err(), "{text}");
        }
    }
}
