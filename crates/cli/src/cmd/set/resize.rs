//! `softflash set resize`: a set for volumes gets spare units, or gives some up.

use super::changed::Named;
use super::{draining, joining};
use clap::Args;
use softflash_base::{UnitSet, cast};
use softflash_console::CliError;
use softflash_datadir::OpenDir;

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
        let directory = self.set.open()?;
        let units = self.set.domain(&directory)?.units.clone();
        let has = cast::saturating_u16(units.len());
        if self.units < has {
            self.shrink(directory, &units.iter().skip(self.units.into()).collect())
        } else if self.units > has {
            self.grow(directory, self.units - has)
        } else {
            self.set.tell(&directory, "nothing to change of set")
        }
    }

    fn shrink(&self, directory: OpenDir, given_up: &UnitSet) -> Result<(), CliError> {
        let shrunk = directory.table().without_units(&self.set.name, given_up);
        let table = self.set.planned(&directory, shrunk)?;
        draining::drain(&directory, self.set.domain(&directory)?, given_up)?;
        self.set.tell(&directory.replace_table(&table)?, "resized set")
    }

    fn grow(&self, directory: OpenDir, more: u16) -> Result<(), CliError> {
        let device_units = directory.device.info().units;
        let grown = directory.table().with_more_units(&self.set.name, more, device_units);
        let table = self.set.planned(&directory, grown)?;
        joining::erase(&directory, &directory.table().given_by(&table, device_units))?;
        self.set.tell(&directory.replace_table(&table)?, "resized set")
    }
}
