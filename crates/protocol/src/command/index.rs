//! Lookup of commands by name.

use crate::command::{COMMANDS, Spec};

/// Slots of the index; a power of two, and more than twice the number of commands.
const PLACES: usize = 256;
const FREE: u8 = u8::MAX;

/// Table index of each command, by a hash of its name.
static INDEX: [u8; PLACES] = index();

const fn index() -> [u8; PLACES] {
    let mut places = [FREE; PLACES];
    let mut number = 0;
    while number < COMMANDS.len() {
        let mut place = hash(COMMANDS[number].name.as_bytes());
        while places[place] != FREE {
            place = (place + 1) % PLACES;
        }
        places[place] = number as u8;
        number += 1;
    }
    places
}

/// FNV-1a of the name in lower case.
const fn hash(name: &[u8]) -> usize {
    let (mut hash, mut at) = (0x811c_9dc5u32, 0);
    while at < name.len() {
        hash = (hash ^ name[at].to_ascii_lowercase() as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    (hash ^ hash >> 16) as usize % PLACES
}

/// The command of that name, in any case, and its index in the table.
pub(crate) fn find(name: &[u8]) -> Option<(usize, &'static Spec)> {
    const LONGEST: usize = 16;
    if name.len() > LONGEST {
        return None;
    }
    let mut place = hash(name);
    loop {
        let number = usize::from(*INDEX.get(place)?);
        let spec = COMMANDS.get(number)?;
        if spec.name.as_bytes().eq_ignore_ascii_case(name) {
            return Some((number, spec));
        }
        place = (place + 1) % PLACES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_in_any_case() {
        for (number, spec) in COMMANDS.iter().enumerate() {
            for name in [spec.name.to_owned(), spec.name.to_uppercase()] {
                assert_eq!(find(name.as_bytes()).map(|(at, _)| at), Some(number), "{name}");
            }
        }
        for name in ["", "ge", "gett", "nosuchcommand", "a name that is far too long"] {
            assert!(find(name.as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn the_table_is_in_order_and_complete() {
        assert!(COMMANDS.is_sorted_by_key(|spec| spec.name));
        assert!(COMMANDS.len() * 2 < PLACES);
        for spec in COMMANDS.iter().flat_map(|spec| spec.subcommands.iter().chain([spec])) {
            assert!(!spec.summary.is_empty() && !spec.since.is_empty(), "{}", spec.name);
        }
    }
}
