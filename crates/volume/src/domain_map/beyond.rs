//! The data of an image beyond a mapping unit: what a smaller size would lose.

use super::{DomainMap, Found, leaf_of};
use crate::format::leaf::LEAF_UNITS;
use crate::image::{Image, ImageId, Role};

/// Data beyond a mapping unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beyond {
    /// Mapping units that hold data.
    pub units: u32,
    /// The end of the highest one.
    pub end: u32,
}

impl DomainMap {
    /// The mapping units of an image from `from` on that hold data, its own or those of the
    /// snapshot that it was made from; none if they all read as zeros.
    pub fn data_beyond(&self, image: ImageId, from: u32) -> Option<Beyond> {
        let size = self.images.get(image)?.size;
        let sources = self.sources_of(image);
        let mut beyond = None;
        let mut first = from;
        while first < size {
            let end = (first / LEAF_UNITS + 1).saturating_mul(LEAF_UNITS).min(size);
            if sources.iter().any(|source| leaf_of(source, first).is_some()) {
                let held = (first..end).filter(|&lba| self.find(image, lba) != Found::Zeros);
                for lba in held {
                    let units = beyond.map_or(0, |beyond: Beyond| beyond.units);
                    beyond = Some(Beyond { units: units + 1, end: lba + 1 });
                }
            }
            first = end;
        }
        beyond
    }

    /// The images in which the mapping units of an image are looked up.
    pub(super) fn sources_of(&self, image: ImageId) -> Vec<&Image> {
        let mut sources = Vec::new();
        let mut at = Some(image);
        while let Some(image) = at.and_then(|id| self.images.get(id)) {
            sources.push(image);
            at = match image.role {
                Role::Volume { parent } => parent,
                Role::Snapshot { of } => Some(image.newer.unwrap_or(of)),
            };
        }
        sources
    }
}
