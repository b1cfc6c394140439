//! Numbers for names, in the order of their first use.

use hashbrown::HashMap;

/// The most names (of devices, of hosts) that are distinguished. Bounds the memory for corrupt
/// input.
pub(crate) const MAX_NAMES: usize = 1 << 16;

/// Assigns numbers to names. Consecutive lines often have the same name, so the last one is
/// compared first.
#[derive(Default)]
pub(crate) struct Names {
    numbers: HashMap<Box<[u8]>, u32>,
    last: Vec<u8>,
    last_number: u32,
}

impl Names {
    /// The name's number; `None` if there are too many names.
    #[inline]
    pub(crate) fn number(&mut self, name: &[u8]) -> Option<u32> {
        if self.last == name && !self.numbers.is_empty() {
            return Some(self.last_number);
        }
        self.look_up(name)
    }

    fn look_up(&mut self, name: &[u8]) -> Option<u32> {
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None if self.numbers.len() >= MAX_NAMES => return None,
            None => {
                let number = u32::try_from(self.numbers.len()).ok()?;
                self.numbers.insert(name.into(), number);
                number
            }
        };
        self.last.clear();
        self.last.extend_from_slice(name);
        self.last_number = number;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_as_they_come_and_bounded() {
        let mut names = Names::default();
        let numbers: Vec<_> =
            ["", "b", "b", "", "c"].map(|name| names.number(name.as_bytes())).into();
        assert_eq!(numbers, [Some(0), Some(1), Some(1), Some(0), Some(2)]);
        let many =
            (0..MAX_NAMES as u32).filter(|n| names.number(&n.to_le_bytes()).is_some()).count();
        assert_eq!(many, MAX_NAMES - 3);
        assert_eq!(names.number(b"b"), Some(1));
    }
}
