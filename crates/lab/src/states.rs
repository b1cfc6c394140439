//! A cache of the states of drives that writes have settled, by all inputs that give them.

use crate::error::LabError;
use crate::results::write_atomically;
use serde::Serialize;
use serde::de::DeserializeOwned;
use softflash_base::checksum64;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The size of the directory from which on the oldest states are removed.
const MOST_BYTES: u64 = 1 << 30;

/// The ending of the files' names.
const ENDING: &str = "state";

/// A directory of states.
#[derive(Debug)]
pub struct StateCache {
    directory: PathBuf,
    /// The identity of the program: another one may come to other states.
    program: u64,
}

/// The inputs that give a state.
#[derive(Debug)]
pub(crate) struct StateKey(Vec<u8>);

impl StateKey {
    pub(crate) fn of(inputs: &impl Serialize) -> Result<StateKey, LabError> {
        let text = serde_json::to_vec(inputs);
        text.map(StateKey).map_err(|error| LabError::Simulation(error.to_string()))
    }
}

impl StateCache {
    /// The states of a directory, which is made when the first one is kept.
    pub fn new(directory: PathBuf, program: u64) -> StateCache {
        StateCache { directory, program }
    }

    fn path(&self, key: &StateKey) -> PathBuf {
        self.directory.join(format!("{:016x}.{ENDING}", checksum64(self.program, &key.0)))
    }

    /// The state of these inputs that was kept last, and how it was reached. A damaged file is
    /// ignored.
    pub(crate) fn find<T: DeserializeOwned>(&self, key: &StateKey) -> Option<(T, Vec<u32>)> {
        let file = fs::read(self.path(key)).ok()?;
        let (content, sum) = file.split_last_chunk::<8>()?;
        if u64::from_le_bytes(*sum) != checksum64(self.program, content) {
            return None;
        }
        let at = content.iter().position(|&byte| byte == b'\n')?;
        let reached = serde_json::from_slice(&content[..at]).ok()?;
        let words = content[at + 1..].chunks_exact(4);
        let state = words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        Some((reached, state.collect()))
    }

    /// Keeps a state, and how it was reached.
    pub(crate) fn keep(
        &self,
        key: &StateKey,
        reached: &impl Serialize,
        state: &[u32],
    ) -> Result<(), LabError> {
        let mut content =
            serde_json::to_vec(reached).map_err(|error| LabError::Simulation(error.to_string()))?;
        content.push(b'\n');
        content.extend(state.iter().flat_map(|word| word.to_le_bytes()));
        content.extend(checksum64(self.program, &content).to_le_bytes());
        fs::create_dir_all(&self.directory).map_err(LabError::file(&self.directory))?;
        self.make_room(content.len() as u64);
        write_atomically(&self.path(key), &content)
    }

    /// Removes the oldest states, until so many bytes have room.
    fn make_room(&self, bytes: u64) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let is_state = |path: &Path| path.extension().is_some_and(|of| of == ENDING);
        let mut states: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let about = entry.metadata().ok()?;
                Some((about.modified().ok()?, about.len(), entry.path()))
            })
            .filter(|(_, _, path)| is_state(path))
            .collect();
        states.sort();
        let mut used: u64 = states.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, of, path) in states {
            if used + bytes <= MOST_BYTES {
                return;
            }
            // Another process may have removed it.
            _ = fs::remove_file(path);
            used -= of;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_found_by_its_inputs_and_a_damaged_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let cache = |program| StateCache::new(directory.path().join("states"), program);
        let [one, other] = ["one", "other"].map(|key| StateKey::of(&key).unwrap());
        assert_eq!(cache(1).find::<u32>(&one), None);
        cache(1).keep(&one, &7_u32, &[1, 2, u32::MAX]).unwrap();
        assert_eq!(cache(1).find::<u32>(&one), Some((7, vec![1, 2, u32::MAX])));
        assert_eq!(cache(1).find::<u32>(&other), None);
        assert_eq!(cache(2).find::<u32>(&one), None);
        let path = cache(1).path(&one);
        let mut file = fs::read(&path).unwrap();
        file[3] ^= 1;
        fs::write(&path, file).unwrap();
        assert_eq!(cache(1).find::<u32>(&one), None);
    }
}
