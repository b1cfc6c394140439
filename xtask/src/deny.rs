//! Licences, sources, duplicate and banned crates, and advisories if their database can be fetched.

use crate::Outcome;
use crate::run::{cargo, run, works};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The version for which deny.toml is written.
const VERSION: &str = "0.20.2";

/// Time limit for fetching the advisory database.
const FETCH_LIMIT: Duration = Duration::from_secs(60);

/// Runs `cargo deny`, installing it first if it is missing.
pub fn check() -> Outcome {
    if !works(cargo().args(["deny", "--version"])) {
        println!("cargo-deny is missing; installing it takes a few minutes");
        let mut install = cargo();
        install.args(["install", "--locked", "cargo-deny", "--version", VERSION]);
        // Its build files are in a temporary directory.
        run(install.env_remove("CARGO_TARGET_DIR"))?;
    }
    run(cargo().args([
        "deny",
        "--locked",
        "check",
        "--hide-inclusion-graph",
        "licenses",
        "bans",
        "sources",
    ]))?;
    if database_arrives()? {
        return run(cargo().args(["deny", "--locked", "check", "--disable-fetch", "advisories"]));
    }
    println!("{}", "=".repeat(80));
    println!(
        "ADVISORIES WERE NOT CHECKED: their database on github.com cannot be reached from here"
    );
    println!("{}", "=".repeat(80));
    Ok(())
}

/// Fetches the advisory database; false if that fails or takes too long.
fn database_arrives() -> Outcome<bool> {
    let mut command = cargo();
    command.args(["deny", "fetch", "db"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("cargo deny fetch: {error}"))?;
    let started = Instant::now();
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => return Ok(status.success()),
            None if started.elapsed() > FETCH_LIMIT => return stop(&mut child).map(|()| false),
            None => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}

fn stop(child: &mut Child) -> Outcome {
    child.kill().and_then(|()| child.wait()).map(drop).map_err(|error| error.to_string())
}
