//! Where the states of large drives are kept: a cache, which may be removed at any time.

use softflash_lab::StateCache;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment variable that names the directory, or is `none`.
const VARIABLE: &str = "SOFTFLASH_STATES";

/// The value for no cache.
const NONE: &str = "none";

/// The cache in this directory; by default in that of the environment variable, or else in the
/// user's cache. `None` if it is off, or the user has no cache.
pub fn cache(directory: Option<&Path>, program: u64) -> Option<StateCache> {
    let given = directory.map(|path| path.as_os_str().to_owned()).or_else(|| variable(VARIABLE));
    let directory = match given {
        Some(given) if given == NONE => return None,
        Some(given) => PathBuf::from(given),
        None => user_cache()?.join("softflash").join("states"),
    };
    Some(StateCache::new(directory, program))
}

/// The user's cache, as the XDG Base Directory Specification says.
fn user_cache() -> Option<PathBuf> {
    let given = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    given.or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".cache")))
}

fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}
