//! Colours that the colour-blind can distinguish, on white paper and on a dark screen.
//!
//! Elements say their colour for light backgrounds as an attribute and their class; the style sheet
//! of a page replaces it in the dark. So an SVG that is cut out of its page still has colours.

use std::fmt::Write;

/// Behind everything, by light and in the dark.
pub(crate) const PAPER: [&str; 2] = ["#ffffff", "#16181d"];
/// Text and axes.
pub(crate) const INK: [&str; 2] = ["#20242b", "#e4e6ea"];
/// Grid lines and borders.
pub(crate) const GRID: [&str; 2] = ["#d9dce1", "#363a43"];

/// Colours of series and categories, by light and in the dark. A search found them: the nearest to
/// those of Okabe and Ito that can be distinguished in normal, red-blind, green-blind and
/// blue-blind sight, the first four best.
const COLOURS: [[&str; 2]; 8] = [
    ["#0291e4", "#1f82c1"],
    ["#e76a0f", "#db7d38"],
    ["#007a44", "#25e4ae"],
    ["#a9398f", "#f8bbff"],
    ["#a35300", "#e9b21d"],
    ["#282087", "#9496fe"],
    ["#71371b", "#b3937e"],
    ["#6c5e67", "#aaaeb6"],
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

    type Rgb = [f64; 3];

    /// Red, green and blue as amounts of light.
    fn linear(colour: &str) -> Rgb {
        [1, 3, 5].map(|at| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap_or(0)) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn luminance(colour: &str) -> f64 {
        times([0.2126, 0.7152, 0.0722], linear(colour))
    }

    fn times(weights: Rgb, light: Rgb) -> f64 {
        weights.iter().zip(light).map(|(weight, light)| weight * light).sum()
    }

    /// The light that is left in full red-, green- and blue-blindness (Machado, Oliveira and
    /// Fernandes 2009).
    const SIGHTS: [[Rgb; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    /// A colour as it is seen, in CIE L*a*b*, where distances are differences to the eye.
    fn seen(colour: &str, sight: [Rgb; 3]) -> Rgb {
        let light = linear(colour);
        let light = sight.map(|row| times(row, light).clamp(0.0, 1.0));
        let root = |t: f64| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let x = root(times([0.4124, 0.3576, 0.1805], light) / 0.95047);
        let y = root(times([0.2126, 0.7152, 0.0722], light));
        let z = root(times([0.0193, 0.1192, 0.9505], light) / 1.08883);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn every_kind_of_sight_tells_colours_apart() {
        for (sight, theme) in SIGHTS.into_iter().flat_map(|sight| [(sight, 0), (sight, 1)]) {
            for (index, one) in COLOURS.iter().enumerate() {
                for (before, other) in COLOURS[..index].iter().enumerate() {
                    let [one, other] = [one, other].map(|colours| seen(colours[theme], sight));
                    let square: f64 = one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum();
                    // A difference of 2 can just be seen.
                    let least = if index < 4 { 20.0 } else { 15.0 };
                    assert!(
                        square.sqrt() > least,
                        "{index} and {before} of theme {theme}: {:.1}",
                        square.sqrt()
                    );
                }
            }
        }
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
