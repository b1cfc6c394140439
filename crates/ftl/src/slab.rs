//! Values in numbered places that are reused, so that a request allocates no memory.

use softflash_device::Tag;

/// The place in a command's tag.
///
/// # Panics
/// If the tag is not one of a submitted command.
pub(crate) fn place_of(tag: Tag) -> u32 {
    match u32::try_from(tag.0) {
        Ok(place) => place,
        Err(_) => unreachable!("tag {} was never submitted", tag.0),
    }
}

/// A table of values. The place that was freed last is reused first.
pub(crate) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub fn new() -> Slab<T> {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    /// Stores a value and returns its place.
    pub fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = Some(value);
                place
            }
            None => {
                self.places.push(Some(value));
                self.places.len() as u32 - 1
            }
        }
    }

    /// Takes the value out.
    ///
    /// # Panics
    /// If the place is empty: a completion or id was used twice.
    pub fn remove(&mut self, place: u32) -> T {
        let value = self.take(place);
        self.release(place);
        value
    }

    /// As [`remove`](Slab::remove), and keeps the place from others until it is
    /// [released](Slab::release).
    ///
    /// # Panics
    /// If the place is empty: a completion or id was used twice.
    pub fn take(&mut self, place: u32) -> T {
        match self.places.get_mut(place as usize).and_then(Option::take) {
            Some(value) => value,
            None => unreachable!("place {place} is empty"),
        }
    }

    /// Frees a place from which the value was taken.
    pub fn release(&mut self, place: u32) {
        self.free.push(place);
    }

    /// The value.
    ///
    /// # Panics
    /// If the place is empty.
    pub fn get(&self, place: u32) -> &T {
        match self.places.get(place as usize) {
            Some(Some(value)) => value,
            _ => unreachable!("place {place} is empty"),
        }
    }

    /// The value, mutable.
    ///
    /// # Panics
    /// If the place is empty.
    pub fn get_mut(&mut self, place: u32) -> &mut T {
        match self.places.get_mut(place as usize) {
            Some(Some(value)) => value,
            _ => unreachable!("place {place} is empty"),
        }
    }

    /// The values, in the order of their places.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }

    /// Places that are not free.
    pub fn stored(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
