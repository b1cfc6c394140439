//! Tables of typed cells.

use crate::markup::Markup;
use crate::number::{self, NONE};
use crate::unit::Unit;

/// A table with a heading, named columns and rows of cells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) folded: bool,
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// The contents of a table's cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Cell {
    /// Nothing.
    #[default]
    Empty,
    /// Words.
    Text(String),
    /// A number with its unit, to so many significant digits.
    Number {
        /// The number; NaN and infinities are written as a dash.
        value: f64,
        /// Its unit.
        unit: Unit,
        /// How many digits count. Digits before the point are always written.
        digits: usize,
    },
    /// A ratio and its verdict.
    Ratio {
        /// The ratio; NaN is written as a dash.
        value: f64,
        /// Whether it is near enough to 1.
        verdict: Verdict,
    },
}

/// Whether a ratio is near enough to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance.
    Within,
    /// Outside of it.
    Outside,
    /// There is nothing to compare with.
    NoReference,
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// A number without a unit, to 3 significant digits.
    pub fn number(value: f64) -> Cell {
        Cell::Number { value, unit: Unit::None, digits: 3 }
    }

    /// A count.
    pub fn count(count: u64) -> Cell {
        Cell::Number { value: count as f64, unit: Unit::None, digits: 1 }
    }

    /// `ours / reference`, judged by how far from 1 it may be (0.05 for 5 %).
    pub fn ratio(ours: f64, reference: Option<f64>, tolerance: f64) -> Cell {
        let value = reference.map_or(f64::NAN, |reference| ours / reference);
        let verdict = if !value.is_finite() {
            Verdict::NoReference
        } else if (value - 1.0).abs() <= tolerance + 1e-9 {
            Verdict::Within
        } else {
            Verdict::Outside
        };
        Cell::Ratio { value, verdict }
    }

    /// A ratio that was judged by other means.
    pub fn judged(ratio: Option<f64>, agrees: bool) -> Cell {
        let verdict = if agrees { Verdict::Within } else { Verdict::Outside };
        Cell::Ratio { value: ratio.unwrap_or(f64::NAN), verdict }
    }

    /// The same with another unit, where it is a number.
    #[must_use]
    pub fn unit(mut self, to: impl Into<Unit>) -> Cell {
        if let Cell::Number { unit, .. } = &mut self {
            *unit = to.into();
        }
        self
    }

    /// The same with so many significant digits, where it is a number.
    #[must_use]
    pub fn digits(mut self, to: usize) -> Cell {
        if let Cell::Number { digits, .. } = &mut self {
            *digits = to;
        }
        self
    }

    fn written(&self) -> (&'static str, String) {
        match self {
            Cell::Empty => ("", String::new()),
            Cell::Text(text) => ("", text.clone()),
            Cell::Number { value, unit, digits } => ("number", unit.write(*value, *digits)),
            Cell::Ratio { value, verdict } => {
                let number = match value.is_finite() {
                    true => number::significant(*value, 3),
                    false => NONE.to_string(),
                };
                // Never by colour alone.
                match verdict {
                    Verdict::Within => ("number within", format!("{number} ✓")),
                    Verdict::Outside => ("number outside", format!("{number} ✗")),
                    Verdict::NoReference => ("number unknown", number),
                }
            }
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::text(text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::number(value)
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Cell {
        Cell::count(count)
    }
}

impl Table {
    /// A table without rows.
    pub fn new<T: Into<String>>(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = T>,
    ) -> Table {
        let columns = columns.into_iter().map(Into::into).collect();
        Table { title: title.into(), columns, ..Table::default() }
    }

    /// Adds a row. A short one is filled up with empty cells; a long one widens the table.
    #[must_use]
    pub fn row<C: Into<Cell>>(mut self, cells: impl IntoIterator<Item = C>) -> Table {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }

    /// A note, in small print below.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Table {
        self.note = note.into();
        self
    }

    /// Shows only the title until the reader opens it.
    #[must_use]
    pub fn folded(mut self) -> Table {
        self.folded = true;
        self
    }

    /// Leaves out the columns, but the first, that are empty in every row.
    #[must_use]
    pub fn without_empty_columns(mut self) -> Table {
        let is_empty =
            |row: &Vec<Cell>, column| matches!(row.get(column), None | Some(Cell::Empty));
        for column in (1..self.columns.len()).rev() {
            if self.rows.iter().all(|row| is_empty(row, column)) {
                self.columns.remove(column);
                let long = self.rows.iter_mut().filter(|row| row.len() > column);
                long.for_each(|row| _ = row.remove(column));
            }
        }
        self
    }

    /// Writes the rows up to the `most`th.
    pub(crate) fn write(&self, markup: &mut Markup, most: usize) {
        let shown = self.rows.get(..most).unwrap_or(&self.rows);
        let longest = shown.iter().map(Vec::len).max().unwrap_or(0);
        let width = longest.max(self.columns.len());
        markup.open("div").attr("class", "wide").open("table");
        markup.open("thead").open("tr");
        for column in 0..width {
            markup.open("th").attr("scope", "col");
            if self.is_numeric(column) {
                markup.attr("class", "number");
            }
            markup.text(self.columns.get(column).map_or("", String::as_str)).close();
        }
        markup.close().close().open("tbody");
        for row in shown {
            markup.open("tr");
            for column in 0..width {
                let (class, text) = row.get(column).unwrap_or(&Cell::Empty).written();
                markup.open("td");
                if !class.is_empty() {
                    markup.attr("class", class);
                }
                markup.text(&text).close();
            }
            markup.close();
        }
        markup.close().close().close();
        if shown.len() < self.rows.len() {
            let [shown, all] = [shown.len(), self.rows.len()].map(|n| number::fixed(n as f64, 0));
            markup.open("p").attr("class", "note");
            markup.text(&format!("The first {shown} of {all} rows.")).close();
        }
    }

    fn is_numeric(&self, column: usize) -> bool {
        let first = self.rows.iter().find_map(|row| match row.get(column) {
            None | Some(Cell::Empty) => None,
            Some(cell) => Some(cell),
        });
        matches!(first, Some(Cell::Number { .. } | Cell::Ratio { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &Table, most: usize) -> String {
        let mut markup = Markup::new();
        table.write(&mut markup, most);
        markup.finish()
    }

    #[test]
    fn cells_by_kind() {
        let cells = [
            (Cell::ratio(1.04, Some(1.0), 0.05), ("number within", "1.04 ✓")),
            (Cell::ratio(95.0, Some(100.0), 0.05), ("number within", "0.950 ✓")),
            (Cell::ratio(1.2, Some(1.0), 0.05), ("number outside", "1.20 ✗")),
            (Cell::ratio(1.2, None, 0.05), ("number unknown", "–")),
            (Cell::ratio(1.2, Some(0.0), 0.05), ("number unknown", "–")),
            (Cell::number(1590.0).unit("MB/s"), ("number", "1,590\u{a0}MB/s")),
            (Cell::number(1.5).digits(2), ("number", "1.5")),
            (Cell::count(12_345), ("number", "12,345")),
            (Cell::from("x"), ("", "x")),
            (Cell::Empty, ("", "")),
        ];
        for (cell, (class, text)) in cells {
            assert_eq!(cell.written(), (class, text.to_string()));
        }
    }

    #[test]
    fn rows_are_made_equally_long() {
        let table = Table::new("t", ["a", "b"]).row(["1"]).row(["1", "2", "3"]);
        let html = written(&table, 10);
        assert_eq!(html.matches("<td>").count(), 6);
        assert_eq!(html.matches("<th ").count(), 3);
    }

    #[test]
    fn empty_columns_are_left_out() {
        let rows = [["a", "", "1"], ["b", "", ""]].map(|row| {
            row.map(|text| if text.is_empty() { Cell::Empty } else { Cell::text(text) })
        });
        let table = rows.into_iter().fold(Table::new("t", ["", "none", "some"]), Table::row);
        let html = written(&table.without_empty_columns(), 10);
        assert!(!html.contains("none") && html.contains("some"), "{html}");
        assert_eq!((html.matches("<td>").count(), html.matches("<th ").count()), (4, 2));
    }

    #[test]
    fn a_cut_says_so() {
        let table = (0..30).fold(Table::new("t", ["a"]), |table, n| table.row([Cell::count(n)]));
        assert!(written(&table, 20).contains("The first 20 of 30 rows."));
        assert!(!written(&table, 30).contains("The first"));
    }
}
