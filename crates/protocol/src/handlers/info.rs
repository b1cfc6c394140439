//! INFO: the server's state as text in sections.

use crate::acl::Reason;
use crate::command::Flags;
use crate::context::{Counters, InfoField};
use crate::error::Result;
use crate::handlers::keyspace_context::KeyspaceContext;
use crate::shared::command_stats::CommandStat;
use softflash_store::stats::KeyCount;
use std::fmt::{Display, Write};
use std::sync::atomic::Ordering::Relaxed;

/// The sections in order, and whether INFO without arguments shows them.
const SECTIONS: [(&str, bool); 13] = [
    ("Server", true),
    ("Clients", true),
    ("Memory", true),
    ("Persistence", true),
    ("Stats", true),
    ("Replication", true),
    ("CPU", true),
    ("Commandstats", false),
    ("Errorstats", true),
    ("Latencystats", false),
    ("Cluster", true),
    ("Keyspace", true),
    ("Flash", true),
];

/// The sections that the arguments select.
pub(crate) async fn text(keyspace: &KeyspaceContext<'_>) -> Result<String> {
    let wanted = keyspace.args.get(1..).unwrap_or_default();
    let asked = |name: &str| wanted.iter().any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let everything = asked("all") || asked("everything");
    let usual = wanted.is_empty() || asked("default");
    let extra = keyspace.context.info_fields();
    let mut text = String::new();
    for (section, default) in SECTIONS {
        if !(everything || (usual && default) || asked(section)) {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let mut lines = Lines { text: &mut text };
        lines.write_title(section);
        write_section(&mut lines, section, keyspace).await?;
        for InfoField { section: of, name, value } in &extra {
            if section.eq_ignore_ascii_case(of) {
                lines.write_field(name, value);
            }
        }
    }
    Ok(text)
}

struct Lines<'a> {
    text: &'a mut String,
}

impl Lines<'_> {
    fn write_title(&mut self, name: &str) {
        // Writing to a string does not fail.
        let _ = write!(self.text, "# {name}\r\n");
    }

    fn write_field(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.text, "{name}:{value}\r\n");
    }

    /// Fields of Redis that are always 0 here.
    fn write_zeros(&mut self, names: &[&str]) {
        names.iter().for_each(|name| self.write_field(name, 0));
    }
}

async fn write_section(
    lines: &mut Lines<'_>,
    section: &str,
    keyspace: &KeyspaceContext<'_>,
) -> Result<()> {
    match section {
        "Server" => server(lines, keyspace),
        "Clients" => clients(lines, keyspace),
        "Memory" => memory(lines, keyspace),
        "Persistence" => persistence(lines),
        "Stats" => stats(lines, keyspace).await?,
        "Replication" => replication(lines),
        "Commandstats" => command_stats(lines, keyspace),
        "Errorstats" => error_stats(lines, keyspace),
        "Latencystats" => latency_stats(lines, keyspace),
        "Cluster" => lines.write_field("cluster_enabled", 0),
        "Keyspace" => {
            let KeyCount { keys, expiring } = keyspace.key_count().await?;
            if keys > 0 {
                let text = format_args!("keys={keys},expires={expiring},avg_ttl=0");
                lines.write_field("db0", text);
            }
        }
        "Flash" => {
            for (name, value) in keyspace.store.stats().await?.fields() {
                lines.write_field(name, value);
            }
        }
        // CPU: known only to the server's process, which also adds to other sections.
        _ => {}
    }
    Ok(())
}

fn server(lines: &mut Lines<'_>, keyspace: &KeyspaceContext<'_>) {
    let now_ms = keyspace.store.now_ms();
    let uptime_s = now_ms.saturating_sub(keyspace.context.started_at_ms()) / 1000;
    lines.write_field("redis_version", crate::handlers::connection::REDIS_VERSION);
    lines.write_field("softflash_version", env!("CARGO_PKG_VERSION"));
    lines.write_field("redis_mode", "standalone");
    lines.write_field("os", std::env::consts::OS);
    lines.write_field("arch_bits", usize::BITS);
    lines.write_field("run_id", keyspace.context.run_id());
    lines.write_field("server_time_usec", now_ms * 1000);
    lines.write_field("uptime_in_seconds", uptime_s);
    lines.write_field("uptime_in_days", uptime_s / 86_400);
    lines.write_field("shards", keyspace.store.layout().shards);
    lines.write_field("slices", keyspace.store.layout().slices);
}

fn clients(lines: &mut Lines<'_>, keyspace: &KeyspaceContext<'_>) {
    lines.write_field("connected_clients", keyspace.context.clients.count());
    lines.write_zeros(&["cluster_connections", "blocked_clients", "tracking_clients"]);
    lines.write_zeros(&["clients_in_timeout_table", "pubsub_clients"]);
}

fn persistence(lines: &mut Lines<'_>) {
    // All acknowledged data are on flash; monitors of Redis look for these fields.
    lines.write_field("loading", 0);
    lines.write_field("rdb_bgsave_in_progress", 0);
    lines.write_field("rdb_last_bgsave_status", "ok");
    lines.write_field("aof_enabled", 1);
    lines.write_field("aof_rewrite_in_progress", 0);
    lines.write_field("aof_last_write_status", "ok");
}

fn memory(lines: &mut Lines<'_>, keyspace: &KeyspaceContext<'_>) {
    let policy = keyspace.context.setting("maxmemory-policy").unwrap_or("noeviction");
    lines.write_field("maxmemory_policy", policy);
}

async fn stats(lines: &mut Lines<'_>, keyspace: &KeyspaceContext<'_>) -> Result<()> {
    let (counters, now) = (&keyspace.context.counters, keyspace.store.runtime().now());
    let Counters { connections, rejected_connections, commands, errors, .. } = counters;
    let Counters { input_bytes, output_bytes, socket_reads, socket_writes, .. } = counters;
    let Counters { keyspace_hits, keyspace_misses, expired_before, .. } = counters;
    lines.write_field("total_connections_received", connections.load(Relaxed));
    lines.write_field("total_commands_processed", commands.load(Relaxed));
    let operations = counters.command_rate.per_second(now);
    lines.write_field("instantaneous_ops_per_sec", operations.round());
    lines.write_field("total_net_input_bytes", input_bytes.load(Relaxed));
    lines.write_field("total_net_output_bytes", output_bytes.load(Relaxed));
    for (name, rate) in [
        ("instantaneous_input_kbps", &counters.input_rate),
        ("instantaneous_output_kbps", &counters.output_rate),
    ] {
        lines.write_field(name, format_args!("{:.2}", rate.per_second(now) / 1024.0));
    }
    lines.write_field("rejected_connections", rejected_connections.load(Relaxed));
    // There are no replicas.
    lines.write_zeros(&["sync_full", "sync_partial_ok", "sync_partial_err"]);
    let expired = keyspace.store.stats().await?.keys_expired;
    lines.write_field("expired_keys", expired.saturating_sub(expired_before.load(Relaxed)));
    // Nothing is evicted, published, tracked or copied by a child process.
    lines.write_zeros(&["evicted_keys", "evicted_clients"]);
    lines.write_field("keyspace_hits", keyspace_hits.load(Relaxed));
    lines.write_field("keyspace_misses", keyspace_misses.load(Relaxed));
    lines.write_zeros(&["pubsub_channels", "pubsub_patterns", "pubsubshard_channels"]);
    lines.write_zeros(&["latest_fork_usec", "total_forks", "tracking_total_keys"]);
    lines.write_field("total_error_replies", errors.load(Relaxed));
    lines.write_field("total_reads_processed", socket_reads.load(Relaxed));
    lines.write_field("total_writes_processed", socket_writes.load(Relaxed));
    let known = keyspace.context.command_stats.known();
    let sum = |flag| -> u64 {
        known.iter().filter(|(spec, _)| spec.flags.has(flag)).map(|(_, stat)| stat.calls).sum()
    };
    lines.write_field("total_read_commands", sum(Flags::READONLY));
    lines.write_field("total_write_commands", sum(Flags::WRITE));
    let denied = |reason| keyspace.context.acl.log.count(reason);
    lines.write_field("acl_access_denied_auth", denied(Reason::Authentication));
    lines.write_field("acl_access_denied_cmd", denied(Reason::Command));
    lines.write_field("acl_access_denied_key", denied(Reason::Key));
    lines.write_field("slowlog_entries", keyspace.context.slowlog.len());
    Ok(())
}

fn replication(lines: &mut Lines<'_>) {
    lines.write_field("role", "master");
    lines.write_field("connected_slaves", 0);
    lines.write_field("master_failover_state", "no-failover");
    lines.write_field("master_repl_offset", 0);
    lines.write_field("second_repl_offset", -1);
    lines.write_zeros(&["repl_backlog_active", "repl_backlog_size"]);
    lines.write_zeros(&["repl_backlog_first_byte_offset", "repl_backlog_histlen"]);
}

fn error_stats(lines: &mut Lines<'_>, keyspace: &KeyspaceContext<'_>) {
    for (code, count) in keyspace.context.counters.error_stats.all() {
        lines.write_field(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

fn command_stats(lines: &mut Lines<'_>, keyspace: &KeyspaceContext<'_>) {
    for CommandStat { name, calls, refused, failed, sum_us, .. } in keyspace.context.command_stats()
    {
        let mean_us = sum_us as f64 / calls.max(1) as f64;
        let text = format_args!(
            "calls={calls},usec={sum_us},usec_per_call={mean_us:.2},rejected_calls={refused},\
             failed_calls={failed}"
        );
        lines.write_field(&format!("cmdstat_{name}"), text);
    }
}

fn latency_stats(lines: &mut Lines<'_>, keyspace: &KeyspaceContext<'_>) {
    for CommandStat { name, percentiles_us: [p50, p99, p999], .. } in
        keyspace.context.command_stats().into_iter().filter(|stat| stat.calls > 0)
    {
        let text = format_args!("p50={p50}.000,p99={p99}.000,p99.9={p999}.000");
        lines.write_field(&format!("latency_percentiles_usec_{name}"), text);
    }
}
