//! A plot as SVG.

use super::{Band, Extent, Plot, Series, Style};
use crate::canvas::{Area, Canvas, LINE, Px, WIDTH, width_of, with_room};
use crate::legend::{Fill, Key, Legend, PALE, mark, stroke};
use crate::scale::{Ends, Scale};
use crate::thinning::thin;
use std::collections::BTreeSet;
use std::fmt::Write;

const HEIGHT: f64 = 280.0;
/// Half of the width of the end of an error bar.
const BAR_END: f64 = 6.0;
/// Between the frame and the first and last values of x, so that marks are not cut.
const INSET: f64 = 10.0;
/// Points on a line that are marked and can be pointed at. More would lie on top of each other.
const MOST_ON_LINE: usize = 300;

struct Drawing<'a> {
    plot: &'a Plot,
    canvas: Canvas,
    area: Area,
    x: Scale,
    y: Scale,
}

pub(super) fn svg(plot: &Plot) -> String {
    let legend = Legend::new(entries(plot));
    let y = Scale::fit(&plot.y, ys(plot).into_iter(), Ends::AtTicks, 6);
    let labels = y.places().map(|(_, label)| width_of(label)).fold(0.0, f64::max);
    let (left, top) = (labels + 14.0, legend.height() + LINE * 1.75);
    let frame = Area { left, top, width: WIDTH - left - 24.0, height: HEIGHT };
    let area = Area { left: left + INSET, width: frame.width - 2.0 * INSET, ..frame };
    let xs = xs(plot);
    let x =
        with_room(area.width, |most| Scale::fit(&plot.x, xs.iter().copied(), Ends::AtData, most));
    let mut canvas = Canvas::new(&plot.title, frame.bottom() + 2.5 * LINE);
    legend.draw(&mut canvas);
    canvas.axis_left(&frame, &y);
    canvas.axis_below(&area, &x);
    let mut drawing = Drawing { plot, canvas, area, x, y };
    drawing.bands();
    drawing.canvas.line((frame.left, frame.bottom()), (frame.right(), frame.bottom()));
    for (index, series) in plot.series.iter().enumerate() {
        drawing.series(index, series);
    }
    drawing.canvas.finish()
}

fn entries(plot: &Plot) -> Vec<(Key, String)> {
    let key = |colour: usize, series: &Series| match series.style {
        Style::LineAndMarks => Key::Mark { colour, with_line: true },
        Style::Marks => Key::Mark { colour, with_line: false },
        Style::Line => Key::Line { colour, dashed: false },
        Style::Dashed => Key::Line { colour, dashed: true },
    };
    let series = plot.series.iter().enumerate();
    let mut entries: Vec<_> =
        series.map(|(index, series)| (key(index, series), series.name.clone())).collect();
    if plot.series.iter().any(|series| !series.reference.is_empty()) {
        entries.push((Key::Hollow, plot.reference_name.clone()));
    }
    for (index, band) in plot.bands.iter().enumerate() {
        entries.push((Key::Pale(colour_of(plot, index, band)), band.name.clone()));
    }
    entries
}

fn colour_of(plot: &Plot, index: usize, band: &Band) -> usize {
    band.like.unwrap_or(plot.series.len() + index)
}

fn xs(plot: &Plot) -> Vec<f64> {
    let points =
        plot.series.iter().flat_map(|series| series.points.iter().chain(&series.reference));
    points.map(|(x, _)| *x).chain(plot.bands.iter().flat_map(Band::xs)).collect()
}

fn ys(plot: &Plot) -> Vec<f64> {
    let points =
        plot.series.iter().flat_map(|series| series.points.iter().chain(&series.reference));
    let bars = plot.series.iter().flat_map(|series| &series.error_bars);
    let bars = bars.flat_map(|(_, low, high)| [*low, *high]);
    points.map(|(_, y)| *y).chain(bars).chain(plot.bands.iter().flat_map(Band::ys)).collect()
}

impl Drawing<'_> {
    fn place(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.area.x(self.x.place(x)?), self.area.y(self.y.place(y)?)))
    }

    fn tip(&self, name: &str, (x, y): (f64, f64)) -> String {
        let x = self.plot.x.unit.write_trimmed(x, 4);
        format!("{name}: {} at {x}", self.plot.y.unit.write_trimmed(y, 4))
    }

    fn bands(&mut self) {
        for (index, band) in self.plot.bands.iter().enumerate() {
            let colour = colour_of(self.plot, index, band);
            self.canvas.coloured(colour).attr("fill-opacity", PALE);
            match &band.extent {
                Extent::X(from, to) => {
                    self.stripe(band, [self.x.place(*from), self.x.place(*to)], true)
                }
                Extent::Y(from, to) => {
                    self.stripe(band, [self.y.place(*from), self.y.place(*to)], false)
                }
                Extent::Between(points) => self.ribbon(band, points),
            }
            self.canvas.close();
        }
    }

    fn stripe(&mut self, band: &Band, ends: [Option<f64>; 2], upright: bool) {
        let [Some(from), Some(to)] = ends else { return };
        let (low, high) = (from.min(to), from.max(to));
        let area = self.area;
        let (at, size) = if upright {
            ((area.x(low), area.top), ((high - low) * area.width, area.height))
        } else {
            ((area.left, area.y(high)), (area.width, (high - low) * area.height))
        };
        self.canvas.rect(at, size, "currentColor", &band.name);
    }

    fn ribbon(&mut self, band: &Band, points: &[(f64, f64, f64)]) {
        let edge = |of: fn(&(f64, f64, f64)) -> (f64, f64)| {
            let whole = points.iter().filter(|(x, low, high)| {
                self.place((*x, *low)).is_some() && self.place((*x, *high)).is_some()
            });
            thin(whole.filter_map(|point| self.place(of(point))).collect())
        };
        let mut outline = edge(|(x, _, high)| (*x, *high));
        outline.extend(edge(|(x, low, _)| (*x, *low)).into_iter().rev());
        if outline.is_empty() {
            return;
        }
        let path = format!("{}Z", path(&outline));
        let markup = self.canvas.markup.open("path").attr("d", path).attr("fill", "currentColor");
        markup.element("title", &band.name).close();
    }

    fn series(&mut self, index: usize, series: &Series) {
        stroke(&mut self.canvas, index, series.style == Style::Dashed);
        if series.style != Style::Marks {
            self.line(series);
        }
        let fill = match series.style {
            Style::Marks => Some(Fill::Full),
            _ if series.points.len() > MOST_ON_LINE => None,
            Style::LineAndMarks => Some(Fill::Full),
            Style::Line | Style::Dashed => Some(Fill::Invisible),
        };
        if let Some(fill) = fill {
            self.marks(index, &series.name, &series.points, fill);
        }
        self.error_bars(series);
        let name = format!("{} ({})", series.name, self.plot.reference_name);
        self.canvas.markup.open("g").attr("stroke-dasharray", "none");
        self.marks(index, &name, &series.reference, Fill::Hollow);
        self.canvas.close();
        self.canvas.close();
    }

    /// One path, interrupted where a point has no place.
    fn line(&mut self, series: &Series) {
        let placed: Vec<_> = series.points.iter().map(|point| self.place(*point)).collect();
        let mut d = String::new();
        for run in placed.split(Option::is_none) {
            d.push_str(&path(&thin(run.iter().copied().flatten().collect())));
        }
        if !d.is_empty() {
            let markup = self.canvas.markup.open("path").attr("d", d);
            markup.attr("fill", "none").attr("stroke", "currentColor").close();
        }
    }

    fn error_bars(&mut self, series: &Series) {
        let mut d = String::new();
        for (x, low, high) in &series.error_bars {
            let ends = [self.place((*x, *low)), self.place((*x, *high))];
            let [Some((x, low)), Some((_, high))] = ends else { continue };
            let (left, right) = (x - BAR_END, x + BAR_END);
            for bar in
                [[(x, low), (x, high)], [(left, low), (right, low)], [(left, high), (right, high)]]
            {
                d.push_str(&path(&bar));
            }
        }
        if !d.is_empty() {
            let markup = self.canvas.markup.open("path").attr("d", d);
            markup
                .attr("fill", "none")
                .attr("stroke", "currentColor")
                .attr("stroke-width", 1.5)
                .close();
        }
    }

    /// A mark for each point, but no second one on the same pixel.
    fn marks(&mut self, index: usize, name: &str, points: &[(f64, f64)], fill: Fill) {
        let mut taken = BTreeSet::new();
        for point in points {
            let Some(at) = self.place(*point) else { continue };
            if taken.insert((at.0.round() as i64, at.1.round() as i64)) {
                let tip = self.tip(name, *point);
                mark(&mut self.canvas, index, at, fill, &tip);
            }
        }
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut d = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let _ = write!(d, "{}{} {}", if index == 0 { 'M' } else { 'L' }, Px(*x), Px(*y));
    }
    d
}
