//! The set that a command changes, in a directory that it opens.

use crate::directories;
use clap::Args;
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_console::sizes::human_bytes;
use softflash_datadir::{
    DataDirError, FlashSet, OpenDir, SetError, SetKind, SetTable, ShardDomain,
};
use std::path::PathBuf;

/// A set of a data directory.
#[derive(Debug, Args)]
pub struct Named {
    /// The data directory
    pub directory: PathBuf,
    /// The set's name: 1 to 64 letters, digits, `-`, `_` and `.`
    pub name: String,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Form,
}

/// What a change has led to, as JSON.
#[derive(Serialize)]
struct Report<'a> {
    name: &'a str,
    /// Its units; none after it was deleted.
    units: Vec<u16>,
    /// Bytes that its keys or volumes may hold.
    usable_bytes: u64,
    /// The units in no set.
    spare_units: Vec<u16>,
}

const INSTEAD: &str = "change its sets with `redis-cli FLASH.SET RESIZE`, `CREATE` or `DELETE`";

impl Named {
    /// Opens the directory without a server.
    pub fn open(&self) -> Result<OpenDir, CliError> {
        directories::or_instead(OpenDir::open(&self.directory), INSTEAD)
    }

    /// The domain of the set.
    pub fn domain<'a>(&self, directory: &'a OpenDir) -> Result<&'a ShardDomain, CliError> {
        let place = directory.table().mapped_place(&self.name);
        let place = place.map_err(DataDirError::set(&directory.path))?;
        Ok(&directory.domains[place])
    }

    /// A table that can follow the one of the directory.
    pub fn planned(
        &self,
        directory: &OpenDir,
        table: Result<SetTable, SetError>,
    ) -> Result<SetTable, CliError> {
        let table = table.map_err(DataDirError::set(&directory.path))?;
        directory.check_table(&table)?;
        Ok(table)
    }

    /// Tells what was `done`, and what the set has afterwards.
    pub fn tell(&self, directory: &OpenDir, done: &str) -> Result<(), CliError> {
        let (name, spare) = (self.name.as_str(), directory.spare());
        let set = directory.sets.iter().find(|set| set.name == name);
        if self.output == Form::Json {
            let units = set.map(|set| set.units.iter().collect()).unwrap_or_default();
            let usable_bytes = set.map_or(0, |set| set.usable_bytes);
            let spare_units = spare.iter().collect();
            return output::json(&Report { name, units, usable_bytes, spare_units });
        }
        let now = set.map(|set| format!(": {}", description(set))).unwrap_or_default();
        let spare = if spare.is_empty() { "none".to_owned() } else { spare.to_string() };
        let path = directory.path.display();
        output::say(&format!("{path}: {done} `{name}`{now}; spare units: {spare}"));
        Ok(())
    }
}

fn description(set: &FlashSet) -> String {
    let FlashSet { units, shard, usable_bytes, .. } = set;
    let room = human_bytes(*usable_bytes);
    let data = match set.kind {
        SetKind::Store => "keys",
        SetKind::Mapped => "volumes",
    };
    format!("units {units} of shard {shard}, with room for about {room} of {data}")
}
