//! `softflash serve`: serves a data directory to clients.

mod announce;
mod connect;
mod settings_file;
mod settings_text;
mod values;

pub use settings_file::with_settings;
pub use settings_text::text as settings_text;
pub use values::parse_address;

use crate::descriptors;
use crate::directories;
use crate::machine_memory;
use crate::password::PasswordSource;
use crate::tls::TlsArguments;
use announce::announce;
use clap::Args;
use connect::Connect;
use settings_file::SettingsFile;
use softflash_base::shell_word;
use softflash_console::CliError;
use softflash_console::allocator;
use softflash_console::cleanup;
use softflash_console::host;
use softflash_console::output;
use softflash_console::sizes::{human_bytes, parse_size};
use softflash_console::values::{ValueThreshold, parse_time, parse_value_threshold};
use softflash_datadir::{DataDir, NewDevice, Plan, USERS_NAME, is_free};
use softflash_device::file::Discard;
use softflash_policy::Chosen;
use softflash_server::{Endpoints, NbdSettings, ServerConfig, check_users, serve};
use softflash_store::{Durability, StoreOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use values::{
    Listen, ScrubPeriod, Yes, parse_durability, parse_listen, parse_longest_value, parse_scrub,
    parse_yes,
};

/// Default data directory.
const DEFAULT_DIRECTORY: &str = "softflash-data";
const DEFAULT_UNITS: u16 = 16;
const DEFAULT_BYTES: u64 = 8 << 30;

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash serve
  softflash serve --data /srv/flash --resp 127.0.0.1:7000 --http 127.0.0.1:9100
  softflash serve --data /srv/flash --durability 1s --memory 4GiB
  softflash serve --data /srv/flash --resp 0.0.0.0:6379 \\
      --password-file /etc/softflash.password
  softflash serve --data /srv/flash --resp off --tls-port 0.0.0.0:6380 \\
      --tls-cert server.crt --tls-key server.key --tls-ca ca.crt
  softflash serve --print-config > serve.toml
  softflash serve --config serve.toml --memory 8GiB

Volumes are served with --nbd, as `NAME` and, read-only, `NAME@SNAPSHOT` (`docs/volumes.md`):
  softflash format /srv/flash --size 64GiB --units 16 --volume-units 8
  softflash serve --data /srv/flash --nbd 127.0.0.1:10809
NBD has no passwords. So where Redis clients need one, or the address is not on this machine, NBD \
clients must show a certificate (--tls-port, --tls-cert, --tls-key and --tls-ca; --tls-client-auth \
required), or --nbd-open says that everyone who reaches the address is welcome. With --tls-port, \
NBD clients may use TLS on the address of --nbd, and with --resp off they must.

Users and their permissions are set by ACL SETUSER and saved by ACL SAVE (`docs/security.md`). \
SIGHUP reloads the certificates.

Prints one line that begins with `ready` to standard output once it accepts connections, and in \
the line directly before it the memory budget, `memory=` and its bytes. SIGTERM, SIGINT and the \
command SHUTDOWN stop it: requests in progress complete, all data are made durable, exit code 0. A \
second Ctrl-C stops it immediately.")]
pub struct Serve {
    #[command(flatten)]
    file: SettingsFile,
    /// Data directory, created if it is missing or empty; by default ./softflash-data
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Address for Redis clients in plain text; port 0 chooses a free port; `off` for none
    #[arg(long, value_name = "HOST:PORT|off", default_value = "127.0.0.1:6379", value_parser = parse_listen)]
    resp: Listen,
    #[command(flatten)]
    tls: TlsArguments,
    /// Address for clients of volumes over NBD; port 0 chooses a free port. Needs a data directory
    /// with volume units
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_address)]
    nbd: Option<SocketAddr>,
    /// Let every NBD client that reaches the address read and change all volumes, also where Redis
    /// clients need a password
    #[arg(long, requires = "nbd")]
    nbd_open: bool,
    /// Address for metrics, health and state over HTTP
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_address)]
    http: Option<SocketAddr>,
    /// When a write is acknowledged: `flash`, once it survives a power cut; or immediately, to
    /// survive one after a time such as `1s` or `100ms`
    #[arg(long, value_name = "flash|TIME", default_value = "flash", value_parser = parse_durability)]
    durability: Durability,
    /// Memory for memtables, read cache, requests and replies; by default a quarter of that of the
    /// machine or of the control group
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
    /// Values of at least this size are written once, to blocks of their own; `off` for none
    #[arg(long, value_name = "SIZE|off", default_value = "16KiB", value_parser = parse_value_threshold)]
    value_threshold: ValueThreshold,
    /// Longest value and argument of a request, at most 512MiB; a longer one is refused and the
    /// connection goes on. Four times as much has to fit into --memory
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_longest_value)]
    proto_max_bulk_len: usize,
    /// Period of the scrub, such as `7d`, or `off`: in this time all data on flash are read once,
    /// and rewritten if their pages need a refresh
    #[arg(long, alias = "patrol", value_name = "TIME|off", default_value = "7d", value_parser = parse_scrub)]
    scrub: ScrubPeriod,
    #[command(flatten)]
    password: PasswordSource,
    /// File of the users; by default users.acl in the data directory
    #[arg(long, value_name = "FILE")]
    acl_file: Option<PathBuf>,
    /// Refuse connections from other machines while the user `default` has no password
    #[arg(long, value_name = "yes|no", default_value = "yes", value_parser = parse_yes)]
    protected_mode: Yes,
    /// Maximum number of unauthenticated connections from one network (an IPv4 address, 64 bits of
    /// IPv6)
    #[arg(long, value_name = "N", default_value_t = 256)]
    max_unauthenticated: usize,
    /// Policies of the flash, as `victim=cost-benefit,wear=static:100`, separated by commas:
    /// `victim` chooses what is collected next, of volumes and of separated values, `wear` levels
    /// erases, `placement` chooses the unit of a write, `order` the next command of a die.
    /// `softflash lab keys policy` lists them
    #[arg(long, value_name = "KIND=POLICY")]
    policy: Option<Chosen>,
    /// Maximum number of connections
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_clients: usize,
    /// Pin each shard's thread to a core of its own
    #[arg(long)]
    pin: bool,
    /// Close connections without requests for this long, as `300s`; by default never
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    idle_timeout: Option<Duration>,
    /// Time limit for requests in progress when the server stops
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    drain_timeout: Duration,
}

impl Serve {
    /// Whether the settings are to be printed, and nothing served.
    pub fn only_prints_settings(&self) -> bool {
        self.file.is_to_be_printed()
    }

    /// Serves until it is stopped.
    pub fn run(self) -> Result<(), CliError> {
        let path = self.data.as_deref().unwrap_or(Path::new(DEFAULT_DIRECTORY));
        let acl_file = self.acl_file.unwrap_or_else(|| path.join(USERS_NAME));
        let resp = self.resp.0;
        let memory = MemoryBudget::new(self.memory);
        let tls = self.tls.settings(resp)?;
        let connect = Connect { password: self.password.origin(), tls: tls.clone() };
        let policies = self.policy.unwrap_or_default();
        let config = ServerConfig {
            resp,
            tls,
            nbd: self.nbd.map(|address| NbdSettings { address, open: self.nbd_open }),
            http: self.http,
            policies,
            options: StoreOptions {
                memory_bytes: memory.bytes,
                durability: self.durability,
                scrub: self.scrub.0,
                value_threshold: self.value_threshold.0,
                max_value_bytes: self.proto_max_bulk_len,
                ..StoreOptions::default()
            }
            .with_policies(&policies),
            password: self.password.read()?,
            acl_file: Some(acl_file),
            protected: self.protected_mode.0,
            max_unauthenticated: self.max_unauthenticated,
            max_clients: descriptors::room_for(self.max_clients),
            pin_threads: self.pin,
            drain_timeout: self.drain_timeout,
            idle_timeout: self.idle_timeout,
            was_signalled: cleanup::was_signalled,
        };
        let (data, endpoints) = prepare(path, &config)?;
        allocator::return_free_memory()
            .map_err(|source| CliError::Io { what: "starting a thread", source })?;
        let directory = data.path().display().to_string();
        serve(data, endpoints, &config, |addresses, needs_password| {
            announce(&directory, memory, &connect, addresses, needs_password);
        })?;
        Ok(())
    }
}

/// The memory budget, and the memory of which it is a share by default.
#[derive(Debug, Clone, Copy)]
pub struct MemoryBudget {
    bytes: u64,
    share_of: Option<u64>,
}

impl MemoryBudget {
    fn new(wanted: Option<u64>) -> MemoryBudget {
        let share_of = machine_memory::memory_bytes().filter(|_| wanted.is_none());
        let share = share_of.map(machine_memory::default_budget);
        let bytes = wanted.or(share).unwrap_or(StoreOptions::default().memory_bytes);
        MemoryBudget { bytes, share_of }
    }

    fn line(self) -> String {
        let reason = self.share_of.map_or_else(
            || "set by --memory".to_owned(),
            |all| format!("a quarter of {}; --memory changes it", human_bytes(all)),
        );
        format!("memory={} ({}, {reason})", self.bytes, human_bytes(self.bytes))
    }
}

/// The data directory and the sockets. Where there is no directory, or what an interrupted one has
/// left of it, it is made last, so that a server that cannot serve leaves nothing behind.
fn prepare(path: &Path, config: &ServerConfig) -> Result<(DataDir, Endpoints), CliError> {
    config.check()?;
    if !is_free(path) {
        // First the lock: a second server on a directory names the first one.
        let data = DataDir::open(path)?;
        return Ok((data, Endpoints::bind(config)?));
    }
    if config.nbd.is_some() {
        return Err(CliError::Usage(format!(
            "--nbd needs a data directory with volume units, and {} is none yet; create it with \
             `softflash format {} --size SIZE --volume-units M`",
            path.display(),
            shell_word(&path.to_string_lossy())
        )));
    }
    check_users(config)?;
    let endpoints = Endpoints::bind(config)?;
    Ok((make(path)?, endpoints))
}

/// Makes a data directory with a file device.
fn make(path: &Path) -> Result<DataDir, CliError> {
    let size_bytes = DEFAULT_BYTES.min(host::free_bytes(path)? / 2);
    output::say(&format!(
        "creating {}: a file device of {} in {DEFAULT_UNITS} units (`softflash format` has all options)",
        path.display(),
        human_bytes(size_bytes),
    ));
    let device = NewDevice::File { size_bytes, discard: Discard::None, block_device: None };
    let (uuid, cores) = (host::random_identity()?, host::cores());
    directories::create(Plan::new(path.to_owned(), device, DEFAULT_UNITS, uuid, cores))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        serve: Serve,
    }

    #[test]
    fn scrub_and_its_old_name_patrol_set_the_period() {
        let period = |arguments: &[&str]| {
            let line = Line::try_parse_from([&["serve"], arguments].concat());
            line.map(|line| line.serve.scrub.0).map_err(|error| error.to_string())
        };
        let week = Some(Duration::from_secs(7 * 86_400));
        assert_eq!(period(&[]), Ok(week), "by default");
        for flag in ["--scrub", "--patrol"] {
            assert_eq!(period(&[flag, "off"]), Ok(None));
            assert_eq!(period(&[flag, "90s"]), Ok(Some(Duration::from_secs(90))));
            assert!(period(&[flag, "59s"]).unwrap_err().contains("less than a minute"));
        }
        assert!(period(&["--scrub", "off", "--patrol", "off"]).is_err(), "one flag, given twice");
    }
}
