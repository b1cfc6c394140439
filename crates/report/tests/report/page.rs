//! Tests of the whole page: with any contents it is well-formed, self-contained and deterministic.

use crate::support::elements;
use proptest::collection::vec;
use proptest::prelude::*;
use softflash_report::{
    Arrangement, Axis, Band, Bars, Block, Cell, Gantt, Heat, Plot, Report, Section, Series, Style,
    Table, Unit,
};

fn sample() -> Report {
    let table = Table::new("Cells", ["size", "ours", "ratio"])
        .row([
            Cell::number(8192.0).unit(Unit::Bytes).digits(1),
            Cell::number(1.5),
            Cell::ratio(1.5, Some(1.0), 0.05),
        ])
        .note("All made up.");
    let plot = Plot::new("Speed", Axis::new("x"), Axis::new("y"))
        .series(Series::new("s", [(1.0, 2.0)]))
        .note("A `note`.");
    Report::new("R & D")
        .intro("First.")
        .section(Section::new("one", "One <1>").text("Words.").block("More words.").block(table))
        .section(Section::new("two", "Two").block(plot))
}

#[test]
fn the_page_has_what_was_put_in() {
    let html = sample().to_html();
    for snippet in [
        "<title>R &amp; D</title>",
        "<h1>R &amp; D</h1>\n<p>First.</p>",
        "<li><a href=\"#one\">One &lt;1&gt;</a></li>\n<li><a href=\"#two\">Two</a></li>",
        "<section id=\"one\"><h2>One &lt;1&gt;</h2>\n<p>Words.</p>\n<p>More words.</p>",
        "<td class=\"number\">8\u{a0}KiB</td>\n<td class=\"number\">1.50</td>\n<td class=\"number outside\">1.50 ✗</td>",
        "<p class=\"note\">All made up.</p>",
        "<p class=\"note\">A <code>note</code>.</p>",
        "<details><summary>Data</summary>",
        "<td>s</td>\n<td class=\"number\">1.000</td>\n<td class=\"number\">2.000</td>",
        "role=\"img\" aria-label=\"Speed\"",
    ] {
        assert!(html.contains(snippet), "{snippet} is missing in\n{html}");
    }
    elements(&html);
}

#[test]
fn the_page_needs_nothing_else() {
    let html = sample().to_html();
    for element in elements(&html) {
        assert!(!["script", "link", "img", "iframe", "object"].contains(&element.name.as_str()));
        assert!(
            ["", "#"]
                .contains(&&element.attribute("href")[..element.attribute("href").len().min(1)])
        );
        assert_eq!(element.attribute("src"), "");
    }
    assert!(!html.contains("url(") && !html.contains("@import"));
    assert!(html.contains("prefers-color-scheme: dark") && html.contains("@media print"));
}

#[test]
fn an_empty_report_is_a_report() {
    elements(&Report::default().to_html());
    let section = Section::new("", "")
        .block(Plot::default())
        .block(Gantt::default())
        .block(Bars::default())
        .block(Heat::default())
        .block(Table::default());
    elements(&Report::new("").section(section).to_html());
}

/// Numbers of all kinds, the odd ones often.
fn number() -> impl Strategy<Value = f64> {
    let odd = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        -0.0,
        0.0,
        1.0,
    ];
    prop_oneof![proptest::sample::select(odd.to_vec()), any::<f64>(), -1e3..1e3, Just(7.0)]
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z ]{0,90}", Just("</svg><script>\u{0}]]>&\"'`".to_string())]
}

fn axis() -> impl Strategy<Value = Axis> {
    let units = vec![Unit::None, Unit::Bytes, Unit::Nanoseconds, Unit::Share, Unit::from("<&>")];
    (words(), proptest::sample::select(units), 0..3, vec(number(), 0..2)).prop_map(
        |(title, unit, scale, including)| {
            let axis = Axis::new(title).unit(unit);
            let axis = match scale {
                0 => axis,
                1 => axis.log2(),
                _ => axis.log10(),
            };
            including.into_iter().fold(axis, Axis::including)
        },
    )
}

fn plot() -> impl Strategy<Value = Block> {
    let points = || vec((number(), number()), 0..12);
    let styles = vec![Style::LineAndMarks, Style::Line, Style::Dashed, Style::Marks];
    let series = (words(), points(), points(), proptest::sample::select(styles)).prop_map(
        |(name, points, reference, style)| {
            Series::new(name, points).reference(reference).style(style)
        },
    );
    let band = (words(), 0..3, vec((number(), number(), number()), 1..5)).prop_map(
        |(name, kind, points)| match kind {
            0 => Band::x(name, points[0].0, points[0].1),
            1 => Band::y(name, points[0].0, points[0].1),
            _ => Band::between(name, points).like(3),
        },
    );
    (words(), axis(), axis(), vec(series, 0..4), vec(band, 0..3)).prop_map(
        |(title, x, y, series, bands)| {
            let plot = series.into_iter().fold(Plot::new(title, x, y), Plot::series);
            bands.into_iter().fold(plot, Plot::band).into()
        },
    )
}

fn others() -> impl Strategy<Value = Block> {
    let names = || vec(words(), 0..4);
    let rows = || vec((words(), vec(number(), 0..6)), 0..5);
    let bars = (words(), axis(), names(), rows(), any::<bool>()).prop_map(
        |(title, axis, names, rows, grouped)| {
            let arrangement = if grouped { Arrangement::Grouped } else { Arrangement::Stacked };
            let bars = Bars::new(title, axis, names).arrangement(arrangement);
            rows.into_iter().fold(bars, |bars, (name, values)| bars.bar(name, values)).into()
        },
    );
    let heat = (words(), names(), rows(), any::<Option<(f64, f64)>>()).prop_map(
        |(title, names, rows, range)| {
            let heat = rows
                .into_iter()
                .fold(Heat::new(title, "u", names), |heat, (name, values)| heat.row(name, values));
            range.into_iter().fold(heat, |heat, (from, to)| heat.range(from, to)).into()
        },
    );
    let spans = vec((words(), vec((number(), number(), any::<usize>()), 0..6)), 0..70);
    let gantt = (words(), axis(), names(), spans).prop_map(|(title, axis, names, rows)| {
        rows.into_iter()
            .fold(Gantt::new(title, axis, names), |gantt, (name, spans)| gantt.row(name, spans))
            .into()
    });
    let table = (words(), names(), rows(), number()).prop_map(|(title, names, rows, paper)| {
        let cells = |(name, values): (String, Vec<f64>)| {
            let ratios = values.into_iter().map(move |value| Cell::ratio(value, Some(paper), 0.1));
            std::iter::once(Cell::Text(name)).chain(ratios)
        };
        rows.into_iter().fold(Table::new(title, names), |table, row| table.row(cells(row))).into()
    });
    prop_oneof![bars, heat, gantt, table, words().prop_map(Block::Text)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_is_in_it_the_page_is_well_formed(
        title in words(),
        blocks in vec(prop_oneof![plot(), others()], 0..4),
    ) {
        let section = blocks.iter().cloned().fold(Section::new(title.as_str(), title.as_str()), Section::block);
        let report = Report::new(title).section(section.clone()).section(section);
        let html = report.to_html();
        prop_assert_eq!(&html, &report.clone().to_html());
        for element in elements(&html) {
            prop_assert_ne!(element.name.as_str(), "script");
        }
        for svg in blocks.iter().filter_map(Block::to_svg) {
            check_places(&svg);
        }
    }
}

/// Every place in a picture is a number inside of it.
fn check_places(svg: &str) {
    let elements = elements(svg);
    let height = elements.last().map_or(0.0, |svg| svg.number("height"));
    for element in &elements {
        for (name, most) in [
            ("x", 720.0),
            ("x1", 720.0),
            ("x2", 720.0),
            ("width", 720.0),
            ("y1", height),
            ("y2", height),
        ] {
            if element.attributes.contains_key(name) {
                let at = element.number(name);
                assert!((0.0..=most + 1.0).contains(&at), "{name} = {at} of {element:?}");
            }
        }
        let d = element.attribute("d");
        assert!(!d.contains("NaN") && !d.contains("inf"), "{d}");
    }
}
