//! Derived rows, which are calculated from other rows.

use super::plan::PlannedRow;
use super::spec::{Derived, Function};
use crate::toml_text::suggestion;

/// A derived row, with the rows that it is calculated from.
#[derive(Debug, Clone, PartialEq)]
pub struct Derivation {
    /// Its label.
    pub label: String,
    /// Its unit.
    pub unit: String,
    function: Function,
    of: Vec<usize>,
    over: Vec<usize>,
}

impl Derivation {
    /// Finds the rows that it is calculated from.
    pub(super) fn plan(derived: &Derived, rows: &[PlannedRow]) -> Result<Derivation, String> {
        let of = matching(&derived.of, rows)?;
        let over = matching(&derived.over, rows)?;
        use Function::{Crossing, Difference, PercentMore, Ratio, RatioOfMeans};
        let compares =
            matches!(derived.function, Ratio | RatioOfMeans | PercentMore | Difference | Crossing);
        if compares == over.is_empty() {
            let problem = if compares { "needs `over`" } else { "takes no `over`" };
            return Err(format!("`{}` {problem}", derived.label));
        }
        let drawn = matches!(derived.function, Crossing | Function::Linearity);
        if drawn
            && of.iter().chain(&over).any(|&row| rows.get(row).is_none_or(|r| r.point.is_none()))
        {
            return Err(format!("`{}` needs rows that belong to a plot", derived.label));
        }
        let own = match derived.function {
            PercentMore => "%".to_owned(),
            Ratio | RatioOfMeans | Function::Linearity | Crossing => String::new(),
            _ => of
                .first()
                .and_then(|&row| rows.get(row))
                .map(|r| r.unit.clone())
                .unwrap_or_default(),
        };
        Ok(Derivation {
            label: derived.label.clone(),
            unit: derived.unit.clone().unwrap_or(own),
            function: derived.function,
            of,
            over,
        })
    }

    /// The figure, from those of all rows; the error names the reason why there is none.
    pub fn of(&self, rows: &[PlannedRow], figures: &[f64]) -> Result<f64, String> {
        let of = values(&self.of, figures);
        let over = values(&self.over, figures);
        let none = || format!("`{}` has no rows to be calculated from", self.label);
        let first = of.first().copied().ok_or_else(none);
        let base = over.first().copied().ok_or_else(none);
        Ok(match self.function {
            Function::Ratio => first? / base?,
            Function::RatioOfMeans => mean(&of) / mean(&over),
            Function::PercentMore => (first? / base? - 1.0) * 100.0,
            Function::Difference => first? - base?,
            Function::Max => of.into_iter().reduce(f64::max).ok_or_else(none)?,
            Function::Min => of.into_iter().reduce(f64::min).ok_or_else(none)?,
            Function::Mean => mean(&of),
            Function::Crossing => {
                let (of, over) = (line(&self.of, rows, figures), line(&self.over, rows, figures));
                crossing(&of, &over).ok_or_else(|| format!("`{}`: they never cross", self.label))?
            }
            Function::Linearity => determination(&line(&self.of, rows, figures)),
        })
    }
}

/// The rows whose labels are those of `patterns`, which may end in `*`.
fn matching(patterns: &[String], rows: &[PlannedRow]) -> Result<Vec<usize>, String> {
    let mut all = Vec::new();
    for pattern in patterns {
        let fits = |label: &str| match pattern.strip_suffix('*') {
            Some(beginning) => label.starts_with(beginning),
            None => label == pattern,
        };
        let found = rows.iter().enumerate().filter(|(_, row)| fits(&row.label));
        let found: Vec<usize> = found.map(|(index, _)| index).collect();
        if found.is_empty() {
            let known: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
            return Err(format!("no row is labelled `{pattern}`; {}", suggestion(pattern, known)));
        }
        all.extend(found);
    }
    Ok(all)
}

fn values(rows: &[usize], figures: &[f64]) -> Vec<f64> {
    rows.iter().filter_map(|&row| figures.get(row).copied()).collect()
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len().max(1) as f64
}

/// Points from left to right.
fn line(of: &[usize], rows: &[PlannedRow], figures: &[f64]) -> Vec<(f64, f64)> {
    let point = |&row: &usize| Some((rows.get(row)?.point.as_ref()?.x, *figures.get(row)?));
    let mut line: Vec<(f64, f64)> = of.iter().filter_map(point).collect();
    line.sort_by(|a, b| a.0.total_cmp(&b.0));
    line
}

/// Where `of` crosses `over` from below, with linear interpolation between points. Only places
/// where both have points count.
fn crossing(of: &[(f64, f64)], over: &[(f64, f64)]) -> Option<f64> {
    let gap = |(x, y): &(f64, f64)| {
        let other = over.iter().find(|(other, _)| other == x)?;
        Some((*x, y - other.1))
    };
    let gaps: Vec<(f64, f64)> = of.iter().filter_map(gap).collect();
    gaps.windows(2).find_map(|pair| match pair {
        [(x0, below), (x1, above)] if *below < 0.0 && *above >= 0.0 => {
            Some(x0 + (x1 - x0) * -below / (above - below))
        }
        _ => None,
    })
}

/// R² of a straight line through the points (least squares); 1 if they all lie on it.
fn determination(line: &[(f64, f64)]) -> f64 {
    let count = line.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| line.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        line.iter().map(|(x, y)| of(x - mean_x, y - mean_y)).sum()
    };
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    if xx == 0.0 || yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Point;
    use super::*;
    use crate::measure::Measure;

    fn rows() -> Vec<PlannedRow> {
        let row = |(index, (label, x)): (usize, &(&str, f64))| PlannedRow {
            label: (*label).to_owned(),
            place: None,
            unit: "MB/s".to_owned(),
            measure: Measure::Waf,
            theory: None,
            cell: index,
            point: Some(Point { plot: "p".to_owned(), series: "s".to_owned(), x: *x }),
        };
        let labels =
            [("a 1", 1.0), ("a 2", 2.0), ("a 4", 4.0), ("b 1", 1.0), ("b 2", 2.0), ("b 4", 4.0)];
        labels.iter().enumerate().map(row).collect()
    }

    fn figure(
        function: Function,
        of: &str,
        over: &[&str],
        figures: [f64; 6],
    ) -> Result<f64, String> {
        let derived = Derived {
            label: "it".to_owned(),
            of: vec![of.to_owned()],
            over: over.iter().map(|label| (*label).to_owned()).collect(),
            function,
            unit: None,
        };
        Derivation::plan(&derived, &rows())?.of(&rows(), &figures)
    }

    #[test]
    fn rows_are_compared_and_summed_up() {
        let figures = [121.0, 50.0, 200.0, 100.0, 7.0, 9.0];
        let close = |found: Result<f64, String>, wanted: f64| {
            assert!((found.clone().unwrap() - wanted).abs() < 1e-9, "{found:?}");
        };
        close(figure(Function::PercentMore, "a 1", &["b 1"], figures), 21.0);
        close(figure(Function::Ratio, "a 4", &["b 1"], figures), 2.0);
        close(figure(Function::RatioOfMeans, "a *", &["b *"], figures), 371.0 / 116.0);
        close(figure(Function::Difference, "a 2", &["b 1"], figures), -50.0);
        close(figure(Function::Max, "a *", &[], figures), 200.0);
        close(figure(Function::Min, "*", &[], figures), 7.0);
        close(figure(Function::Mean, "b*", &[], figures), 116.0 / 3.0);
    }

    #[test]
    fn crossings_lie_between_points() {
        let crosses = figure(Function::Crossing, "a*", &["b*"], [1.0, 2.0, 6.0, 3.0, 3.0, 3.0]);
        assert!((crosses.unwrap() - 2.5).abs() < 1e-12);
        let never = figure(Function::Crossing, "a*", &["b*"], [1.0, 1.0, 1.0, 3.0, 3.0, 3.0]);
        assert!(never.unwrap_err().contains("never cross"));
    }

    #[test]
    fn a_straight_line_is_linear() {
        let linear = |figures| figure(Function::Linearity, "a*", &[], figures).unwrap();
        assert!((linear([10.0, 20.0, 40.0, 0.0, 0.0, 0.0]) - 1.0).abs() < 1e-12);
        assert!(linear([10.0, 20.0, 21.0, 0.0, 0.0, 0.0]) < 0.8);
    }

    #[test]
    fn rows_that_are_not_there_are_named() {
        let error = figure(Function::Max, "a 3", &[], [0.0; 6]).unwrap_err();
        assert!(error.contains("no row is labelled `a 3`; the nearest known one is"), "{error}");
        assert!(
            figure(Function::Ratio, "a 1", &[], [0.0; 6]).unwrap_err().contains("needs `over`")
        );
        assert!(figure(Function::Max, "a 1", &["b 1"], [0.0; 6]).unwrap_err().contains("takes no"));
    }
}
