//! The configuration of a model device, as in a preset or a label.

use crate::geometry::UnitGeometry;
use crate::queue_pair::OpenError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softflash_base::UnitSet;
use softflash_nand::{
    ArrayConfig, BusTiming, Cell, DieTiming, FaultConfig, Geometry, Pairing, SuspendTiming, presets,
};

/// The unit that software addresses independently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnitKind {
    /// A channel with all its chips, as in SDF.
    #[default]
    Channel,
    /// A chip with its dies, as in TSSD. Chips of a channel share its bus.
    Chip,
}

/// The storage of page contents of a device in memory. It does not affect times and states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contents {
    /// All bytes.
    #[default]
    Bytes,
    /// All bytes, with runs of equal 64-bit words compressed, so that large devices with synthetic
    /// data fit into memory.
    Packed,
    /// Nothing: reads succeed and leave their buffers unchanged. An FTL on such a device must never
    /// be mounted again, as it would not find its own headers.
    Nothing,
}

/// Flash array, faults and units of a model device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// The kind of unit.
    #[serde(default)]
    pub unit: UnitKind,
    /// Determines factory-bad blocks and all later random draws. Below 2^63, the limit of TOML.
    #[serde(default)]
    pub seed: u64,
    /// Geometry and timing.
    pub array: ArrayConfig,
    /// The faults; none by default.
    #[serde(default)]
    pub faults: FaultConfig,
}

/// The names of the presets of [`ModelConfig::preset`].
pub const PRESETS: [&str; 5] = ["model", "small", "sdf", "tssd", "tlc"];

impl ModelConfig {
    /// A faultless array with channels as units.
    pub fn new(array: ArrayConfig) -> ModelConfig {
        ModelConfig { unit: UnitKind::Channel, seed: 0, array, faults: FaultConfig::default() }
    }

    /// The preset of that name, one of [`PRESETS`].
    pub fn preset(name: &str) -> Option<ModelConfig> {
        match name {
            "model" => Some(ModelConfig::model()),
            "small" => Some(ModelConfig::small()),
            "sdf" => Some(ModelConfig::sdf()),
            "tssd" => {
                let chips = ModelConfig::new(presets::tssd());
                Some(ModelConfig { unit: UnitKind::Chip, ..chips })
            }
            "tlc" => Some(ModelConfig::new(presets::tlc())),
            _ => None,
        }
    }

    /// The default for tests and demonstrations: 4 channels of 256 MiB, 1 GiB in all, with MLC that
    /// suspends programs and erases for reads. A superblock of a channel has 4 MiB.
    pub fn model() -> ModelConfig {
        let suspend = |suspend_ns| SuspendTiming { suspend_ns, resume_ns: 10_000, at_most: 8 };
        ModelConfig::new(ArrayConfig {
            geometry: Geometry {
                channels: 4,
                chips_per_channel: 2,
                dies_per_chip: 1,
                planes_per_die: 2,
                blocks_per_plane: 64,
                pages_per_block: 256,
                page_bytes: 4096,
                spare_bytes: 0,
            },
            die: DieTiming {
                cell: Cell::Mlc,
                pairing: Pairing::Shadow,
                read_ns: vec![50_000],
                program_ns: vec![200_000, 600_000],
                erase_ns: 2_000_000,
                retry_ns: Some(40_000),
                cache_read: true,
                cache_program: true,
                program_suspend: Some(suspend(20_000)),
                erase_suspend: Some(suspend(100_000)),
                slc_mode: None,
            },
            bus: BusTiming {
                bytes_per_second: 409_600_000,
                command_overhead_ns: 0,
                transfer_spare: false,
                reads_ahead: 8,
            },
        })
    }

    /// A very small array for unit tests: 2 channels, 8 superblocks of 64 pages each.
    pub fn small() -> ModelConfig {
        ModelConfig::new(presets::small())
    }

    /// Baidu's SDF: 44 channels of 16 GB.
    pub fn sdf() -> ModelConfig {
        ModelConfig::new(presets::sdf())
    }

    /// Units of the device.
    ///
    /// # Errors
    /// [`OpenError::Geometry`] if there are too many.
    pub fn units(&self) -> Result<u16, OpenError> {
        let channels = u32::from(self.array.geometry.channels);
        u16::try_from(channels * self.units_per_channel())
            .map_err(|_| OpenError::Geometry("a device has at most 65535 units".to_owned()))
    }

    /// Units on one channel.
    pub(super) fn units_per_channel(&self) -> u32 {
        match self.unit {
            UnitKind::Channel => 1,
            UnitKind::Chip => u32::from(self.array.geometry.chips_per_channel),
        }
    }

    /// The geometry of a unit.
    ///
    /// # Errors
    /// [`OpenError::Geometry`] where the array cannot be built or does not suit the layers above.
    pub fn unit_geometry(&self) -> Result<UnitGeometry, OpenError> {
        let refuse = |reason: String| Err(OpenError::Geometry(reason));
        if let Err(error) = self.array.validate() {
            return refuse(error.to_string());
        }
        if let Err(error) = self.faults.validate() {
            return refuse(error.to_string());
        }
        if i64::try_from(self.seed).is_err() {
            return refuse(format!("seed {} is not below 2^63", self.seed));
        }
        let geometry = &self.array.geometry;
        if !geometry.page_bytes.is_power_of_two() || geometry.page_bytes < 4096 {
            return refuse(format!(
                "page_bytes is {}; a power of two from 4096 on is needed",
                geometry.page_bytes
            ));
        }
        let dies = geometry.dies_per_channel() / self.units_per_channel();
        Ok(UnitGeometry {
            // At most 64 dies are on a channel.
            dies: u8::try_from(dies).unwrap_or(u8::MAX),
            planes: geometry.planes_per_die,
            blocks_per_plane: geometry.blocks_per_plane,
            pages_per_block: geometry.pages_per_block,
            page_bytes: geometry.page_bytes,
            die_queue_depth: self.array.die_queue_depth(),
        })
    }

    /// The channels that make up `units`, in ascending order.
    ///
    /// # Errors
    /// [`OpenError::Geometry`] if a channel is only partly among them.
    pub(super) fn channels_of(&self, units: &UnitSet) -> Result<Vec<u32>, OpenError> {
        let per_channel = self.units_per_channel();
        let mut channels: Vec<u32> =
            units.iter().map(|unit| u32::from(unit) / per_channel).collect();
        channels.dedup();
        if channels.len() * per_channel as usize != units.len() {
            return Err(OpenError::Geometry(format!(
                "units {units} split a channel; the {per_channel} units of a channel share its bus \
                 and need one queue pair"
            )));
        }
        Ok(channels)
    }
}
