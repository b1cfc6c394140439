//! `softflash volume`: creates, changes, lists and deletes volumes and their snapshots.

mod copying;
mod delete;
pub mod export;
mod give_up;
pub mod import;
mod import_checks;
mod list;
mod named;
mod relocate;
mod reshape;
mod settings;
mod unfinished;

use clap::{Args, Subcommand};
use named::Named;
use settings::SettingArgs;
use softflash_console::CliError;
use softflash_console::output::Form;
use softflash_console::sizes::{human_bytes, parse_size};
use softflash_datadir::has_copies;
use softflash_volume::VolumeError;
use std::path::PathBuf;

/// Arguments of `volume`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash format ./data --size 64GiB --units 16 --shards 2 --volume-units 4
  softflash volume create ./data disk 100GiB
  softflash volume snapshot ./data disk before-upgrade
  softflash volume clone ./data disk before-upgrade trial
  softflash volume set ./data trial --quota 10GiB --iops 500
  softflash volume list ./data -o json
  softflash volume rollback ./data disk before-upgrade
  softflash volume move ./data disk --set vol-1
  softflash volume delete-snapshot ./data disk before-upgrade

The server must be stopped. Volumes are thin: they take space as they are written, and may promise \
more than there is. docs/volumes.md describes them.")]
pub struct Volume {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Create a thin volume, which reads as zeros
    #[command(after_help = "\
Examples:
  softflash volume create ./data disk 100GiB
  softflash volume create ./data logs 20GiB --quota 10GiB \\
      --temperature hot --bandwidth 50MiB
  softflash volume create ./data index 5GiB --set vol-1
  softflash volume create ./data orders 5GiB --copies 2

All data of a volume, with its snapshots and clones, stay in one set of one shard: it can hold at \
most the usable space of that set, and at most 16 TiB less 4096 bytes. It is thin, so it may be \
larger, with a warning. `softflash set list` names the sets with their space, and which of them are \
pairs; `volume move` brings a volume to another one.")]
    Create {
        #[command(flatten)]
        volume: Named,
        /// Its size, a multiple of 4096 bytes
        #[arg(value_parser = parse_size)]
        size: u64,
        /// The set of units that holds it; without, the one with the most unused space
        #[arg(long)]
        set: Option<String>,
        /// The copies that it has at least: 2 need a pair of sets (`set pair`)
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
        copies: u8,
        #[command(flatten)]
        settings: SettingArgs,
    },
    /// Change quota, limits, weight or hints of a volume; others stay
    #[command(after_help = "\
Examples:
  softflash volume set ./data disk --iops 500 --weight 300
  softflash volume set ./data disk --quota none")]
    Set {
        #[command(flatten)]
        volume: Named,
        #[command(flatten)]
        settings: SettingArgs,
    },
    /// Change the size of a volume; data beyond it are lost only with --shrink
    #[command(after_help = "\
Examples:
  softflash volume resize ./data disk 200GiB
  softflash volume resize ./data disk 10GiB --shrink")]
    Resize {
        #[command(flatten)]
        volume: Named,
        /// Its new size, a multiple of 4096 bytes
        #[arg(value_parser = parse_size)]
        size: u64,
        /// Lose the data beyond the new size
        #[arg(long)]
        shrink: bool,
    },
    /// Give a volume another name; snapshots, clones, settings and data stay
    #[command(after_help = "Example:\n  softflash volume rename ./data trial disk")]
    Rename(reshape::Rename),
    /// Set a volume back to its newest snapshot; what was written since is lost
    #[command(after_help = "\
Examples:
  softflash volume rollback ./data disk monday            asks if data are lost
  softflash volume rollback ./data disk monday --force    never asks

Contents and size become those of the snapshot, all at once; nothing is copied, \
and the snapshot stays. Newer snapshots must be deleted before. To keep them, \
clone the older one, promote the clone and rename it.

Only on a terminal: a script is never asked.")]
    Rollback(reshape::Rollback),
    /// Let a clone own its snapshot: the parent becomes a clone, and can be deleted
    #[command(after_help = "\
Examples:
  softflash volume clone ./data disk monday trial
  softflash volume promote ./data trial
  softflash volume list ./data

`trial` then has the snapshot `monday` of `disk` and the older ones; `disk` is \
a clone of `trial@monday`. All contents stay, and nothing is copied.")]
    Promote(reshape::Promote),
    /// Move a volume to another set of units, with its snapshots and all that share data with it
    #[command(after_help = "\
Examples:
  softflash set list ./data
  softflash volume move ./data disk --set vol-1
  softflash volume move ./data disk --set fast -o json

Its clones and its parent move along, so that what they share stays shared; the command names them. \
Nothing is written where the set has too little room, or is one of a pair. After a signal, an error \
or a crash the volumes are where they were; from the moment on at which the other set has everything \
they are there. A running server moves them while clients use them: FLASH.VOLUME MOVE.")]
    Move(relocate::Move),
    /// Delete a volume and its data; its snapshots must be deleted before
    #[command(after_help = "\
Examples:
  softflash volume delete ./data disk             asks if it holds data
  softflash volume delete ./data disk --force     never asks

Only on a terminal: a script is never asked, and what it names is deleted.")]
    Delete(delete::Delete),
    /// Keep the present state of a volume as a snapshot, which shares its space
    #[command(after_help = "Example:\n  softflash volume snapshot ./data disk monday")]
    Snapshot {
        #[command(flatten)]
        volume: Named,
        /// The snapshot's name, unique in its volume
        #[arg(value_name = "SNAP")]
        snapshot: String,
    },
    /// Create a volume that begins with the contents of a snapshot; nothing is copied
    #[command(after_help = "Example:\n  softflash volume clone ./data disk monday trial")]
    Clone {
        #[command(flatten)]
        volume: Named,
        /// A snapshot of that volume
        #[arg(value_name = "SNAP")]
        snapshot: String,
        /// The new volume
        new: String,
    },
    /// Delete a snapshot; its clones must be deleted before
    #[command(after_help = "\
Examples:
  softflash volume delete-snapshot ./data disk monday            asks
  softflash volume delete-snapshot ./data disk monday --force    never asks

Only on a terminal: a script is never asked.")]
    DeleteSnapshot(delete::DeleteSnapshot),
    /// Give up a volume with its snapshots, or all volumes of a shard or set, also damaged ones
    #[command(after_help = "\
Examples:
  softflash volume give-up ./data disk            what it costs; changes nothing
  softflash volume give-up ./data disk --force    gives the volume up
  softflash volume give-up ./data --domain 1 --force

Nothing can bring back what was given up. All volumes of a domain can be given up also where damage \
keeps them from being served: new ones can be created afterwards. Keys are not affected. Exit code \
1 without --force: nothing was given up.")]
    GiveUp(give_up::GiveUp),
    /// Write volumes with their snapshots to a file or a pipe, whole or as an increment
    #[command(after_help = "\
Examples:
  softflash volume export ./data all.sfvolumes
  softflash volume export ./data - disk trial | zstd > two.sfvolumes.zst
  softflash volume export ./data - | ssh new softflash volume import ./data -
  softflash volume export ./data tuesday.sfvolumes disk --from monday

Snapshots, settings and what clones share with their parents are included. Changes nothing in the \
data directory, so that it may be on a read-only file system. The file gets its name only when it \
is complete. With --from it has the snapshots after that one and the present state, as far as they \
differ; `import` reads its own copy of that snapshot and compares.")]
    Export(export::Export),
    /// Create the volumes of an export, or bring volumes up to date by an increment
    #[command(after_help = "\
Examples:
  softflash volume import ./data all.sfvolumes
  zstd -dc two.sfvolumes.zst | softflash volume import ./data -
  softflash volume import ./data tuesday.sfvolumes
  softflash volume import ./data tuesday.sfvolumes --revert
  softflash volume import ./data --undo      after an import that was killed

All of the export is imported, or nothing. An increment needs the volume as it was at the snapshot \
that the increment begins with: that must be its newest snapshot, with the same contents. What was \
written since is lost with --revert, and otherwise an error.")]
    Import(import::Import),
    /// List the volumes with their snapshots, and the space
    #[command(after_help = "\
Examples:
  softflash volume list ./data
  softflash volume list ./data -o json | jq '.[].name'")]
    List {
        /// The data directory
        directory: PathBuf,
        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: Form,
    },
}

impl Volume {
    /// Changes or lists the volumes.
    pub fn run(self) -> Result<(), CliError> {
        match self.what {
            What::List { directory, output } => list::run(&directory, output),
            What::GiveUp(give_up) => give_up.run(),
            What::Export(export) => export.run(),
            What::Import(import) => import.run(),
            What::Create { volume, size, set, copies, settings } => {
                volume.create(size, (set.as_deref(), copies), &settings)
            }
            What::Set { volume, settings } => volume.set(&settings),
            What::Resize { volume, size, shrink } => volume.resize(size, shrink),
            What::Rename(rename) => rename.run(),
            What::Rollback(rollback) => rollback.run(),
            What::Move(relocate) => relocate.run(),
            What::Promote(promote) => promote.run(),
            What::Delete(delete) => delete.run(),
            What::Snapshot { volume, snapshot } => volume.snapshot(&snapshot),
            What::Clone { volume, snapshot, new } => volume.clone_snapshot(&snapshot, &new),
            What::DeleteSnapshot(delete) => delete.run(),
        }
    }
}

impl Named {
    fn create(
        &self,
        size: u64,
        (set, copies): (Option<&str>, u8),
        settings: &SettingArgs,
    ) -> Result<(), CliError> {
        let (name, settings) = (&self.name, settings.given());
        let usable_bytes = self.change_in(set, async |domains| {
            domains.check_unused(name)?;
            let chosen = match set {
                Some(set) => domains.of_set(set).transpose()?,
                None => domains.most_free_with(copies),
            };
            let too_few = || VolumeError::TooFewCopies { set: set.map(str::to_owned) };
            let domain = chosen.filter(|domain| has_copies(domain, copies)).ok_or_else(too_few)?;
            domain.create_with(name, size, &settings).await?;
            Ok(domain.space().usable_bytes)
        })?;
        self.say(&format!("created volume `{name}` of {}", human_bytes(size)));
        self.warn_if_larger(size, usable_bytes);
        Ok(())
    }

    fn set(&self, settings: &SettingArgs) -> Result<(), CliError> {
        let (name, settings) = (&self.name, settings.given());
        if settings.is_empty() {
            return Err(CliError::Usage(format!(
                "nothing to change of volume `{name}`; give --quota, --iops, --bandwidth, --weight, \
                 --temperature or --stream"
            )));
        }
        self.change(async |domains| domains.holder(name)?.set(name, &settings).await)?;
        self.say(&format!("changed the settings of volume `{name}`"));
        Ok(())
    }

    fn resize(&self, size: u64, shrink: bool) -> Result<(), CliError> {
        let name = &self.name;
        let (before, usable_bytes) = self.change(async |domains| {
            let domain = domains.holder(name)?;
            let before = domain.volume(name)?.size_bytes()?;
            match shrink {
                true => domain.shrink(name, size).await?,
                false => domain.resize(name, size).await?,
            }
            Ok((before, domain.space().usable_bytes))
        })?;
        let lost = if size < before && shrink { "; what was beyond is lost" } else { "" };
        let (before, after) = (human_bytes(before), human_bytes(size));
        self.say(&format!("resized volume `{name}` from {before} to {after}{lost}"));
        self.warn_if_larger(size, usable_bytes);
        Ok(())
    }

    fn snapshot(&self, snapshot: &str) -> Result<(), CliError> {
        let name = &self.name;
        self.change(async |domains| domains.holder(name)?.snapshot(name, snapshot).await)?;
        self.say(&format!("created snapshot `{snapshot}` of volume `{name}`"));
        Ok(())
    }

    fn clone_snapshot(&self, snapshot: &str, new: &str) -> Result<(), CliError> {
        let name = &self.name;
        let (size, usable_bytes) = self.change(async |domains| {
            let domain = domains.holder(name)?;
            domains.check_unused(new)?;
            domain.clone_snapshot(name, snapshot, new).await?;
            Ok((domain.volume(new)?.size_bytes()?, domain.space().usable_bytes))
        })?;
        self.say(&format!("created volume `{new}` from snapshot `{snapshot}` of volume `{name}`"));
        self.warn_if_larger(size, usable_bytes);
        Ok(())
    }

    /// Volumes are thin, so this is no error; but one that cannot be filled may surprise.
    fn warn_if_larger(&self, size: u64, usable_bytes: u64) {
        if size > usable_bytes {
            self.say(&format!(
                "warning: it is larger than the {} that it shares with the volumes of its set; \
                 writes fail once that is full, unless `softflash set resize` gives the set more \
                 units",
                human_bytes(usable_bytes)
            ));
        }
    }
}
