//! `softflash info`: describes a data directory.

use crate::capacity_text;
use clap::Args;
use serde_json::Value;
use softflash_base::UnitSet;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_console::sizes::human_bytes;
use softflash_datadir::{DataDir, FlashSet, SetState, StoreSection, VolumeSection, capacity};
use softflash_device::{CUT_SHORT, DeviceInfo};
use softflash_store::capacity::Capacity;
use softflash_store::layout::Compression;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `info`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash info ./softflash-data
  softflash info ./softflash-data -o json

Works while a server has the directory open. Exit code 1: the device is cut short, or cannot be \
read at all.")]
pub struct Info {
    /// The data directory
    directory: PathBuf,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

struct Report {
    directory: PathBuf,
    format_version: u32,
    device_path: PathBuf,
    uuid: String,
    device_bytes: u64,
    device: DeviceInfo,
    store: StoreSection,
    volumes: Option<VolumeSection>,
    /// The sets of units, where a table names them.
    sets: Option<Sets>,
    capacity: Capacity,
    /// Room for volumes in each domain.
    volume_rooms: Vec<u64>,
}

/// The sets of units as a table names them.
struct Sets {
    all: Vec<FlashSet>,
    spare: UnitSet,
}

impl Info {
    /// Prints the manifest and the properties of the device.
    pub fn run(self) -> Result<ExitCode, CliError> {
        let manifest = DataDir::inspect(&self.directory)?;
        let device_path = self.directory.join(&manifest.device);
        let device = softflash_device::inspect(&device_path)?;
        let capacity = capacity::of(&manifest, &device);
        let volume_rooms = capacity::volume_rooms(&manifest, device.units, &device.geometry);
        let sets = manifest
            .sets
            .as_ref()
            .map(|table| Sets { all: manifest.sets(&device), spare: table.spare(device.units) });
        let is_cut_short = device.detail.contains(CUT_SHORT);
        let report = Report {
            directory: self.directory,
            format_version: manifest.format_version,
            device_path,
            uuid: format!("{:032x}", device.uuid),
            device_bytes: capacity::device_bytes(&device),
            capacity,
            volume_rooms,
            device,
            store: manifest.store,
            volumes: manifest.volumes,
            sets,
        };
        match self.output {
            Form::Json => output::json(&report.as_json()?)?,
            Form::Table => output::pairs(report.lines()),
        }
        Ok(if is_cut_short { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

impl Report {
    /// The uuid as text only: JSON readers do not support numbers of 128 bits.
    fn as_json(&self) -> Result<Value, CliError> {
        let failed = |error: serde_json::Error| CliError::Failed(error.to_string());
        let DeviceInfo { backend, uuid: _, units, geometry, detail } = &self.device;
        let mut report = serde_json::json!({
            "directory": self.directory,
            "format_version": self.format_version,
            "device": {
                "path": self.device_path,
                "backend": backend,
                "capabilities": softflash_device::capabilities(backend),
                "uuid": self.uuid,
                "units": units,
                "bytes": self.device_bytes,
                "superblock_bytes": geometry.superblock_bytes(),
                "geometry": serde_json::to_value(geometry).map_err(failed)?,
                "detail": detail,
            },
            "store": serde_json::to_value(&self.store).map_err(failed)?,
        });
        if let Value::Object(fields) = capacity_text::fields(&self.capacity, &self.device) {
            report.as_object_mut().into_iter().for_each(|report| report.extend(fields.clone()));
        }
        if let Some(volumes) = self.volumes {
            report["volumes"] = serde_json::to_value(volumes).map_err(failed)?;
            report["volumes"]["usable_bytes"] = serde_json::json!(self.volume_rooms);
        }
        if let Some(Sets { all, spare }) = &self.sets {
            // They are not mounted here.
            let sets: Vec<SetState> = all.iter().map(|set| set.state(None, &[])).collect();
            report["sets"] = serde_json::to_value(sets).map_err(failed)?;
            report["spare_units"] = spare.iter().collect();
        }
        Ok(report)
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let geometry = &self.device.geometry;
        let compression = match self.store.compression.as_slice() {
            [] => "none".to_owned(),
            list => list.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "),
        };
        let parity = match self.store.parity {
            0 => "none".to_owned(),
            members => format!("over up to {members} patches"),
        };
        let mut lines = vec![
            ("directory", self.directory.display().to_string()),
            ("format version", self.format_version.to_string()),
            ("device", self.device_path.display().to_string()),
            ("backend", self.device.backend.clone()),
            ("uuid", self.uuid.clone()),
            ("size", human_bytes(self.device_bytes)),
            ("units", self.device.units.to_string()),
            (
                "unit",
                format!(
                    "{} dies x {} planes x {} blocks x {} pages of {}",
                    geometry.dies,
                    geometry.planes,
                    geometry.blocks_per_plane,
                    geometry.pages_per_block,
                    human_bytes(u64::from(geometry.page_bytes)),
                ),
            ),
            ("superblock", human_bytes(geometry.superblock_bytes())),
            ("shards", self.store.shards.to_string()),
            ("slices", self.store.slices.to_string()),
            ("compression", compression),
            ("copies", self.store.copies.to_string()),
            ("parity", parity),
        ];
        lines.extend(capacity_text::lines(&self.capacity));
        if let Some(VolumeSection { units, op_percent }) = self.volumes {
            let first = self.device.units.saturating_sub(units);
            let last = self.device.units.saturating_sub(1);
            let which = match units {
                1 => format!("1, unit {last}"),
                _ => format!("{units}, units {first} to {last}"),
            };
            lines.push(("volume units", which));
            lines.push(("volume spare", format!("{op_percent} %")));
            let rooms = capacity_text::volume_sentence(&self.volume_rooms);
            lines.extend(rooms.map(|rooms| ("volume room", rooms)));
        }
        lines.extend(self.sets.iter().flat_map(Sets::lines));
        if !self.device.detail.is_empty() {
            lines.push(("remark", self.device.detail.clone()));
        }
        lines
    }
}

impl Sets {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let line = |set: &FlashSet| {
            let FlashSet { name, shard, units, .. } = set;
            let room = human_bytes(set.usable_bytes);
            let of_volumes = set.op_percent.map(|percent| {
                format!(", {percent} % spare for collection, room for about {room} of volumes")
            });
            format!("{name}: units {units} of shard {shard}{}", of_volumes.unwrap_or_default())
        };
        let sets = self.all.iter().map(|set| ("set", line(set)));
        let spare = (!self.spare.is_empty()).then(|| ("spare units", self.spare.to_string()));
        sets.chain(spare).collect()
    }
}

trait Name {
    fn name(&self) -> &'static str;
}

impl Name for Compression {
    fn name(&self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}
