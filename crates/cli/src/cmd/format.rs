//! `softflash format`: creates a data directory.

use crate::capacity_text;
use crate::directories;
use clap::{Args, ValueEnum};
use serde_json::json;
use softflash_base::shell_word;
use softflash_console::CliError;
use softflash_console::host;
use softflash_console::input;
use softflash_console::output::{self, Form};
use softflash_console::plural::plural;
use softflash_console::sizes::{human_bytes, parse_size};
use softflash_datadir::{
    Compressions, DEFAULT_OP_PERCENT, MOST_OP_PERCENT, NewDevice, Plan, VolumeSection, capacity,
};
use softflash_device::ModelConfig;
use softflash_device::file::Discard;
use softflash_device::model::{PRESETS, UnitKind};
use softflash_store::layout::Compression;
use std::path::{Path, PathBuf};

/// Arguments of `format`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash format ./data --size 8GiB
  softflash format ./data --size 8GiB -o json
  softflash format ./data --size 100GiB --units 32 --shards 4 --compression lz4
  softflash format ./data --size 8GiB --slices 8 --slice-compression 3=zstd
  softflash format ./data --size 8GiB --copies 2
  softflash format ./data --size 8GiB --units 8 --shards 1 --parity 6
  softflash format ./data --size 64GiB --units 16 --shards 2 --volume-units 4
  softflash format ./data --backend model --size 4GiB
  softflash format ./data --backend model --preset sdf
  softflash format ./data --block-device /dev/nvme1n1 --discard punch --force

The directory is created completely or not at all: what an interrupted format leaves is removed by \
the next one, or by `serve`. With --force an existing data directory is deleted first, once all \
options and the room on the file system are known to be right.")]
pub struct Format {
    /// Data directory to create
    directory: PathBuf,
    /// Kind of the device
    #[arg(long, value_enum, default_value_t)]
    backend: Backend,
    /// Size of the device; a model without it has the size of its preset
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,
    /// Number of independent units; by default 16 for a file, and the preset's number for a model
    #[arg(long, value_name = "N")]
    units: Option<u16>,
    /// Number of shards, each with a thread, a log and its own units; by default one per core
    #[arg(long, value_name = "N")]
    shards: Option<u16>,
    /// Number of slices of the key space; by default two to eight per shard, by the device's size
    #[arg(long, value_name = "N")]
    slices: Option<u16>,
    /// Copies of all data, on different units: with 2, the store survives the loss of a unit and
    /// has half the capacity
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    copies: u8,
    /// Parity over at most this many patches on different units, and two copies of the log: the
    /// store survives the loss of a unit, and each group costs one more patch (2 to 16)
    #[arg(long, value_name = "PATCHES", value_parser = clap::value_parser!(u8).range(2..=16), conflicts_with = "copies")]
    parity: Option<u8>,
    /// The last M units are for volumes, the same number for each shard; the store has the others
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u16).range(1..))]
    volume_units: Option<u16>,
    /// Spare space of volumes in percent of their usable space: less makes room, and more writes
    /// faster once the volumes are full
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = DEFAULT_OP_PERCENT,
        requires = "volume_units",
        value_parser = clap::value_parser!(u8).range(..=i64::from(MOST_OP_PERCENT)),
    )]
    volume_op: u8,
    /// Compression of all slices
    #[arg(long, value_enum, default_value_t)]
    compression: CompressionName,
    /// Compression of one slice, as `3=zstd`; may be repeated
    #[arg(long, value_name = "SLICE=NAME", value_parser = parse_slice_compression)]
    slice_compression: Vec<(u16, Compression)>,
    /// How the file system or drive below treats erased space
    #[arg(long, value_enum, default_value_t)]
    discard: DiscardName,
    /// The flash array of a model: model, small, sdf, tssd, tlc, or a TOML file
    #[arg(long, value_name = "NAME|FILE")]
    preset: Option<String>,
    /// Use a block device instead of a file in the directory
    #[arg(long, value_name = "PATH")]
    block_device: Option<PathBuf>,
    /// Delete an existing data directory
    #[arg(long)]
    force: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// Kinds of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Backend {
    /// Extents of a file or block device
    #[default]
    File,
    /// A model of a flash array with its timing, in a sparse file
    Model,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum CompressionName {
    #[default]
    None,
    Lz4,
    Zstd,
}

impl From<CompressionName> for Compression {
    fn from(name: CompressionName) -> Compression {
        match name {
            CompressionName::None => Compression::None,
            CompressionName::Lz4 => Compression::Lz4,
            CompressionName::Zstd => Compression::Zstd,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum DiscardName {
    /// Nothing: the space stays allocated
    #[default]
    None,
    /// Zero the space and keep it allocated
    ZeroRange,
    /// Release the space, which a drive receives as a discard
    Punch,
}

impl From<DiscardName> for Discard {
    fn from(name: DiscardName) -> Discard {
        match name {
            DiscardName::None => Discard::None,
            DiscardName::ZeroRange => Discard::ZeroRange,
            DiscardName::Punch => Discard::Punch,
        }
    }
}

const DEFAULT_FILE_UNITS: u16 = 16;

impl Format {
    /// Creates the directory.
    pub fn run(self) -> Result<(), CliError> {
        let compression =
            Compressions { all: self.compression.into(), of_slice: self.slice_compression.clone() };
        let (device, units) = match self.backend {
            Backend::File => self.file_device()?,
            Backend::Model => self.model_device()?,
        };
        let plan = Plan {
            path: self.directory.clone(),
            device,
            units,
            shards: self.shards,
            slices: self.slices,
            compression,
            copies: self.copies,
            parity: self.parity.unwrap_or(0),
            volumes: self.volumes(),
            force: self.force,
            uuid: host::random_identity()?,
            cores: host::cores(),
        };
        let data = directories::create(plan)?;
        let info = softflash_device::inspect(&data.device_path())?;
        let capacity = capacity::of(data.manifest(), &info);
        let rooms = capacity::volume_rooms(data.manifest(), info.units, &info.geometry);
        let store = &data.manifest().store;
        if self.output == Form::Json {
            let mut report = capacity_text::fields(&capacity, &info);
            report["directory"] = json!(data.path());
            report["units"] = json!(info.units);
            report["volume_units"] = json!(data.manifest().volume_units());
            report["shards"] = json!(store.shards);
            report["slices"] = json!(store.slices);
            if !rooms.is_empty() {
                report["volume_usable_bytes"] = json!(rooms);
            }
            return output::json(&report);
        }
        let of_volumes = match data.manifest().volume_units() {
            0 => String::new(),
            units => format!(", {units} of them for volumes"),
        };
        output::say(&format!(
            "created {}: {}{of_volumes}, {}, {}, {}",
            data.path().display(),
            plural(info.units.into(), "unit"),
            human_bytes(capacity::device_bytes(&info)),
            plural(store.shards.into(), "shard"),
            plural(store.slices.into(), "slice"),
        ));
        output::say(&capacity_text::sentence(&capacity));
        if let Some(rooms) = capacity_text::volume_sentence(&rooms) {
            output::say(&format!("room for volumes: {rooms}"));
        }
        let path = shell_word(&data.path().to_string_lossy());
        output::say(&format!("serve it with `softflash serve --data {path}`"));
        Ok(())
    }

    fn volumes(&self) -> Option<VolumeSection> {
        let units = self.volume_units?;
        Some(VolumeSection { units, op_percent: self.volume_op })
    }

    /// The preset with the requested size and number of units.
    fn model_device(&self) -> Result<(NewDevice, u16), CliError> {
        if self.block_device.is_some() || self.discard != DiscardName::None {
            return Err(CliError::Usage(
                "--block-device and --discard are for --backend file".to_owned(),
            ));
        }
        let mut config = preset(self.preset.as_deref().unwrap_or("model"))?;
        if let Some(units) = self.units {
            config.array.geometry.channels = channels(&config, units)?;
        }
        let geometry = |config: &ModelConfig| {
            let shape = config.unit_geometry().and_then(|unit| Ok((unit, config.units()?)));
            shape.map_err(|error| CliError::Usage(error.to_string()))
        };
        if let Some(size) = self.size {
            let (unit, units) = geometry(&config)?;
            let row = unit.superblock_bytes() * u64::from(units);
            config.array.geometry.blocks_per_plane =
                u32::try_from(size / row).ok().filter(|blocks| *blocks > 0).ok_or_else(|| {
                    CliError::Usage(format!(
                        "--size {}: {units} units of this preset need a multiple of {}",
                        human_bytes(size),
                        human_bytes(row),
                    ))
                })?;
        }
        let (_, units) = geometry(&config)?;
        Ok((NewDevice::Model(Box::new(config)), units))
    }

    fn file_device(&self) -> Result<(NewDevice, u16), CliError> {
        if self.preset.is_some() {
            return Err(CliError::Usage("--preset is for --backend model".to_owned()));
        }
        let size_bytes = match (self.size, &self.block_device) {
            (Some(0), _) => return Err(CliError::Usage("--size must be above 0".to_owned())),
            (Some(size), _) => size,
            (None, Some(_)) => 0,
            (None, None) => {
                return Err(CliError::Usage("give the device a size, as `--size 8GiB`".to_owned()));
            }
        };
        let (discard, block_device) = (self.discard.into(), self.block_device.clone());
        let units = self.units.unwrap_or(DEFAULT_FILE_UNITS);
        Ok((NewDevice::File { size_bytes, discard, block_device }, units))
    }
}

/// The preset with this name, or the one in the file at this path.
fn preset(name: &str) -> Result<ModelConfig, CliError> {
    if let Some(config) = ModelConfig::preset(name) {
        return Ok(config);
    }
    let text = input::text("--preset", Path::new(name), |source| {
        let known = PRESETS.join(", ");
        CliError::Usage(format!(
            "--preset {name}: neither a known preset ({known}) nor a readable file ({source})"
        ))
    })?;
    toml::from_str(&text).map_err(|error: toml::de::Error| {
        CliError::Usage(format!("--preset {name}: {}", error.message()))
    })
}

/// The number of channels for `units` units.
fn channels<T: TryFrom<u16>>(config: &ModelConfig, units: u16) -> Result<T, CliError> {
    let per_channel = match config.unit {
        UnitKind::Channel => 1,
        UnitKind::Chip => u16::from(config.array.geometry.chips_per_channel),
    };
    let whole = units > 0 && units.is_multiple_of(per_channel);
    let channels = whole.then(|| units / per_channel).and_then(|count| T::try_from(count).ok());
    channels.ok_or_else(|| {
        CliError::Usage(format!(
            "--units {units}: this preset has {per_channel} units per channel; use a multiple of that"
        ))
    })
}

fn parse_slice_compression(text: &str) -> Result<(u16, Compression), String> {
    let wrong = || format!("`{text}`: write SLICE=none, SLICE=lz4 or SLICE=zstd, as `3=zstd`");
    let (slice, name) = text.split_once('=').ok_or_else(wrong)?;
    let slice = slice.parse().map_err(|_| wrong())?;
    let name = CompressionName::from_str(name, true).map_err(|_| wrong())?;
    Ok((slice, name.into()))
}
