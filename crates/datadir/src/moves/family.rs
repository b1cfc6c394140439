//! The volumes that move together, because they share data.

use super::error::{MoveError, quoted};
use softflash_volume::{DomainSpace, VolumeInfo, parents_first};
use std::collections::BTreeSet;

/// A volume, and all that share data with it by clones. Parents come before their clones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    volumes: Vec<VolumeInfo>,
}

impl Family {
    /// The family of a volume among those of its domain; `None` if there is no such volume.
    pub fn of(name: &str, all: &[VolumeInfo]) -> Option<Family> {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        names.insert(&all.iter().find(|volume| volume.name == name)?.name);
        let parent = |volume: &'_ VolumeInfo| volume.parent.as_ref().map(|(of, _)| of.clone());
        loop {
            let before = names.len();
            for volume in all {
                let of = parent(volume);
                let of = all.iter().find(|other| Some(&other.name) == of.as_ref());
                let Some(of) = of.map(|of| of.name.as_str()) else { continue };
                if names.contains(of) || names.contains(volume.name.as_str()) {
                    names.extend([of, volume.name.as_str()]);
                }
            }
            if names.len() == before {
                break;
            }
        }
        let members = all.iter().filter(|volume| names.contains(volume.name.as_str())).cloned();
        let volumes = parents_first(members.collect(), |volume| volume);
        Some(Family { volumes })
    }

    /// Its volumes, parents before their clones.
    pub fn volumes(&self) -> &[VolumeInfo] {
        &self.volumes
    }

    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.volumes.iter().map(|volume| volume.name.clone()).collect()
    }

    /// Bytes that they hold with their snapshots.
    pub fn used_bytes(&self) -> u64 {
        self.volumes.iter().map(|volume| volume.used_bytes).sum()
    }

    /// Fails if a set with this space has no room for it.
    ///
    /// # Errors
    /// [`MoveError::NoRoom`].
    pub fn check_room(&self, set: &str, space: DomainSpace) -> Result<(), MoveError> {
        let room = space.usable_bytes.saturating_sub(space.used_bytes);
        let needed = self.used_bytes();
        if needed <= room {
            return Ok(());
        }
        let (volumes, set) = (self.to_string(), set.to_owned());
        Err(MoveError::NoRoom { volumes, needed, set, room })
    }

    /// Fails if the family is another one among these volumes; what they hold may differ.
    ///
    /// # Errors
    /// [`MoveError::Changed`].
    pub fn check_same(&self, all: &[VolumeInfo]) -> Result<(), MoveError> {
        let shape = |family: &Family| -> Vec<VolumeInfo> {
            let volumes = family.volumes.iter().cloned();
            volumes.map(|volume| VolumeInfo { used_bytes: 0, ..volume }).collect()
        };
        let now = self.volumes.first().and_then(|volume| Family::of(&volume.name, all));
        match now.as_ref().map(shape) == Some(shape(self)) {
            true => Ok(()),
            false => Err(MoveError::Changed { volumes: self.to_string() }),
        }
    }
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&quoted(self.names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_volume::VolumeSettings;

    fn volume(name: &str, parent: Option<&str>) -> VolumeInfo {
        VolumeInfo {
            name: name.to_owned(),
            size_bytes: 1 << 20,
            used_bytes: 4096,
            settings: VolumeSettings::default(),
            snapshots: vec!["s".to_owned()],
            parent: parent.map(|parent| (parent.to_owned(), "s".to_owned())),
        }
    }

    fn volumes() -> Vec<VolumeInfo> {
        let of = |name: &str, parent: &str| volume(name, Some(parent));
        let (a, b, c) = (of("a", "d"), of("b", "a"), volume("c", None));
        vec![a, b, c, volume("d", None), of("e", "d")]
    }

    #[test]
    fn a_family_is_all_that_shares_data_with_parents_first() {
        for member in ["a", "b", "d", "e"] {
            let family = Family::of(member, &volumes()).unwrap();
            assert_eq!(family.names(), ["d", "a", "b", "e"], "of {member}");
            assert_eq!(family.used_bytes(), 4 * 4096);
        }
        assert_eq!(Family::of("c", &volumes()).unwrap().names(), ["c"]);
        assert_eq!(Family::of("f", &volumes()), None);
    }

    #[test]
    fn room_is_checked_with_both_figures() {
        let family = Family::of("a", &volumes()).unwrap();
        let space = |used_bytes| DomainSpace {
            used_bytes,
            usable_bytes: 40_000,
            flash_bytes: 1 << 20,
            is_full: false,
        };
        assert_eq!(family.check_room("fast", space(40_000 - 16_384)), Ok(()));
        let error = family.check_room("fast", space(40_000 - 16_383)).unwrap_err().to_string();
        for part in ["`d`, `a`, `b`, `e` hold 16384 bytes", "`fast` has room for 16383 more"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_family_that_gets_another_member_or_snapshot_has_changed() {
        let family = Family::of("a", &volumes()).unwrap();
        let mut written = volumes();
        written[0].used_bytes = 8192;
        assert_eq!(family.check_same(&written), Ok(()));
        let mut with_clone = volumes();
        with_clone.push(volume("f", Some("b")));
        let mut with_snapshot = volumes();
        with_snapshot[1].snapshots.push("t".to_owned());
        for changed in [with_clone, with_snapshot, vec![volume("c", None)]] {
            let error = family.check_same(&changed).unwrap_err();
            assert!(matches!(error, MoveError::Changed { .. }), "{error}");
        }
    }
}
