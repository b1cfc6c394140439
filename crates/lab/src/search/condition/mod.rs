//! Conditions of outcomes: comparisons of measures and numbers with `and`, `or`, `not` and
//! parentheses, as `p999_us < 2000 and kept_up`.

mod lexer;
mod parser;
#[cfg(test)]
mod tests;

use crate::measure::Measure;
use crate::outcome::Outcome;
use std::collections::BTreeMap;
use std::str::FromStr;
use thiserror::Error;

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    /// Its measures, in the order of the text, without repetitions.
    measures: Vec<(String, Measure)>,
    term: Term,
}

/// A text that is no condition.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}`, column {column}: {problem}")]
pub struct ConditionError {
    /// The text.
    pub text: String,
    /// The place of the problem, from 1.
    pub column: usize,
    /// The problem.
    pub problem: String,
}

/// A part of a condition. Negations are resolved when it is parsed: `not a < b` is `a >= b`.
#[derive(Debug, Clone, PartialEq)]
enum Term {
    All(Vec<Term>),
    Any(Vec<Term>),
    Compare { left: Operand, is: Comparison, right: Operand },
}

/// A side of a comparison.
#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Number(f64),
    Measure(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    NotEqual,
}

/// The figures of the measures of a condition, by name.
pub(super) type Figures = BTreeMap<String, f64>;

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Condition, ConditionError> {
        parser::parse(text)
    }
}

impl Condition {
    /// The text that it was made from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The measures that it names.
    pub fn measures(&self) -> &[(String, Measure)] {
        &self.measures
    }

    /// The figures of its measures in an outcome; the error names the one that is missing.
    pub(super) fn figures(&self, outcome: &Outcome) -> Result<Figures, String> {
        let figure = |(name, measure): &(String, Measure)| {
            let figure = measure.of(outcome).map_err(|problem| format!("`{name}`: {problem}"))?;
            Ok((name.clone(), figure))
        };
        self.measures.iter().map(figure).collect()
    }

    /// Whether it holds for these figures.
    pub(super) fn holds(&self, figures: &Figures) -> bool {
        self.term.holds(figures)
    }

    /// How far the figures are from the condition: 0 if it holds, else the part by which a figure
    /// would have to change, at most 1. Of terms that must all hold the farthest counts, of others
    /// the nearest.
    pub(super) fn gap(&self, figures: &Figures) -> f64 {
        self.term.gap(figures)
    }
}

impl Term {
    fn holds(&self, figures: &Figures) -> bool {
        match self {
            Term::All(terms) => terms.iter().all(|term| term.holds(figures)),
            Term::Any(terms) => terms.iter().any(|term| term.holds(figures)),
            Term::Compare { left, is, right } => is.holds(left.of(figures), right.of(figures)),
        }
    }

    fn gap(&self, figures: &Figures) -> f64 {
        match self {
            _ if self.holds(figures) => 0.0,
            Term::All(terms) => terms.iter().map(|it| it.gap(figures)).fold(0.0, f64::max),
            Term::Any(terms) => terms.iter().map(|it| it.gap(figures)).fold(1.0, f64::min),
            Term::Compare { left, right, .. } => {
                let (left, right) = (left.of(figures), right.of(figures));
                let gap = (left - right).abs() / left.abs().max(right.abs());
                if gap.is_finite() { gap.min(1.0) } else { 1.0 }
            }
        }
    }

    /// The opposite.
    fn negated(self) -> Term {
        let all = |terms: Vec<Term>| terms.into_iter().map(Term::negated).collect();
        match self {
            Term::All(terms) => Term::Any(all(terms)),
            Term::Any(terms) => Term::All(all(terms)),
            Term::Compare { left, is, right } => Term::Compare { left, is: is.negated(), right },
        }
    }
}

impl Operand {
    /// Its value; a measure without a figure compares with nothing.
    fn of(&self, figures: &Figures) -> f64 {
        match self {
            Operand::Number(number) => *number,
            Operand::Measure(name) => figures.get(name).copied().unwrap_or(f64::NAN),
        }
    }
}

impl Comparison {
    #[expect(clippy::float_cmp, reason = "the user asks for equality")]
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Comparison::Less => left < right,
            Comparison::AtMost => left <= right,
            Comparison::More => left > right,
            Comparison::AtLeast => left >= right,
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
        }
    }

    fn negated(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::AtLeast,
            Comparison::AtMost => Comparison::More,
            Comparison::More => Comparison::AtMost,
            Comparison::AtLeast => Comparison::Less,
            Comparison::Equal => Comparison::NotEqual,
            Comparison::NotEqual => Comparison::Equal,
        }
    }
}
