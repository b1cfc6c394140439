//! The server's additions to INFO and CONFIG GET.

use crate::config::ServerConfig;
use crate::endpoints::Addresses;
use softflash_protocol::InfoField;
use softflash_store::Durability;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Settings that CONFIG GET shows.
pub(crate) fn settings(
    config: &ServerConfig,
    addresses: Addresses,
    acl_file: &Path,
) -> Vec<(String, String)> {
    let bind = addresses.resp.or(addresses.tls).map(|address| address.ip());
    let idle = config.idle_timeout.unwrap_or_default().as_secs();
    [
        ("aclfile", acl_file.display().to_string()),
        ("bind", bind.map(|ip| ip.to_string()).unwrap_or_default()),
        ("port", port(addresses.resp).to_string()),
        ("tls-port", port(addresses.tls).to_string()),
        ("protected-mode", if config.protected { "yes" } else { "no" }.to_owned()),
        ("maxclients", config.max_clients.to_string()),
        ("maxmemory", config.options.memory_bytes.to_string()),
        ("proto-max-bulk-len", config.options.max_value_bytes.to_string()),
        ("timeout", idle.to_string()),
        ("appendfsync", fsync_policy(config.options.durability).to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// The policy of Redis that promises as much: it may lose a second of writes with `everysec`, and
/// with `no` more.
fn fsync_policy(durability: Durability) -> &'static str {
    match durability {
        Durability::Flash => "always",
        Durability::Interval(interval) if interval <= Duration::from_secs(1) => "everysec",
        Durability::Interval(_) => "no",
    }
}

/// INFO fields that only the process knows.
pub(crate) fn fields(
    config: &ServerConfig,
    addresses: Addresses,
) -> Box<dyn Fn() -> Vec<InfoField> + Send + Sync> {
    let (memory, max_clients) = (config.options.memory_bytes, config.max_clients);
    Box::new(move || {
        let field =
            |section, name, value: u64| InfoField { section, name, value: value.to_string() };
        let mut fields = vec![
            field("server", "process_id", u64::from(std::process::id())),
            field("server", "tcp_port", u64::from(port(addresses.resp.or(addresses.tls)))),
            field("clients", "maxclients", max_clients as u64),
            field("memory", "maxmemory", memory),
        ];
        if let Some(bytes) = resident_bytes() {
            fields.push(field("memory", "used_memory", bytes));
            fields.push(field("memory", "used_memory_rss", bytes));
        }
        fields
    })
}

/// The port, or 0 for none, as in Redis.
fn port(address: Option<SocketAddr>) -> u16 {
    address.map_or(0, |address| address.port())
}

/// Resident memory of the process, from the kernel.
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_of_redis_never_promises_more_than_the_durability_does() {
        let policy = |ms| fsync_policy(Durability::Interval(Duration::from_millis(ms)));
        assert_eq!(fsync_policy(Durability::Flash), "always");
        assert_eq!((policy(10), policy(1000), policy(1001)), ("everysec", "everysec", "no"));
    }
}
