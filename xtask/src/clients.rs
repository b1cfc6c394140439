//! The real clients for tests: `redis-server` for comparison, `redis-cli` and `redis-benchmark`,
//! Python environments with the oldest and the newest supported redis-py, and NBD clients.

use crate::Outcome;
use crate::run::{output, run, target_directory, works};
use std::env;
use std::process::Command;

/// If this is 1, tests fail instead of skipping where a client is missing.
pub const REQUIRE: &str = "SOFTFLASH_REQUIRE_CLIENTS";

/// Python interpreters for tests that can import `redis`, separated by colons.
pub const PYTHON: &str = "SOFTFLASH_PYTHON";

/// The oldest supported version of redis-py (Debian 12's), and the newest.
const REDIS_PY: [&str; 2] = ["4.3.4", "8.1.0"];

/// Programs that tests need, and the Debian packages that contain them.
const PROGRAMS: [(&str, &str); 10] = [
    ("redis-server", "redis-server"),
    ("redis-cli", "redis-tools"),
    ("redis-benchmark", "redis-tools"),
    ("nbdinfo", "libnbd-bin"),
    ("nbdcopy", "libnbd-bin"),
    ("nbdfuse", "libnbd-bin"),
    ("qemu-img", "qemu-utils"),
    ("qemu-io", "qemu-utils"),
    ("fio", "fio"),
    ("faketime", "faketime"),
];

/// Python with support for environments, and its own redis module for machines without access to a
/// package index.
const PYTHON_PACKAGES: [&str; 3] = ["python3", "python3-venv", "python3-redis"];

/// The clients that were found.
pub struct Clients {
    missing: Vec<&'static str>,
    pythons: Vec<String>,
}

impl Clients {
    /// Looks for the clients and, as root on Debian, installs the missing ones.
    pub fn find_or_install() -> Outcome<Clients> {
        let found = Clients::find();
        let packages = found.packages();
        if packages.is_empty() {
            return Ok(found);
        }
        if !is_root() || !works(Command::new("apt-get").arg("--version")) {
            eprintln!("missing: {}", found.missing_names().join(", "));
            eprintln!("to install them on Debian: sudo apt-get install -y {}", packages.join(" "));
            return Ok(found);
        }
        println!("installing {} for the tests", packages.join(", "));
        if let Err(error) = install(&packages) {
            eprintln!("{error}");
        }
        Ok(Clients::find())
    }

    fn find() -> Clients {
        let lacks = |program: &str| !works(Command::new(program).arg("--version"));
        let missing = PROGRAMS.iter().map(|(program, _)| *program).filter(|name| lacks(name));
        Clients { missing: missing.collect(), pythons: pythons() }
    }

    /// Whether all clients are there.
    pub fn complete(&self) -> bool {
        self.missing.is_empty() && !self.pythons.is_empty()
    }

    /// Passes the clients to the tests of a command, and whether they are required, unless the
    /// environment says so already.
    pub fn tell(&self, command: &mut Command) {
        if !self.pythons.is_empty() {
            command.env(PYTHON, self.pythons.join(":"));
        }
        let ci = env::var_os("CI").is_some_and(|ci| ci == "true");
        if env::var_os(REQUIRE).is_none() && (self.complete() || ci) {
            command.env(REQUIRE, "1");
        }
    }

    /// Prints the clients found, and prominently those missing.
    pub fn describe(&self) {
        if self.complete() {
            let pythons = self.pythons.join(", ");
            let programs = PROGRAMS.map(|(program, _)| program).join(", ");
            println!("real clients: {programs}, {pythons}");
            if env::var_os(PYTHON).is_none() && self.pythons.len() < REDIS_PY.len() {
                println!(
                    "redis-py: one version only; pip could not install both {}",
                    REDIS_PY.join(" and ")
                );
            }
        } else {
            println!("{}", "=".repeat(80));
            println!("SKIPPING the tests that need {}", self.missing_names().join(", "));
            println!("{}", "=".repeat(80));
        }
    }

    fn missing_names(&self) -> Vec<&'static str> {
        let python = self.pythons.is_empty().then_some("a python3 with the module redis");
        self.missing.iter().copied().chain(python).collect()
    }

    fn packages(&self) -> Vec<&'static str> {
        let programs = PROGRAMS.iter().filter(|(program, _)| self.missing.contains(program));
        let mut packages: Vec<&str> = programs.map(|(_, package)| *package).collect();
        if self.pythons.is_empty() {
            packages.extend(PYTHON_PACKAGES);
        }
        packages.sort_unstable();
        packages.dedup();
        packages
    }
}

/// Interpreters that can import `redis`: those chosen by the user, or environments of the tests'
/// own with pinned versions, or any.
fn pythons() -> Vec<String> {
    if let Ok(chosen) = env::var(PYTHON) {
        return chosen.split(':').map(str::to_owned).filter(|python| knows_redis(python)).collect();
    }
    let own: Vec<String> =
        REDIS_PY.into_iter().filter_map(|version| environment(version).ok()).collect();
    if !own.is_empty() {
        return own;
    }
    let usual = ["python3", "/usr/bin/python3"].into_iter().find(|python| knows_redis(python));
    usual.map(str::to_owned).into_iter().collect()
}

/// The interpreter of an environment with this version of redis-py; creates the environment if
/// necessary.
fn environment(version: &str) -> Outcome<String> {
    let directory = target_directory()?.join("clients").join(format!("redis-py-{version}"));
    let python = directory.join("bin/python").display().to_string();
    if !knows_redis(&python) {
        output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&directory))?;
        let package = format!("redis=={version}");
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", &package];
        output(Command::new(&python).args(pip))?;
    }
    Ok(python)
}

fn knows_redis(python: &str) -> bool {
    works(Command::new(python).args(["-c", "import redis; redis.Redis"]))
}

/// Whether this user may install packages.
fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Installs Debian packages.
fn install(packages: &[&str]) -> Outcome {
    apt(&["update"])?;
    apt(&[&["install", "-y", "--no-install-recommends"], packages].concat())
}

fn apt(arguments: &[&str]) -> Outcome {
    let mut command = Command::new("apt-get");
    run(command.env("DEBIAN_FRONTEND", "noninteractive").arg("-q").args(arguments))
}
