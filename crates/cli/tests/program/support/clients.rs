//! The real clients: found, or skipped loudly, or missed where they are required.

use std::process::{Command, Stdio};

/// The interpreter that can import `redis`: the one that `SOFTFLASH_PYTHON` names, or the usual ones.
pub fn python() -> Option<String> {
    let chosen = std::env::var("SOFTFLASH_PYTHON").ok();
    let usual = ["python3", "/usr/bin/python3"].map(str::to_owned);
    chosen.into_iter().chain(usual).find(|python| {
        let mut import = Command::new(python);
        import.args(["-c", "import redis; redis.Redis"]);
        import.stdout(Stdio::null()).stderr(Stdio::null());
        import.status().is_ok_and(|status| status.success())
    })
}

/// A test cannot run for want of something: fails it where the clients are required, and says so
/// where they are not.
pub fn skip(what: &str) {
    let required = std::env::var("SOFTFLASH_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
    assert!(!required, "{what} is missing; `cargo xtask clients` installs it");
    eprintln!("SKIPPED: {what} is missing; `cargo xtask clients` installs it");
}
