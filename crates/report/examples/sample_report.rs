//! Writes a report with one of each kind of block to the file that is named, and each figure beside
//! it as SVG.
//!
//! `cargo run -p softflash-report --example sample_report -- /tmp/sample.html`

use softflash_report::{
    Arrangement, Axis, Band, Bars, Block, Cell, Gantt, Heat, Plot, Report, Section, Series, Style,
    Table, Unit,
};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name the file to write, such as sample.html")?;
    let figures: [Block; 7] = [
        by_size().into(),
        over_time().into(),
        operations().into(),
        by_cause().into(),
        by_device().into(),
        utilisation().into(),
        small_heat().into(),
    ];
    let mut section = Section::new("figures", "Figures").text("One of each.");
    for (index, figure) in figures.into_iter().enumerate() {
        if let Some(svg) = figure.to_svg() {
            std::fs::write(format!("{path}.{index}.svg"), svg)?;
        }
        section = section.block(figure);
    }
    let tables =
        Section::new("tables", "Tables").text("Our figures beside the paper's.").block(table());
    let report = Report::new("A sample report")
        .intro("Made-up numbers that show what a report looks like.\n\n- `tables` come first,\n- figures after them.")
        .section(tables)
        .section(section);
    std::fs::write(&path, report.to_html())?;
    Ok(())
}

fn table() -> Table {
    let mut table = Table::new("Throughput", ["request", "paper", "ours", "ratio"]);
    for (size, paper, ours) in
        [(8192.0, Some(1.23), 1.25), (65536.0, Some(1.42), 1.58), (8388608.0, None, 1.59)]
    {
        table = table.row([
            Cell::number(size).unit(Unit::Bytes).digits(1),
            paper.map_or(Cell::Empty, |paper| Cell::number(paper).unit("GB/s")),
            Cell::number(ours).unit("GB/s"),
            Cell::ratio(ours, paper, 0.05),
        ]);
    }
    table.note("A ratio within 5 % is marked with ✓.")
}

fn by_size() -> Plot {
    let sizes = (0..11).map(|exponent| 8192.0 * f64::from(1 << exponent));
    let rising = |limit: f64| move |size: f64| (size, limit * size / (size + 30_000.0));
    let sdf: Vec<_> = sizes.clone().map(rising(1.59)).collect();
    let other: Vec<_> = sizes.map(rising(1.2)).collect();
    let paper = [(8192.0, 0.4), (65536.0, 1.1), (8388608.0, 1.55)];
    Plot::new(
        "Throughput by size of request",
        Axis::new("size of request").unit(Unit::Bytes).log2(),
        Axis::new("throughput").unit("GB/s").including(0.0),
    )
    .series(Series::new("open channels", sdf).reference(paper))
    .series(Series::new("conventional", other).reference([(8192.0, 0.2), (65536.0, 0.9)]))
    .series(Series::new("link", [(8192.0, 1.61), (8388608.0, 1.61)]).style(Style::Dashed))
    .band(Band::y("limit of the flash", 1.62, 1.67))
    .note("Hollow marks are the paper's.")
}

fn over_time() -> Plot {
    let times = || (0..600_u32).map(|second| f64::from(second) * 1e8);
    let wave = |scale: f64, width: f64| {
        move |at: f64| {
            let t = at / 1e9;
            let burst = if (20.0..32.0).contains(&t) { 8.0 } else { 1.0 };
            scale * burst * (1.0 + width * (t * 1.7).sin() * (t * 0.31).cos())
        }
    };
    let series = |name: &str, scale: f64, width: f64| {
        Series::new(name, times().map(|at| (at, wave(scale, width)(at)))).style(Style::Line)
    };
    Plot::new(
        "Latency over time",
        Axis::new("time").unit(Unit::Nanoseconds),
        Axis::new("latency").unit(Unit::Nanoseconds).log10(),
    )
    .series(series("median", 9e4, 0.2))
    .series(series("99 %", 8e5, 0.5))
    .series(series("99.9 %", 4e6, 0.7))
    .band(Band::x("collection", 2e10, 3.2e10))
}

fn operations() -> Gantt {
    let axis = Axis::new("time").unit(Unit::Nanoseconds);
    let mut gantt = Gantt::new("Operations of dies", axis, ["read", "program", "erase", "move"]);
    for die in 0..16_u32 {
        let mut at = f64::from(die % 4) * 40e3;
        let spans = (0..12_u32).map(|index| {
            let category = ((die * 7 + index * index) % 4) as usize;
            let begin = at + f64::from((die + index) % 3) * 25e3;
            at = begin + [75e3, 600e3, 1900e3, 700e3][category];
            (begin, at, category)
        });
        gantt = gantt.row(format!("die {die}"), spans.collect::<Vec<_>>());
    }
    gantt
}

fn by_cause() -> Bars {
    let axis = Axis::new("pages programmed for each page of the application's");
    Bars::new("Write amplification by cause", axis, ["host", "collection", "parity", "metadata"])
        .bar("7 % spare", [1.0, 2.9, 0.09, 0.02])
        .bar("25 % spare", [1.0, 0.94, 0.09, 0.02])
        .bar("50 % spare, with a long name that has to be cut somewhere", [1.0, 0.31, 0.09, 0.02])
        .bar("no collection", [1.0, 0.0, 0.0, 0.01])
}

fn by_device() -> Bars {
    Bars::new("Throughput by device", Axis::new("throughput").unit("MB/s"), ["read", "write"])
        .bar("first", [1590.0, 960.0])
        .bar("second", [1200.0, 670.0])
        .bar("third", [219.0, 153.0])
        .arrangement(Arrangement::Grouped)
}

fn utilisation() -> Heat {
    let columns = (0..60).map(|second| format!("{second} s"));
    let mut heat =
        Heat::new("Utilisation of channels over time", Unit::Share, columns).range(0.0, 1.0);
    for channel in 0..44_u32 {
        let at = |second: u32| f64::from((channel * 31 + second * second * 7) % 97) / 96.0;
        let value = |second| if channel == 5 && second > 40 { f64::NAN } else { at(second) };
        heat = heat.row(format!("channel {channel}"), (0..60).map(value));
    }
    heat.columns_title("time")
}

fn small_heat() -> Heat {
    let sizes = ["8 KiB", "64 KiB", "512 KiB", "8 MiB"];
    Heat::new("Throughput by size and depth", "MB/s", sizes)
        .row("1", [80.0, 210.0, 370.0, 900.0])
        .row("8", [390.0, 760.0, 1010.0, 1400.0])
        .row("32", [1100.0, 1290.0, 1390.0, 1590.0])
        .columns_title("size of request")
}
