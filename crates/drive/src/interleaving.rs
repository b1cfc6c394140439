//! Chips that take one command at a time. The dies of such a chip never work together, so it is one
//! die with the planes of all.

use crate::error::DriveError;
use crate::spec::{DeviceSpec, FrontierScope, PageMapped};
use softflash_nand::MAX_PLANES;
use std::borrow::Cow;

/// The device whose dies are what takes a command of its own in this layout.
pub(crate) fn as_commanded<'a>(
    device: &'a DeviceSpec,
    layout: &PageMapped,
) -> Result<Cow<'a, DeviceSpec>, DriveError> {
    let geometry = device.geometry;
    if layout.die_interleaving || geometry.dies_per_chip == 1 {
        return Ok(Cow::Borrowed(device));
    }
    let refused = |problem: String| Err(DriveError::Interleaving { problem });
    if layout.frontier == FrontierScope::Die {
        return refused(
            "write_frontier = \"die\" programs the planes of a die together".to_owned(),
        );
    }
    let planes = u32::from(geometry.dies_per_chip) * u32::from(geometry.planes_per_die);
    let Some(planes_per_die) =
        u8::try_from(planes).ok().filter(|&planes| usize::from(planes) <= MAX_PLANES)
    else {
        return refused(format!("a chip has {planes} planes"));
    };
    let mut chips = device.clone();
    (chips.geometry.dies_per_chip, chips.geometry.planes_per_die) = (1, planes_per_die);
    Ok(Cow::Owned(chips))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Drive, HostRequest};
    use softflash_base::{AccessKind, Time};

    fn device(dies_per_chip: u8) -> DeviceSpec {
        let mut array = softflash_nand::presets::small();
        array.geometry.dies_per_chip = dies_per_chip;
        array.geometry.planes_per_die = 1;
        DeviceSpec::bare("chips", &array)
    }

    /// The time of one read from every write frontier of a drive that is full.
    fn time_of_reads(device: &DeviceSpec, die_interleaving: bool) -> u64 {
        let layout = PageMapped { die_interleaving, ..PageMapped::default() };
        let mut drive = Drive::new(device, &layout, 7.0).unwrap();
        drive.fill();
        let page_bytes = u64::from(drive.page_bytes());
        for page in 0..u64::from(device.geometry.dies()) {
            let read = HostRequest::new(page, AccessKind::Read, page * page_bytes, page_bytes);
            drive.submit(Time(0), read).unwrap();
        }
        let mut done = Vec::new();
        while drive.step(&mut done) {}
        assert_eq!(done.len(), device.geometry.dies() as usize);
        drive.check().unwrap();
        done.iter().map(|done| done.at.0).max().unwrap()
    }

    #[test]
    fn the_dies_of_a_chip_wait_for_each_other() {
        let (one, two) = (device(1), device(2));
        assert_eq!(time_of_reads(&one, true), time_of_reads(&one, false));
        let read_ns = two.die.read_ns[0];
        assert!(time_of_reads(&two, false) >= time_of_reads(&two, true) + read_ns / 2);
        assert_eq!(
            Drive::capacity_of(&two, &PageMapped::default(), 7.0),
            Drive::capacity_of(
                &two,
                &PageMapped { die_interleaving: false, ..PageMapped::default() },
                7.0
            )
        );
    }

    #[test]
    fn what_cannot_be_one_die_is_refused_with_the_remedy() {
        let layout = PageMapped { die_interleaving: false, ..PageMapped::default() };
        let refused = |device: &DeviceSpec, layout: &PageMapped| {
            Drive::new(device, layout, 7.0).err().unwrap().to_string()
        };
        assert!(refused(&device(5), &layout).contains("a chip has 5 planes"));
        let together = PageMapped { frontier: FrontierScope::Die, ..layout };
        assert!(refused(&device(2), &together).contains("use write_frontier = \"plane\""));
    }
}
