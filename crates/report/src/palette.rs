//! Colours that can be told apart by the colour-blind, on white paper and on a dark screen.
//!
//! Elements say their colour for light backgrounds as an attribute and their class; the style sheet of a page replaces it
//! in the dark. So an SVG that is cut out of its page still has colours.

use std::fmt::Write;

/// Behind everything, by light and in the dark.
pub(crate) const PAPER: [&str; 2] = ["#ffffff", "#16181d"];
/// Text and axes.
pub(crate) const INK: [&str; 2] = ["#20242b", "#e4e6ea"];
/// Grid lines and borders.
pub(crate) const GRID: [&str; 2] = ["#d9dce1", "#363a43"];

/// Colours of series and categories, by light and in the dark, after Okabe and Ito; the light ones are darkened until they
/// can be seen on white.
const COLOURS: [[&str; 2]; 8] = [
    ["#0072b2", "#56b4e9"],
    ["#d55e00", "#f08a4b"],
    ["#009067", "#2cc79a"],
    ["#aa4499", "#de95ce"],
    ["#a87900", "#e6b422"],
    ["#332288", "#9f92f5"],
    ["#7d4a3c", "#c9a08f"],
    ["#5f6368", "#b4b8be"],
];

/// How many colours there are before they come again.
pub(crate) const COUNT: usize = COLOURS.len();

/// The class of the `index`th colour.
pub(crate) fn class(index: usize) -> String {
    format!("c{}", index % COUNT)
}

/// The `index`th colour on a light background.
pub(crate) fn light(index: usize) -> &'static str {
    COLOURS.get(index % COUNT).map_or(INK[0], |[light, _]| light)
}

/// The rules that put the dark colours in place of the light ones.
pub(crate) fn dark_rules() -> String {
    let mut css = String::new();
    for (index, [_, dark]) in COLOURS.iter().enumerate() {
        let _ = writeln!(css, ".c{index}{{color:{dark}}}");
    }
    let _ = writeln!(css, "svg{{color:{}}}", INK[1]);
    let _ = writeln!(css, "svg .grid{{color:{}}}", GRID[1]);
    let _ = writeln!(css, "svg .paper{{color:{}}}", PAPER[1]);
    css
}

/// Cividis at its quarters: from dark blue to yellow, evenly for all kinds of sight.
const HEAT: [[f64; 3]; 5] = [
    [0.0, 32.0, 76.0],
    [65.0, 77.0, 107.0],
    [124.0, 123.0, 120.0],
    [187.0, 174.0, 108.0],
    [255.0, 234.0, 70.0],
];

/// The colour of a share of the way from little to much, and whether text on it has to be light.
pub(crate) fn heat(share: f64) -> (String, bool) {
    let at = share.clamp(0.0, 1.0) * (HEAT.len() - 1) as f64;
    let below = (at as usize).min(HEAT.len() - 2);
    let part = at - below as f64;
    let mix =
        |channel: usize| HEAT[below][channel] * (1.0 - part) + HEAT[below + 1][channel] * part;
    let [red, green, blue] = [mix(0), mix(1), mix(2)].map(|channel| channel.round() as u8);
    let colour = format!("#{red:02x}{green:02x}{blue:02x}");
    (colour, share < 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap_or(0)) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let [a, b] = [luminance(one), luminance(other)];
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_colour_can_be_seen_on_its_background() {
        for colours in COLOURS {
            for (colour, paper) in colours.iter().zip(PAPER) {
                let contrast = contrast(colour, paper);
                assert!(contrast >= 3.0, "{colour} on {paper}: {contrast:.2}");
            }
        }
        for (ink, paper) in INK.iter().zip(PAPER) {
            assert!(contrast(ink, paper) >= 7.0);
        }
    }

    #[test]
    fn numbers_can_be_read_on_every_heat() {
        for step in 0..=100 {
            let (colour, light) = heat(f64::from(step) / 100.0);
            let text = if light { "#ffffff" } else { "#000000" };
            assert!(contrast(&colour, text) >= 4.0, "{text} on {colour}");
        }
        assert_eq!(heat(0.0).0, "#00204c");
        assert_eq!(heat(7.0).0, "#ffea46");
    }
}
