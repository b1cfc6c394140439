//! A reader's session with one page: a directory, a shell, and a server where commands need one.

use super::block::Line;
use super::files;
use super::stand_ins::replaced;
use crate::Outcome;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for the start of a server, for slow machines.
const START: Duration = Duration::from_secs(60);

/// Time limit for a command, in seconds: another page is played at the same time.
const LIMIT: &str = "600";

/// The data directory of commands that name none, and of `serve` without arguments.
const DEFAULT_DIRECTORY: &str = "DIR";

/// The data directory to which things are moved from that one.
const SECOND_DIRECTORY: &str = "OTHER";

/// Makes the device of `stand_ins.rs`: `plan` with an eighth of its blocks.
const SMALL_PLAN: &str = "softflash lab show --kind device plan \
     | sed 's|^blocks_per_plane = .*|blocks_per_plane = 128|' > small-plan.toml";

/// Beginnings of replies of a server that are errors: `redis-cli` exits with 0 nevertheless.
const ERRORS: [&str; 7] =
    ["ERR ", "OOM ", "NOAUTH ", "WRONGPASS ", "NOPERM ", "NOSCRIPT ", "Could not "];

/// The session.
pub struct Session<'a> {
    /// The directory of the program.
    programs: &'a Path,
    place: PathBuf,
    server: Option<Server>,
}

impl<'a> Session<'a> {
    pub fn new(programs: &'a Path, place: PathBuf) -> Outcome<Session<'a>> {
        let session = Session { programs, place, server: None };
        files::write(&session.place)?;
        session.shell("gzip -kf disk.csv; qemu-img create -q -f qcow2 guest.qcow2 1M")?;
        session.shell("softflash serve --print-config > serve.toml")?;
        session.shell(SMALL_PLAN)?;
        Ok(session)
    }

    /// Runs a command of a page.
    pub fn run(&mut self, line: &Line) -> Outcome {
        let command = replaced(&line.command);
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["softflash", "format", ..] => {
                self.stop();
                let _ = fs::remove_dir_all(self.place.join(DEFAULT_DIRECTORY));
            }
            ["softflash", "serve", arguments @ ..] => return self.serve(arguments),
            ["softflash", "record", ..]
            | ["redis-cli" | "nbdinfo" | "nbdcopy" | "qemu-img", ..] => {
                self.ensure_server(&["--nbd", "127.0.0.1:0"])?;
            }
            ["softflash", "dump" | "load", "--resp", ..] => {
                let password = words.iter().position(|word| *word == "--password-file");
                let password = password.and_then(|at| words.get(at..at + 2));
                if password.is_some() && self.server.as_ref().is_some_and(|it| !it.has_password) {
                    self.stop();
                }
                self.ensure_server(password.unwrap_or_default())?;
            }
            ["softflash", ..] if words.contains(&DEFAULT_DIRECTORY) => {
                self.stop();
                self.ensure_directory(DEFAULT_DIRECTORY)?;
            }
            ["softflash", ..] if words.contains(&SECOND_DIRECTORY) => {
                self.ensure_directory(SECOND_DIRECTORY)?;
            }
            _ => {}
        }
        let said = self.shell(&self.with_addresses(&command))?;
        if words.first() == Some(&"redis-cli")
            && let Some(error) =
                said.lines().find(|line| ERRORS.iter().any(|start| line.starts_with(start)))
        {
            return Err(error.to_owned());
        }
        compare(&line.expected, &said)
    }

    /// The output of a command.
    fn shell(&self, command: &str) -> Outcome<String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("timeout");
        shell.args([LIMIT, "bash", "-c", command]).current_dir(&self.place).stdin(Stdio::null());
        shell.env("PATH", format!("{}:{path}", self.programs.display()));
        let output = shell.output().map_err(|error| format!("bash: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        match output.status.success() {
            true => Ok(said),
            false => Err(format!(
                "{}\n{said}{}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            )),
        }
    }

    fn ensure_directory(&self, name: &str) -> Outcome {
        if self.place.join(name).exists() {
            return Ok(());
        }
        let shape = "--size 1GiB --units 16 --shards 2 --volume-units 4";
        self.shell(&format!("softflash format {name} {shape}")).map(drop)
    }

    /// Starts a server with these further arguments, unless one runs.
    fn ensure_server(&mut self, more: &[&str]) -> Outcome {
        match self.server {
            Some(_) => Ok(()),
            None => {
                self.ensure_directory(DEFAULT_DIRECTORY)?;
                self.serve(&[&["--data", DEFAULT_DIRECTORY], more].concat())
            }
        }
    }

    /// Starts a server with these arguments, on free ports.
    fn serve(&mut self, arguments: &[&str]) -> Outcome {
        self.stop();
        if arguments.contains(&DEFAULT_DIRECTORY) {
            self.ensure_directory(DEFAULT_DIRECTORY)?;
        }
        self.server = Some(Server::start(self.programs, &self.place, arguments)?);
        Ok(())
    }

    /// The command with the addresses of the server instead of the default ones.
    fn with_addresses(&self, command: &str) -> String {
        let Some(server) = &self.server else { return command.to_owned() };
        let is_tls = command.contains("--tls");
        let port = if is_tls { server.port("tls=") } else { server.port("resp=") };
        let command = command.replace(" -p 6380", "").replace(" -p 6379", "");
        let defaults =
            [(":6379", "resp="), (":6380", "tls="), (":10809", "nbd="), (":9100", "http=")];
        let command = defaults.iter().fold(command, |command, (default, name)| {
            command.replace(default, &format!(":{}", server.port(name)))
        });
        match command.strip_prefix("redis-cli") {
            Some(rest) => format!("redis-cli -p {port}{rest}"),
            None if command.starts_with("softflash record") => {
                format!("{command} --connect 127.0.0.1:{port}")
            }
            None => command,
        }
    }

    fn stop(&mut self) {
        self.server = None;
    }
}

/// Compares the output with what the page shows, up to a line `...`. Of lines `name:number`, which
/// are counters, only the names count.
fn compare(expected: &[String], said: &str) -> Outcome {
    let plain = |line: &str| match line.split_once(':') {
        Some((name, number)) if number.trim().parse::<f64>().is_ok() => name.to_owned(),
        // What redis-cli adds for people.
        _ => line.trim_start_matches("(integer) ").trim_matches('"').to_owned(),
    };
    let shown = expected.iter().take_while(|line| *line != "...");
    for (line, said) in shown.zip(said.lines().map(Some).chain(std::iter::repeat(None))) {
        match said {
            Some(said) if plain(said) == plain(line) => {}
            said => {
                return Err(format!(
                    "the page shows `{line}`, the output has `{}`",
                    said.unwrap_or_default()
                ));
            }
        }
    }
    Ok(())
}

/// A running server.
struct Server {
    child: Child,
    ready: String,
    has_password: bool,
}

impl Server {
    fn start(programs: &Path, place: &Path, arguments: &[&str]) -> Outcome<Server> {
        let log = place.join("server.log");
        let file = fs::File::create(&log).map_err(|error| error.to_string())?;
        let mut serve = Command::new(programs.join("softflash"));
        serve.arg("serve").args(on_free_ports(arguments)).current_dir(place);
        let errors = file.try_clone().map_err(|error| error.to_string())?;
        serve.stdin(Stdio::null()).stdout(file).stderr(errors);
        let child = serve.spawn().map_err(|error| format!("serve: {error}"))?;
        let has_password = arguments.contains(&"--password-file");
        let mut server = Server { child, ready: String::new(), has_password };
        let began = Instant::now();
        while began.elapsed() < START {
            let said = fs::read_to_string(&log).unwrap_or_default();
            if let Some(ready) = said.lines().find(|line| line.starts_with("ready ")) {
                server.ready = ready.to_owned();
                return Ok(server);
            }
            if !matches!(server.child.try_wait(), Ok(None)) {
                return Err(said);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err("the server does not start".to_owned())
    }

    /// The port at this address in the `ready` line.
    fn port(&self, name: &str) -> &str {
        let address = self.ready.split_whitespace().find_map(|word| word.strip_prefix(name));
        address.and_then(|address| address.rsplit(':').next()).unwrap_or("0")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // As Ctrl-C: the data directory is closed properly.
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.child.wait();
    }
}

/// Arguments of `serve` with free ports of the loopback address instead of those of the page.
fn on_free_ports(arguments: &[&str]) -> Vec<String> {
    let mut free: Vec<String> = Vec::new();
    let mut has_resp = false;
    for argument in arguments {
        let is_address = free.last().is_some_and(|before| {
            ["--resp", "--http", "--nbd", "--tls-port"].contains(&before.as_str())
        });
        has_resp |= *argument == "--resp";
        free.push(match is_address && *argument != "off" {
            true => "127.0.0.1:0".to_owned(),
            false => (*argument).to_owned(),
        });
    }
    if !has_resp {
        free.extend(["--resp", "127.0.0.1:0"].map(str::to_owned));
    }
    free.extend(["--memory", "128MiB"].map(str::to_owned));
    free
}
