//! Access patterns: the places of requests.

use crate::error::{Problem, count, share, some_share};
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use softflash_base::random::Zipf;
use std::fmt;

/// The most sequential streams.
const MAX_STREAMS: u64 = 65_536;

/// The access pattern: a word (`"random"`, `"sequential"`) or a table, as in `{ zipf = { exponent =
/// 0.99 } }`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pattern {
    /// Every place is equally likely.
    #[default]
    Random,
    /// One place after the other, and again from the beginning.
    Sequential {
        /// Streams that take turns, each in its own part of the span, all parts equally long.
        #[serde(default = "one")]
        #[schemars(range(min = 1, max = 65536))]
        streams: u32,
    },
    /// The place of rank `k` (from 0) is as likely as `1 / (k + 1)^exponent`.
    Zipf {
        /// 0 is uniform, 0.99 is YCSB's.
        #[schemars(range(min = 0.0))]
        exponent: f64,
        /// Popular places are spread over the span; otherwise they are at its beginning.
        #[serde(default)]
        scattered: bool,
    },
    /// The first `share` of the span has `1 - share` of the accesses, and so again within it, as
    /// fio's `pareto`: 0.2 is 80:20.
    Pareto {
        /// Above 0 and below 1; 0.5 is uniform.
        #[schemars(range(min = 0.0, max = 1.0))]
        share: f64,
        /// Popular places are spread over the span; otherwise they are at its beginning.
        #[serde(default)]
        scattered: bool,
    },
    /// A small part of the span has a large part of the accesses; both parts are uniform within.
    HotCold {
        /// Share of the span that is hot, at its beginning.
        #[schemars(range(min = 0.0, max = 1.0))]
        hot_space: f64,
        /// Share of the accesses that go to the hot part.
        #[schemars(range(min = 0.0, max = 1.0))]
        hot_accesses: f64,
    },
}

fn one() -> u32 {
    1
}

impl Pattern {
    /// Sequential, in one stream.
    pub const SEQUENTIAL: Pattern = Pattern::Sequential { streams: 1 };

    pub(crate) fn validate(&self) -> Result<(), Problem> {
        match *self {
            Pattern::Random => Ok(()),
            Pattern::Sequential { streams } => {
                count("pattern.sequential.streams", streams.into(), MAX_STREAMS)
            }
            Pattern::Zipf { exponent, .. } => {
                Zipf::new(1, exponent).map(|_| ()).map_err(Problem::Zipf)
            }
            Pattern::Pareto { share: value, .. } => match value > 0.0 && value < 1.0 {
                true => Ok(()),
                false => Err(Problem::ParetoShare(value)),
            },
            Pattern::HotCold { hot_space, hot_accesses } => {
                some_share("pattern.hot-cold.hot_space", hot_space)?;
                share("pattern.hot-cold.hot_accesses", hot_accesses)
            }
        }
    }
}

/// Reads a pattern as a word or as a table.
pub(super) fn word_or_table<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Pattern, D::Error> {
    deserializer.deserialize_any(PatternVisitor)
}

struct PatternVisitor;

impl<'de> Visitor<'de> for PatternVisitor {
    type Value = Pattern;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"random\", \"sequential\", or a table such as { zipf = { exponent = 0.99 } }")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Pattern, E> {
        match word {
            "sequential" => Ok(Pattern::SEQUENTIAL),
            "zipf" => Err(E::custom("zipf needs its exponent: { zipf = { exponent = 0.99 } }")),
            "pareto" => Err(E::custom("pareto needs its share: { pareto = { share = 0.2 } }")),
            "hot-cold" => Err(E::custom(
                "hot-cold needs its shares: { hot-cold = { hot_space = 0.1, hot_accesses = 0.9 } }",
            )),
            _ => Pattern::deserialize(StrDeserializer::new(word)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Pattern, A::Error> {
        Pattern::deserialize(MapAccessDeserializer::new(table))
    }
}
