//! `softflash set resize`: a set gets spare units, or gives some up.

use super::changed::Named;
use super::{draining, joining};
use clap::Args;
use softflash_base::ShardId;
use softflash_console::CliError;
use softflash_datadir::{DataDirError, Resize as ResizedSet};

/// Arguments of `set resize`.
#[derive(Debug, Args)]
pub struct Resize {
    #[command(flatten)]
    set: Named,
    /// How many units it has afterwards
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    units: u16,
}

impl Resize {
    /// Makes the flash ready, then changes the table.
    pub fn run(self) -> Result<(), CliError> {
        let Resize { set, units } = self;
        let directory = set.open()?;
        let device_units = directory.device.info().units;
        let resized = directory.table().resized(&set.name, units, device_units);
        let next = match resized.map_err(DataDirError::set(&directory.path))? {
            ResizedSet::None => return set.tell(&directory, "nothing to change of set"),
            ResizedSet::Grow { joining, next } => {
                directory.check_table(&next)?;
                joining::erase(&directory, &joining)?;
                next
            }
            ResizedSet::Shrink { leaving, next } => {
                directory.check_table(&next)?;
                match directory.table().shard_of_store(&set.name) {
                    Some(shard) => draining::drain_store(&directory, ShardId(shard), &leaving)?,
                    None => draining::drain(&directory, set.domain(&directory)?, &leaving)?,
                }
                next
            }
        };
        set.tell(&directory.replace_table(&next)?, "resized set")
    }
}
