//! Tables and plots in one self-contained HTML file.
//!
//! A [`Report`] is sections of [`Block`]s: text, a [`Table`], or a figure ([`Plot`], [`Gantt`],
//! [`Bars`], [`Heat`]). [`Report::to_html`] writes it with the figures as inline SVG and without
//! external resources: no scripts, no fonts, no network. Equal reports give equal bytes. All values
//! give a report, NaN and infinities included: values that cannot be drawn are missing in the
//! picture, but are in the figure's data table.
//!
//! ```
//! use softflash_report::{Axis, Cell, Plot, Report, Section, Series, Table, Unit};
//! let table = Table::new("Speed", ["size", "paper", "ours", "ratio"]).row([
//!     Cell::number(8192.0).unit(Unit::Bytes),
//!     Cell::number(1.23).unit("GB/s"),
//!     Cell::number(1.21).unit("GB/s"),
//!     Cell::ratio(1.21, Some(1.23), 0.05),
//! ]);
//! let size = Axis::new("size").unit(Unit::Bytes).log2();
//! let speed = Axis::new("speed").unit("GB/s");
//! let plot = Plot::new("Speed by size", size, speed)
//!     .series(Series::new("reads", [(8192.0, 1.21), (65536.0, 1.5)]).reference([(8192.0, 1.23)]));
//! let report = Report::new("Measurements")
//!     .section(Section::new("speed", "Speed").text("How fast it is.").block(table).block(plot));
//! assert!(report.to_html().starts_with("<!DOCTYPE html>"));
//! ```

mod axis;
mod bars;
mod canvas;
mod figure;
mod gantt;
mod heat;
mod html;
mod legend;
mod markup;
mod number;
mod palette;
mod plot;
mod report;
mod scale;
mod table;
mod thinning;
mod unit;

pub use axis::Axis;
pub use bars::{Arrangement, Bars};
pub use gantt::Gantt;
pub use heat::Heat;
pub use plot::{Band, Plot, Series, Style};
pub use report::{Block, Report, Section};
pub use table::{Cell, Table, Verdict};
pub use unit::Unit;
