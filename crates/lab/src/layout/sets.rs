//! NVM Sets: the channels of a device, divided into drives, or into domains of volumes, that do not
//! affect each other.

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Serialize};

/// The sets of a device, and how the host uses them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sets {
    /// Sets of equally many channels, each a drive of its own (NVM Sets); on units each a domain of
    /// volumes, with `sets = 2` and `copies = 2`. 1: no sets.
    #[serde(skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = 1024))]
    pub sets: u16,
    /// Copies of all data, on as many sets; a read goes to the copy whose die is free first. With
    /// fewer copies than sets, each group of sets has an equal part of the addresses.
    #[serde(skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = 1024))]
    pub copies: u16,
    /// Length of the windows of copies, in milliseconds: in each one set programs, and the others
    /// only read; a write completes with its first copy, and the others follow from memory in the
    /// windows of their sets. 0: no windows, and a write completes with all copies.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(max = 3_600_000))]
    pub window_ms: u32,
    /// The most writes under way in a set, as a share of its dies; further ones wait at the host,
    /// and nothing is collected but for them, so that no larger share of the dies programs. 0: no
    /// limit without windows, and two for each die with them. Of page-mapped layouts.
    #[serde(skip_serializing_if = "is_none")]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub pressure: f64,
}

impl Default for Sets {
    fn default() -> Sets {
        Sets { sets: 1, copies: 1, window_ms: 0, pressure: 0.0 }
    }
}

impl Sets {
    /// The keys of a layout that describe its sets.
    pub const KEYS: [&'static str; 4] = ["sets", "copies", "window_ms", "pressure"];

    /// The error of a layout, which names these keys among those that are known.
    pub(super) fn named_in<E: Error>(error: E) -> E {
        let of_list = "expected one of ";
        let keys = Sets::KEYS.map(|key| format!("`{key}`, ")).concat();
        E::custom(error.to_string().replacen(of_list, &format!("{of_list}{keys}"), 1))
    }

    /// Whether the device is more than one plain drive, or domain.
    pub fn are_used(&self) -> bool {
        *self != Sets::default()
    }
}

fn is_one(value: &u16) -> bool {
    *value == 1
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_none(value: &f64) -> bool {
    *value == 0.0
}

#[cfg(test)]
mod tests {
    use crate::layout::Layout;

    fn problem(text: &str) -> String {
        toml::from_str::<Layout>(text).unwrap_err().to_string()
    }

    #[test]
    fn keys_of_sets_are_known_to_all_layouts() {
        for kind in ["page-mapped", "units"] {
            let text = format!("kind = \"{kind}\"\nsets = 2\ncopies = 2\n");
            let layout: Layout = toml::from_str(&text).unwrap();
            assert_eq!((layout.sets.sets, layout.sets.copies, layout.sets.window_ms), (2, 2, 0));
            let unknown = problem(&format!("kind = \"{kind}\"\nsetz = 2\n"));
            assert!(unknown.contains("setz") && unknown.contains("`sets`"), "{unknown}");
            assert!(problem(&format!("kind = \"{kind}\"\nsets = -1\n")).contains("-1"));
        }
    }
}
