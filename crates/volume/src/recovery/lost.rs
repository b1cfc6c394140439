//! What a mount says about lost data: in which volumes they are, and which units lost them.

use super::report::{RecoveryReport, StaleUnit};
use crate::core::Core;
use crate::format::record::Record;
use crate::format::root::UnitMark;
use crate::image::ImageId;
use softflash_base::cast;
use std::collections::BTreeMap;

/// The lag in generations of a unit that missed a session: each session begins this much higher. A
/// smaller lag may be that of a superblock whose erase a power cut interrupted.
const MISSED_SESSION: u64 = 1 << 16;

/// Reports lost frames, the mapping units that are lost with them or were before, and stale units.
pub(super) fn report(
    core: &Core,
    lost: &[Record],
    marks: &[UnitMark],
    report: &mut RecoveryReport,
) {
    report.lost_frames = cast::saturating_u32(lost.len());
    let units = core.geometry.units();
    let is_ours = |mark: &&UnitMark| units.contains(mark.unit);
    for &UnitMark { unit, generation: was } in marks.iter().filter(is_ours) {
        let found = core.flash.newest_generation(unit);
        let has_lost = lost.iter().any(|record| record.unit == unit);
        if found.saturating_add(MISSED_SESSION) <= was || found < was && has_lost {
            tracing::error!(
                unit,
                found,
                was,
                "a unit of the volumes was restored from an older image; what it held since is lost"
            );
            report.stale_units.push(StaleUnit { unit, found, was });
        }
    }
    let mut of_unit: BTreeMap<u16, u32> = BTreeMap::new();
    lost.iter().for_each(|record| *of_unit.entry(record.unit).or_default() += 1);
    for (unit, frames) in of_unit {
        tracing::warn!(
            unit,
            frames,
            "durable frames are missing; newer ones may have replaced them"
        );
    }
    let map = core.map.borrow();
    let mut of_image: BTreeMap<ImageId, u64> = BTreeMap::new();
    map.lost().for_each(|(image, _)| *of_image.entry(image).or_default() += 1);
    for (image, units) in of_image {
        report.lost_units += units;
        let volume = map.images.get(map.volume_of(image)).map_or("", |image| &image.name);
        let of = map.images.get(image).filter(|image| !image.is_volume());
        let snapshot = of.map_or("", |image| &image.name);
        tracing::error!(
            volume,
            snapshot,
            bytes = units * cast::wide(crate::format::MAPPING_UNIT_BYTES),
            "data of a volume are lost: reads of them fail until they are written or discarded"
        );
    }
}
