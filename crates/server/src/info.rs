//! What the server adds to INFO and CONFIG GET.

use crate::config::ServerConfig;
use crate::server::Addresses;
use softflash_protocol::InfoField;
use std::fs;

/// Settings that CONFIG GET shows.
pub(crate) fn settings(config: &ServerConfig, addresses: Addresses) -> Vec<(String, String)> {
    let idle = config.idle_timeout.unwrap_or_default().as_secs();
    [
        ("bind", addresses.resp.ip().to_string()),
        ("port", addresses.resp.port().to_string()),
        ("maxclients", config.max_clients.to_string()),
        ("maxmemory", config.options.memory_bytes.to_string()),
        ("timeout", idle.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// The fields of INFO that only the process knows.
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
            field("server", "tcp_port", u64::from(addresses.resp.port())),
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

/// What the kernel says the process occupies.
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
