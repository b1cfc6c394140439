//! Sessions on a real store: authentication, limits, scans, and administrative commands.

use crate::support::encode;
use crate::support::frame::Frame;
use crate::support::ours::{self, Ours};
use crate::support::store::{lines, pause, testbed, text};
use softflash_base::SliceId;
use softflash_base::random::Rng;
use softflash_protocol::{Context, ContextOptions};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn nothing_but_auth_is_allowed_before_auth() {
    testbed(1).run(async |stores, _| {
        let options = ContextOptions {
            password: Some("secret".into()),
            ..ContextOptions::new(stores[0].now_ms(), 1)
        };
        let context = Arc::new(Context::new(options));
        let mut client = Ours::connect(&context, &stores[0]);
        let refused = b"NOAUTH Authentication required.";
        for line in ["GET k", "PING", "MULTI", "CONFIG GET *", "INFO", "SUBSCRIBE x"] {
            let reply = client.line(line).await;
            assert!(reply.text() == refused || line.starts_with("SUB"), "{line}: {reply:?}");
        }
        assert!(client.line("HELLO 3").await.text().starts_with(b"NOAUTH HELLO must"));
        assert!(client.line("AUTH wrong").await.text().starts_with(b"WRONGPASS"));
        assert!(client.line("AUTH secret2").await.text().starts_with(b"WRONGPASS"));
        assert!(client.line("AUTH nobody secret").await.text().starts_with(b"WRONGPASS"));
        // A connection is closed after three wrong passwords.
        assert_eq!(client.exchange(&lines(&["PING"])).await, b"");
        assert!(client.closed);
        let mut client = Ours::connect(&context, &stores[0]);
        // AUTH takes effect within a pipeline, also for the limits of the parser.
        let long = "x".repeat(20_000);
        let pipeline = [lines(&["AUTH secret"]), encode(&["SET", "k", &long])].concat();
        assert_eq!(text(&client.exchange(&pipeline).await), "+OK\r\n+OK\r\n");
        client.line("RESET").await;
        assert_eq!(client.line("PING").await.text(), refused);
        let greeting = client.line("HELLO 3 AUTH default secret SETNAME me").await;
        assert_eq!(greeting.items()[5].integer(), Some(3), "{greeting:?}");
        assert_eq!(client.line("CLIENT GETNAME").await.text(), b"me");

        let mut other = Ours::connect(&context, &stores[0]);
        let answer = other.exchange(&encode(&["SET", "k", &long])).await;
        assert_eq!(text(&answer), "-ERR Protocol error: unauthenticated bulk length\r\n");
        assert!(other.closed);
    });
}

#[test]
fn large_values_go_in_and_out_whole() {
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let mut client = Ours::connect(&ours::context(&stores[0]), &stores[0]);
            let mut rng = Rng::seeded(3);
            for length in [1, 4096, 16_383, 16_384, 65_535, 65_536, 1_000_000] {
                let mut value = vec![0; length];
                rng.fill(&mut value);
                for key in ["a", "b", "c"] {
                    let reserved = client.reserved_bytes();
                    assert_eq!(
                        client.ask(&[&b"SET"[..], key.as_bytes(), &value]).await.text(),
                        b"OK"
                    );
                    assert_eq!(client.reserved_bytes() > reserved, length >= 65_000, "{length}");
                    assert_eq!(client.held_bytes(), 0, "given back");
                }
                let got = client.line("MGET a b c").await;
                assert!(got.items().iter().all(|item| item.text() == value), "{length} bytes");
                let end = client.line("GETRANGE b -10 -1").await;
                assert_eq!(end.text(), &value[length.saturating_sub(10)..]);
            }
            let long_key = vec![b'k'; (64 << 10) + 1];
            let refused = client.ask(&[&b"SET"[..], &long_key, b"v"]).await;
            assert!(refused.text().starts_with(b"ERR string exceeds maximum allowed size"));
            assert_eq!(client.ask(&[&b"GET"[..], &long_key]).await, Frame::Nil(b'$'));
        });
    }
}

#[test]
fn a_transaction_keeps_its_reservation_until_it_runs() {
    testbed(1).run(async |stores, _| {
        let mut client = Ours::connect(&ours::context(&stores[0]), &stores[0]);
        client.line("MULTI").await;
        client.ask(&["SET".to_owned(), "k".into(), "v".repeat(100_000)]).await;
        let kept_bytes = |client: &Ours| client.connection.session().kept_bytes();
        assert_eq!(client.held_bytes(), 0, "the request is done");
        assert!(kept_bytes(&client) > 0);
        client.line("EXEC").await;
        assert_eq!(kept_bytes(&client), 0);
        assert_eq!(client.line("STRLEN k").await.integer(), Some(100_000));
    });
}

#[test]
fn scans_find_every_key_that_stays_while_others_come_and_go() {
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let context = ours::context(&stores[0]);
            let mut client = Ours::connect(&context, &stores[0]);
            for number in 0..500 {
                client.line(&format!("SET stays{number} v")).await;
            }
            client.line("SET dead v PX 1").await;
            pause(&stores[0], 3).await;
            let (mut found, mut cursor, mut rounds) = (BTreeSet::new(), "0".to_owned(), 0);
            loop {
                let scan = format!("SCAN {cursor} COUNT 7 MATCH stays*");
                let page = client.line(&scan).await;
                found.extend(page.items()[1].items().iter().map(|key| text(key.text())));
                cursor = text(page.items()[0].text());
                if cursor == "0" {
                    break;
                }
                client.line(&format!("SET comes{rounds} v")).await;
                client.line(&format!("DEL comes{}", rounds / 2)).await;
                rounds += 1;
            }
            assert_eq!(found.len(), 500);
            assert!(rounds > 60, "COUNT cuts the iteration: {rounds}");
            // A cursor of an earlier run restarts from the beginning.
            let page = client.line("SCAN 12345 COUNT 1000").await;
            let keys: BTreeSet<_> =
                page.items()[1].items().iter().map(|key| text(key.text())).collect();
            assert!(found.is_subset(&keys));
            assert!(!keys.contains("dead"));
            assert_eq!(page.items()[0].text(), b"0");
        });
    }
}

#[test]
fn killed_clients_are_closed_and_disconnected_ones_removed() {
    testbed(1).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut admin = Ours::connect(&context, &stores[0]);
        let mut victim = Ours::connect(&context, &stores[0]);
        let id = victim.line("CLIENT ID").await.integer().unwrap();
        let listed = text(admin.line("CLIENT LIST").await.text());
        assert!(listed.contains(&format!("id={id} ")) && listed.lines().count() == 2, "{listed}");
        assert!(listed.contains("cmd=client|list"), "{listed}");
        assert_eq!(admin.line(&format!("CLIENT KILL ID {id}")).await.integer(), Some(1));
        victim.connection.session().client().killed().await;
        assert_eq!(victim.exchange(&lines(&["PING"])).await, b"");
        assert!(victim.closed);
        drop(victim);
        assert_eq!(text(admin.line("CLIENT LIST").await.text()).lines().count(), 1);
        assert_eq!(admin.line("CLIENT KILL TYPE normal").await.integer(), Some(0));
        assert_eq!(admin.line("CLIENT KILL TYPE normal SKIPME no").await.integer(), Some(1));
        assert!(admin.closed);
    });
}

#[test]
fn slow_commands_are_logged() {
    testbed(1).run(async |stores, _| {
        let mut client = Ours::connect(&ours::context(&stores[0]), &stores[0]);
        client.line("CONFIG SET slowlog-log-slower-than 5000").await;
        client.line("PING").await;
        client.line("DEBUG SLEEP 0.02").await;
        assert_eq!(client.line("SLOWLOG LEN").await.integer(), Some(1));
        let log = client.line("SLOWLOG GET").await;
        let entry = log.items()[0].items();
        assert!(entry[2].integer().is_some_and(|took_us| took_us >= 20_000), "{entry:?}");
        assert_eq!(entry[3].items()[0].text(), b"DEBUG");
        assert_eq!(entry[4].text(), b"127.0.0.1:1");
        client.line("CONFIG SET slowlog-log-slower-than -1").await;
        client.line("DEBUG SLEEP 0.02").await;
        assert_eq!(client.line("SLOWLOG LEN").await.integer(), Some(1));
        client.line("SLOWLOG RESET").await;
        assert_eq!(client.line("SLOWLOG LEN").await.integer(), Some(0));
    });
}

#[test]
fn shutdown_stops_the_server_without_a_reply() {
    testbed(1).run(async |stores, _| {
        let asked = Arc::new(AtomicU64::new(0));
        let received = Arc::clone(&asked);
        let options = ContextOptions {
            shutdown: Box::new(move |request| received.store(request.client, Ordering::Relaxed)),
            ..ContextOptions::new(stores[0].now_ms(), 1)
        };
        let context = Arc::new(Context::new(options));
        let mut client = Ours::connect(&context, &stores[0]);
        assert!(!context.shutdown_requested());
        assert_eq!(client.exchange(&lines(&["SHUTDOWN NOSAVE", "PING"])).await, b"");
        assert!(client.closed && context.shutdown_requested());
        assert_eq!(asked.load(Ordering::Relaxed), client.connection.session().client().id);
    });
}

#[test]
fn info_and_the_flash_commands_show_the_store() {
    testbed(3).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut client = Ours::connect(&context, &stores[0]);
        for number in 0..10 {
            client.line(&format!("SET key{number} v")).await;
        }
        let info = text(client.line("INFO").await.text());
        let sections = [
            "Server",
            "Clients",
            "Memory",
            "Persistence",
            "Stats",
            "Replication",
            "CPU",
            "Keyspace",
            "Flash",
        ];
        for section in sections {
            assert!(info.contains(&format!("# {section}\r\n")), "{section}");
        }
        assert!(info.contains("\r\ndb0:keys=10,"), "{info}");
        assert!(info.contains("\r\nconnected_clients:1\r\n"));
        assert!(info.contains("\r\ntotal_commands_processed:10\r\n"), "{info}");
        let one = text(client.line("INFO clients").await.text());
        assert!(one.starts_with("# Clients\r\n") && !one.contains("# Server"));
        let counts = text(client.line("INFO commandstats").await.text());
        assert!(counts.contains("cmdstat_set:calls=10,usec="), "{counts}");
        let stats = text(client.line("FLASH.STATS").await.text());
        assert!(stats.contains("keys:10\r\n") && stats.contains("superblocks_total:"), "{stats}");
        assert_eq!(text(client.line("FLASH.UNITS").await.text()).lines().count(), 6);
        client.line("CONFIG RESETSTAT").await;
        let info = text(client.line("INFO stats").await.text());
        assert!(info.contains("total_commands_processed:1\r\n"), "{info}");
    });
}

#[test]
fn calls_errors_and_latencies_are_counted_for_each_command() {
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let mut client = Ours::connect(&ours::context(&stores[0]), &stores[0]);
            for line in [
                "SET text word",
                "INCR text",
                "GET",
                "CLIENT ID",
                "CLIENT NOSUCH",
                "MULTI",
                "INCR text",
                "GET text",
                "EXEC",
                "MULTI",
                "GET text",
                "DISCARD",
                "DEBUG SLEEP 0.05",
            ] {
                client.line(line).await;
            }
            let counts = text(client.line("INFO commandstats").await.text());
            // As in Redis: what is queued counts when it runs, a subcommand by its own name.
            for (name, calls, refused, failed) in [
                ("set", 1, 0, 0),
                ("incr", 2, 0, 2),
                ("get", 1, 1, 0),
                ("client|id", 1, 0, 0),
                ("exec", 1, 0, 0),
                ("discard", 1, 0, 0),
                ("debug", 1, 0, 0),
            ] {
                let line = format!("cmdstat_{name}:calls={calls},");
                let line = counts.lines().find(|found| found.starts_with(&line));
                let line = line.unwrap_or_else(|| panic!("{name} in\n{counts}"));
                let errors = format!(",rejected_calls={refused},failed_calls={failed}");
                assert!(line.ends_with(&errors), "{line}");
            }
            assert!(counts.contains("cmdstat_client:calls=0,"), "{counts}");
            let latencies = text(client.line("INFO latencystats").await.text());
            let median = latencies
                .lines()
                .find_map(|line| line.strip_prefix("latency_percentiles_usec_debug:p50="))
                .and_then(|rest| rest.split('.').next()?.parse::<u64>().ok());
            assert!(median.is_some_and(|us| (50_000..100_000_000).contains(&us)), "{latencies}");
            assert!(!latencies.contains("usec_client:"), "{latencies}");
            client.line("CONFIG RESETSTAT").await;
            let counts = text(client.line("INFO commandstats").await.text());
            assert!(!counts.contains("cmdstat_set:"), "{counts}");
        });
    }
}

#[test]
fn the_keys_that_expire_are_counted() {
    testbed(3).run(async |stores, _| {
        let mut client = Ours::connect(&ours::context(&stores[0]), &stores[0]);
        client.line("MSET a 1 b 2 c 3").await;
        client.line("SET d 4 EX 1000").await;
        client.line("EXPIRE a 1000").await;
        let mut keyspace = async |line: &str| {
            client.line(line).await;
            text(client.line("INFO keyspace").await.text())
        };
        let counted = keyspace("PING").await;
        assert!(counted.contains("db0:keys=4,expires=2,avg_ttl=0\r\n"), "{counted}");
        let counted = keyspace("PERSIST a").await;
        assert!(counted.contains("db0:keys=4,expires=1,"), "{counted}");
        for line in ["MULTI", "SET d 5", "SET e 6 EX 1000", "EXPIRE b 1000", "INFO keyspace"] {
            client.line(line).await;
        }
        let replies = client.line("EXEC").await;
        let counted = text(replies.items()[3].text());
        assert!(counted.contains("db0:keys=5,expires=2,"), "{counted}");
        client.line("FLUSHALL").await;
        assert!(!text(client.line("INFO keyspace").await.text()).contains("db0"));
    });
}

#[test]
fn kept_arguments_do_not_keep_the_network_buffer() {
    testbed(1).run(async |stores, _| {
        let store = &stores[0];
        let mut client = Ours::connect(&ours::context(store), store);
        let value = "v".repeat(1000);
        let pipeline: Vec<u8> =
            (0..10).flat_map(|number| encode(&["SET", &format!("key{number}"), &value])).collect();
        client.exchange(&pipeline).await;
        let slices = (0..store.layout().slices).map(SliceId);
        let mut places = Vec::new();
        for slice in slices {
            let page = store.scan(slice, None, 100).await.unwrap();
            let pieces =
                page.items.iter().flat_map(|(key, entry)| [key.clone(), entry.value.to_bytes()]);
            places.extend(pieces.map(|piece| (piece.as_ptr() as usize, piece.len())));
        }
        assert_eq!(places.len(), 20);
        // In a shared buffer each value would be a few bytes after its key.
        for (key, value) in places.chunks(2).map(|pair| (pair[0], pair[1])) {
            assert_ne!(key.0 + key.1 + "\r\n$1000\r\n".len(), value.0);
        }
    });
}
