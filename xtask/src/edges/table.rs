//! Tables in a Markdown document, between `<!-- NAME:begin -->` and `<!-- NAME:end -->`.

use crate::Outcome;
use std::collections::BTreeSet;

/// A row: a crate, and columns of names. Names are in backticks; all other text is ignored.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The crate of the first column.
    pub subject: String,
    columns: Vec<BTreeSet<String>>,
}

impl Rule {
    /// The names in a column after the first; none if the row is shorter.
    pub fn column(&self, index: usize) -> BTreeSet<String> {
        self.columns.get(index).cloned().unwrap_or_default()
    }
}

/// The rows of the table called `name`.
pub fn rules(text: &str, name: &str) -> Outcome<Vec<Rule>> {
    let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    let table = text
        .split_once(&begin)
        .and_then(|(_, rest)| rest.split_once(&end))
        .map(|(table, _)| table)
        .ok_or_else(|| format!("no table between `{begin}` and `{end}`"))?;
    let rules: Vec<Rule> = table.lines().filter_map(row).collect();
    match rules.len() {
        0 => Err(format!("the table `{name}` has no row")),
        _ => Ok(rules),
    }
}

/// A row; none if the line is prose, a heading or a rule.
fn row(line: &str) -> Option<Rule> {
    let cells = line.trim().strip_prefix('|')?;
    let mut columns = cells.split('|').map(names);
    let subject = columns.next()?.into_iter().next()?;
    Some(Rule { subject, columns: columns.collect() })
}

/// The names in backticks.
fn names(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
