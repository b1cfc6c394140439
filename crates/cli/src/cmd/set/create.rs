//! `softflash set create`: a set for volumes of spare units.

use super::changed::Named;
use super::joining;
use clap::Args;
use softflash_console::CliError;
use softflash_datadir::{DEFAULT_OP_PERCENT, MOST_OP_PERCENT, NewSet};

/// Arguments of `set create`.
#[derive(Debug, Args)]
pub struct Create {
    #[command(flatten)]
    set: Named,
    /// How many of the spare units it gets
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    units: u16,
    /// The shard whose thread serves it; without, the one with the fewest units for volumes
    #[arg(long)]
    shard: Option<u16>,
    /// Spare space for collection, in percent of the usable space
    #[arg(
        long, value_name = "PERCENT", default_value_t = DEFAULT_OP_PERCENT,
        value_parser = clap::value_parser!(u8).range(0..=i64::from(MOST_OP_PERCENT))
    )]
    op: u8,
}

impl Create {
    /// Erases the units, then changes the table.
    pub fn run(self) -> Result<(), CliError> {
        let Create { set, units, shard, op } = self;
        let directory = set.open()?;
        let new = NewSet { name: set.name.clone(), units, shard, op_percent: op };
        let device_units = directory.device.info().units;
        let table = set.planned(&directory, directory.table().with_set(&new, device_units))?;
        joining::erase(&directory, &directory.table().given_by(&table, device_units))?;
        set.tell(&directory.replace_table(&table)?, "created set")
    }
}
