//! The real clients that tests drive: `redis-server` to compare with, `redis-cli` and
//! `redis-benchmark`, and a Python that can import `redis`.

use crate::Outcome;
use crate::run::{output, run, works};
use std::env;
use std::process::Command;

/// Tests fail rather than skip where a client is missing, if this is 1.
pub const REQUIRE: &str = "SOFTFLASH_REQUIRE_CLIENTS";

/// The interpreter that can import `redis`, for tests.
pub const PYTHON: &str = "SOFTFLASH_PYTHON";

/// What tests need beside Rust, and the Debian package that has it.
const PROGRAMS: [(&str, &str); 3] = [
    ("redis-server", "redis-server"),
    ("redis-cli", "redis-tools"),
    ("redis-benchmark", "redis-tools"),
];

/// Debian's own Python with its own module; other interpreters do not see that module.
const PYTHON_PACKAGES: [&str; 2] = ["python3", "python3-redis"];

/// Which clients there are.
pub struct Clients {
    missing: Vec<&'static str>,
    python: Option<String>,
}

impl Clients {
    /// Looks for the clients and, as root on a Debian machine, installs those that are missing.
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
        let installed = apt(&["update"]).and_then(|()| {
            let install = ["install", "-y", "--no-install-recommends"];
            apt(&[install.as_slice(), packages.as_slice()].concat())
        });
        if let Err(error) = installed {
            eprintln!("{error}");
        }
        Ok(Clients::find())
    }

    fn find() -> Clients {
        let lacks = |program: &str| !works(Command::new(program).arg("--version"));
        let missing = PROGRAMS.iter().map(|(program, _)| *program).filter(|name| lacks(name));
        Clients { missing: missing.collect(), python: python() }
    }

    /// Whether all are there.
    pub fn complete(&self) -> bool {
        self.missing.is_empty() && self.python.is_some()
    }

    /// Tells the tests of a command what there is, and whether to insist on it.
    pub fn tell(&self, command: &mut Command) {
        if let Some(python) = &self.python {
            command.env(PYTHON, python);
        }
        let ci = env::var_os("CI").is_some_and(|ci| ci == "true");
        if self.complete() || ci {
            command.env(REQUIRE, "1");
        }
    }

    /// Says what there is, and loudly what there is not.
    pub fn describe(&self) {
        if self.complete() {
            let python = self.python.as_deref().unwrap_or_default();
            println!("real clients: redis-server, redis-cli, redis-benchmark, {python}");
        } else {
            println!("{}", "=".repeat(80));
            println!("SKIPPING the tests that need {}", self.missing_names().join(", "));
            println!("{}", "=".repeat(80));
        }
    }

    fn missing_names(&self) -> Vec<&'static str> {
        let python = self.python.is_none().then_some("a python3 with the module redis");
        self.missing.iter().copied().chain(python).collect()
    }

    fn packages(&self) -> Vec<&'static str> {
        let programs = PROGRAMS.iter().filter(|(program, _)| self.missing.contains(program));
        let mut packages: Vec<&str> = programs.map(|(_, package)| *package).collect();
        if self.python.is_none() {
            packages.extend(PYTHON_PACKAGES);
        }
        packages.sort_unstable();
        packages.dedup();
        packages
    }
}

/// The first interpreter that can import `redis`.
fn python() -> Option<String> {
    let chosen = env::var(PYTHON).ok();
    let usual = ["python3", "/usr/bin/python3"].map(str::to_owned);
    chosen
        .into_iter()
        .chain(usual)
        .find(|python| works(Command::new(python).args(["-c", "import redis; redis.Redis"])))
}

fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn apt(arguments: &[&str]) -> Outcome {
    let mut command = Command::new("apt-get");
    run(command.env("DEBIAN_FRONTEND", "noninteractive").arg("-q").args(arguments))
}
