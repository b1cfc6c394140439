//! Tests of the contents of figures, read back from their SVG.

use crate::support::{Element, check_labels, elements};
use softflash_report::{
    Arrangement, Axis, Band, Bars, Block, Gantt, Heat, Plot, Series, Style, Unit,
};

fn svg(figure: impl Into<Block>) -> String {
    figure.into().to_svg().unwrap_or_default()
}

fn tips(svg: &str) -> Vec<String> {
    let marks = elements(svg).into_iter().filter(|e| e.name != "svg" && e.name != "text");
    marks.map(|e| e.tip).filter(|tip| !tip.is_empty()).collect()
}

fn named(svg: &str, name: &str) -> Vec<Element> {
    elements(svg).into_iter().filter(|e| e.name == name).collect()
}

fn speed() -> Plot {
    let x = Axis::new("size").unit(Unit::Bytes).log2();
    Plot::new("Speed", x, Axis::new("speed").unit("GB/s"))
}

#[test]
fn points_say_what_they_are() {
    let series = Series::new("reads", [(8192.0, 1.25), (65536.0, 1.5)]).reference([(8192.0, 1.23)]);
    let svg = svg(speed().series(series));
    assert_eq!(
        tips(&svg),
        [
            "reads: 1.25\u{a0}GB/s at 8\u{a0}KiB",
            "reads: 1.5\u{a0}GB/s at 64\u{a0}KiB",
            "reads (paper): 1.23\u{a0}GB/s at 8\u{a0}KiB"
        ]
    );
    check_labels(&svg);
}

#[test]
fn reference_points_are_hollow_and_named_in_the_legend() {
    let with =
        svg(speed().series(Series::new("a", []).reference([(1.0, 1.0)])).reference_name("book"));
    let without = svg(speed().series(Series::new("a", [(1.0, 1.0)])));
    let hollow = |svg: &str| {
        named(svg, "path")
            .iter()
            .filter(|path| path.attribute("fill") == "none" && path.attribute("d").ends_with('Z'))
            .count()
    };
    assert_eq!([hollow(&with), hollow(&without)], [2, 0], "one in the legend, one in the plot");
    assert!(named(&with, "text").iter().any(|text| text.text == "book"));
    assert!(!named(&without, "text").iter().any(|text| text.text == "paper"));
}

#[test]
fn error_bars_reach_from_their_low_to_their_high_value() {
    let y = Axis::new("y").including(0.0).including(10.0);
    let bars = [(1.0, 2.0, 6.0), (2.0, f64::NAN, 3.0)];
    let series = Series::new("a", [(1.0, 4.0), (2.0, 3.0)]).style(Style::Marks).error_bars(bars);
    let svg = svg(Plot::new("Bars", Axis::new("x"), y).series(series));
    let paths = named(&svg, "path");
    let bars: Vec<&str> = paths
        .iter()
        .filter(|path| path.attribute("stroke-width") == "1.5")
        .map(|path| path.attribute("d"))
        .collect();
    let [bar] = bars.as_slice() else { panic!("{bars:?}") };
    // The upright and its two ends, of one point: the other has no low value.
    assert_eq!(bar.matches('M').count(), 3);
    let ys: Vec<f64> =
        bar.split(['M', 'L']).filter_map(|point| point.split_once(' ')?.1.parse().ok()).collect();
    // 2 and 6 of 10 are four tenths of the height apart.
    assert!((ys[0] - ys[1] - 280.0 * 0.4).abs() < 0.5, "{ys:?}");
}

#[test]
fn a_line_has_a_gap_where_there_is_no_number() {
    let points = [(1.0, 1.0), (2.0, 2.0), (3.0, f64::NAN), (4.0, 4.0), (5.0, 3.0)];
    let plot = Plot::new("t", Axis::new("x"), Axis::new("y"));
    let svg = svg(plot.series(Series::new("s", points).style(Style::Line)));
    let lines: Vec<Element> = named(&svg, "path")
        .into_iter()
        .filter(|p| p.attribute("stroke") == "currentColor")
        .collect();
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(line.attribute("d").matches('M').count(), 2);
    assert_eq!(tips(&svg).len(), 4);
}

#[test]
fn heights_are_proportional() {
    let plot = Plot::new("t", Axis::new("x"), Axis::new("y"));
    let svg = svg(
        plot.series(Series::new("s", [(0.0, 0.0), (1.0, 5.0), (2.0, 10.0)]).style(Style::Line))
    );
    let path = named(&svg, "path").into_iter().find(|p| p.attribute("stroke") == "currentColor");
    let d = path.map(|p| p.attribute("d").replace('M', "")).unwrap_or_default();
    let points: Vec<Vec<f64>> =
        d.split('L').map(|p| p.split(' ').map(|n| n.parse().unwrap()).collect()).collect();
    let [low, middle, high] = points.as_slice() else { panic!("{d}") };
    assert!((low[1] - middle[1] - (middle[1] - high[1])).abs() < 0.2, "{d}");
    assert!((middle[0] - low[0] - (high[0] - middle[0])).abs() < 0.2, "{d}");
    assert!(low[1] > high[1], "up is more");
}

#[test]
fn bands_lie_where_they_are_told() {
    let plot = Plot::new("t", Axis::new("x").including(0.0), Axis::new("y").including(10.0))
        .band(Band::x("pause", 2.0, 3.0))
        .band(Band::between("spread", [(0.0, 1.0, 2.0), (10.0, 2.0, 4.0)]).like(0))
        .series(Series::new("s", [(0.0, 0.0), (10.0, 3.0)]));
    let svg = svg(plot);
    let all = named(&svg, "rect");
    let stripe = all.iter().find(|rect| rect.tip == "pause").unwrap();
    let frame = elements(&svg)
        .iter()
        .filter(|e| e.name == "line")
        .map(|e| e.number("x2"))
        .fold(0.0, f64::max);
    assert!(stripe.number("width") > 50.0 && stripe.number("width") < frame / 9.0);
    assert!(named(&svg, "path").iter().any(|path| path.tip == "spread"));
}

#[test]
fn spans_have_colours_of_their_categories() {
    let axis = Axis::new("time").unit(Unit::Nanoseconds);
    let gantt = Gantt::new("g", axis, ["read", "erase"])
        .row("die 0", [(0.0, 75e3, 0), (75e3, 2e6, 1)])
        .row("die 1", [(0.0, 1e6, 1), (1e6, 2e6, 9)]);
    let svg = svg(gantt);
    assert_eq!(
        tips(&svg),
        [
            "die 0: read, 0\u{a0}ns to 75\u{a0}µs (75\u{a0}µs)",
            "die 0: erase, 75\u{a0}µs to 2\u{a0}ms (1.925\u{a0}ms)",
            "die 1: erase, 0\u{a0}ns to 1\u{a0}ms (1\u{a0}ms)",
            "die 1: category 9, 1\u{a0}ms to 2\u{a0}ms (1\u{a0}ms)"
        ]
    );
    let classes = ["c0", "c1"]
        .map(|class| named(&svg, "g").iter().filter(|g| g.attribute("class") == class).count());
    assert_eq!(classes, [2, 4], "one each is the legend's; category 9 has the second colour again");
    check_labels(&svg);
}

#[test]
fn stacked_parts_follow_each_other_and_add_up() {
    let bars = Bars::new("b", Axis::new("pages"), ["host", "moved"])
        .bar("a", [1.0, 0.5])
        .bar("b", [2.0, f64::NAN]);
    let svg = svg(bars);
    let rects = named(&svg, "rect");
    let part = |tip: &str| rects.iter().find(|rect| rect.tip == tip).unwrap();
    let (host, moved) = (part("a: host 1"), part("a: moved 0.5"));
    assert!((host.number("x") + host.number("width") - moved.number("x")).abs() < 0.2);
    assert!((host.number("width") - 2.0 * moved.number("width")).abs() < 0.3);
    let texts: Vec<String> = named(&svg, "text").into_iter().map(|text| text.text).collect();
    assert!(texts.contains(&"1.5".to_string()) && texts.contains(&"2".to_string()), "{texts:?}");
    check_labels(&svg);
}

#[test]
fn grouped_bars_may_be_negative() {
    let bars = Bars::new("b", Axis::new("change").unit("%"), ["x", "y"]).bar("a", [-10.0, 20.0]);
    let svg = svg(bars.arrangement(Arrangement::Grouped));
    let rects = named(&svg, "rect");
    let part = |tip: &str| rects.iter().find(|rect| rect.tip == tip).unwrap();
    let (down, up) = (part("a: x −10\u{a0}%"), part("a: y 20\u{a0}%"));
    assert!((down.number("x") + down.number("width") - up.number("x")).abs() < 0.2);
}

#[test]
fn the_greatest_value_is_the_hottest() {
    let svg = svg(Heat::new("h", Unit::Share, ["1 s", "2 s"])
        .row("channel 0", [0.25, 1.0])
        .row("channel 1", [0.5, f64::NAN]));
    let cells: Vec<(String, String)> = named(&svg, "rect")
        .into_iter()
        .filter(|r| !r.tip.is_empty())
        .map(|r| (r.tip.clone(), r.attribute("fill").to_string()))
        .collect();
    let expected = [
        ("channel 0, 1 s: 25\u{a0}%", "#00204c"),
        ("channel 0, 2 s: 100\u{a0}%", "#ffea46"),
        ("channel 1, 1 s: 50\u{a0}%", "#555c6f"),
    ];
    assert_eq!(cells, expected.map(|(tip, colour)| (tip.to_string(), colour.to_string())));
    check_labels(&svg);
}

#[test]
fn a_million_points_make_a_small_picture() {
    let points = |phase: u32| {
        (0..1_000_000_u32).map(move |i| (f64::from(i), f64::from((i * 7 + phase) % 1013)))
    };
    let plot = Plot::new("t", Axis::new("x"), Axis::new("y"))
        .series(Series::new("line", points(0)))
        .series(
            Series::new(
                "marks",
                points(1).take(5000).map(|(x, y)| (x % 10.0, (y / 100.0).floor())),
            )
            .style(Style::Marks),
        );
    let svg = svg(plot);
    assert!(svg.len() < 200_000, "{} bytes", svg.len());
}

#[test]
fn labels_of_crowded_figures_do_not_touch() {
    let mut heat = Heat::new("h", Unit::Share, (0..300).map(|i| format!("{i}.5 s")));
    let mut gantt = Gantt::new("g", Axis::new("t").unit(Unit::Nanoseconds), ["a"]);
    for row in 0..300_u32 {
        heat = heat.row(format!("a channel with a very long name, which is {row}"), [0.5]);
        gantt = gantt.row(format!("die {row}"), [(0.0, 123_456_789.0, 0)]);
    }
    check_labels(&svg(heat));
    check_labels(&svg(gantt));
    let wide = [(1.0, 1.0), (1e14, 2.0)];
    check_labels(&svg(
        Plot::new("t", Axis::new("x"), Axis::new("y")).series(Series::new("s", wide))
    ));
    let mut plot = Plot::new("t", Axis::new("x"), Axis::new("y").log10());
    for series in 0..30 {
        let points = [(1e12, 1e-12), (1.0e12 + 9e9, 1e12)];
        plot = plot.series(Series::new(format!("the series by the number {series}"), points));
    }
    check_labels(&svg(plot));
}
