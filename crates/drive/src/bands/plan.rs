//! The plan of a drive's bands: their widths, the numbers of streams, and the blocks that they
//! need.

use crate::error::DriveError;
use crate::spec::{BandChoice, Bands, Collect, GcClass, MapKind, PageMapped};

/// Victims that are collected at once, at most: enough to read from several dies.
const MOST_VICTIMS: u32 = 8;

/// The widths and streams of a drive's bands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    lanes: u32,
    /// The lanes of a band, the widest first.
    widths: Vec<u32>,
    /// Classes of the host's pages, and of those that collection moves.
    classes: u32,
    moved_classes: u32,
    collect: Collect,
    choice: Option<BandChoice>,
}

impl Plan {
    /// The plan of a layout, on a drive with so many lanes and so many mapping units in a flash
    /// page; `None` without bands.
    pub(crate) fn of(
        layout: &PageMapped,
        lanes: u32,
        per_flash_page: u32,
    ) -> Result<Option<Plan>, DriveError> {
        if layout.bands == Bands::None {
            return check_without(layout).map(|()| None);
        }
        check_layout(layout, per_flash_page)?;
        let mut widths: Vec<u32> =
            layout.bands.widths().iter().map(|width| width.of(lanes)).collect();
        widths.sort_unstable_by(|a, b| b.cmp(a));
        match (widths.as_slice(), layout.band_choice) {
            (&[_], None) => {}
            (&[wide, narrow], Some(_)) if wide > narrow => {}
            (&[_], Some(choice)) => {
                return Err(Bands::refused(
                    format!("band_choice = \"{choice}\" and one width"),
                    "leave band_choice out, or give two widths, as bands = [\"1\", \"1/8\"]",
                ));
            }
            (&[_, _], None) => {
                return Err(Bands::refused(
                    "two widths and no choice between them",
                    "add band_choice, as band_choice = \"shape:256KiB\"",
                ));
            }
            (&[lanes_of_both, _], Some(_)) => {
                return Err(Bands::refused(
                    format!("both widths are {lanes_of_both} of {lanes} lanes"),
                    "give widths that differ on this device, or one of them",
                ));
            }
            (several, _) => {
                return Err(Bands::refused(
                    format!("{} widths", several.len()),
                    "give one or two, as bands = [\"1\", \"1/8\"]",
                ));
            }
        }
        let classes = layout.classes();
        let moved_classes = if layout.gc_class == GcClass::Kept { classes } else { 1 };
        let (collect, choice) = (layout.collect, layout.band_choice);
        Ok(Some(Plan { lanes, widths, classes, moved_classes, collect, choice }))
    }

    /// Widths of bands.
    pub(crate) fn widths(&self) -> u32 {
        self.widths.len() as u32
    }

    /// Lanes of the widest bands.
    pub(crate) fn widest(&self) -> u32 {
        self.widths[0]
    }

    /// Whether whole bands are collected.
    pub(crate) fn collects_bands(&self) -> bool {
        self.collect == Collect::Band
    }

    /// Bytes of a request that goes to the wide bands, if there are two widths.
    pub(crate) fn wide_from_bytes(&self) -> Option<u64> {
        self.choice.map(|BandChoice::Shape(bytes)| bytes)
    }

    /// Whether pages of several classes stay apart when they are moved.
    pub(crate) fn keeps_classes(&self) -> bool {
        self.moved_classes > 1
    }

    /// Streams: those of the host, then those of collection.
    pub(crate) fn streams(&self) -> u32 {
        (self.classes + self.moved_classes) * self.widths()
    }

    /// The stream of the host's pages of a class in bands of a width.
    pub(crate) fn stream_of_host(&self, class: u32, width: u32) -> u32 {
        class * self.widths() + width
    }

    /// The stream of pages of a class that are moved from a block of a stream.
    pub(crate) fn stream_of_moved(&self, class: u32, from: u32) -> u32 {
        let class = if self.keeps_classes() { class } else { 0 };
        (self.classes + class) * self.widths() + from % self.widths()
    }

    /// Whether a stream is one of collection.
    #[inline]
    pub(crate) fn is_of_moved(&self, stream: u32) -> bool {
        stream >= self.classes * self.widths()
    }

    /// The class of a stream.
    pub(crate) fn class_of(&self, stream: u32) -> u32 {
        stream / self.widths() % self.classes
    }

    /// Lanes of the bands of a stream.
    pub(crate) fn width_of(&self, stream: u32) -> u32 {
        self.widths[(stream % self.widths()) as usize]
    }

    /// The bands that a stream has open at once: those of collection cover the lanes.
    pub(crate) fn open_at_once(&self, stream: u32) -> u32 {
        if self.is_of_moved(stream) { (self.lanes / self.width_of(stream)).max(1) } else { 1 }
    }

    /// Victims that are collected at once.
    pub(crate) fn victims_at_once(&self) -> u32 {
        let narrowest = self.widths[self.widths.len() - 1];
        let of_lane = if self.collects_bands() { narrowest } else { 1 };
        (self.lanes / of_lane).clamp(1, MOST_VICTIMS)
    }

    /// Write frontiers of a lane: each writes one block. A stream may begin a band while the last
    /// pages of the one before wait to be programmed.
    pub(crate) fn frontiers_in_lane(&self) -> u32 {
        2 * self.streams() + 2
    }

    /// Blocks of a lane that data never fill: one for the next bands of the host, one for those of
    /// collection, and those of open bands.
    pub(crate) fn reserved_blocks(&self) -> u32 {
        let of_host = self.widths.iter().sum::<u32>() * self.classes;
        2 + of_host.div_ceil(self.lanes) + self.moved_classes * self.widths()
    }
}

/// Fails if a layout without bands has keys of bands.
fn check_without(layout: &PageMapped) -> Result<(), DriveError> {
    let set = if layout.band_choice.is_some() {
        "band_choice"
    } else if layout.collect != Collect::default() {
        "collect"
    } else if layout.gc_class != GcClass::default() {
        "gc_class"
    } else {
        return Ok(());
    };
    Err(Bands::refused(
        format!("the layout has {set}, and bands = \"none\""),
        format!("leave {set} out, or give the bands a width, as bands = \"1/8\""),
    ))
}

/// Fails if a layout has parts that bands cannot work with.
fn check_layout(layout: &PageMapped, per_flash_page: u32) -> Result<(), DriveError> {
    let refused = |problem: &str, remedy: &str| Err(Bands::refused(problem, remedy));
    if !layout.placement.is_static() {
        return refused(
            &format!("placement = \"{}\" chooses where pages go, as bands do", layout.placement),
            "use placement = \"static\" or \"by-hint:N\"",
        );
    }
    if layout.map != MapKind::Page {
        return refused("the pages of a map on flash are in no band", "use map = \"page\"");
    }
    if layout.slc_cache.is_some() {
        return refused("the blocks of slc_cache are in no band", "leave slc_cache out");
    }
    if layout.parity_data_pages > 0 {
        return refused(
            "parity_data_pages counts the pages of a fixed stripe",
            "use parity_data_pages = 0",
        );
    }
    if layout.copyback {
        return refused(
            "copyback keeps pages in their die, and bands move them to others",
            "use copyback = false",
        );
    }
    if per_flash_page > 1 {
        return refused(
            "mapping_unit is less than a flash page, and bands place whole pages",
            "use mapping_unit = \"page\"",
        );
    }
    if layout.scrub_hours > 0.0 || layout.read_reclaim_reads > 0 {
        return refused(
            "scrub_hours and read_reclaim_reads move single blocks between others",
            "use scrub_hours = 0 and read_reclaim_reads = 0",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::PlacementPolicy;
    use softflash_mapping::Share;

    fn plan(widths: &[&str], layout: PageMapped) -> Plan {
        let widths: Vec<Share> = widths.iter().map(|text| Share::parse(text).unwrap()).collect();
        let choice = Some(BandChoice::Shape(1)).filter(|_| widths.len() > 1);
        let layout = PageMapped { bands: Bands::Widths(widths), band_choice: choice, ..layout };
        Plan::of(&layout, 64, 1).unwrap().unwrap()
    }

    #[test]
    fn streams_have_numbers_by_class_and_width_the_host_first() {
        let by_hint = PlacementPolicy::by_hint(3);
        let layout = PageMapped { placement: by_hint, ..PageMapped::default() };
        let plan = plan(&["1/8", "1"], layout);
        assert_eq!((plan.streams(), plan.widest(), plan.widths()), (12, 64, 2));
        assert_eq!((plan.stream_of_host(2, 1), plan.stream_of_moved(2, 5)), (5, 11));
        assert_eq!((plan.class_of(5), plan.class_of(11), plan.class_of(6)), (2, 2, 0));
        assert_eq!((plan.width_of(10), plan.width_of(11)), (64, 8));
        assert_eq!((plan.open_at_once(5), plan.open_at_once(11), plan.open_at_once(10)), (1, 8, 1));
        assert_eq!((plan.is_of_moved(5), plan.is_of_moved(6)), (false, true));
        // 3 x 72 lanes for the host, in 4 blocks of each lane.
        assert_eq!(plan.reserved_blocks(), 2 + 4 + 6);
    }

    #[test]
    fn moved_pages_share_a_stream_of_their_width_unless_their_class_is_kept() {
        let by_hint = PlacementPolicy::by_hint(3);
        let gc_class = GcClass::Mixed;
        let layout = PageMapped { placement: by_hint, gc_class, ..PageMapped::default() };
        let plan = plan(&["1/8"], layout);
        assert_eq!((plan.streams(), plan.victims_at_once()), (4, 8));
        assert_eq!((plan.stream_of_moved(2, 1), plan.stream_of_moved(0, 3)), (3, 3));
    }
}
