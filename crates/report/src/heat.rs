//! A grid of coloured cells.

use crate::canvas::{Anchor, Area, Canvas, LINE, WIDTH, names_width, width_of};
use crate::figure::Figure;
use crate::palette;
use crate::table::{Cell, Table};
use crate::unit::Unit;

/// Rows and columns of values, from little (dark blue) to much (yellow).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Heat {
    title: String,
    note: String,
    unit: Unit,
    columns: Vec<String>,
    columns_title: String,
    rows: Vec<(String, Vec<f64>)>,
    range: Option<(f64, f64)>,
}

/// Steps of the colours' key.
const KEY_STEPS: u32 = 24;

impl Heat {
    /// A grid without rows.
    pub fn new<T: Into<String>>(
        title: impl Into<String>,
        unit: impl Into<Unit>,
        columns: impl IntoIterator<Item = T>,
    ) -> Heat {
        let columns = columns.into_iter().map(Into::into).collect();
        Heat { title: title.into(), unit: unit.into(), columns, ..Heat::default() }
    }

    /// Adds a row with a value for each column. A cell without a value, or with NaN, stays empty.
    #[must_use]
    pub fn row(mut self, name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Heat {
        self.rows.push((name.into(), values.into_iter().collect()));
        self
    }

    /// The label of the columns.
    #[must_use]
    pub fn columns_title(mut self, title: impl Into<String>) -> Heat {
        self.columns_title = title.into();
        self
    }

    /// The values at both ends of the colours; the least and the greatest value if nothing is said.
    #[must_use]
    pub fn range(mut self, from: f64, to: f64) -> Heat {
        self.range = Some((from, to));
        self
    }

    /// A note, in small print below.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Heat {
        self.note = note.into();
        self
    }

    fn width(&self) -> usize {
        let longest = self.rows.iter().map(|(_, values)| values.len()).max();
        longest.unwrap_or(0).max(self.columns.len())
    }

    fn column(&self, index: usize) -> &str {
        self.columns.get(index).map_or("", String::as_str)
    }

    fn ends(&self) -> (f64, f64) {
        let stated = self.range.filter(|(from, to)| from.is_finite() && to.is_finite());
        let values = self.rows.iter().flat_map(|(_, values)| values).filter(|v| v.is_finite());
        let found = values.fold(None, |ends, value| {
            let (low, high) = ends.unwrap_or((*value, *value));
            Some((f64::min(low, *value), f64::max(high, *value)))
        });
        stated.or(found).unwrap_or((0.0, 1.0))
    }

    /// The colours from little to much, with the values at both ends.
    fn draw_key(&self, canvas: &mut Canvas, (low, high): (f64, f64)) {
        let [low, high] = [low, high].map(|value| self.unit.write_trimmed(value, 3));
        canvas.text(2.0, LINE / 2.0, Anchor::Start, WIDTH / 3.0, &low);
        let mut x = width_of(&low) + 10.0;
        for step in 0..KEY_STEPS {
            let (colour, _) = palette::heat(f64::from(step) / f64::from(KEY_STEPS - 1));
            canvas.rect((x, 3.0), (6.2, 12.0), &colour, "");
            x += 6.0;
        }
        canvas.text(x + 8.0, LINE / 2.0, Anchor::Start, WIDTH / 3.0, &high);
    }

    /// `share` is how far the value is from little to much.
    fn draw_cell(&self, canvas: &mut Canvas, area: &Area, tip: &str, value: f64, share: f64) {
        let (at, size) = ((area.left, area.top), (area.width, area.height));
        if !value.is_finite() {
            canvas.faint();
            canvas.line((area.left, area.bottom()), (area.right(), area.top));
            canvas.close();
            return;
        }
        let (colour, dark) = palette::heat(share);
        let text = self.unit.write_trimmed(value, 3);
        canvas.rect(at, size, &colour, &format!("{tip}: {text}"));
        if width_of(&text) + 4.0 <= area.width && area.height >= 14.0 {
            let colour = if dark { "#ffffff" } else { "#000000" };
            canvas.markup.open("g").attr("color", colour).attr("pointer-events", "none");
            canvas.text(area.x(0.5), area.y(0.5), Anchor::Middle, area.width, &text);
            canvas.close();
        }
    }

    /// Names of columns below the grid; as many as have room.
    fn draw_columns(&self, canvas: &mut Canvas, area: &Area, pitch: f64) {
        let widest = self.columns.iter().map(|name| width_of(name)).fold(0.0, f64::max);
        let room = (widest + 10.0).min(WIDTH / 4.0);
        let stride = (room / pitch).ceil().max(1.0) as usize;
        for index in (0..self.width()).step_by(stride) {
            let x = area.left + (index as f64 + 0.5) * pitch;
            canvas.text(x, area.bottom() + 12.0, Anchor::Middle, room, self.column(index));
        }
        let middle = area.left + area.width / 2.0;
        let y = area.bottom() + 12.0 + LINE;
        canvas.text(middle, y, Anchor::Middle, area.width, &self.columns_title);
    }
}

/// How far a value is from the one end to the other.
fn share(value: f64, (low, high): (f64, f64)) -> f64 {
    // Halves, because the whole difference may overflow.
    let share = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 }
}

impl Figure for Heat {
    fn title(&self) -> &str {
        &self.title
    }

    fn note(&self) -> &str {
        &self.note
    }

    fn svg(&self) -> String {
        let names: Vec<&str> = self.rows.iter().map(|(name, _)| name.as_str()).collect();
        let left = names_width(&names);
        let height: f64 = if names.len() <= 24 { 20.0 } else { 8.0 };
        let area = Area {
            left,
            top: 1.5 * LINE,
            width: WIDTH - left - 24.0,
            height: height * names.len().max(1) as f64,
        };
        let pitch = area.width / self.width().max(1) as f64;
        // A gap between cells, where there is room for one.
        let gap = if pitch >= 8.0 { 1.0 } else { 0.0 };
        let below = if self.columns_title.is_empty() { 1.5 } else { 2.5 };
        let mut canvas = Canvas::new(&self.title, area.bottom() + below * LINE);
        let ends = self.ends();
        self.draw_key(&mut canvas, ends);
        canvas.row_names(&area, &names);
        for (row, (name, values)) in self.rows.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let cell = Area {
                    left: area.left + column as f64 * pitch,
                    top: area.top + row as f64 * height,
                    width: pitch - gap,
                    height: height - gap,
                };
                let tip = match self.column(column) {
                    "" => name.clone(),
                    column => format!("{name}, {column}"),
                };
                self.draw_cell(&mut canvas, &cell, &tip, *value, share(*value, ends));
            }
        }
        self.draw_columns(&mut canvas, &area, pitch);
        canvas.finish()
    }

    fn data(&self) -> Table {
        let names = (0..self.width()).map(|index| self.column(index).to_string());
        let columns: Vec<String> = std::iter::once(String::new()).chain(names).collect();
        let mut table = Table::new("", columns);
        for (name, values) in &self.rows {
            let number = |value: &f64| Cell::number(*value).unit(self.unit.clone()).digits(4);
            let cells = values.iter().map(number);
            table = table.row(std::iter::once(Cell::text(name)).chain(cells));
        }
        table
    }
}
