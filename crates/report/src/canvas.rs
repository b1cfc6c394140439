//! The canvas of all figures: an SVG of fixed width that scales with its page.

use crate::markup::Markup;
use crate::palette::{self, GRID, INK};
use crate::scale::Scale;
use std::fmt::Display;

/// The width of every figure in its own units, about pixels.
pub(crate) const WIDTH: f64 = 720.0;
/// The height of a line of text.
pub(crate) const LINE: f64 = 18.0;
const FONT: f64 = 12.0;
/// An average letter. Fonts differ, so it is a wide one's.
const LETTER: f64 = 7.0;

/// Which end of a text is at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

pub(crate) struct Canvas {
    pub(crate) markup: Markup,
}

impl Canvas {
    pub(crate) fn new(title: &str, height: f64) -> Canvas {
        let mut markup = Markup::new();
        markup.open("svg").attr("xmlns", "http://www.w3.org/2000/svg");
        markup.attr("viewBox", format!("0 0 {} {}", Px(WIDTH), Px(height)));
        markup.attr("width", Px(WIDTH)).attr("height", Px(height));
        markup.attr("role", "img").attr("aria-label", title).attr("color", INK[0]);
        markup.attr("font-family", "system-ui, sans-serif").attr("font-size", FONT);
        markup.element("title", title);
        Canvas { markup }
    }

    pub(crate) fn finish(self) -> String {
        self.markup.finish()
    }

    /// Text centred on `y`, cut to `room`; the full text is a tooltip.
    pub(crate) fn text(&mut self, x: f64, y: f64, anchor: Anchor, room: f64, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.markup.open("text").attr("x", Px(x)).attr("y", Px(y + FONT * 0.35));
        self.markup.attr("text-anchor", anchor).attr("fill", "currentColor");
        let short = shorten(text, room);
        if short != text {
            self.markup.element("title", text);
        }
        self.markup.text(&short).close();
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.markup.open("line").attr("x1", Px(from.0)).attr("y1", Px(from.1));
        self.markup.attr("x2", Px(to.0)).attr("y2", Px(to.1));
        self.markup.attr("stroke", "currentColor").close();
    }

    /// A filled rectangle that says `tip` when pointed at.
    pub(crate) fn rect(&mut self, at: (f64, f64), size: (f64, f64), fill: &str, tip: &str) {
        self.markup.open("rect").attr("x", Px(at.0)).attr("y", Px(at.1));
        self.markup.attr("width", Px(size.0.max(0.0))).attr("height", Px(size.1.max(0.0)));
        self.markup.attr("fill", fill);
        if !tip.is_empty() {
            self.markup.element("title", tip);
        }
        self.markup.close();
    }

    /// Opens a group in which `currentColor` is the `index`th colour.
    pub(crate) fn coloured(&mut self, index: usize) -> &mut Markup {
        let markup = self.markup.open("g");
        markup.attr("class", palette::class(index)).attr("color", palette::light(index))
    }

    /// Opens a group in which `currentColor` is that of grid lines.
    pub(crate) fn faint(&mut self) {
        self.markup.open("g").attr("class", "grid").attr("color", GRID[0]);
    }

    pub(crate) fn close(&mut self) {
        self.markup.close();
    }

    /// The axis below `area`: grid lines, labels and, below them, its title.
    pub(crate) fn axis_below(&mut self, area: &Area, scale: &Scale) {
        self.faint();
        for (share, _) in scale.places() {
            self.line((area.x(share), area.top), (area.x(share), area.bottom() + 4.0));
        }
        self.close();
        for (share, label) in scale.places() {
            // The last label may be wider than the margin.
            let half = width_of(label) / 2.0;
            let x = area.x(share).min(WIDTH - half).max(half);
            self.text(x, area.bottom() + 14.0, Anchor::Middle, WIDTH, label);
        }
        let middle = area.left + area.width / 2.0;
        self.text(middle, area.bottom() + 14.0 + LINE, Anchor::Middle, area.width, &scale.title);
    }

    /// The axis left of `area`: grid lines, labels and, above them, its title.
    pub(crate) fn axis_left(&mut self, area: &Area, scale: &Scale) {
        self.faint();
        for (share, _) in scale.places() {
            self.line((area.left - 4.0, area.y(share)), (area.right(), area.y(share)));
        }
        self.close();
        for (share, label) in scale.places() {
            self.text(area.left - 8.0, area.y(share), Anchor::End, area.left, label);
        }
        self.text(2.0, area.top - LINE, Anchor::Start, WIDTH, &scale.title);
    }

    /// Names of rows, right-aligned left of `area`; as many as have room.
    pub(crate) fn row_names(&mut self, area: &Area, names: &[&str]) {
        let pitch = area.height / names.len().max(1) as f64;
        let stride = ((FONT + 1.0) / pitch).ceil().max(1.0) as usize;
        for (index, name) in names.iter().enumerate().step_by(stride) {
            let y = area.top + (index as f64 + 0.5) * pitch;
            self.text(area.left - 8.0, y, Anchor::End, area.left - 8.0, name);
        }
    }
}

/// The part of a figure in which data is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Area {
    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(crate) fn x(&self, share: f64) -> f64 {
        self.left + share * self.width
    }

    pub(crate) fn y(&self, share: f64) -> f64 {
        self.bottom() - share * self.height
    }
}

/// The room that names of rows take on the left.
pub(crate) fn names_width(names: &[&str]) -> f64 {
    let widest = names.iter().map(|name| width_of(name)).fold(0.0, f64::max);
    widest.min(WIDTH * 0.3) + 12.0
}

/// The scale with the most ticks whose labels have room beside each other on `width`.
pub(crate) fn with_room(width: f64, fit: impl Fn(usize) -> Scale) -> Scale {
    let has_room = |scale: &Scale| {
        let labels: Vec<(f64, f64)> =
            scale.places().map(|(share, label)| (share * width, width_of(label) / 2.0)).collect();
        labels.windows(2).all(|pair| match pair {
            [(left, half), (right, other)] => left + half + 10.0 <= right - other,
            _ => true,
        })
    };
    (2..=10).rev().map(&fit).find(has_room).unwrap_or_else(|| fit(2))
}

/// About how wide a text is.
pub(crate) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

fn shorten(text: &str, room: f64) -> String {
    if width_of(text) <= room {
        return text.to_string();
    }
    let letters = (room / LETTER).max(2.0) as usize - 1;
    text.chars().take(letters).chain(['…']).collect()
}

/// A length with at most one decimal, and never "-0".
pub(crate) struct Px(pub(crate) f64);

impl Display for Px {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        match tenths % 10 {
            0 => write!(f, "{}", tenths / 10),
            _ => write!(f, "{}", tenths as f64 / 10.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Axis;
    use crate::scale::Ends;

    #[test]
    fn lengths_are_short() {
        let lengths = [0.0, -0.01, 12.34, 7.0, -3.25].map(|length| Px(length).to_string());
        assert_eq!(lengths, ["0", "0", "12.3", "7", "-3.3"]);
    }

    #[test]
    fn text_is_cut_to_its_room() {
        assert_eq!(shorten("utilisation", 100.0), "utilisation");
        assert_eq!(shorten("utilisation", 42.0), "utili…");
        assert_eq!(shorten("ab", 0.0), "a…");
    }

    #[test]
    fn labels_do_not_touch() {
        let axis = Axis::new("size").unit(crate::Unit::Bytes).log2();
        let values = [1.0, 1e15];
        let scale =
            with_room(300.0, |most| Scale::fit(&axis, values.into_iter(), Ends::AtData, most));
        let mut end = f64::MIN;
        for (share, label) in scale.places() {
            let half = width_of(label) / 2.0;
            assert!(share * 300.0 - half > end, "{label}");
            end = share * 300.0 + half;
        }
    }
}
