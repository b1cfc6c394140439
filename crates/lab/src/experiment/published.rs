//! Published figures and bounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A published figure.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "write a number, `{ at_least = NUMBER }` or `{ at_most = NUMBER }`")]
pub enum Published {
    /// A value.
    Figure(f64),
    /// So much or more.
    AtLeast(AtLeast),
    /// So much or less.
    AtMost(AtMost),
}

/// A bound from below.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AtLeast {
    at_least: f64,
}

/// A bound from above.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AtMost {
    at_most: f64,
}

/// The side of the published value on which ours must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// So much or more.
    AtLeast,
    /// So much or less.
    AtMost,
}

impl Published {
    /// The number.
    pub fn value(self) -> f64 {
        match self {
            Published::Figure(value)
            | Published::AtLeast(AtLeast { at_least: value })
            | Published::AtMost(AtMost { at_most: value }) => value,
        }
    }

    /// The kind of bound, if it is one.
    pub fn bound(self) -> Option<Bound> {
        match self {
            Published::Figure(_) => None,
            Published::AtLeast(_) => Some(Bound::AtLeast),
            Published::AtMost(_) => Some(Bound::AtMost),
        }
    }
}

impl Bound {
    /// Whether ours respects the bound.
    pub fn holds(self, ours: f64, published: f64) -> bool {
        match self {
            Bound::AtLeast => ours >= published,
            Bound::AtMost => ours <= published,
        }
    }

    /// The words before the number.
    pub fn words(self) -> &'static str {
        match self {
            Bound::AtLeast => "at least",
            Bound::AtMost => "at most",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn bounds_are_read_and_kept_on_their_side() {
        let text = "about = 1\nleast = { at_least = 400 }\nmost = { at_most = 0.15 }";
        let read: BTreeMap<String, Published> = toml::from_str(text).unwrap();
        let known = |name: &str| (read[name].value(), read[name].bound());
        assert_eq!(known("about"), (1.0, None));
        assert_eq!(known("least"), (400.0, Some(Bound::AtLeast)));
        assert_eq!(known("most"), (0.15, Some(Bound::AtMost)));
        assert!(Bound::AtLeast.holds(400.0, 400.0) && !Bound::AtLeast.holds(399.0, 400.0));
        assert!(Bound::AtMost.holds(0.15, 0.15) && !Bound::AtMost.holds(0.16, 0.15));
        for wrong in ["{ atleast = 1 }", "{ at_least = 1, at_most = 2 }"] {
            let wrong = toml::from_str::<BTreeMap<String, Published>>(&format!("a = {wrong}"));
            assert!(wrong.unwrap_err().to_string().contains("at_least = NUMBER"));
        }
    }
}
