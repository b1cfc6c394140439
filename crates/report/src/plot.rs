//! Lines and marks over two axes.

mod draw;

use crate::axis::Axis;
use crate::figure::Figure;
use crate::table::{Cell, Table};

/// Series over two axes, with reference points and shaded bands.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plot {
    title: String,
    note: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    bands: Vec<Band>,
    reference_name: String,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    name: String,
    points: Vec<(f64, f64)>,
    reference: Vec<(f64, f64)>,
    error_bars: Vec<(f64, f64, f64)>,
    style: Style,
}

/// How the points of a series are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// A line with a mark at each point, as long as the points are few.
    #[default]
    LineAndMarks,
    /// A line.
    Line,
    /// A dashed line, for example for theory.
    Dashed,
    /// Marks.
    Marks,
}

/// A shaded part of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    name: String,
    extent: Extent,
    like: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
enum Extent {
    X(f64, f64),
    Y(f64, f64),
    /// At each x from a low to a high y.
    Between(Vec<(f64, f64, f64)>),
}

impl Plot {
    /// A plot without series.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Plot {
        Plot { title: title.into(), x, y, reference_name: "paper".to_string(), ..Plot::default() }
    }

    /// Adds a series.
    #[must_use]
    pub fn series(mut self, series: Series) -> Plot {
        self.series.push(series);
        self
    }

    /// Adds a band, drawn behind the series.
    #[must_use]
    pub fn band(mut self, band: Band) -> Plot {
        self.bands.push(band);
        self
    }

    /// The name of the reference points of all series; "paper" by default.
    #[must_use]
    pub fn reference_name(mut self, name: impl Into<String>) -> Plot {
        self.reference_name = name.into();
        self
    }

    /// A note, in small print below.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Plot {
        self.note = note.into();
        self
    }
}

impl Series {
    /// A series of points, in the order in which a line goes through them. A line has a gap where a
    /// point cannot be drawn (NaN, infinite, or not positive on a logarithmic axis).
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series { name: name.into(), points: points.into_iter().collect(), ..Series::default() }
    }

    /// Draws it in another style.
    #[must_use]
    pub fn style(mut self, style: Style) -> Series {
        self.style = style;
        self
    }

    /// Error bars at points of the series: x, and y from a low to a high value.
    #[must_use]
    pub fn error_bars(mut self, bars: impl IntoIterator<Item = (f64, f64, f64)>) -> Series {
        self.error_bars = bars.into_iter().collect();
        self
    }

    /// The reference points of the series, drawn as hollow marks in its colour.
    #[must_use]
    pub fn reference(mut self, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        self.reference = points.into_iter().collect();
        self
    }
}

impl Band {
    /// All from one x to another.
    pub fn x(name: impl Into<String>, from: f64, to: f64) -> Band {
        Band { name: name.into(), extent: Extent::X(from, to), like: None }
    }

    /// All from one y to another.
    pub fn y(name: impl Into<String>, from: f64, to: f64) -> Band {
        Band { name: name.into(), extent: Extent::Y(from, to), like: None }
    }

    /// The area between two values of y at each x: points of x, low and high.
    pub fn between(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64, f64)>,
    ) -> Band {
        let extent = Extent::Between(points.into_iter().collect());
        Band { name: name.into(), extent, like: None }
    }

    /// Gives it the colour of a series, by its number from 0.
    #[must_use]
    pub fn like(mut self, series: usize) -> Band {
        self.like = Some(series);
        self
    }

    fn xs(&self) -> Vec<f64> {
        match &self.extent {
            Extent::X(from, to) => vec![*from, *to],
            Extent::Y(..) => Vec::new(),
            Extent::Between(points) => points.iter().map(|(x, ..)| *x).collect(),
        }
    }

    fn ys(&self) -> Vec<f64> {
        match &self.extent {
            Extent::X(..) => Vec::new(),
            Extent::Y(from, to) => vec![*from, *to],
            Extent::Between(points) => points.iter().flat_map(|(_, a, b)| [*a, *b]).collect(),
        }
    }
}

impl Figure for Plot {
    fn title(&self) -> &str {
        &self.title
    }

    fn note(&self) -> &str {
        &self.note
    }

    fn svg(&self) -> String {
        draw::svg(self)
    }

    fn data(&self) -> Table {
        let number =
            |axis: &Axis, value: f64| Cell::number(value).unit(axis.unit.clone()).digits(4);
        let row = |name: &str, x: Cell, y: f64| [Cell::text(name), x, number(&self.y, y)];
        let mut table = Table::new("", ["series", &self.x.title, &self.y.title]);
        for series in &self.series {
            for (x, y) in &series.points {
                table = table.row(row(&series.name, number(&self.x, *x), *y));
            }
            let name = format!("{} ({})", series.name, self.reference_name);
            for (x, y) in &series.reference {
                table = table.row(row(&name, number(&self.x, *x), *y));
            }
            for (x, low, high) in &series.error_bars {
                for (end, y) in [("low", low), ("high", high)] {
                    let name = format!("{} ({end})", series.name);
                    table = table.row(row(&name, number(&self.x, *x), *y));
                }
            }
        }
        for band in &self.bands {
            if let Extent::Between(points) = &band.extent {
                for (x, low, high) in points {
                    table = table.row(row(&band.name, number(&self.x, *x), *low));
                    table = table.row(row(&band.name, number(&self.x, *x), *high));
                }
            }
        }
        table
    }
}
