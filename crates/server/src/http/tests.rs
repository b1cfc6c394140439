use super::*;
use crate::telemetry::{DomainStats, ServerStats};
use softflash_base::EDGES_US;
use softflash_base::UnitId;
use softflash_ftl::{ProgramBytes, Service, SpaceAccount, UnitState, UnitTelemetry};
use softflash_protocol::CommandStat;
use softflash_store::stats::StoreStats;
use softflash_volume::{PairFigures, VolumeCounters, VolumeFigures, VolumeLatencies, WindowState};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn unit(number: u16) -> UnitTelemetry {
    UnitTelemetry {
        unit: UnitId(number),
        state: UnitState::Online,
        queue: 3,
        busy_ns: 1_500_000_000,
        space: SpaceAccount { erased: 1, erase_pending: 2, open: 1, live: 4, bad: 0 },
        superblock_payload_bytes: 8 << 20,
        erase_count_min: 1,
        erase_count_mean: 1.5,
        erase_count_max: 2,
        bad_blocks: 0,
        damaged_headers: 0,
        reads: 10,
        programs: 20,
        erases: 3,
        bytes_read: 40960,
        bytes_programmed: 81920,
        programmed: ProgramBytes { host: 81920, ..ProgramBytes::default() },
        errors: 0,
        service: Service::default(),
    }
}

fn example() -> Snapshot {
    let mut latencies = VolumeLatencies::default();
    [1_500, 3_000_000].into_iter().for_each(|ns| latencies.read.add(ns));
    Snapshot {
        server: ServerStats { commands: 42, uptime_seconds: 7, ..ServerStats::default() },
        store: StoreStats {
            keys: 5,
            stall_us: 2_500_000,
            stall_longest_us: 1_500_000,
            host_bytes_written: 99,
            value_blocks: 3,
            ..StoreStats::default()
        },
        volumes: vec![DomainStats {
            set: "vol-0".to_owned(),
            volume_bytes_written: 4096,
            volume_used_bytes: 8192,
            by_volume: vec![VolumeFigures {
                name: "disk".to_owned(),
                counters: VolumeCounters {
                    reads: 3,
                    written_bytes: 4096,
                    iops_waits: 2,
                    quota_refusals: 1,
                    ..VolumeCounters::default()
                },
                size_bytes: 1 << 20,
                quota_bytes: Some(1 << 19),
                latencies,
                ..VolumeFigures::default()
            }],
            ..DomainStats::default()
        }],
        units: vec![unit(0), unit(1)],
        commands: vec![CommandStat {
            name: "get",
            calls: 4,
            refused: 0,
            failed: 1,
            sum_us: 2_000_500,
            by_edge: (0..EDGES_US.len() as u64 + 1).map(|edge| u64::from(edge % 7 == 0)).collect(),
            percentiles_us: [1, 128, 128],
        }],
    }
}

#[test]
fn metrics_carry_their_units() {
    let text = metrics::render(&example()).unwrap();
    for line in [
        "softflash_uptime_seconds 7",
        "softflash_commands_total 42",
        "softflash_store_keys 5",
        "softflash_store_stall_seconds_total 2.5",
        "softflash_store_stall_longest_seconds 1.5",
        "softflash_store_value_blocks 3",
        "softflash_store_value_live_bytes 0",
        "softflash_store_cache_budget_bytes 0",
        "softflash_store_host_written_bytes_total 99",
        "softflash_store_memtable_bytes 0",
        "softflash_volume_written_bytes_total{shard=\"0\",set=\"vol-0\"} 4096",
        "softflash_volume_used_bytes{shard=\"0\",set=\"vol-0\"} 8192",
        "softflash_volume_requests_total{volume=\"disk\",operation=\"read\"} 3",
        "softflash_volume_request_bytes_total{volume=\"disk\",operation=\"write\"} 4096",
        "softflash_volume_waits_total{volume=\"disk\",limit=\"iops\"} 2",
        "softflash_volume_refusals_total{volume=\"disk\",limit=\"quota\"} 1",
        "softflash_unit_busy_seconds_total{unit=\"1\"} 1.5",
        "softflash_unit_superblocks_free{unit=\"0\"} 3.0",
        "softflash_command_duration_seconds_sum{command=\"get\"} 2.0005",
        "softflash_command_duration_seconds_count{command=\"get\"} 4",
        "softflash_command_duration_seconds_bucket{le=\"0.000001\",command=\"get\"} 1",
        "softflash_command_duration_seconds_bucket{le=\"0.000064\",command=\"get\"} 1",
        "softflash_command_duration_seconds_bucket{le=\"0.000128\",command=\"get\"} 2",
        "softflash_command_duration_seconds_bucket{le=\"+Inf\",command=\"get\"} 4",
        "softflash_command_errors_total{command=\"get\",reason=\"failed\"} 1",
        "softflash_command_errors_total{command=\"get\",reason=\"refused\"} 0",
        "softflash_volume_size_bytes{volume=\"disk\"} 1048576",
        "softflash_volume_quota_bytes{volume=\"disk\"} 524288",
        "softflash_volume_duration_seconds_bucket{le=\"0.000001\",volume=\"disk\",operation=\"read\"} 0",
        "softflash_volume_duration_seconds_bucket{le=\"0.000002\",volume=\"disk\",operation=\"read\"} 1",
        "softflash_volume_duration_seconds_count{volume=\"disk\",operation=\"read\"} 2",
        "softflash_volume_full{shard=\"0\",set=\"vol-0\"} 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "`{line}` is missing in\n{text}");
    }
    let mut families: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
    let all = families.len();
    families.dedup();
    assert_eq!(families.len(), all, "a family appears twice");
}

/// A pair of sets, of which the second one only reads.
fn paired() -> Snapshot {
    let pair = PairFigures {
        is_whole: true,
        behind_bytes: 12_288,
        staged_bytes: 8192,
        turns: 9,
        early_turns: 2,
        late_turns: 1,
        longest_drain_ns: 22_500_000,
        operations: 3,
        staged_reads: 4,
        healed_units: 5,
        lost_units: 6,
        ..PairFigures::default()
    };
    let window = |is_deterministic| WindowState {
        is_deterministic,
        length_ns: 200_000_000,
        left_ns: 0,
        writes_left_bytes: 4096,
    };
    let set = |name: &str, is_deterministic| DomainStats {
        set: name.to_owned(),
        pair: Some(pair),
        window: Some(window(is_deterministic)),
        ..DomainStats::default()
    };
    let alone = DomainStats { set: "alone".to_owned(), ..DomainStats::default() };
    Snapshot { volumes: vec![set("vol-0", false), set("copy", true), alone], ..example() }
}

#[test]
fn pairs_and_windows_have_metrics_and_other_sets_have_none() {
    let text = metrics::render(&paired()).unwrap();
    for line in [
        "softflash_volume_pair_whole{shard=\"0\",set=\"vol-0\"} 1.0",
        "softflash_volume_pair_building{shard=\"0\",set=\"copy\"} 0.0",
        "softflash_volume_pair_behind_bytes{shard=\"0\",set=\"vol-0\"} 12288.0",
        "softflash_volume_pair_staged_bytes{shard=\"0\",set=\"vol-0\"} 8192.0",
        "softflash_volume_pair_longest_drain_seconds{shard=\"0\",set=\"copy\"} 0.0225",
        "softflash_volume_window_deterministic{shard=\"0\",set=\"vol-0\"} 0.0",
        "softflash_volume_window_deterministic{shard=\"0\",set=\"copy\"} 1.0",
        "softflash_volume_window_length_seconds{shard=\"0\",set=\"copy\"} 0.2",
        "softflash_volume_window_writes_left_bytes{shard=\"0\",set=\"copy\"} 4096.0",
        "softflash_volume_pair_turns_total{shard=\"0\",set=\"copy\"} 9",
        "softflash_volume_pair_early_turns_total{shard=\"0\",set=\"vol-0\"} 2",
        "softflash_volume_pair_late_turns_total{shard=\"0\",set=\"vol-0\"} 1",
        "softflash_volume_pair_operations_total{shard=\"0\",set=\"vol-0\"} 3",
        "softflash_volume_pair_staged_reads_total{shard=\"0\",set=\"vol-0\"} 4",
        "softflash_volume_pair_healed_units_total{shard=\"0\",set=\"vol-0\"} 5",
        "softflash_volume_pair_lost_units_total{shard=\"0\",set=\"vol-0\"} 6",
    ] {
        assert!(text.lines().any(|found| found == line), "`{line}` is missing in\n{text}");
    }
    let of_pairs = |text: &str| {
        text.lines().any(|line| line.contains("volume_pair_") || line.contains("volume_window_"))
    };
    let of_alone = text.lines().filter(|line| line.contains("set=\"alone\"")).collect::<String>();
    assert!(!of_alone.is_empty() && !of_pairs(&of_alone), "{of_alone}");
    assert!(!of_pairs(&metrics::render(&example()).unwrap()));
}

/// The names after `softflash_` in the queries of the dashboard.
fn metrics_of_dashboard() -> Vec<String> {
    let dashboard = include_str!("../../../../examples/grafana.json");
    let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = targets.map(|target| target["expr"].as_str().unwrap());
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = queries.flat_map(|query| query.split(move |c| !is_of_name(c)));
    words.filter(|word| word.starts_with("softflash_")).map(str::to_owned).collect()
}

#[test]
fn every_metric_of_the_dashboard_is_printed() {
    let text = metrics::render(&example()).unwrap();
    let name_of = |line: &str| line.split(['{', ' ']).next().unwrap_or_default().to_owned();
    let printed: Vec<String> = text.lines().map(name_of).collect();
    let wanted = metrics_of_dashboard();
    assert!(wanted.len() > 20, "{wanted:?}");
    for name in wanted {
        assert!(printed.contains(&name), "`{name}` is not in\n{text}");
    }
}

/// Fields of the store that only grow.
const COUNTERS: [&str; 41] = [
    "device_reads",
    "device_programs",
    "device_erases",
    "host_bytes_written",
    "flash_bytes_written",
    "flash_bytes_read",
    "program_bytes_host",
    "program_bytes_log",
    "program_bytes_flush",
    "program_bytes_compaction",
    "program_bytes_collection",
    "program_bytes_parity",
    "program_bytes_refresh",
    "program_bytes_levelling",
    "program_bytes_rebuild",
    "program_bytes_map",
    "program_bytes_header",
    "log_bytes_written",
    "flush_bytes_written",
    "compaction_bytes_written",
    "memory_hits",
    "flash_lookups",
    "filter_false_positives",
    "value_bytes_written",
    "value_bytes_collected",
    "flushes",
    "compactions",
    "stall_us",
    "stall_space_us",
    "stall_cleaning_us",
    "stall_values_us",
    "stall_memory_us",
    "stall_log_us",
    "stall_runs_us",
    "stall_merge_us",
    "refused_writes",
    "keys_expired",
    "data_losses",
    "patrols",
    "patrolled_bytes",
    "refreshed_bytes",
];

#[test]
fn every_field_of_the_store_is_either_a_gauge_or_a_counter() {
    let mut fields: Vec<_> = StoreStats::default().fields().iter().map(|(name, _)| *name).collect();
    let mut known = [&metrics::GAUGES[..], &COUNTERS[..]].concat();
    fields.sort_unstable();
    known.sort_unstable();
    assert_eq!(fields, known, "a new field belongs into one of the two lists");
    let text = metrics::render(&example()).unwrap();
    let is_of_store = |line: &&str| {
        ["# TYPE softflash_store_", "# TYPE softflash_program_bytes_"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let stores = text.lines().filter(is_of_store);
    let (gauges, counters): (Vec<_>, Vec<_>) = stores.partition(|line| line.ends_with(" gauge"));
    assert_eq!((gauges.len(), counters.len()), (metrics::GAUGES.len(), COUNTERS.len()));
}

async fn get(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn volumes_that_are_not_served_are_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let damaged = || {
        let not_mounted = Some("a root cannot be read".to_owned());
        let domain = DomainStats {
            shard: 3,
            set: "vol-3".to_owned(),
            not_mounted,
            ..DomainStats::default()
        };
        Snapshot { volumes: vec![domain], ..example() }
    };
    let source: Source = Arc::new(move || Box::pin(async move { Some(damaged()) }));
    let serving = tokio::spawn(serve(listener, source, std::future::pending()));
    let health = get(address, "/health").await;
    assert!(health.contains(r#""status":"degraded""#), "{health}");
    assert!(health.contains(r#""volumes_not_mounted":[3]"#), "{health}");
    let metrics = get(address, "/metrics").await;
    assert!(metrics.contains(r#"softflash_volume_mounted{shard="3",set="vol-3"} 0"#), "{metrics}");
    let stats = get(address, "/api/stats").await;
    assert!(stats.contains(r#""not_mounted":"a root cannot be read""#), "{stats}");
    serving.abort();
}

#[tokio::test]
async fn every_page_is_served_and_a_closing_store_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let open = Arc::new(AtomicBool::new(true));
    let is_open = Arc::clone(&open);
    let source: Source = Arc::new(move || {
        let snapshot = is_open.load(Ordering::Relaxed).then(example);
        Box::pin(async move { snapshot })
    });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(serve(listener, source, async move {
        let _ = stopped.await;
    }));
    assert!(get(address, "/metrics").await.contains("softflash_store_keys 5"));
    assert!(get(address, "/health").await.contains(r#"{"status":"ok","writable":true}"#));
    assert!(get(address, "/api/units").await.contains(r#""erase_count_mean":1.5"#));
    assert!(get(address, "/api/stats").await.contains(r#""commands":42"#));
    assert!(get(address, "/nothing").await.starts_with("HTTP/1.1 404"));
    open.store(false, Ordering::Relaxed);
    assert!(get(address, "/health").await.starts_with("HTTP/1.1 503"));
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
}
