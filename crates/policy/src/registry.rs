//! The registry: what a policy's file says of it, and the text of a policy, which comes from that.
//!
//! A kind of policies lists the entries of its files. Parsers, error texts, `lab keys`, schemas and
//! the command line read these lists.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use thiserror::Error;

/// The most parameters of a policy.
const MOST_PARAMETERS: usize = 2;

/// The values of a policy's parameters, in their order; 0 beyond them.
pub type Numbers = [u32; MOST_PARAMETERS];

/// A whole number that belongs to a policy.
#[derive(Debug)]
pub struct Parameter {
    /// Its name, in capitals, as in `d-choices:D`.
    pub name: &'static str,
    /// What it is, with its unit.
    pub meaning: &'static str,
    /// The values that it may have.
    pub range: RangeInclusive<u32>,
}

impl Parameter {
    /// A parameter from 1 on.
    pub const fn new(name: &'static str, meaning: &'static str) -> Parameter {
        Parameter { name, meaning, range: 1..=u32::MAX }
    }

    /// The same parameter with these values only.
    pub const fn within(self, least: u32, most: u32) -> Parameter {
        Parameter { range: least..=most, ..self }
    }
}

/// What a policy's file says of it.
#[derive(Debug)]
pub struct Entry<R: 'static> {
    /// The name, in lower case with hyphens.
    pub name: &'static str,
    /// Its parameters, at most two.
    pub parameters: &'static [Parameter],
    /// What it chooses, in a sentence.
    pub meaning: &'static str,
    /// Older names, which are still understood.
    pub aliases: &'static [&'static str],
    /// How it chooses.
    pub rule: R,
}

impl<R> Entry<R> {
    /// The form of its text: `d-choices:D`.
    pub fn form(&self) -> String {
        let names = self.parameters.iter().map(|parameter| parameter.name);
        std::iter::once(self.name).chain(names).collect::<Vec<_>>().join(":")
    }
}

/// A kind of policies, all of which make the same choice.
pub trait Kind: 'static {
    /// How a policy of this kind chooses: a function, or several.
    type Rule: Copy + 'static;
    /// The name: `victim`.
    const NAME: &'static str;
    /// What it is called in messages: `victim policy`.
    const TITLE: &'static str;
    /// What these policies choose, in a sentence.
    const MEANING: &'static str;
    /// Its policies; the first is the default.
    const ENTRIES: &'static [&'static Entry<Self::Rule>];
}

/// A policy with the values of its parameters. In text: `greedy`, `d-choices:8`.
pub struct Policy<K: Kind> {
    entry: &'static Entry<K::Rule>,
    numbers: Numbers,
}

impl<K: Kind> Policy<K> {
    /// A policy without parameters.
    pub(crate) const fn of(entry: &'static Entry<K::Rule>) -> Policy<K> {
        assert!(entry.parameters.is_empty(), "a policy's parameters have no values");
        Policy { entry, numbers: [0; MOST_PARAMETERS] }
    }

    /// A policy with parameters.
    ///
    /// # Panics
    /// If a value is outside its range.
    pub(crate) fn with(entry: &'static Entry<K::Rule>, numbers: &[u32]) -> Policy<K> {
        assert_eq!(entry.parameters.len(), numbers.len(), "{} takes other parameters", entry.name);
        let mut values = Numbers::default();
        for ((value, number), parameter) in values.iter_mut().zip(numbers).zip(entry.parameters) {
            assert!(parameter.range.contains(number), "{number} is no {}", parameter.name);
            *value = *number;
        }
        Policy { entry, numbers: values }
    }

    /// Its name, without parameters.
    pub fn name(&self) -> &'static str {
        self.entry.name
    }

    /// The values of its parameters.
    pub fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// How it chooses.
    #[inline(always)]
    pub(crate) fn rule(&self) -> K::Rule {
        self.entry.rule
    }

    /// Whether it is this policy, whatever its parameters.
    pub(crate) fn is(&self, entry: &Entry<K::Rule>) -> bool {
        self.entry.name == entry.name
    }
}

impl<K: Kind> Clone for Policy<K> {
    fn clone(&self) -> Policy<K> {
        *self
    }
}

impl<K: Kind> Copy for Policy<K> {}

impl<K: Kind> Default for Policy<K> {
    fn default() -> Policy<K> {
        Policy { entry: K::ENTRIES[0], numbers: Numbers::default() }
    }
}

impl<K: Kind> PartialEq for Policy<K> {
    fn eq(&self, other: &Policy<K>) -> bool {
        self.is(other.entry) && self.numbers == other.numbers
    }
}

impl<K: Kind> Eq for Policy<K> {}

impl<K: Kind> fmt::Debug for Policy<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} policy {self}", K::NAME)
    }
}

impl<K: Kind> fmt::Display for Policy<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry.name)?;
        let numbers = self.numbers.iter().take(self.entry.parameters.len());
        numbers.into_iter().try_for_each(|number| write!(f, ":{number}"))
    }
}

/// The text of a policy that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown {title} `{text}`; there are {known}")]
pub struct PolicyError {
    title: &'static str,
    text: String,
    /// The forms of those that exist, with the ranges of their parameters.
    known: String,
}

impl<K: Kind> FromStr for Policy<K> {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Policy<K>, PolicyError> {
        let (name, rest) =
            text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let is_named =
            |entry: &&&Entry<K::Rule>| entry.name == name || entry.aliases.contains(&name);
        let parsed = K::ENTRIES.iter().find(is_named).and_then(|entry| {
            let numbers = values(rest, entry.parameters)?;
            Some(Policy { entry, numbers })
        });
        parsed.ok_or_else(|| PolicyError {
            title: K::TITLE,
            text: text.to_owned(),
            known: known(K::ENTRIES),
        })
    }
}

/// The values of parameters in text, `3:1`; `None` unless they are as many, and in their ranges.
fn values(text: Option<&str>, parameters: &[Parameter]) -> Option<Numbers> {
    let texts: Vec<&str> = text.map(|text| text.split(':').collect()).unwrap_or_default();
    if texts.len() != parameters.len() {
        return None;
    }
    let mut values = Numbers::default();
    for ((value, text), parameter) in values.iter_mut().zip(texts).zip(parameters) {
        *value = number(text).filter(|number| parameter.range.contains(number))?;
    }
    Some(values)
}

/// A whole number.
fn number(text: &str) -> Option<u32> {
    // Signs, which `parse` accepts, are no part of the form.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// The forms of policies, in a sentence.
fn known<R>(entries: &[&Entry<R>]) -> String {
    let forms: Vec<String> = entries.iter().map(|entry| described(entry)).collect();
    match forms.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => "none".to_owned(),
    }
}

/// The form of a policy, with its parameters.
fn described<R>(entry: &Entry<R>) -> String {
    let parameters: Vec<String> = entry.parameters.iter().map(range).collect();
    match parameters.is_empty() {
        true => format!("`{}`", entry.form()),
        false => format!("`{}` ({})", entry.form(), parameters.join(", ")),
    }
}

/// The values that a parameter may have, in words.
fn range(Parameter { name, range, .. }: &Parameter) -> String {
    match *range.end() {
        u32::MAX => format!("{name} from {}", range.start()),
        most => format!("{name} from {} to {most}", range.start()),
    }
}

impl<K: Kind> Serialize for Policy<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, K: Kind> Deserialize<'de> for Policy<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Policy<K>, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl<K: Kind> JsonSchema for Policy<K> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}-policy", K::NAME).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let variant = |entry: &&Entry<K::Rule>| json_schema!({ "type": "string", "form": entry.form(), "description": entry.meaning });
        let variants: Vec<Schema> = K::ENTRIES.iter().map(variant).collect();
        json_schema!({ "description": K::MEANING, "oneOf": variants })
    }
}
