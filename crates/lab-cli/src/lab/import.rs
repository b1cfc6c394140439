//! `softflash lab import`: makes files of a configuration of another simulator.

use clap::{Args, Subcommand};
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::input;
use softflash_console::new_file::{Existing, NewFile, is_standard};
use softflash_console::output::{self, Form};
use softflash_lab::import::{WithoutCounterpart, mqsim};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Arguments of `lab import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash lab import mqsim ssdconfig.xml --out mine
  softflash lab import mqsim ssdconfig.xml --workload workload.xml --out mine
  softflash bench sim --device mine/ssdconfig.toml \\
      --workload mine/ssdconfig-flow-1.toml")]
pub struct Import {
    #[command(subcommand)]
    from: From,
}

#[derive(Debug, Subcommand)]
enum From {
    /// A configuration of MQSim (ssdconfig.xml): device, layout, and the flows of a workload
    Mqsim(Mqsim),
}

impl Import {
    /// Imports.
    pub fn run(self) -> Result<(), CliError> {
        match self.from {
            From::Mqsim(mqsim) => mqsim.run(),
        }
    }
}

/// Arguments of `lab import mqsim`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash lab import mqsim ssdconfig.xml --out mine
  softflash lab import mqsim ssdconfig.xml --workload workload.xml \\
      --out mine -o json

Writes DIR/NAME.toml (the device), DIR/NAME-layout.toml and DIR/NAME-flow-N.toml, where NAME is the \
configuration's name without its extension (`imported` for standard input), and prints every parameter without a counterpart. \
Files that exist are replaced with --force only. docs/devices.md says how parameters are translated.")]
struct Mqsim {
    /// The configuration; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The workload definitions
    #[arg(long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// Directory of the files
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

#[derive(Serialize)]
struct Report {
    files: Vec<String>,
    remarks: Vec<String>,
    without_counterpart: Vec<Left>,
}

#[derive(Serialize)]
struct Left {
    file: String,
    #[serde(flatten)]
    left: WithoutCounterpart,
}

impl Mqsim {
    fn run(self) -> Result<(), CliError> {
        let text = read("the configuration", &self.file)?;
        let flows = self.workload.as_deref();
        let flows = flows.map(|path| read("--workload", path)).transpose()?;
        let (file, workload) = (shown(&self.file), self.workload.as_deref().map(shown));
        let name = match is_standard(&self.file) {
            true => "imported".to_owned(),
            false => self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        };
        let import =
            mqsim::import(&name, (&file, &text), workload.as_deref().zip(flows.as_deref()));
        let import = import.map_err(|error| CliError::Failed(error.to_string()))?;
        let files = import.files().map_err(|error| CliError::Failed(format!("{file}: {error}")))?;
        fs::create_dir_all(&self.out).map_err(CliError::file(&self.out))?;
        let existing = Existing::by_force(self.force);
        let path = |name: &str| self.out.join(format!("{name}.toml"));
        // All of them before the first is written.
        for file in &files {
            NewFile::at(&path(&file.name), existing)?;
        }
        let mut written = Vec::new();
        for file in files {
            let path = path(&file.name);
            NewFile::write(&path, existing, file.text.as_bytes())?;
            written.push(shown(&path));
        }
        let left = |(file, left)| Left { file, left };
        let without_counterpart = import.without_counterpart.into_iter().map(left).collect();
        let report = Report { files: written, remarks: import.remarks, without_counterpart };
        match self.output {
            Form::Json => output::json(&report),
            Form::Table => {
                report.print();
                Ok(())
            }
        }
    }
}

impl Report {
    fn print(&self) {
        self.files.iter().for_each(|file| output::result(&format!("{file}: written")));
        self.remarks.iter().for_each(|remark| output::result(remark));
        if self.without_counterpart.is_empty() {
            return;
        }
        output::result("");
        let rows = self.without_counterpart.iter().map(|Left { left, .. }| {
            vec![left.parameter.clone(), left.value.clone(), left.instead.to_owned()]
        });
        output::wrapped_rows(&["without counterpart", "value", "here"], rows);
    }
}

fn read(what: &str, path: &Path) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let read = match is_standard(path) {
        true => input::standard(what)?.read_to_end(&mut bytes),
        false => File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
    };
    read.map_err(CliError::file(path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
