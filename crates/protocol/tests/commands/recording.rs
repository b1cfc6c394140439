//! FLASH.RECORD: all reads and changes are recorded, and no client waits for a slow recorder.

use crate::support::ours::{self, Ours};
use crate::support::store::{lines, pause, testbed, text};
use softflash_base::checksum::hash64;
use softflash_protocol::{Context, ContextOptions};
use std::sync::Arc;

/// Events since the last call: times, the rest of each line, and the number dropped.
async fn take(recorder: &mut Ours) -> (Vec<u64>, Vec<String>, i64) {
    let reply = recorder.line("FLASH.RECORD READ").await;
    let [dropped, lines] = reply.items() else { panic!("{reply:?}") };
    let reply = text(lines.text());
    let split = |line: &str| {
        let (at, rest) = line.split_once(' ').unwrap();
        (at.parse::<u64>().unwrap(), rest.to_owned())
    };
    let (times, rests) = reply.lines().map(split).unzip();
    (times, rests, dropped.integer().unwrap())
}

fn event(kind: &str, key: &str, value: &str) -> String {
    format!("{kind} {:016x} {} {value}", hash64(key.as_bytes()), key.len())
}

#[test]
fn reads_and_changes_are_recorded_as_they_took_effect() {
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let context = ours::context(&stores[0]);
            let mut client = Ours::connect(&context, &stores[0]);
            let mut recorder = Ours::connect(&context, &stores[0]);
            client.line("SET before 1").await;
            assert_eq!(recorder.line("FLASH.RECORD START").await.text(), b"OK");
            let cases = [
                ("SET key hello", vec![event("write", "key", "5")]),
                ("GET key", vec![event("read", "key", "5")]),
                ("GET before", vec![event("read", "before", "1")]),
                ("GET none", vec![event("read", "none", "-")]),
                ("SET key no NX", vec![]),
                ("APPEND key !", vec![event("write", "key", "6")]),
                ("INCR number", vec![event("write", "number", "1")]),
                ("INCR key", vec![]),
                ("MSET a 1 b 22", vec![event("write", "a", "1"), event("write", "b", "2")]),
                (
                    "MGET b a x",
                    vec![event("read", "b", "2"), event("read", "a", "1"), event("read", "x", "-")],
                ),
                ("DEL a none", vec![event("delete", "a", "-")]),
                ("PING", vec![]),
                ("NOSUCH key", vec![]),
            ];
            for (line, expected) in cases {
                client.line(line).await;
                assert_eq!(take(&mut recorder).await.1, expected, "{line}, {shards} shards");
            }
            client.line("FLUSHALL").await;
            let (_, cleared, _) = take(&mut recorder).await;
            assert_eq!(cleared, ["clear 2d06800538d394c2 0 -"], "the hash of no bytes");
        });
    }
}

#[test]
fn a_transaction_is_recorded_when_it_commits() {
    testbed(2).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut client = Ours::connect(&context, &stores[0]);
        let mut recorder = Ours::connect(&context, &stores[0]);
        recorder.line("FLASH.RECORD START").await;
        client.exchange(&lines(&["MULTI", "SET a 1", "GET a", "DEL a"])).await;
        assert!(take(&mut recorder).await.1.is_empty(), "nothing has happened yet");
        client.line("EXEC").await;
        let all = [event("write", "a", "1"), event("read", "a", "1"), event("delete", "a", "-")];
        assert_eq!(take(&mut recorder).await.1, all);
        client.exchange(&lines(&["WATCH a", "MULTI", "SET a 2"])).await;
        Ours::connect(&context, &stores[0]).line("SET a 33").await;
        client.line("EXEC").await;
        assert_eq!(take(&mut recorder).await.1, [event("write", "a", "2")], "the other client's");
    });
}

#[test]
fn times_never_run_back() {
    testbed(3).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut recorder = Ours::connect(&context, &stores[0]);
        recorder.line("FLASH.RECORD START").await;
        let mut all = Vec::new();
        for round in 0..20 {
            let mut client = Ours::connect(&context, &stores[round % 3]);
            let pipeline: Vec<String> = (0..50).map(|key| format!("SET {round}:{key} v")).collect();
            let pipeline: Vec<&str> = pipeline.iter().map(String::as_str).collect();
            client.exchange(&lines(&pipeline)).await;
            pause(&stores[0], 3).await;
            all.extend(take(&mut recorder).await.0);
        }
        assert_eq!(all.len(), 1000);
        assert!(all.is_sorted());
        assert!(all[999] - all[0] >= 19 * 3_000_000, "nanoseconds");
    });
}

#[test]
fn a_slow_recorder_loses_events_and_blocks_no_client() {
    testbed(2).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut client = Ours::connect(&context, &stores[0]);
        let mut slow = Ours::connect(&context, &stores[0]);
        let mut quick = Ours::connect(&context, &stores[0]);
        slow.line("FLASH.RECORD START CAPACITY 10").await;
        quick.line("flash.record start").await;
        for key in 0..100 {
            assert_eq!(client.line(&format!("SET {key} value")).await.text(), b"OK");
        }
        let (_, events, dropped) = take(&mut slow).await;
        assert_eq!((events.len(), dropped), (10, 90));
        assert_eq!(events[9], event("write", "9", "5"), "the oldest are kept");
        let (_, events, dropped) = take(&mut quick).await;
        assert_eq!((events.len(), dropped), (100, 0), "each recorder has its own");
        client.line("GET 7").await;
        let (_, events, dropped) = take(&mut slow).await;
        assert_eq!((events, dropped), (vec![event("read", "7", "5")], 0), "it goes on");
        client.exchange(&lines(&["GET 1", "GET 2", "GET 3"])).await;
        let part = slow.line("FLASH.RECORD READ COUNT 2").await;
        assert_eq!(text(part.items()[1].text()).lines().count(), 2);
        assert_eq!(take(&mut slow).await.1.len(), 1);
    });
}

#[test]
fn a_recording_ends_with_its_connection() {
    testbed(1).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut others: Vec<Ours> = Vec::new();
        for _ in 0..4 {
            let mut other = Ours::connect(&context, &stores[0]);
            assert_eq!(other.line("FLASH.RECORD START CAPACITY 1").await.text(), b"OK");
            others.push(other);
        }
        let mut one_more = Ours::connect(&context, &stores[0]);
        let refused = one_more.line("FLASH.RECORD START").await;
        assert!(refused.text().starts_with(b"ERR too many connections record"), "{refused:?}");
        drop(others.pop());
        assert_eq!(one_more.line("FLASH.RECORD START").await.text(), b"OK");
        assert_eq!(one_more.line("FLASH.RECORD START").await.text(), b"OK", "restarted");
        assert_eq!(one_more.line("FLASH.RECORD STOP").await.text(), b"OK");
        let none = b"ERR this connection does not record; start with FLASH.RECORD START";
        assert_eq!(one_more.line("FLASH.RECORD READ").await.text(), none);
        one_more.line("FLASH.RECORD START").await;
        one_more.line("RESET").await;
        assert_eq!(one_more.line("FLASH.RECORD READ").await.text(), none);
    });
}

#[test]
fn errors_are_reported() {
    testbed(1).run(async |stores, _| {
        let mut client = Ours::connect(&ours::context(&stores[0]), &stores[0]);
        let cases = [
            ("FLASH.RECORD START CAPACITY 0", "ERR CAPACITY must be between 1 and 262144"),
            ("FLASH.RECORD START CAPACITY 262145", "ERR CAPACITY must be between 1 and 262144"),
            ("FLASH.RECORD START CAPACITY x", "ERR value is not an integer or out of range"),
            ("FLASH.RECORD START COUNT 1", "ERR syntax error"),
            ("FLASH.RECORD START CAPACITY 1 CAPACITY 1", "ERR syntax error"),
            ("FLASH.RECORD START VOLUME", "ERR syntax error"),
            ("FLASH.RECORD START ALL", "ERR syntax error"),
            ("FLASH.RECORD READ VOLUME disk", "ERR syntax error"),
            ("FLASH.RECORD READ COUNT -1", "ERR COUNT must be between 1 and 262144"),
            (
                "FLASH.RECORD STOP now",
                "ERR wrong number of arguments for 'flash.record|stop' command",
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(text(client.line(line).await.text()), expected, "{line}");
        }
        let no_volumes = client.line("FLASH.RECORD START VOLUME disk CAPACITY 1").await;
        assert!(no_volumes.text().starts_with(b"ERR this server has no volumes"), "{no_volumes:?}");
        assert!(client.line("FLASH.RECORD HELP").await.items().len() > 5);
        client.line("MULTI").await;
        let refused = client.line("FLASH.RECORD START").await;
        assert_eq!(refused.text(), b"ERR Command not allowed inside a transaction");

        let options = ContextOptions {
            password: Some("secret".into()),
            ..ContextOptions::new(stores[0].now_ms(), 1)
        };
        let mut client = Ours::connect(&Arc::new(Context::new(options)), &stores[0]);
        let refused = client.line("FLASH.RECORD START").await;
        assert_eq!(refused.text(), b"NOAUTH Authentication required.");
    });
}
