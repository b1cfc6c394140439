//! The server's additions to INFO and CONFIG GET.

use crate::config::ServerConfig;
use crate::endpoints::Addresses;
use crate::process::{self, Memory, Processor};
use softflash_protocol::InfoField;
use softflash_store::Durability;
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
    let (budget, max_clients) = (config.options.memory_bytes, config.max_clients);
    Box::new(move || {
        let mut fields = Fields::default();
        fields.add("server", "process_id", u64::from(std::process::id()));
        fields.add("server", "tcp_port", u64::from(port(addresses.resp.or(addresses.tls))));
        fields.add("clients", "maxclients", max_clients as u64);
        if let Some(memory) = process::memory() {
            fields.add_memory(&memory);
        }
        if let Some(bytes) = process::machine_bytes() {
            fields.add_bytes("total_system_memory", "total_system_memory_human", bytes);
        }
        fields.add_bytes("maxmemory", "maxmemory_human", budget);
        // First, so that it is not the time of a later moment than that of all threads.
        let of_shards = process::processor_of_shards();
        if let Some(time) = process::processor() {
            fields.add_processor(&time);
        }
        if let Some(Processor { user, system, .. }) = of_shards {
            fields.add_seconds("used_cpu_sys_main_thread", system);
            fields.add_seconds("used_cpu_user_main_thread", user);
        }
        fields.0
    })
}

#[derive(Default)]
struct Fields(Vec<InfoField>);

impl Fields {
    fn add(&mut self, section: &'static str, name: &'static str, value: impl ToString) {
        self.0.push(InfoField { section, name, value: value.to_string() });
    }

    fn add_bytes(&mut self, name: &'static str, for_people: &'static str, bytes: u64) {
        self.add("memory", name, bytes);
        self.add("memory", for_people, for_people_bytes(bytes));
    }

    /// What is in use is what is resident: so there is no fragmentation to see.
    fn add_memory(&mut self, memory: &Memory) {
        let Memory { resident_bytes, peak_bytes } = *memory;
        self.add_bytes("used_memory", "used_memory_human", resident_bytes);
        self.add_bytes("used_memory_rss", "used_memory_rss_human", resident_bytes);
        self.add_bytes("used_memory_peak", "used_memory_peak_human", peak_bytes);
        let share = resident_bytes as f64 / peak_bytes.max(1) as f64 * 100.0;
        self.add("memory", "used_memory_peak_perc", format!("{share:.2}%"));
        self.add("memory", "mem_fragmentation_ratio", "1.00");
        self.add("memory", "mem_fragmentation_bytes", 0);
    }

    fn add_seconds(&mut self, name: &'static str, seconds: f64) {
        self.add("cpu", name, format!("{seconds:.6}"));
    }

    fn add_processor(&mut self, time: &Processor) {
        self.add_seconds("used_cpu_sys", time.system);
        self.add_seconds("used_cpu_user", time.user);
        self.add_seconds("used_cpu_sys_children", time.system_of_children);
        self.add_seconds("used_cpu_user_children", time.user_of_children);
    }
}

/// Bytes as Redis shows them to people: `895.10K`.
fn for_people_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    let exponent = bytes.checked_ilog2().unwrap_or(0) / 10;
    match UNITS.get((exponent as usize).wrapping_sub(1)) {
        None => format!("{bytes}B"),
        Some(unit) => format!("{:.2}{unit}", bytes as f64 / (1_u64 << (10 * exponent)) as f64),
    }
}

/// The port, or 0 for none, as in Redis.
fn port(address: Option<SocketAddr>) -> u16 {
    address.map_or(0, |address| address.port())
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
    #[test]
    fn bytes_are_shown_as_redis_shows_them() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.00K"),
            (916_584, "895.10K"),
            (6_840_320, "6.52M"),
            (25_276_502_016, "23.54G"),
            (1 << 40, "1.00T"),
        ] {
            assert_eq!(for_people_bytes(bytes), text);
        }
    }
}
