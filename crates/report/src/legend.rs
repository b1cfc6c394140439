//! The legend of a figure: the colours and marks with their names.

use crate::canvas::{Canvas, LINE, Px, WIDTH, width_of};

/// The sign before a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// A filled patch of a colour.
    Patch(usize),
    /// As a patch, but as pale as a band.
    Pale(usize),
    /// A line of a colour.
    Line { colour: usize, dashed: bool },
    /// A mark of a colour.
    Mark { colour: usize, with_line: bool },
    /// A hollow mark of no colour in particular.
    Hollow,
}

const KEY_WIDTH: f64 = 26.0;
const GAP: f64 = 16.0;

/// Names with their keys, laid out in lines.
pub(crate) struct Legend {
    entries: Vec<(Key, String)>,
}

impl Legend {
    pub(crate) fn new(entries: Vec<(Key, String)>) -> Legend {
        Legend { entries }
    }

    /// The height it takes at the top of a figure.
    pub(crate) fn height(&self) -> f64 {
        let last = self.places().last().copied();
        last.map_or(0.0, |(_, y)| y + LINE)
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas) {
        for ((key, name), (x, y)) in self.entries.iter().zip(self.places()) {
            let middle = y + LINE / 2.0;
            draw_key(canvas, *key, x, middle);
            let room = WIDTH - x - KEY_WIDTH;
            canvas.text(x + KEY_WIDTH, middle, crate::canvas::Anchor::Start, room, name);
        }
    }

    fn places(&self) -> Vec<(f64, f64)> {
        let (mut x, mut y) = (2.0, 0.0);
        let place = |(_, name): &(Key, String)| {
            let width = KEY_WIDTH + width_of(name);
            if x > 2.0 && x + width > WIDTH {
                (x, y) = (2.0, y + LINE);
            }
            let at = (x, y);
            x += width + GAP;
            at
        };
        self.entries.iter().map(place).collect()
    }
}

fn draw_key(canvas: &mut Canvas, key: Key, x: f64, y: f64) {
    match key {
        Key::Patch(colour) | Key::Pale(colour) => {
            let markup = canvas.coloured(colour);
            if matches!(key, Key::Pale(_)) {
                markup.attr("fill-opacity", PALE);
            }
            canvas.rect((x, y - 6.0), (20.0, 12.0), "currentColor", "");
            canvas.close();
        }
        Key::Line { colour, dashed } => {
            stroke(canvas, colour, dashed);
            canvas.line((x, y), (x + 20.0, y));
            canvas.close();
        }
        Key::Mark { colour, with_line } => {
            stroke(canvas, colour, false);
            if with_line {
                canvas.line((x, y), (x + 20.0, y));
            }
            mark(canvas, colour, (x + 10.0, y), Fill::Full, "");
            canvas.close();
        }
        Key::Hollow => mark(canvas, 0, (x + 10.0, y), Fill::Hollow, ""),
    }
}

/// The opacity of a band.
pub(crate) const PALE: f64 = 0.18;

/// Opens a group for the line of a series.
pub(crate) fn stroke(canvas: &mut Canvas, colour: usize, dashed: bool) {
    let markup = canvas.coloured(colour).attr("stroke-width", 2).attr("stroke-linejoin", "round");
    if dashed {
        markup.attr("stroke-dasharray", "6 4");
    }
}

/// How a mark is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    Full,
    Hollow,
    /// Not to be seen, only to be pointed at.
    Invisible,
}

/// A mark that says `tip` when pointed at. Series differ in shape as well as in colour.
pub(crate) fn mark(canvas: &mut Canvas, series: usize, (x, y): (f64, f64), fill: Fill, tip: &str) {
    let r = if fill == Fill::Full { 4.0 } else { 5.5 };
    let shape = if fill == Fill::Invisible { 0 } else { series % 4 };
    let path = match shape {
        0 => format!(
            "M{} {}a{r} {r} 0 1 0 {} 0a{r} {r} 0 1 0 {} 0Z",
            Px(x - r),
            Px(y),
            Px(2.0 * r),
            Px(-2.0 * r)
        ),
        1 => format!(
            "M{} {}h{}v{}h{}Z",
            Px(x - r * 0.9),
            Px(y - r * 0.9),
            Px(r * 1.8),
            Px(r * 1.8),
            Px(-r * 1.8)
        ),
        2 => format!(
            "M{} {}l{} {}h{}Z",
            Px(x),
            Px(y - r * 1.1),
            Px(r * 1.1),
            Px(r * 2.0),
            Px(-r * 2.2)
        ),
        _ => format!("M{} {}l{d} {d}l-{d} {d}l-{d} -{d}Z", Px(x), Px(y - r * 1.2), d = Px(r * 1.2)),
    };
    let markup = canvas.markup.open("path").attr("d", path);
    match fill {
        Fill::Full => markup.attr("fill", "currentColor"),
        Fill::Hollow => {
            markup.attr("stroke", "currentColor").attr("stroke-width", 1.5);
            markup.attr("fill", "none").attr("pointer-events", "all")
        }
        Fill::Invisible => markup.attr("fill", "none").attr("pointer-events", "all"),
    };
    if !tip.is_empty() {
        markup.element("title", tip);
    }
    markup.close();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_wrap_before_the_edge() {
        let names = (0..12).map(|index| (Key::Hollow, format!("a rather long name {index}")));
        let legend = Legend::new(names.collect());
        for ((_, name), (x, _)) in legend.entries.iter().zip(legend.places()) {
            assert!(x + KEY_WIDTH + width_of(name) <= WIDTH);
        }
        assert!(legend.height() >= 3.0 * LINE);
        assert!(Legend::new(Vec::new()).height() < 1.0);
    }
}
