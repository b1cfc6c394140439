//! The bandwidth limits of a device, independent of layout and software.

use crate::outcome::Outcome;
use softflash_drive::spec::{DeviceSpec, LinkSpec};
use std::collections::BTreeMap;

/// The limits of flash and link, in bytes a second of reads and of writes: the lower of the raw
/// flash and the link.
pub fn physical_limits(spec: &DeviceSpec) -> [f64; 2] {
    let geometry = &spec.geometry;
    let page = f64::from(geometry.page_bytes);
    let on_bus = match spec.bus.transfer_spare {
        true => page + f64::from(geometry.spare_bytes),
        false => page,
    };
    let transfer_s = on_bus / spec.bus.bytes_per_second as f64;
    let mean_s = |times: &[u64]| times.iter().sum::<u64>() as f64 / times.len().max(1) as f64 / 1e9;
    let dies = f64::from(geometry.chips_per_channel) * f64::from(geometry.dies_per_chip);
    let row = page * f64::from(geometry.planes_per_die);
    let loads_s = transfer_s * f64::from(geometry.planes_per_die);
    let (sense_s, program_s) = (mean_s(&spec.die.read_ns), mean_s(&spec.die.program_ns));
    // With a cache register, a die works during transfers; without, work and transfers are serial.
    let cycle_s = |work_s: f64, cached: bool| match cached {
        true => work_s.max(loads_s),
        false => work_s + loads_s,
    };
    let raw =
        |cycle_s: f64| f64::from(geometry.channels) * (page / transfer_s).min(dies * row / cycle_s);
    let limited = |raw: f64, link: u64| if link == 0 { raw } else { raw.min(link as f64) };
    [
        limited(raw(cycle_s(sense_s, spec.die.cache_read)), spec.link.read_bytes_per_second),
        limited(raw(cycle_s(program_s, spec.die.cache_program)), spec.link.write_bytes_per_second),
    ]
}

/// Adds the limits, and the shares of them that the run reached, to its figures.
pub fn add_limits(spec: &DeviceSpec, [read, write]: [f64; 2], figures: &mut BTreeMap<String, f64>) {
    let [read_limit, write_limit] = physical_limits(spec);
    let limits = [
        ("read_limit_share", read / read_limit),
        ("write_limit_share", write / write_limit),
        ("read_limit_bytes_per_second", read_limit),
        ("write_limit_bytes_per_second", write_limit),
    ];
    figures.extend(limits.map(|(name, value)| (name.to_owned(), value)));
}

/// Adds the bytes that the run programmed for any cause, in pages or mapping units of so many
/// bytes.
pub fn add_programmed_bytes(page_bytes: u32, outcome: &mut Outcome) {
    outcome.programmed_bytes = outcome.programs.all() * u64::from(page_bytes);
}

/// Adds the share of the bytes that the flash alone could program which the run programmed for any
/// cause.
pub fn add_programmed_share(spec: &DeviceSpec, outcome: &mut Outcome) {
    let [_, flash] = physical_limits(&DeviceSpec { link: LinkSpec::default(), ..spec.clone() });
    let share = outcome.programmed_bytes as f64 / outcome.seconds() / flash;
    outcome.figures.insert("programmed_share".to_owned(), share);
}
