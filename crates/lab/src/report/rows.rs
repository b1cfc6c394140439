//! The rows of an experiment, as a table and as lines.

use crate::experiment::Plot as Drawn;
use crate::results::{ExperimentResult, ResultRow};
use softflash_report::{Axis, Cell, Plot, Series, Table, Unit};

/// Ours beside the published figures.
pub fn table(result: &ExperimentResult) -> Table {
    let with_theory = result.rows.iter().any(|row| row.theory.is_some());
    let against = if with_theory { "theory" } else { "paper" };
    let mut table = Table::new("Figures", ["", against, "ours", "ratio", "tolerance"]);
    for row in &result.rows {
        let number = |value: f64| Cell::number(value).unit(row.unit.as_str()).digits(4);
        let tolerance = match (row.reference(), row.bound) {
            (Some(_), None) => Cell::number(row.tolerance).unit(Unit::Share),
            (Some(_), Some(bound)) => Cell::text(bound.words()),
            (None, _) => Cell::Empty,
        };
        let ratio = match row.agrees {
            Some(agrees) if row.bound.is_some() => Cell::judged(row.ratio, agrees),
            _ => Cell::ratio(row.ours, row.reference(), row.tolerance),
        };
        table = table.row([
            Cell::text(&*row.label),
            row.reference().map_or(Cell::Empty, number),
            number(row.ours),
            ratio,
            tolerance,
        ]);
    }
    table
}

/// Every plot that has points.
pub fn plots(result: &ExperimentResult) -> Vec<Plot> {
    let drawn = result.plots.iter().map(|plot| (plot, lines(result, &plot.name)));
    drawn.filter(|(_, lines)| !lines.is_empty()).map(|(plot, lines)| draw(plot, lines)).collect()
}

/// A line's name and its rows.
type Line<'a> = (&'a str, Vec<(f64, &'a ResultRow)>);

/// The lines of a plot in the order of their first rows, each from left to right.
fn lines<'a>(result: &'a ExperimentResult, plot: &str) -> Vec<Line<'a>> {
    let mut lines: Vec<Line> = Vec::new();
    for row in &result.rows {
        let Some(point) = row.point.as_ref().filter(|point| point.plot == plot) else { continue };
        match lines.iter_mut().find(|(name, _)| *name == point.series) {
            Some((_, rows)) => rows.push((point.x, row)),
            None => lines.push((&point.series, vec![(point.x, row)])),
        }
    }
    for (_, rows) in &mut lines {
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
}

fn draw(plot: &Drawn, lines: Vec<Line>) -> Plot {
    let x = Axis::new(&*plot.x_label);
    let x = if plot.log_x { x.log2() } else { x };
    let last = plot.x.rsplit('.').next().unwrap_or_default();
    let is_size = last.ends_with("bytes") || last.ends_with("size");
    let x = if is_size { x.unit(Unit::Bytes) } else { x };
    let unit = lines.first().and_then(|(_, rows)| rows.first()).map(|(_, row)| row.unit.clone());
    let y = Axis::new(&*plot.y_label).unit(unit.unwrap_or_default().as_str()).including(0.0);
    let line = |(name, rows): Line| {
        let paper = rows.iter().filter_map(|(x, row)| Some((*x, row.reference()?)));
        let paper: Vec<(f64, f64)> = paper.collect();
        let series = Series::new(name, rows.iter().map(|(x, row)| (*x, row.ours)));
        if paper.is_empty() { series } else { series.reference(paper) }
    };
    lines.into_iter().map(line).fold(Plot::new(&*plot.title, x, y), Plot::series)
}
