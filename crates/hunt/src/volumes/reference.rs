//! What a client may find in its images: a number for each mapping unit, 0 for zeros.

use softflash_base::checksum::identity;
use softflash_volume::VolumeSettings;
use std::collections::BTreeMap;

/// The states that a mapping unit may have after a cut: the last that was durable, and all since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promise {
    possible: Vec<u64>,
    /// A write was refused and the unit cannot be read: any of the possible states may be the
    /// newest.
    is_unknown: bool,
}

impl Promise {
    fn of(state: u64) -> Promise {
        Promise { possible: vec![state], is_unknown: false }
    }

    /// Whether a cut may have left this state.
    pub fn may_be(&self, state: u64) -> bool {
        self.possible.contains(&state)
    }

    /// It is this one or the other.
    pub fn or(&mut self, other: &Promise) {
        self.possible.splice(0..0, other.possible.iter().copied());
    }

    fn newest(&self) -> u64 {
        self.possible.last().copied().unwrap_or(0)
    }
}

/// An image: a volume or a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    pub units: Vec<Promise>,
}

impl Contents {
    fn zeros(units: u32) -> Contents {
        Contents { units: vec![Promise::of(0); units as usize] }
    }

    pub fn len(&self) -> u32 {
        self.units.len() as u32
    }
}

/// The name of an image: a volume, or one of its snapshots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    pub volume: String,
    pub snapshot: Option<String>,
}

/// An operation that has not completed: a cut may leave its effect or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pending {
    Appears(Name, Contents),
    Disappears(Name),
    Resizes(Name, u32),
    Sets(Name, VolumeSettings),
    /// Another name of a volume.
    Renames(String, String),
    /// A volume gets these contents, all at once.
    RollsBack(Name, Contents),
    /// A clone, and the snapshot that it was made from.
    Promotes(String, Name),
}

/// The images of a client.
#[derive(Debug, Clone)]
pub struct Reference {
    client: u16,
    pub images: BTreeMap<Name, Contents>,
    /// The settings of each volume.
    pub settings: BTreeMap<Name, VolumeSettings>,
    pub pending: Option<Pending>,
    /// The snapshot that each clone was made from.
    pub parents: BTreeMap<String, Name>,
    /// The name of the first volume, which is never deleted.
    pub(super) first: String,
    /// The last number that was written.
    last: u64,
    names: u64,
}

impl Reference {
    pub fn new(client: u16, units: u32) -> Reference {
        let mut reference = Reference {
            client,
            images: BTreeMap::new(),
            settings: BTreeMap::new(),
            pending: None,
            parents: BTreeMap::new(),
            first: format!("v{client}"),
            last: u64::from(client) << 48,
            names: 0,
        };
        let volume = Name { volume: reference.volume_name(), snapshot: None };
        reference.pending = Some(Pending::Appears(volume, Contents::zeros(units)));
        reference
    }

    /// The name of the client's first volume.
    pub fn volume_name(&self) -> String {
        self.first.clone()
    }

    /// Whether a volume is one of this client.
    pub fn owns(&self, volume: &str) -> bool {
        volume == format!("v{}", self.client) || volume.starts_with(&format!("c{}-", self.client))
    }

    /// A new name.
    pub fn fresh(&mut self) -> String {
        self.names += 1;
        format!("c{}-{}", self.client, self.names)
    }

    pub fn volumes(&self) -> Vec<Name> {
        self.images.keys().filter(|name| name.snapshot.is_none()).cloned().collect()
    }

    pub fn snapshots(&self) -> Vec<Name> {
        self.images.keys().filter(|name| name.snapshot.is_some()).cloned().collect()
    }

    /// A number for data that are about to be written.
    pub fn next_state(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// A write or discard of a mapping unit begins.
    pub fn begin(&mut self, name: &Name, lba: u32, state: u64) {
        if let Some(promise) = self.promise(name, lba) {
            promise.possible.push(state);
            promise.is_unknown = false;
        }
    }

    fn promise(&mut self, name: &Name, lba: u32) -> Option<&mut Promise> {
        self.images.get_mut(name)?.units.get_mut(lba as usize)
    }

    /// A write was refused, and a read cannot tell whether it was made.
    pub fn forget_newest(&mut self, name: &Name, lba: u32) {
        if let Some(promise) = self.promise(name, lba) {
            promise.is_unknown = true;
        }
    }

    /// A mapping unit could not be read after a cut. A later flush does not make a write durable
    /// that the cut has interrupted: what is there may be read once more, and is any of the states
    /// that were possible.
    pub fn unreadable(&mut self, name: &Name, lba: u32) {
        if let Some(promise) = self.promise(name, lba).filter(|promise| promise.possible.len() > 1)
        {
            promise.is_unknown = true;
        }
    }

    /// Whether a read may return this state while the power is on.
    pub fn may_read(&self, name: &Name, lba: u32, state: u64) -> Result<(), String> {
        let units = self.images.get(name).map(|contents| &contents.units);
        let Some(promise) = units.and_then(|units| units.get(lba as usize)) else {
            return Err(format!("{name:?} at {lba}: {state}, beyond the end"));
        };
        let newest = promise.newest();
        if state == newest || promise.is_unknown && promise.possible.contains(&state) {
            return Ok(());
        }
        Err(format!("{name:?} at {lba}: {state}, not {newest}"))
    }

    /// A flush has completed: the newest states are durable, as nothing else was under way.
    pub fn settle(&mut self) {
        for promise in self.images.values_mut().flat_map(|contents| &mut contents.units) {
            if !promise.is_unknown {
                *promise = Promise::of(promise.newest());
            }
        }
    }

    /// A mapping unit was found in this state after a cut. False if that cannot be.
    pub fn found(&mut self, name: &Name, lba: u32, state: u64) -> Result<(), String> {
        let promise = self.promise(name, lba).ok_or("beyond the end")?;
        if !promise.possible.contains(&state) {
            return Err(format!("{name:?} has {state} at {lba}; possible: {:?}", promise.possible));
        }
        *promise = Promise::of(state);
        Ok(())
    }

    /// The effect of the operation that has completed.
    pub fn complete(&mut self) {
        match self.pending.take() {
            Some(Pending::Appears(name, contents)) => {
                if name.snapshot.is_none() {
                    self.settings.insert(name.clone(), VolumeSettings::default());
                }
                self.images.insert(name, contents);
            }
            Some(Pending::Disappears(name)) => {
                self.images.remove(&name);
                self.settings.remove(&name);
                if name.snapshot.is_none() {
                    self.parents.remove(&name.volume);
                }
            }
            Some(Pending::Resizes(name, units)) => {
                if let Some(contents) = self.images.get_mut(&name) {
                    contents.units.resize(units as usize, Promise::of(0));
                }
            }
            Some(Pending::Sets(name, settings)) => {
                self.settings.insert(name, settings);
            }
            Some(Pending::Renames(from, to)) => self.rename(&from, &to),
            Some(Pending::RollsBack(name, contents)) => {
                self.images.insert(name, contents);
            }
            Some(Pending::Promotes(clone, parent)) => self.promote(&clone, &parent),
            None => {}
        }
    }

    /// Compares the images that exist, with their lengths, and the settings of volumes, and decides
    /// whether the pending operation has had its effect.
    pub fn reconcile(
        &mut self,
        found: &BTreeMap<Name, u32>,
        settings: &BTreeMap<Name, VolumeSettings>,
    ) -> Result<(), String> {
        let happened = match &self.pending {
            Some(Pending::Appears(name, _)) => found.contains_key(name),
            Some(Pending::Disappears(name)) => !found.contains_key(name),
            Some(Pending::Resizes(name, units)) => found.get(name) == Some(units),
            Some(Pending::Sets(name, new)) => settings.get(name) == Some(new),
            Some(Pending::Renames(_, to)) => found.keys().any(|name| name.volume == *to),
            Some(Pending::RollsBack(name, contents)) => {
                let before = self.images.get(name).map(Contents::len);
                before != Some(contents.len()) && found.get(name) == Some(&contents.len())
            }
            Some(Pending::Promotes(clone, Name { snapshot, .. })) => {
                let image = Name { volume: clone.clone(), snapshot: snapshot.clone() };
                found.contains_key(&image)
            }
            None => false,
        };
        let is_undecided = match &self.pending {
            // The data will tell.
            Some(Pending::RollsBack(name, contents)) => {
                self.images.get(name).map(Contents::len) == Some(contents.len())
            }
            _ => false,
        };
        if happened {
            self.complete();
        }
        if !is_undecided {
            self.pending = None;
        }
        let expected: BTreeMap<Name, u32> =
            self.images.iter().map(|(name, contents)| (name.clone(), contents.len())).collect();
        if self.settings != *settings {
            return Err(format!("settings {settings:?}, expected {:?}", self.settings));
        }
        if expected == *found {
            return Ok(());
        }
        Err(format!("images {found:?}, expected {expected:?}"))
    }

    /// Hash of what is possible.
    pub fn hash(&self) -> u64 {
        let states = self.images.values().flat_map(|contents| &contents.units);
        identity(&states.flat_map(|promise| promise.possible.clone()).collect::<Vec<u64>>())
    }
}
