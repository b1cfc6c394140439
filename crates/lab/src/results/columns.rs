//! The figures of an experiment whose rows have several measures, as the columns of one table.

use super::rows::quoted;
use super::spread::Spread;
use serde::{Deserialize, Serialize};

/// A table of cells by measures.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnTable {
    /// The columns, in the order of their first figures.
    pub columns: Vec<TableColumn>,
    /// The rows, in the order of the experiment.
    pub rows: Vec<TableRow>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableColumn {
    /// Its title.
    pub name: String,
    /// The unit of its figures; empty if they have none.
    pub unit: String,
}

/// The figures of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableRow {
    /// Its label.
    pub label: String,
    /// A figure for each column; none where the cell has no such figure.
    pub values: Vec<Option<TableValue>>,
}

/// A figure: the mean of the replicates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableValue {
    /// The figure.
    pub ours: f64,
    /// How far the replicates spread, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

impl TableColumn {
    /// The title with the unit, as `write_p999_us, us`; a name that ends in its unit has it once.
    pub fn title(&self) -> String {
        let ends = |unit: &str| self.name.to_lowercase().ends_with(&unit.to_lowercase());
        match self.unit.as_str() {
            "" => self.name.clone(),
            unit if ends(unit) => self.name.clone(),
            unit => format!("{}, {unit}", self.name),
        }
    }
}

impl ColumnTable {
    /// Whether it has no figure.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a figure of the row of this label.
    pub fn add(&mut self, row: &str, column: TableColumn, value: TableValue) {
        let known = self.columns.iter().position(|it| *it == column);
        let place = known.unwrap_or(self.columns.len());
        if known.is_none() {
            self.columns.push(column);
            self.rows.iter_mut().for_each(|row| row.values.push(None));
        }
        let index = self.rows.iter().position(|it| it.label == row).unwrap_or_else(|| {
            let values = vec![None; self.columns.len()];
            self.rows.push(TableRow { label: row.to_owned(), values });
            self.rows.len() - 1
        });
        let cell = self.rows.get_mut(index).and_then(|row| row.values.get_mut(place));
        if let Some(cell) = cell {
            *cell = Some(value);
        }
    }

    /// The table as CSV: a header `label` and the titles of the columns, then a line for each row.
    /// Where there are replicates, each column is followed by `ci95 of` it.
    pub fn csv(&self) -> String {
        let values = || self.rows.iter().flat_map(|row| row.values.iter().flatten());
        let spreads = values().any(|value| value.spread.is_some());
        let mut header = vec!["label".to_owned()];
        for column in &self.columns {
            let title = column.title();
            header.push(quoted(&title));
            header.extend(spreads.then(|| quoted(&format!("ci95 of {title}"))));
        }
        let mut text = header.join(",") + "\n";
        for row in &self.rows {
            let mut fields = vec![quoted(&row.label)];
            for value in &row.values {
                let number = |number: Option<f64>| number.map(|it| it.to_string());
                let ci95 = value.and_then(|value| value.spread).map(|spread| spread.ci95);
                fields.push(number(value.map(|value| value.ours)).unwrap_or_default());
                fields.extend(spreads.then(|| number(ci95).unwrap_or_default()));
            }
            text += &(fields.join(",") + "\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, unit: &str) -> TableColumn {
        TableColumn { name: name.to_owned(), unit: unit.to_owned() }
    }

    #[test]
    fn cells_are_rows_and_measures_are_columns() {
        let mut table = ColumnTable::default();
        let value = |ours| TableValue { ours, spread: None };
        table.add("op 7 %", column("write_p99_us", "us"), value(900.5));
        table.add("op 7 %", column("waf", ""), value(4.0));
        table.add("op 14, new", column("iops", "IOPS"), value(7.0));
        table.add("op 14, new", column("waf", ""), value(3.0));
        let expected = "label,write_p99_us,waf,iops\nop 7 %,900.5,4,\n\"op 14, new\",,3,7\n";
        assert_eq!(table.csv(), expected);
    }

    #[test]
    fn replicates_add_the_width_of_their_interval() {
        let mut table = ColumnTable::default();
        let spread = Some(Spread { stddev: 2.0, ci95: 1.5 });
        table.add("a", column("p99 of reads", "ms"), TableValue { ours: 3.0, spread });
        let expected = "label,\"p99 of reads, ms\",\"ci95 of p99 of reads, ms\"\na,3,1.5\n";
        assert_eq!(table.csv(), expected);
    }
}
