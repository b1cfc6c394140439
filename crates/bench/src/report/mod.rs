//! `softflash-bench report`: draws results of `bench kv` and of the scripts in `bench/`.

mod against;
mod amplification;
mod cases;
mod input;
mod over_time;

use clap::Args;
use input::{Input, Script};
use softflash_console::CliError;
use softflash_console::new_file::{Existing, NewFile};
use softflash_console::output;
use softflash_report::{Block, Cell, Report, Section, Table};
use std::path::{Path, PathBuf};

/// Arguments of `softflash-bench report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bench/against_rocksdb.py --json > rocksdb.json
  softflash-bench report rocksdb.json --out kv.html
  softflash bench kv --workload overwrite --operations 1000000 \\
      --series -o json > kv.json
  softflash-bench report kv.json
  softflash-bench report rocksdb.json redis.json \\
      --out docs/results/kv.html --svg

The page is self-contained: no network, no scripts. Medians over the rounds of a script are shown. \
Write amplification of uniform overwrites is shown beside the theory of greedy cleaning, in which \
values alone are written.")]
pub struct BenchReport {
    /// JSON output of scripts in bench/, or of `bench kv -o json`
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Path of the page
    #[arg(long, value_name = "FILE", default_value = "bench.html")]
    out: PathBuf,
    /// Writes each plot as a file beside the page, too
    #[arg(long)]
    svg: bool,
}

/// A part of the page.
pub struct Part {
    id: String,
    title: String,
    text: String,
    blocks: Vec<Block>,
}

impl BenchReport {
    /// Draws the results.
    pub fn run(self) -> Result<(), CliError> {
        let mut parts = Vec::new();
        for path in &self.files {
            match Input::read(path)? {
                Input::Script(script) => parts.extend(of_script(&script)),
                Input::Kv(run) => parts.push(over_time::of_run(path, &run)),
            }
        }
        if self.svg {
            for part in &parts {
                part.write_plots(&self.out)?;
            }
        }
        let files: Vec<String> =
            self.files.iter().map(|path| format!("`{}`", name(path))).collect();
        let intro = format!("Results of {}.", files.join(", "));
        let report = Report::new("SoftFlash benchmarks").intro(intro);
        let report = parts.into_iter().map(Part::section).fold(report, Report::section);
        NewFile::write(&self.out, Existing::Replaced, report.to_html().as_bytes())?;
        output::say(&format!("{}: written", self.out.display()));
        Ok(())
    }
}

/// The page of a script: a part for each workload, and all its results as a table.
fn of_script(script: &Script) -> Vec<Part> {
    let mut parts = against::parts(script);
    let mut table = Table::new("Results", ["", "value"]);
    for (what, value) in &script.results {
        let cell = value.as_f64().map_or_else(|| Cell::text(value.to_string()), Cell::number);
        table = table.row([Cell::text(what), cell]);
    }
    parts.push(Part {
        id: format!("{}-results", script.benchmark),
        title: format!("All results of the benchmark {}", script.benchmark),
        text: format!("Machine: {} cores, Linux {}.", script.machine.cores, script.machine.kernel),
        blocks: vec![table.into()],
    });
    parts
}

impl Part {
    fn section(self) -> Section {
        let section = Section::new(self.id, self.title).text(self.text);
        self.blocks.into_iter().fold(section, Section::block)
    }

    /// Writes the plots as `PAGE-PART-NUMBER.svg`.
    fn write_plots(&self, page: &Path) -> Result<(), CliError> {
        let stem = page.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let plots = self.blocks.iter().filter_map(Block::to_svg);
        for (index, svg) in plots.enumerate() {
            let path = page.with_file_name(format!("{stem}-{}-{}.svg", self.id, index + 1));
            NewFile::write(&path, Existing::Replaced, svg.as_bytes())?;
        }
        Ok(())
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
