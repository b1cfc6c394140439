//! The device of a configuration: geometry, times, bus, link, write buffer.

use super::file_name;
use super::parameters::Parameters;
use crate::import::ImportError;
use softflash_drive::spec::{ControllerSpec, DeviceSpec, HostSpec, LinkSpec, Provenance};
use softflash_nand::{BusTiming, Cell, DieTiming, Geometry, Pairing, SuspendTiming};

/// The longest time of a step of the flash.
const LONGEST_NS: u64 = 600_000_000_000;

/// Command cycles of a read of a page, in the default times of MQSim's channel:
/// tCS + 6 tWC + tWB + tRR, and tRPRE + tDQSRE of its data.
const COMMAND_NS: u64 = 320;

/// The most million transfers a second of a channel: ONFI 6.0 has 4800.
const FASTEST: u64 = 20_000;

/// A suspended operation of MQSim can be suspended again without limit.
const NO_LIMIT: u16 = u16::MAX;

pub fn device(
    name: &str,
    file: &str,
    parameters: &mut Parameters,
    remarks: &mut Vec<String>,
) -> Result<DeviceSpec, ImportError> {
    let device = DeviceSpec {
        name: name.to_owned(),
        title: format!("The device of {}, a configuration of MQSim", file_name(file)),
        default_layout: "page-mapped".to_owned(),
        geometry: geometry(parameters)?,
        die: die(parameters)?,
        bus: bus(parameters, remarks)?,
        link: link(parameters)?,
        controller: controller(parameters)?,
        host: HostSpec::default(),
        thermal: None,
        provenance: Provenance {
            sources: vec![format!("all numbers that are not assumptions: {}", file_name(file))],
            assumptions: vec![
                format!(
                    "{COMMAND_NS} ns of command cycles a transfer: the default times of MQSim's channel"
                ),
                "spare bytes do not cross the bus, as in MQSim".to_owned(),
                "firmware and DRAM take no time".to_owned(),
            ],
            calibrated_on: Vec::new(),
        },
    };
    device.array().validate().map_err(|error| ImportError {
        file: file.to_owned(),
        line: None,
        problem: error.to_string(),
    })?;
    Ok(device)
}

fn geometry(parameters: &mut Parameters) -> Result<Geometry, ImportError> {
    Ok(Geometry {
        channels: parameters.number("Flash_Channel_Count", (1, u16::MAX), None)?,
        chips_per_channel: parameters.number("Chip_No_Per_Channel", (1, 64), None)?,
        dies_per_chip: parameters.number("Die_No_Per_Chip", (1, 64), None)?,
        planes_per_die: parameters.number("Plane_No_Per_Die", (1, 4), None)?,
        blocks_per_plane: parameters.number("Block_No_Per_Plane", (1, u32::MAX), None)?,
        pages_per_block: parameters.number("Page_No_Per_Block", (1, 65_534), None)?,
        page_bytes: parameters.number("Page_Capacity", (1, 1 << 20), None)?,
        spare_bytes: parameters.number("Page_Metadat_Capacity", (0, 1 << 20), Some(0))?,
    })
}

fn die(parameters: &mut Parameters) -> Result<DieTiming, ImportError> {
    let technology = parameters.word("Flash_Technology").unwrap_or_else(|| "MLC".to_owned());
    let (cell, levels): (Cell, &[&str]) = match technology.as_str() {
        "SLC" => (Cell::Slc, &["LSB"]),
        "MLC" => (Cell::Mlc, &["LSB", "MSB"]),
        "TLC" => (Cell::Tlc, &["LSB", "CSB", "MSB"]),
        other => return Err(parameters.unknown("Flash_Technology", other, &["SLC", "MLC", "TLC"])),
    };
    let read_ns = times(parameters, "Page_Read_Latency", levels)?;
    let program_ns = times(parameters, "Page_Program_Latency", levels)?;
    let erase_suspend = parameters.number("Suspend_Erase_Time", (0, LONGEST_NS), Some(700_000))?;
    let program_suspend =
        parameters.number("Suspend_Program_Time", (0, LONGEST_NS), Some(100_000))?;
    let (program, erase) = match parameters.word("CMD_Suspension_Support").as_deref() {
        None | Some("NONE") => (false, false),
        Some("ERASE") => (false, true),
        Some("PROGRAM") => (true, false),
        Some("PROGRAM_ERASE") => (true, true),
        Some(other) => {
            let known = ["NONE", "ERASE", "PROGRAM", "PROGRAM_ERASE"];
            return Err(parameters.unknown("CMD_Suspension_Support", other, &known));
        }
    };
    let suspend = |suspends: bool, suspend_ns| {
        suspends.then_some(SuspendTiming { suspend_ns, resume_ns: 0, at_most: NO_LIMIT })
    };
    Ok(DieTiming {
        cell,
        // MQSim alternates the levels of an MLC block from page to page.
        pairing: if cell == Cell::Tlc { Pairing::Shadow } else { Pairing::Adjacent },
        read_ns,
        program_ns,
        erase_ns: parameters.number("Block_Erase_Latency", (1, LONGEST_NS), None)?,
        retry_ns: None,
        cache_read: false,
        cache_program: false,
        program_suspend: suspend(program, program_suspend),
        erase_suspend: suspend(erase, erase_suspend),
        slc_mode: None,
    })
}

/// The times of each level of the cell, or one if all are equal. Those of levels that the cell does
/// not have are read and have no effect, as in MQSim.
fn times(
    parameters: &mut Parameters,
    name: &str,
    levels: &[&str],
) -> Result<Vec<u64>, ImportError> {
    let mut all = Vec::new();
    for level in ["LSB", "CSB", "MSB"] {
        let used = levels.contains(&level);
        let default = (!used).then_some(1);
        let ns = parameters.number(&format!("{name}_{level}"), (1, LONGEST_NS), default)?;
        all.extend(used.then_some(ns));
    }
    if all.iter().all(|ns| Some(ns) == all.first()) {
        all.truncate(1);
    }
    Ok(all)
}

fn bus(parameters: &mut Parameters, remarks: &mut Vec<String>) -> Result<BusTiming, ImportError> {
    match parameters.word("Flash_Comm_Protocol").as_deref() {
        None | Some("NVDDR2") => {}
        Some(other) => return Err(parameters.unknown("Flash_Comm_Protocol", other, &["NVDDR2"])),
    }
    let width: u64 = parameters.number("Flash_Channel_Width", (1, 64), Some(1))?;
    let transfers: u64 = parameters.number("Channel_Transfer_Rate", (1, FASTEST), None)?;
    // MQSim rounds the time of a transfer down to whole nanoseconds.
    let bytes_per_second = match 1000 / transfers {
        0 => {
            remarks.push(format!(
                "Channel_Transfer_Rate {transfers}: MQSim rounds the time of a transfer down to 0 ns, so that data \
                 cross its channel in no time; here they take {transfers} million transfers a second"
            ));
            width * transfers * 1_000_000
        }
        cycle_ns => width * 1_000_000_000 / cycle_ns,
    };
    Ok(BusTiming {
        bytes_per_second,
        command_overhead_ns: COMMAND_NS,
        transfer_spare: false,
        reads_ahead: 8,
    })
}

fn link(parameters: &mut Parameters) -> Result<LinkSpec, ImportError> {
    let lanes: f64 = parameters.number("PCIe_Lane_Count", (1.0, 64.0), Some(4.0))?;
    let lane: f64 = parameters.number("PCIe_Lane_Bandwidth", (0.001, 1000.0), Some(1.0))?;
    let bytes_per_second = (lanes * lane * 1e9).round() as u64;
    Ok(LinkSpec {
        read_bytes_per_second: bytes_per_second,
        write_bytes_per_second: bytes_per_second,
        half_duplex: false,
    })
}

fn controller(parameters: &mut Parameters) -> Result<ControllerSpec, ImportError> {
    let capacity: u64 = parameters.number("Data_Cache_Capacity", (0, 1 << 50), Some(0))?;
    let caches = match parameters.word("Caching_Mechanism").as_deref() {
        Some("SIMPLE" | "ADVANCED") => true,
        None | Some("TURNED_OFF") => false,
        Some(other) => {
            let known = ["TURNED_OFF", "SIMPLE", "ADVANCED"];
            return Err(parameters.unknown("Caching_Mechanism", other, &known));
        }
    };
    let queue: u32 = parameters.number("IO_Queue_Depth", (1, 65_535), Some(1024))?;
    let fetched: u32 = parameters.number("Queue_Fetch_Size", (1, 65_535), Some(512))?;
    Ok(ControllerSpec {
        write_buffer_bytes: if caches { capacity } else { 0 },
        queue_depth: queue.min(fetched),
        ..ControllerSpec::default()
    })
}
