//! The real clients.

pub use softflash_testing::clients::skip;
use std::process::{Command, Stdio};

/// Python interpreters that can import `redis`: those in `SOFTFLASH_PYTHON`, separated by colons,
/// one for each version of redis-py; without it, the first of the usual ones.
pub fn pythons() -> Vec<String> {
    let chosen = std::env::var("SOFTFLASH_PYTHON").unwrap_or_default();
    let chosen: Vec<String> =
        chosen.split(':').filter(|python| knows_redis(python)).map(str::to_owned).collect();
    if !chosen.is_empty() {
        return chosen;
    }
    let usual = ["python3", "/usr/bin/python3"].into_iter().find(|python| knows_redis(python));
    usual.map(str::to_owned).into_iter().collect()
}

/// The newest of them.
pub fn python() -> Option<String> {
    pythons().pop()
}

fn knows_redis(python: &str) -> bool {
    let mut import = Command::new(python);
    import.args(["-c", "import redis; redis.Redis"]);
    import.stdout(Stdio::null()).stderr(Stdio::null());
    !python.is_empty() && import.status().is_ok_and(|status| status.success())
}
