//! A device: flash, link, controller and the host software in front of it. All experiments on a
//! device use the same parameters. The choices of an experiment (over-provisioning, layout, state)
//! are not part of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softflash_nand::{ArrayConfig, BusTiming, DieTiming, Geometry};

/// A device, as a preset in TOML states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// The preset's name.
    pub name: String,
    /// A description in one line.
    pub title: String,
    /// The layout that is used unless another is given.
    pub default_layout: String,
    /// The shape of the flash.
    pub geometry: Geometry,
    /// Times of the dies.
    pub die: DieTiming,
    /// Times of the channels.
    pub bus: BusTiming,
    /// The link to the host.
    #[serde(default)]
    pub link: LinkSpec,
    /// The heat that the device bears; no limit where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thermal: Option<ThermalSpec>,
    /// The controller's own work, for layouts whose FTL is inside the device.
    #[serde(default)]
    pub controller: ControllerSpec,
    /// The time of the host's software for each request.
    #[serde(default)]
    pub host: HostSpec,
    /// Where the numbers come from.
    #[serde(default)]
    pub provenance: Provenance,
}

/// The link between host and device: full duplex, each direction first come, first served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Device to host, in bytes a second; 0: no limit.
    #[serde(default)]
    pub read_bytes_per_second: u64,
    /// Host to device, in bytes a second; 0: no limit.
    #[serde(default)]
    pub write_bytes_per_second: u64,
    /// Both directions share one medium (SATA).
    #[serde(default)]
    pub half_duplex: bool,
}

/// The heat of a device, in the bytes over its link that make it: reads and writes heat alike, and
/// heat leaves at a steady rate. A device at its limit slows down to that rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThermalSpec {
    /// Bytes a second that the device carries for ever, in both directions together.
    #[schemars(range(min = 1))]
    pub sustained_bytes_per_second: u64,
    /// Bytes beyond that rate that a cool device carries before it is at its limit.
    pub burst_bytes: u64,
}

/// Work of a controller with its FTL inside. The firmware is one server: requests and their pages
/// pass it one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControllerSpec {
    /// Firmware time a request, in nanoseconds.
    #[serde(default)]
    pub request_ns: u64,
    /// Firmware time a page of a read, in nanoseconds.
    #[serde(default)]
    pub read_page_ns: u64,
    /// Firmware time a page of a write, in nanoseconds.
    #[serde(default)]
    pub write_page_ns: u64,
    /// DRAM that holds written data until they are on flash; a write is acknowledged when it is
    /// there. 0: acknowledged when it is on flash.
    #[serde(default)]
    pub write_buffer_bytes: u64,
    /// Whether capacitors keep the write buffer through a power loss (PLP). Without it, flushes and
    /// forced unit access wait until the data are on flash.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    #[schemars(extend("default" = true))]
    pub power_loss_protection: bool,
    /// Requests that the device accepts at a time (NCQ: 32); 0: no limit.
    #[serde(default)]
    pub queue_depth: u32,
}

/// The times of the host's software stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Time from the application's call to the device, in nanoseconds, added to each request.
    #[serde(default)]
    pub submit_ns: u64,
    /// Time from the device's completion to the application, in nanoseconds, added to each request.
    #[serde(default)]
    pub complete_ns: u64,
    /// Completions that one interrupt announces; 1: each its own.
    #[serde(default = "one")]
    pub completions_per_interrupt: u32,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}

impl Default for ControllerSpec {
    fn default() -> ControllerSpec {
        ControllerSpec {
            request_ns: 0,
            read_page_ns: 0,
            write_page_ns: 0,
            write_buffer_bytes: 0,
            power_loss_protection: yes(),
            queue_depth: 0,
        }
    }
}

impl Default for HostSpec {
    fn default() -> HostSpec {
        HostSpec { submit_ns: 0, complete_ns: 0, completions_per_interrupt: one() }
    }
}

/// Where a preset's numbers come from, printed by reports.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Numbers that a source gives, as `number: source`.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Numbers that no source gives, with the reason for each.
    #[serde(default)]
    pub assumptions: Vec<String>,
    /// Results of the paper that numbers were fitted to; all others are predicted.
    #[serde(default)]
    pub calibrated_on: Vec<String>,
}

impl DeviceSpec {
    /// A device of flash only: no link, no controller, no host software.
    pub fn bare(name: &str, array: &ArrayConfig) -> DeviceSpec {
        DeviceSpec {
            name: name.into(),
            title: "flash alone".into(),
            default_layout: "page-mapped".into(),
            geometry: array.geometry,
            die: array.die.clone(),
            bus: array.bus,
            link: LinkSpec::default(),
            thermal: None,
            controller: ControllerSpec::default(),
            host: HostSpec::default(),
            provenance: Provenance::default(),
        }
    }

    /// The flash alone.
    pub fn array(&self) -> ArrayConfig {
        ArrayConfig { geometry: self.geometry, die: self.die.clone(), bus: self.bus }
    }
}
