//! Parses a condition: `or` binds less than `and`, `and` less than `not`.

use super::lexer::{Placed, Token, tokens};
use super::{Comparison, Condition, ConditionError, Operand, Term};
use crate::measure::{self, Measure};
use crate::toml_text::nearest_few;

/// Parentheses and negations inside each other, at most: more would be no condition of a person.
const DEEPEST: usize = 64;

/// The problem of a condition, and its column.
type Problem = (usize, String);

pub(super) fn parse(text: &str) -> Result<Condition, ConditionError> {
    let wrong = |(column, problem)| ConditionError { text: text.to_owned(), column, problem };
    let tokens = tokens(text).map_err(wrong)?;
    let end = text.chars().count() + 1;
    let mut parser = Parser { tokens: &tokens, end, depth: 0, measures: Vec::new() };
    let term = parser.any().map_err(wrong)?;
    match parser.tokens {
        [] => Ok(Condition { text: text.to_owned(), measures: parser.measures, term }),
        [(Token::Close, column), ..] => Err(wrong((*column, "a `)` without `(`".to_owned()))),
        [(Token::Compare(_), column), ..] => {
            let problem = "a comparison has two sides: write `a < b and b < c`";
            Err(wrong((*column, problem.to_owned())))
        }
        [(_, column), ..] => {
            Err(wrong((*column, "`and` or `or` is missing before this".to_owned())))
        }
    }
}

struct Parser<'a> {
    /// What is left.
    tokens: &'a [Placed],
    /// The column behind the last character.
    end: usize,
    depth: usize,
    measures: Vec<(String, Measure)>,
}

impl Parser<'_> {
    fn any(&mut self) -> Result<Term, Problem> {
        let mut terms = vec![self.all()?];
        while self.take(&Token::Or) {
            terms.push(self.all()?);
        }
        Ok(only_or(terms, Term::Any))
    }

    fn all(&mut self) -> Result<Term, Problem> {
        let mut terms = vec![self.negated()?];
        while self.take(&Token::And) {
            terms.push(self.negated()?);
        }
        Ok(only_or(terms, Term::All))
    }

    fn negated(&mut self) -> Result<Term, Problem> {
        if !self.take(&Token::Not) {
            return self.primary();
        }
        self.deeper(|parser| parser.negated()).map(Term::negated)
    }

    fn primary(&mut self) -> Result<Term, Problem> {
        if self.take(&Token::Open) {
            let term = self.deeper(Parser::any)?;
            return match self.take(&Token::Close) {
                true => Ok(term),
                false => Err((self.column(), "a `)` is missing".to_owned())),
            };
        }
        let column = self.column();
        let (left, left_is_flag) = self.operand()?;
        let Some(is) = self.comparison() else {
            return match left {
                _ if left_is_flag => {
                    let (is, right) = (Comparison::Equal, Operand::Number(1.0));
                    Ok(Term::Compare { left, is, right })
                }
                Operand::Measure(name) => {
                    Err((column, format!("`{name}` is a number: compare it, as `{name} < 2000`")))
                }
                Operand::Number(_) => Err((
                    column,
                    "a number alone says nothing: compare it with a measure".to_owned(),
                )),
            };
        };
        let (right, right_is_flag) = self.operand()?;
        if left_is_flag || right_is_flag {
            let problem = "this is true or false: write its name alone, or `not` before it";
            return Err((column, problem.to_owned()));
        }
        Ok(Term::Compare { left, is, right })
    }

    /// A side of a comparison, and whether it is true or false.
    fn operand(&mut self) -> Result<(Operand, bool), Problem> {
        let column = self.column();
        match self.tokens {
            [(Token::Number(number), _), rest @ ..] => {
                self.tokens = rest;
                Ok((Operand::Number(*number), false))
            }
            [(Token::Name(name), _), rest @ ..] => {
                self.tokens = rest;
                let measure = Measure::parse(name).map_err(|_| (column, unknown(name)))?;
                let is_flag = measure.is_flag();
                if self.measures.iter().all(|(known, _)| known != name) {
                    self.measures.push((name.clone(), measure));
                }
                Ok((Operand::Measure(name.clone()), is_flag))
            }
            _ => Err((column, "a measure or a number is missing here".to_owned())),
        }
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let [(Token::Compare(is), _), rest @ ..] = self.tokens else { return None };
        self.tokens = rest;
        Some(*is)
    }

    fn take(&mut self, token: &Token) -> bool {
        match self.tokens {
            [(first, _), rest @ ..] if first == token => {
                self.tokens = rest;
                true
            }
            _ => false,
        }
    }

    fn column(&self) -> usize {
        self.tokens.first().map_or(self.end, |(_, column)| *column)
    }

    fn deeper(
        &mut self,
        part: impl FnOnce(&mut Self) -> Result<Term, Problem>,
    ) -> Result<Term, Problem> {
        if self.depth == DEEPEST {
            return Err((self.column(), format!("more than {DEEPEST} parts inside each other")));
        }
        self.depth += 1;
        let term = part(self);
        self.depth -= 1;
        term
    }
}

fn unknown(name: &str) -> String {
    let known = measure::names();
    let near = nearest_few(name, known.iter().map(String::as_str));
    let near: Vec<String> = near.into_iter().map(|near| format!("`{near}`")).collect();
    match near.is_empty() {
        true => format!("unknown measure `{name}`; docs/laboratory.md lists all of them"),
        false => format!("unknown measure `{name}`; near it are {}", near.join(", ")),
    }
}

/// A single term, or several under one roof.
fn only_or(mut terms: Vec<Term>, roof: fn(Vec<Term>) -> Term) -> Term {
    match terms.pop() {
        Some(only) if terms.is_empty() => only,
        last => {
            terms.extend(last);
            roof(terms)
        }
    }
}
