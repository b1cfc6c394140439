//! Activities over time, in rows.

use crate::axis::Axis;
use crate::canvas::{Area, Canvas, LINE, WIDTH, names_width, with_room};
use crate::figure::Figure;
use crate::legend::{Key, Legend};
use crate::scale::{Ends, Scale};
use crate::table::{Cell, Table};

/// Rows of spans over one axis, coloured by category.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gantt {
    title: String,
    note: String,
    axis: Axis,
    categories: Vec<String>,
    rows: Vec<(String, Vec<Span>)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    begin: f64,
    end: f64,
    category: usize,
}

impl Gantt {
    /// A chart without rows. Spans name their categories by number.
    pub fn new<T: Into<String>>(
        title: impl Into<String>,
        axis: Axis,
        categories: impl IntoIterator<Item = T>,
    ) -> Gantt {
        let categories = categories.into_iter().map(Into::into).collect();
        Gantt { title: title.into(), axis, categories, ..Gantt::default() }
    }

    /// Adds a row of spans: begin, end and the number of the category, from 0.
    #[must_use]
    pub fn row(
        mut self,
        name: impl Into<String>,
        spans: impl IntoIterator<Item = (f64, f64, usize)>,
    ) -> Gantt {
        let spans = spans.into_iter();
        let spans = spans.map(|(begin, end, category)| Span { begin, end, category }).collect();
        self.rows.push((name.into(), spans));
        self
    }

    /// A note, in small print below.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Gantt {
        self.note = note.into();
        self
    }

    fn category(&self, index: usize) -> String {
        self.categories.get(index).cloned().unwrap_or_else(|| format!("category {index}"))
    }

    fn row_height(&self) -> f64 {
        match self.rows.len() {
            0..=24 => 18.0,
            25..=64 => 12.0,
            _ => 6.0,
        }
    }

    fn draw_row(&self, canvas: &mut Canvas, area: &Area, scale: &Scale, row: usize) {
        let Some((name, spans)) = self.rows.get(row) else { return };
        let pitch = self.row_height();
        let gap = pitch / 8.0;
        let top = area.top + row as f64 * pitch + gap;
        for span in spans {
            let (Some(from), Some(to)) = (scale.place(span.begin), scale.place(span.end)) else {
                continue;
            };
            let (from, to) = (area.x(from.min(to)), area.x(from.max(to)));
            let unit = &self.axis.unit;
            let [begin, end] = [span.begin, span.end].map(|at| unit.write_trimmed(at, 5));
            let length = unit.write_trimmed(span.end - span.begin, 4);
            let what = self.category(span.category);
            let tip = format!("{name}: {what}, {begin} to {end} ({length})");
            canvas.coloured(span.category);
            // Even the shortest span can be seen.
            let size = ((to - from).max(0.6), pitch - 2.0 * gap);
            canvas.rect((from, top), size, "currentColor", &tip);
            canvas.close();
        }
    }
}

impl Figure for Gantt {
    fn title(&self) -> &str {
        &self.title
    }

    fn note(&self) -> &str {
        &self.note
    }

    fn svg(&self) -> String {
        let patches = self.categories.iter().enumerate();
        let legend =
            Legend::new(patches.map(|(index, name)| (Key::Patch(index), name.clone())).collect());
        let names: Vec<&str> = self.rows.iter().map(|(name, _)| name.as_str()).collect();
        let left = names_width(&names);
        let height = self.row_height() * names.len().max(1) as f64;
        let top = legend.height() + LINE / 2.0;
        let area = Area { left, top, width: WIDTH - left - 24.0, height };
        let spans = self.rows.iter().flat_map(|(_, spans)| spans);
        let ends: Vec<f64> = spans.flat_map(|span| [span.begin, span.end]).collect();
        let scale = with_room(area.width, |most| {
            Scale::fit(&self.axis, ends.iter().copied(), Ends::AtData, most)
        });
        let mut canvas = Canvas::new(&self.title, area.bottom() + 2.5 * LINE);
        legend.draw(&mut canvas);
        canvas.axis_below(&area, &scale);
        canvas.row_names(&area, &names);
        for row in 0..self.rows.len() {
            self.draw_row(&mut canvas, &area, &scale, row);
        }
        canvas.line((area.left, area.bottom()), (area.right(), area.bottom()));
        canvas.finish()
    }

    fn data(&self) -> Table {
        let mut table = Table::new("", ["row", "what", "begin", "end"]);
        let at = |value: f64| Cell::number(value).unit(self.axis.unit.clone()).digits(5);
        for (name, spans) in &self.rows {
            for span in spans {
                let what = Cell::Text(self.category(span.category));
                table = table.row([Cell::text(name), what, at(span.begin), at(span.end)]);
            }
        }
        table
    }
}
