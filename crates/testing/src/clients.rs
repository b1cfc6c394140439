//! Real client programs for tests: a missing one skips its tests with a notice, or fails them where
//! it is required.

use std::io::Write;

/// Reports that a test cannot run without `what`: fails it if `SOFTFLASH_REQUIRE_CLIENTS` is 1;
/// otherwise prints a notice directly to the terminal, because the harness hides the output of
/// tests that pass.
pub fn skip(what: &str) {
    let required = std::env::var("SOFTFLASH_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
    assert!(!required, "{what} is missing; `cargo xtask clients` installs it");
    let notice = format!("SKIPPED: {what} is missing; `cargo xtask clients` installs it\n");
    std::io::stderr().write_all(notice.as_bytes()).unwrap();
}
