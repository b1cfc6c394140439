//! Values in numbered places that are reused: what a request costs instead of an allocation.

/// A table whose places are reused, last freed first.
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
    /// If the place is empty: a completion or id that was used twice.
    pub fn remove(&mut self, place: u32) -> T {
        match self.places.get_mut(place as usize).and_then(Option::take) {
            Some(value) => {
                self.free.push(place);
                value
            }
            None => unreachable!("place {place} is empty"),
        }
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

    /// The value, to change.
    ///
    /// # Panics
    /// If the place is empty.
    pub fn get_mut(&mut self, place: u32) -> &mut T {
        match self.places.get_mut(place as usize) {
            Some(Some(value)) => value,
            _ => unreachable!("place {place} is empty"),
        }
    }

    /// Values stored.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
