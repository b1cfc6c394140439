//! Real client programs that a test needs: missing ones are skipped loudly, or fail the test where they are required.

use std::io::Write;

/// A test cannot run for want of `what`: fails it where `SOFTFLASH_REQUIRE_CLIENTS` is 1; otherwise says so on the
/// terminal, past the harness, which shows nothing of a test that passes.
pub fn skip(what: &str) {
    let required = std::env::var("SOFTFLASH_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
    assert!(!required, "{what} is missing; `cargo xtask clients` installs it");
    let notice = format!("SKIPPED: {what} is missing; `cargo xtask clients` installs it\n");
    std::io::stderr().write_all(notice.as_bytes()).unwrap();
}
