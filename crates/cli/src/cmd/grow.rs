//! `softflash grow`: enlarges the device of a data directory.

use super::set::joining;
use crate::directories;
use clap::Args;
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_console::plural::plural;
use softflash_console::sizes::{human_bytes, parse_size};
use softflash_datadir::{DataDir, FlashSet, Growth, OpenDir, SetKind, Shares};
use softflash_device::{DeviceInfo, bytes_with};
use std::path::PathBuf;

/// Arguments of `grow`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash grow ./data --size 128GiB --dry-run     what would change
  softflash grow ./data --size 128GiB
  softflash grow ./data --size 128GiB --store 0     all new units for volumes
  softflash grow ./data --size 128GiB --spare 8     8 stay spare, for sets
  softflash grow ./data                             all of a block device

The device gets more units at its end, of the size of those that it has: the most whole units that \
fit --size. No data move. Without --store, --volumes and --spare, keys and volumes get new units in \
proportion to those that they have. After a signal, a crash or an error all keys and volumes are as \
before, and the command can be repeated; where it ended behind its last step but one, the next start \
completes it. While a server has the directory open, use FLASH.GROW with any Redis client. A device \
cannot become smaller, and one of --backend model keeps its size. Programs that know no table of \
sets refuse the directory from then on.")]
pub struct Grow {
    /// The data directory
    directory: PathBuf,
    /// Size of the device afterwards; without, all of a block device
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,
    /// How many of the new units are for keys
    #[arg(long, value_name = "UNITS")]
    store: Option<u16>,
    /// How many are for the sets for volumes that there are
    #[arg(long, value_name = "UNITS")]
    volumes: Option<u16>,
    /// How many stay in no set
    #[arg(long, value_name = "UNITS")]
    spare: Option<u16>,
    /// Show what would change, and change nothing; works beside a server
    #[arg(long)]
    dry_run: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

impl Grow {
    /// Makes room for the new units, erases those that join a set, and gives them to it.
    pub fn run(self) -> Result<(), CliError> {
        if self.dry_run {
            return self.show();
        }
        let instead = "grow it with `redis-cli FLASH.GROW SIZE`";
        let directory = directories::or_instead(OpenDir::open(&self.directory), instead)?;
        let device = directory.device.info().clone();
        let planned = directory.plan_growth(self.size, self.shares())?;
        let Some(growth) = planned else {
            return self.tell_unchanged(&device);
        };
        let larger = directory.begin_growth(&growth)?;
        let joining = growth.grown.joining();
        let erased = match joining.is_empty() {
            true => Ok(()),
            false => joining::erase(&larger, &joining),
        };
        if let Err(error) = erased {
            larger.undo_growth();
            return Err(error);
        }
        larger.finish_growth(&growth)?;
        self.tell(&growth)
    }

    fn shares(&self) -> Shares {
        let Grow { store, volumes, spare, .. } = *self;
        Shares { store, volumes, spare }
    }

    /// Shows the plan, which needs no lock.
    fn show(&self) -> Result<(), CliError> {
        let manifest = DataDir::inspect(&self.directory)?;
        let device = softflash_device::inspect(&self.directory.join(&manifest.device))?;
        let planned = Growth::plan(&self.directory, &manifest, &device, self.size, self.shares())?;
        match planned {
            Some(growth) => self.tell(&growth),
            None => self.tell_unchanged(&device),
        }
    }

    fn tell(&self, growth: &Growth) -> Result<(), CliError> {
        let sets = growth.before.iter().zip(&growth.after).map(|(before, after)| Set {
            name: after.name.clone(),
            kind: after.kind,
            shard: after.shard.0,
            units: after.units.iter().collect(),
            units_before: before.units.iter().collect(),
            usable_bytes: after.usable_bytes,
            usable_bytes_before: before.usable_bytes,
        });
        let report = Report {
            changed: !self.dry_run,
            device_bytes: growth.device_bytes,
            device_units: growth.units.end,
            new_units: growth.units.clone().collect(),
            sets: sets.collect(),
            spare_units: growth.spare.iter().collect(),
        };
        if self.output == Form::Json {
            return output::json(&report);
        }
        let rows = growth.before.iter().zip(&growth.after);
        output::rows(&HEADER, rows.map(|(before, after)| row(before, after)));
        let spare = match growth.spare.is_empty() {
            true => "none".to_owned(),
            false => growth.spare.to_string(),
        };
        let (new, verb) = (growth.units.len() as u64, if self.dry_run { "would be" } else { "is" });
        output::say(&format!(
            "{}: the device {verb} larger by {}, {} with {}; spare units: {spare}",
            self.directory.display(),
            plural(new, "unit"),
            human_bytes(growth.device_bytes),
            plural(growth.units.end.into(), "unit"),
        ));
        Ok(())
    }

    fn tell_unchanged(&self, device: &DeviceInfo) -> Result<(), CliError> {
        let (units, geometry) = (device.units, &device.geometry);
        let device_bytes = bytes_with(units, geometry);
        if self.output == Form::Json {
            let report = Report {
                changed: false,
                device_bytes,
                device_units: units,
                new_units: Vec::new(),
                sets: Vec::new(),
                spare_units: Vec::new(),
            };
            return output::json(&report);
        }
        let next = bytes_with(units.saturating_add(1), geometry);
        output::say(&format!(
            "{}: nothing to change: the device has {}, {}, and no further one fits; the next needs a \
             size of {next} bytes ({})",
            self.directory.display(),
            plural(units.into(), "unit"),
            human_bytes(device_bytes),
            human_bytes(next),
        ));
        Ok(())
    }
}

/// The growth as JSON.
#[derive(Serialize)]
struct Report {
    /// Whether the directory is another one now.
    changed: bool,
    /// Bytes of the device, its label included.
    device_bytes: u64,
    device_units: u16,
    new_units: Vec<u16>,
    sets: Vec<Set>,
    /// All units in no set.
    spare_units: Vec<u16>,
}

/// A set before and after.
#[derive(Serialize)]
struct Set {
    name: String,
    kind: SetKind,
    shard: u16,
    units: Vec<u16>,
    units_before: Vec<u16>,
    usable_bytes: u64,
    usable_bytes_before: u64,
}

const HEADER: [&str; 6] = ["set", "shard", "kind", "units", "usable before", "usable"];

fn row(before: &FlashSet, after: &FlashSet) -> Vec<String> {
    let units = match before.units == after.units {
        true => after.units.to_string(),
        false => format!("{} -> {}", before.units, after.units),
    };
    vec![
        after.name.clone(),
        after.shard.0.to_string(),
        after.kind.name().to_owned(),
        units,
        human_bytes(before.usable_bytes),
        human_bytes(after.usable_bytes),
    ]
}
