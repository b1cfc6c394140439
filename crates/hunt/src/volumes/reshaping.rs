//! New names of volumes, returns to a snapshot, and clones that are promoted.

use super::reference::{Contents, Name, Pending, Reference};
use super::steps::{Client, Ended};
use softflash_volume::VolumeError;

impl Client<'_> {
    /// One of them.
    pub(super) async fn reshape(&mut self) -> Result<(), Ended> {
        let volumes = self.reference.borrow().volumes();
        let Some(name) = self.one(volumes) else { return Ok(()) };
        match self.rng.below(4) {
            0 => self.rename(name).await,
            1 | 2 => self.roll_back(name).await,
            _ => self.promote(name).await,
        }
    }

    async fn rename(&mut self, from: Name) -> Result<(), Ended> {
        let to = {
            let mut reference = self.reference.borrow_mut();
            let to = reference.fresh();
            reference.pending = Some(Pending::Renames(from.volume.clone(), to.clone()));
            to
        };
        let result = self.domain.rename(&from.volume, &to).await;
        let to = Name { volume: to, snapshot: None };
        self.completed(result).await?;
        self.paces.renamed(&from, to);
        Ok(())
    }

    async fn roll_back(&mut self, name: Name) -> Result<(), Ended> {
        let snapshots = self.reference.borrow().snapshots_of(&name.volume);
        let newest = snapshots.last().cloned();
        let Some(snapshot) = self.one(snapshots) else { return Ok(()) };
        let is_newest = Some(&snapshot) == newest.as_ref();
        if is_newest {
            let mut reference = self.reference.borrow_mut();
            let contents = reference.images[&snapshot].clone();
            reference.pending = Some(Pending::RollsBack(name.clone(), contents));
        }
        let to = snapshot.snapshot.unwrap_or_default();
        match (self.domain.roll_back(&name.volume, &to).await, is_newest) {
            (Err(VolumeError::NotNewest { .. }), false) => Ok(()),
            (Ok(()), false) => {
                Err(Ended::Wrong(format!("{name:?} went back to {to}, which is not the newest")))
            }
            (result, true) => self.completed_unless_full(result).await,
            (Err(error), false) => Err(error.into()),
        }
    }

    async fn promote(&mut self, name: Name) -> Result<(), Ended> {
        let parent = self.reference.borrow().parents.get(&name.volume).cloned();
        if let Some(parent) = &parent {
            let pending = Pending::Promotes(name.volume.clone(), parent.clone());
            self.reference.borrow_mut().pending = Some(pending);
        }
        match (self.domain.promote(&name.volume).await, parent) {
            (Err(VolumeError::NotClone { .. }), None) => Ok(()),
            (Ok(()), None) => Err(Ended::Wrong(format!("{name:?} was promoted, and is no clone"))),
            (result, Some(_)) => self.completed_unless_full(result).await,
            (Err(error), None) => Err(error.into()),
        }
    }

    /// The effect of an operation that needs space, and has none if it is refused.
    async fn completed_unless_full(
        &mut self,
        result: Result<(), VolumeError>,
    ) -> Result<(), Ended> {
        if matches!(result, Err(VolumeError::OutOfSpace { .. })) {
            self.reference.borrow_mut().pending = None;
        }
        self.completed(result).await
    }
}

impl Reference {
    /// The snapshots of a volume, the oldest first: their names are numbered.
    pub fn snapshots_of(&self, volume: &str) -> Vec<Name> {
        let mut all = self.snapshots();
        all.retain(|name| name.volume == volume);
        all.sort_by_key(number);
        all
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) {
        let rename = |name: &mut String| {
            if name == from {
                to.clone_into(name);
            }
        };
        let renamed = |mut name: Name| {
            rename(&mut name.volume);
            name
        };
        let images = std::mem::take(&mut self.images);
        self.images = images.into_iter().map(|(name, of)| (renamed(name), of)).collect();
        let settings = std::mem::take(&mut self.settings);
        self.settings = settings.into_iter().map(|(name, of)| (renamed(name), of)).collect();
        self.parents.values_mut().for_each(|parent| rename(&mut parent.volume));
        if let Some(parent) = self.parents.remove(from) {
            self.parents.insert(to.to_owned(), parent);
        }
        rename(&mut self.first);
    }

    pub(super) fn promote(&mut self, clone: &str, parent: &Name) {
        let last = number(parent);
        for old in self.snapshots_of(&parent.volume) {
            if number(&old) > last {
                continue;
            }
            let new = Name { volume: clone.to_owned(), ..old.clone() };
            if let Some(contents) = self.images.remove(&old) {
                self.images.insert(new.clone(), contents);
            }
            for of in self.parents.values_mut().filter(|of| **of == old) {
                of.clone_from(&new);
            }
        }
        self.parents.remove(clone);
        if let Some(of_parent) = self.parents.remove(&parent.volume) {
            self.parents.insert(clone.to_owned(), of_parent);
        }
        let snapshot = Name { volume: clone.to_owned(), ..parent.clone() };
        self.parents.insert(parent.volume.clone(), snapshot);
    }

    /// Whether a volume went back to a snapshot before a cut, as its data tell: all of it did, or
    /// nothing.
    pub fn decide(&mut self, name: &Name, states: &[Option<u64>]) -> Result<(), String> {
        let Some(Pending::RollsBack(of, after)) = &self.pending else { return Ok(()) };
        if of != name {
            return Ok(());
        }
        let fits = |contents: &Contents| {
            let mut units = contents.units.iter().zip(states);
            contents.units.len() == states.len()
                && units.all(|(promise, state)| state.is_none_or(|state| promise.may_be(state)))
        };
        let stayed = self.images.get(name).is_some_and(fits);
        let happened = fits(after);
        if !stayed && !happened {
            let before = self.images.get(name);
            return Err(format!(
                "{name:?} was neither left as it was nor rolled back: {states:?}, {before:?}, {after:?}"
            ));
        }
        let after = after.clone();
        match (happened, self.images.get_mut(name)) {
            (true, _) if !stayed => self.complete(),
            // What can be read is the same; what cannot may be either.
            (true, Some(before)) => {
                before.units.iter_mut().zip(&after.units).for_each(|(unit, after)| unit.or(after));
            }
            _ => {}
        }
        self.pending = None;
        Ok(())
    }
}

/// The number in the name of a snapshot.
fn number(name: &Name) -> u64 {
    let text = name.snapshot.as_deref().unwrap_or_default();
    text.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
