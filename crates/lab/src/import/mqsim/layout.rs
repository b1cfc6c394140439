//! The layout of a configuration: over-provisioning, collection, map, wear, order of commands.

use super::parameters::Parameters;
use crate::import::ImportError;
use softflash_drive::spec::{
    DeviceSpec, MapKind, MappingUnit, PageMapped, Schedule, Share, VictimPolicy, WearPolicy,
};

/// The most planes of a chip that takes one command at a time.
const MOST_PLANES: u32 = softflash_nand::MAX_PLANES as u32;

pub fn layout(
    device: &DeviceSpec,
    parameters: &mut Parameters,
    remarks: &mut Vec<String>,
) -> Result<PageMapped, ImportError> {
    let ratio: f64 = parameters.number("Overprovisioning_Ratio", (0.0, 0.9), Some(0.07))?;
    Ok(PageMapped {
        // MQSim's share is that of the whole flash, here it is spare / logical.
        // MQSim maps pages; a write of less reads the page and programs it again.
        mapping_unit: MappingUnit::Page,
        op_percent: 100.0 * ratio / (1.0 - ratio),
        victim: victim(device, parameters, remarks)?,
        wear: wear(parameters)?,
        schedule: schedule(parameters, remarks)?,
        map: map(device, ratio, parameters, remarks)?,
        copyback: parameters.flag("Use_Copyback_for_GC", false)?,
        write_buffer: false,
        suspend: device.die.erase_suspend.is_some() || device.die.program_suspend.is_some(),
        die_interleaving: interleaving(device, remarks),
        ..placed(parameters, remarks)
    })
}

fn placed(parameters: &mut Parameters, remarks: &mut Vec<String>) -> PageMapped {
    if let Some(scheme) =
        parameters.word("Plane_Allocation_Scheme").filter(|scheme| scheme != "CWDP")
    {
        remarks.push(format!(
            "Plane_Allocation_Scheme {scheme}: pages go to channels first, then dies, then planes, as with CWDP"
        ));
    }
    PageMapped::default()
}

fn victim(
    device: &DeviceSpec,
    parameters: &mut Parameters,
    remarks: &mut Vec<String>,
) -> Result<VictimPolicy, ImportError> {
    let name = "GC_Block_Selection_Policy";
    let policy = parameters.word(name).unwrap_or_else(|| "RGA".to_owned());
    Ok(match policy.as_str() {
        "GREEDY" => VictimPolicy::GREEDY,
        "FIFO" => VictimPolicy::FIFO,
        // The fewest valid pages of log2(blocks of a plane) random blocks.
        "RGA" => VictimPolicy::d_choices(device.geometry.blocks_per_plane.max(2).ilog2()),
        "RANDOM" => VictimPolicy::d_choices(1),
        "RANDOM_P" | "RANDOM_PP" => {
            remarks.push(format!("{name} {policy}: a random block, of which all may be valid"));
            VictimPolicy::d_choices(1)
        }
        other => {
            let known = ["GREEDY", "RGA", "RANDOM", "RANDOM_P", "RANDOM_PP", "FIFO"];
            return Err(parameters.unknown(name, other, &known));
        }
    })
}

fn wear(parameters: &mut Parameters) -> Result<WearPolicy, ImportError> {
    let dynamic = parameters.flag("Dynamic_Wearleveling_Enabled", false)?;
    if parameters.flag("Static_Wearleveling_Enabled", false)? {
        let name = "Static_Wearleveling_Threshold";
        return Ok(WearPolicy::level_by(parameters.number(name, (1, u32::MAX), Some(100))?));
    }
    Ok(if dynamic { WearPolicy::DYNAMIC } else { WearPolicy::FIFO })
}

fn schedule(
    parameters: &mut Parameters,
    remarks: &mut Vec<String>,
) -> Result<Schedule, ImportError> {
    let name = "Transaction_Scheduling_Policy";
    match parameters.word(name).as_deref() {
        None | Some("OUT_OF_ORDER" | "PRIORITY_OUT_OF_ORDER") => {}
        Some("FLIN") => {
            remarks.push(format!("{name} FLIN: reads first, without fairness among flows"))
        }
        Some(other) => {
            let known = ["OUT_OF_ORDER", "PRIORITY_OUT_OF_ORDER", "FLIN"];
            return Err(parameters.unknown(name, other, &known));
        }
    }
    Ok(Schedule::READS_FIRST)
}

fn map(
    device: &DeviceSpec,
    ratio: f64,
    parameters: &mut Parameters,
    remarks: &mut Vec<String>,
) -> Result<MapKind, ImportError> {
    if let Some(other) = parameters.word("Address_Mapping").filter(|word| word != "PAGE_LEVEL") {
        return Err(parameters.unknown("Address_Mapping", &other, &["PAGE_LEVEL"]));
    }
    let capacity: u64 = parameters.number("CMT_Capacity", (0, 1 << 40), Some(2 << 20))?;
    if parameters.flag("Ideal_Mapping_Table", false)? {
        return Ok(MapKind::Page);
    }
    // MQSim's entry has two page numbers and a bit for each sector.
    let pages = device.geometry.pages().max(2) as f64;
    let sectors = f64::from(device.geometry.page_bytes) / 512.0;
    let entry_bytes = ((2.0 * pages.log2() + sectors) / 8.0).ceil();
    let cached = capacity as f64 / entry_bytes;
    let parts = (pages * (1.0 - ratio) / cached).round().clamp(1.0, f64::from(u32::MAX)) as u32;
    remarks.push(format!(
        "CMT_Capacity {capacity}: room for one of {parts} entries; whole pages of the map are cached, MQSim caches single entries"
    ));
    Ok(Share::new(1, parts).map_or(MapKind::Page, MapKind::Cached))
}

/// MQSim gives a chip a command when the chip has none.
fn interleaving(device: &DeviceSpec, remarks: &mut Vec<String>) -> bool {
    let geometry = &device.geometry;
    let planes = u32::from(geometry.dies_per_chip) * u32::from(geometry.planes_per_die);
    if planes > MOST_PLANES {
        remarks.push(format!(
            "a chip has {planes} planes: its dies work at the same time, while MQSim gives it one command at a time"
        ));
    }
    planes > MOST_PLANES || geometry.dies_per_chip == 1
}
