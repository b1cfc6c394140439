//! `softflash units`: shows the state of every unit of flash.

use crate::directories::{self, block_on};
use clap::Args;
use softflash_base::UnitSet;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_datadir::{DataDirError, OpenDir};
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Owners, Ownership, UnitState, UnitTelemetry};
use softflash_runtime::RuntimeHandle;
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of `units`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash units ./softflash-data
  softflash units ./softflash-data -o json | jq '.[] | select(.bad_blocks > 0)'

Reads the flash and changes nothing. While a server has the directory open, ask the server: \
FLASH.UNITS with any Redis client, or GET /api/units with --http.")]
pub struct Units {
    /// The data directory
    directory: PathBuf,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

const ASK_THE_SERVER: &str =
    "ask the server itself: `redis-cli FLASH.UNITS`, or GET /api/units of `serve --http`";

impl Units {
    /// Prints the state of every unit.
    pub fn run(self) -> Result<(), CliError> {
        let directory =
            directories::or_instead(OpenDir::open_to_look(&self.directory), ASK_THE_SERVER)?;
        let units = mount_and_look(&directory)?;
        match self.output {
            Form::Json => output::json(&units),
            Form::Table => {
                output::rows(&HEADER, units.iter().map(row));
                Ok(())
            }
        }
    }
}

const HEADER: [&str; 11] = [
    "unit",
    "state",
    "queue",
    "busy ms",
    "free",
    "live",
    "open",
    "reclaimable",
    "bad",
    "wear min/mean/max",
    "bad blocks",
];

fn row(unit: &UnitTelemetry) -> Vec<String> {
    let state = match unit.state {
        UnitState::Online => "online",
        UnitState::Full => "full",
        UnitState::ReadOnly => "read-only",
    };
    vec![
        unit.unit.to_string(),
        state.to_owned(),
        unit.queue.to_string(),
        (unit.busy_ns / 1_000_000).to_string(),
        unit.space.free().to_string(),
        unit.space.live.to_string(),
        unit.space.open.to_string(),
        unit.space.erase_pending.to_string(),
        unit.space.bad.to_string(),
        format!("{}/{:.1}/{}", unit.erase_count_min, unit.erase_count_mean, unit.erase_count_max),
        unit.bad_blocks.to_string(),
    ]
}

/// Mounts the units of each set, and the spare ones, which only reads, and queries each unit.
fn mount_and_look(directory: &OpenDir) -> Result<Vec<UnitTelemetry>, CliError> {
    block_on(|runtime| async move {
        let mut units = Vec::new();
        for set in &directory.sets {
            units.extend(telemetry_of(directory, (&set.units, set.ownership()), &runtime).await?);
        }
        let spare = directory.spare();
        if !spare.is_empty() {
            // They are empty, whoever had them.
            let spare = (&spare, Ownership::BLOCKS);
            units.extend(telemetry_of(directory, spare, &runtime).await?);
        }
        units.sort_by_key(|unit| unit.unit);
        Ok(units)
    })
}

/// Mounts the units of an owner, which only reads, and queries each unit.
pub async fn telemetry_of(
    directory: &OpenDir,
    (units, owner): (&UnitSet, Ownership),
    runtime: &RuntimeHandle,
) -> Result<Vec<UnitTelemetry>, CliError> {
    let owners = Owners::one(units.clone(), owner).at_epoch(directory.layout.epoch);
    // Nothing is erased in advance.
    let config = FtlConfig { erased_target: 0, ..FtlConfig::default() };
    let queue = Arc::clone(&directory.device).open_queue_pair(units)?;
    let (flash, _) = Flash::mount_one(queue, config, owners, runtime.clone())
        .await
        .map_err(DataDirError::store(&directory.path))?;
    let units = units.iter().map(|unit| flash.telemetry(unit)).collect();
    flash.stop();
    Ok(units)
}
