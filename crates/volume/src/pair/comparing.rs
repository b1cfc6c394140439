//! Whether the members of a pair have the same images, and the same data.

use crate::core::Shared;
use crate::domain_map::{DomainMap, Found};
use crate::format::operation::Operation;
use crate::image::{Image, ImageId, Images, Role};

/// The first difference between the images of two members; nothing of their contents.
pub(super) fn images(first: &Images, second: &Images) -> Option<String> {
    let missing = |of: &Images, in_other: &Images| {
        let mut only = of.iter().filter(|(id, _)| in_other.get(*id).is_none());
        only.next().map(|(id, image)| format!("{id}, `{}`, is in one only", image.name))
    };
    missing(first, second).or_else(|| missing(second, first)).or_else(|| {
        let mut both = first.iter().filter_map(|(id, image)| Some((id, image, second.get(id)?)));
        both.find_map(|(id, one, other)| {
            (!is_same(one, other)).then(|| format!("{id}, `{}`, is another one", one.name))
        })
    })
}

/// Whether two images are the same, whatever they hold.
pub(super) fn is_same(one: &Image, other: &Image) -> bool {
    let parts = |image: &Image| {
        (image.name.clone(), image.role, image.size, image.settings, image.older, image.newer)
    };
    parts(one) == parts(other)
}

/// The first difference between the data of two members, by the checksums in their maps.
pub(super) fn contents(first: &Shared, second: &Shared) -> Option<String> {
    let maps = [first.map.borrow(), second.map.borrow()];
    let [one, other] = &maps;
    if let Some(difference) = images(&one.images, &other.images) {
        return Some(difference);
    }
    one.images.iter().find_map(|(id, image)| {
        let sum = |found: Found| match found {
            Found::Zeros => None,
            Found::Lost { checksum } | Found::At { checksum, .. } => Some(checksum),
        };
        // The seed of a checksum, if it is known: data of a promoted volume, or of its snapshots,
        // may have that of another one.
        let seed = |map: &DomainMap, lba: u32, found: Found| match found {
            Found::At { origin, .. } => {
                let mut seeds = map.seeds_of(origin, lba);
                seeds.next().filter(|_| seeds.next().is_none())
            }
            Found::Lost { .. } | Found::Zeros => None,
        };
        (0..image.size).find_map(|lba| {
            let (first, second) = (one.find(id, lba), other.find(id, lba));
            // What a clone inherits on one member may be its own on the other, after a copy.
            let seeds = (seed(one, lba, first), seed(other, lba, second));
            let (a, b) = (sum(first), sum(second));
            let differs = match seeds {
                (Some(one), Some(other)) if one == other => a != b,
                _ => a.is_some() != b.is_some(),
            };
            differs.then(|| format!("{id}, `{}`, mapping unit {lba}: {a:?} and {b:?}", image.name))
        })
    })
}

/// The operation that makes the next step from the images of one member to those of the other, if
/// that only takes names, sizes and settings, or the end of an image.
pub(super) fn simple_step(to: &Images, from: &Images) -> Option<Operation> {
    let mut gone: Vec<ImageId> =
        to.iter().filter(|(id, _)| from.get(*id).is_none()).map(|(id, _)| id).collect();
    gone.reverse();
    let is_free =
        |id: &ImageId| to.snapshots_of(*id).next().is_none() && to.clones_of(*id).next().is_none();
    if let Some(image) = gone.into_iter().find(is_free) {
        return Some(Operation::Delete { image });
    }
    let both = to.iter().filter_map(|(id, image)| Some((id, image, from.get(id)?)));
    let mut volumes = both.filter(|(_, image, _)| image.is_volume());
    volumes.find_map(|(image, has, wanted)| {
        if has.settings != wanted.settings {
            Some(Operation::Set { image, settings: wanted.settings })
        } else if has.name != wanted.name {
            Some(Operation::Rename { image, name: wanted.name.clone() })
        } else if has.size != wanted.size {
            Some(Operation::Resize { image, size: wanted.size })
        } else {
            None
        }
    })
}

/// Whether an image of one member has the role that it has in the other one, with the same older
/// snapshots.
pub(super) fn has_same_place(to: &Images, from: &Images, image: ImageId) -> bool {
    let snapshots = |images: &Images| -> Vec<ImageId> {
        images.snapshots_of(image).map(|(id, _)| id).collect()
    };
    let role = |images: &Images| images.get(image).map(|image| image.role);
    role(to) == role(from) && snapshots(to) == snapshots(from)
}

/// The snapshot that a clone was made from.
pub(super) fn parent_of(image: &Image) -> Option<ImageId> {
    match image.role {
        Role::Volume { parent } => parent,
        Role::Snapshot { .. } => None,
    }
}
