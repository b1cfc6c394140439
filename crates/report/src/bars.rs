//! Bars of several parts, on top of each other or side by side.

use crate::axis::{Axis, Scaling};
use crate::canvas::{Anchor, Area, Canvas, LINE, WIDTH, names_width, with_room};
use crate::figure::Figure;
use crate::legend::{Key, Legend};
use crate::scale::{Ends, Scale};
use crate::table::{Cell, Table};

/// Lying bars, one below the other, each with a part for every category.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bars {
    title: String,
    note: String,
    axis: Axis,
    categories: Vec<String>,
    bars: Vec<(String, Vec<f64>)>,
    arrangement: Arrangement,
}

/// How the parts of a bar stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arrangement {
    /// Each part begins where the one before ends. Negative parts are left out, and the axis is
    /// linear.
    #[default]
    Stacked,
    /// Each part is a bar of its own.
    Grouped,
}

/// Room for the number behind a bar.
const NUMBER_WIDTH: f64 = 76.0;

/// A rectangle in terms of data: the bar, its track within the bar, begin, end and category.
struct Part {
    bar: usize,
    track: usize,
    begin: f64,
    end: f64,
    category: usize,
}

impl Bars {
    /// A chart without bars.
    pub fn new<T: Into<String>>(
        title: impl Into<String>,
        axis: Axis,
        categories: impl IntoIterator<Item = T>,
    ) -> Bars {
        let categories = categories.into_iter().map(Into::into).collect();
        Bars { title: title.into(), axis, categories, ..Bars::default() }
    }

    /// Adds a bar with a value for each category, in their order.
    #[must_use]
    pub fn bar(mut self, name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Bars {
        self.bars.push((name.into(), values.into_iter().collect()));
        self
    }

    /// Puts the parts of a bar side by side or on top of each other.
    #[must_use]
    pub fn arrangement(mut self, arrangement: Arrangement) -> Bars {
        self.arrangement = arrangement;
        self
    }

    /// A note, in small print below.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Bars {
        self.note = note.into();
        self
    }

    fn category(&self, index: usize) -> String {
        self.categories.get(index).cloned().unwrap_or_else(|| format!("part {}", index + 1))
    }

    /// How many categories there are, those without names included.
    fn width(&self) -> usize {
        let longest = self.bars.iter().map(|(_, values)| values.len()).max();
        longest.unwrap_or(0).max(self.categories.len())
    }

    fn tracks(&self) -> usize {
        match self.arrangement {
            Arrangement::Stacked => 1,
            Arrangement::Grouped => self.width().max(1),
        }
    }

    fn track_height(&self) -> f64 {
        if self.tracks() == 1 { 20.0 } else { 14.0 }
    }

    fn axis(&self) -> Axis {
        let mut axis = self.axis.clone();
        if self.arrangement == Arrangement::Stacked {
            axis.scaling = Scaling::Linear;
        }
        if axis.scaling == Scaling::Linear {
            axis = axis.including(0.0);
        }
        axis
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for (bar, (_, values)) in self.bars.iter().enumerate() {
            let mut begin = 0.0;
            for (category, value) in values.iter().copied().enumerate() {
                match self.arrangement {
                    Arrangement::Stacked if value.is_finite() && value > 0.0 => {
                        parts.push(Part { bar, track: 0, begin, end: begin + value, category });
                        begin += value;
                    }
                    Arrangement::Stacked => {}
                    Arrangement::Grouped => {
                        parts.push(Part { bar, track: category, begin: 0.0, end: value, category });
                    }
                }
            }
        }
        parts
    }

    fn draw_part(&self, canvas: &mut Canvas, area: &Area, scale: &Scale, part: &Part) {
        let Some(end) = scale.place(part.end) else { return };
        // On a logarithmic axis, which has no zero, a bar begins with the axis.
        let begin = scale.place(part.begin).unwrap_or(0.0);
        let (from, to) = (area.x(begin.min(end)), area.x(begin.max(end)));
        let top = self.top(area, part.bar, part.track);
        let value = self.axis.unit.write_trimmed(part.end - part.begin, 4);
        let name = self.bars.get(part.bar).map_or("", |(name, _)| name.as_str());
        let tip = format!("{name}: {} {value}", self.category(part.category));
        canvas.coloured(part.category);
        canvas.rect((from, top), (to - from, self.track_height() - 2.0), "currentColor", &tip);
        canvas.close();
        if self.arrangement == Arrangement::Grouped {
            self.number(canvas, area, to, (part.bar, part.track), part.end);
        }
    }

    fn draw_totals(&self, canvas: &mut Canvas, area: &Area, scale: &Scale) {
        for (bar, (_, values)) in self.bars.iter().enumerate() {
            let drawn = values.iter().filter(|value| value.is_finite() && **value > 0.0);
            let total: f64 = drawn.sum();
            if let Some(share) = scale.place(total) {
                self.number(canvas, area, area.x(share), (bar, 0), total);
            }
        }
    }

    fn number(&self, canvas: &mut Canvas, area: &Area, x: f64, at: (usize, usize), value: f64) {
        let y = self.top(area, at.0, at.1) + (self.track_height() - 2.0) / 2.0;
        let text = self.axis.unit.write_trimmed(value, 3);
        canvas.text(x + 6.0, y, Anchor::Start, WIDTH - x - 6.0, &text);
    }

    fn pitch(&self) -> f64 {
        self.track_height() * self.tracks() as f64 + 8.0
    }

    fn top(&self, area: &Area, bar: usize, track: usize) -> f64 {
        area.top + bar as f64 * self.pitch() + 5.0 + track as f64 * self.track_height()
    }
}

impl Figure for Bars {
    fn title(&self) -> &str {
        &self.title
    }

    fn note(&self) -> &str {
        &self.note
    }

    fn svg(&self) -> String {
        let keys = (0..self.width()).map(|index| (Key::Patch(index), self.category(index)));
        let legend = Legend::new(keys.collect());
        let names: Vec<&str> = self.bars.iter().map(|(name, _)| name.as_str()).collect();
        let left = names_width(&names);
        let top = legend.height() + LINE / 2.0;
        let height = self.pitch() * names.len().max(1) as f64;
        let area = Area { left, top, width: WIDTH - left - NUMBER_WIDTH, height };
        let (axis, parts) = (self.axis(), self.parts());
        let ends: Vec<f64> = parts.iter().map(|part| part.end).collect();
        let scale = with_room(area.width, |most| {
            Scale::fit(&axis, ends.iter().copied(), Ends::AtTicks, most)
        });
        let mut canvas = Canvas::new(&self.title, area.bottom() + 2.5 * LINE);
        legend.draw(&mut canvas);
        canvas.axis_below(&area, &scale);
        canvas.row_names(&area, &names);
        for part in &parts {
            self.draw_part(&mut canvas, &area, &scale, part);
        }
        if self.arrangement == Arrangement::Stacked {
            self.draw_totals(&mut canvas, &area, &scale);
        }
        let zero = area.x(scale.place(0.0).unwrap_or(0.0));
        canvas.line((zero, area.top), (zero, area.bottom()));
        canvas.finish()
    }

    fn data(&self) -> Table {
        let categories = (0..self.width()).map(|index| self.category(index));
        let columns: Vec<String> = std::iter::once(String::new()).chain(categories).collect();
        let mut table = Table::new("", columns);
        for (name, values) in &self.bars {
            let unit = &self.axis.unit;
            let numbers = values.iter().map(|v| Cell::number(*v).unit(unit.clone()).digits(4));
            table = table.row(std::iter::once(Cell::text(name)).chain(numbers));
        }
        table
    }
}
