//! Behaviour of connections and counters beside a real redis-server: CLIENT REPLY, the slow log,
//! the counters of INFO, users' rules, and requests of HTTP.

use crate::differential::Pair;
use crate::support::frame::Frame;
use crate::support::ours::{self, Ours};
use crate::support::redis::RedisServer;
use crate::support::store::{lines, pause, testbed, text};
use crate::support::{shown, words};
use softflash_protocol::{Context, ContextOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The fields of INFO.
fn fields(info: &[u8]) -> BTreeMap<String, String> {
    let info = text(info);
    let pairs = info.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

async fn info(pair: &mut Pair, section: &str) -> [BTreeMap<String, String>; 2] {
    let question = ["INFO", section];
    let theirs = Frame::whole(&pair.theirs.ask(&question));
    let ours = pair.ours.ask(&question).await;
    [fields(theirs.text()), fields(ours.text())]
}

/// The name in `name=value`.
fn name_in(word: &str) -> &str {
    word.split('=').next().unwrap_or_default()
}

/// Sends a line to both; the replies may differ.
async fn both(pair: &mut Pair, line: &str) {
    pair.theirs.ask(&words(line));
    pair.ours.line(line).await;
}

/// The bytes and the end of both connections after raw input.
async fn after(pair: &mut Pair, input: &[u8]) -> [(String, bool); 2] {
    pair.theirs.send(input);
    let theirs = pair.theirs.until_closed();
    let ours = (pair.ours.exchange(input).await, pair.ours.closed);
    [theirs, ours].map(|(bytes, closed)| (shown(&bytes), closed))
}

#[test]
fn client_reply_switches_the_same_replies_off_and_on() {
    let Some(server) = RedisServer::start() else { return };
    let cases: &[&[&str]] = &[
        &["CLIENT REPLY SKIP", "CLIENT REPLY ON", "PING"],
        &["CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "PING", "PING"],
        &["CLIENT REPLY SKIP", "CLIENT REPLY OFF", "PING", "CLIENT REPLY ON", "PING"],
        &["CLIENT REPLY OFF", "CLIENT REPLY SKIP", "CLIENT REPLY ON", "PING"],
        &["CLIENT REPLY OFF", "CLIENT REPLY OFF", "CLIENT REPLY ON", "CLIENT REPLY ON", "PING"],
        &["CLIENT REPLY SKIP", "NOSUCH", "PING"],
        &["CLIENT REPLY SKIP", "GET", "PING"],
        &["CLIENT REPLY SKIP", "CLIENT REPLY NOSUCH", "PING"],
        &["CLIENT REPLY SKIP", "SET k v", "GET k"],
        &["CLIENT REPLY SKIP", "MGET k other", "MGET k other"],
        &["CLIENT REPLY SKIP", "DBSIZE", "ECHO a"],
        &["CLIENT REPLY SKIP", "WATCH k", "ECHO a"],
        &["CLIENT REPLY SKIP", "HELLO 3", "CLIENT GETNAME"],
        &["CLIENT REPLY OFF", "RESET", "PING"],
        &["CLIENT REPLY SKIP", "RESET", "PING"],
        &["CLIENT REPLY OFF", "CLIENT REPLY SKIP", "RESET", "PING", "PING"],
        &["MULTI", "CLIENT REPLY ON", "PING", "EXEC", "PING"],
        &["MULTI", "PING", "CLIENT REPLY OFF", "PING", "EXEC", "PING", "CLIENT REPLY ON", "PING"],
        &["MULTI", "PING", "CLIENT REPLY OFF", "PING", "CLIENT REPLY ON", "PING", "EXEC", "PING"],
        &["MULTI", "PING", "CLIENT REPLY SKIP", "PING", "EXEC", "PING", "PING"],
        &["MULTI", "CLIENT REPLY SKIP", "CLIENT REPLY ON", "EXEC", "PING", "PING"],
        &["CLIENT REPLY OFF", "MULTI", "PING", "CLIENT REPLY ON", "PING", "EXEC", "PING"],
        &["CLIENT REPLY OFF", "MULTI", "PING", "EXEC", "CLIENT REPLY ON", "PING"],
        &["MULTI", "PING", "CLIENT REPLY SKIP", "EXEC", "PING"],
        &["MULTI", "CLIENT REPLY SKIP", "DISCARD", "PING"],
        &["CLIENT REPLY SKIP", "MULTI", "PING", "EXEC"],
        &["MULTI", "CLIENT REPLY SKIP", "NOSUCH", "EXEC", "PING"],
    ];
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let context = ours::context(&stores[0]);
            let mut differences = String::new();
            for case in cases {
                // Together and one after the other.
                for together in [true, false].into_iter().take(if shards == 1 { 2 } else { 1 }) {
                    let mut pair = Pair::connect(&server, &context, &stores[0]);
                    let parts: Vec<Vec<u8>> = match together {
                        true => vec![lines(case)],
                        false => case.iter().map(|line| lines(&[line])).collect(),
                    };
                    let (last, first) = parts.split_last().unwrap();
                    for part in first {
                        pair.theirs.send(part);
                        pair.ours.send(part).await;
                    }
                    let [theirs, ours] = after(&mut pair, last).await;
                    if theirs != ours {
                        let report = format!("{case:?}\n redis {theirs:?}\n  ours {ours:?}\n");
                        differences.push_str(&report);
                    }
                }
            }
            assert!(differences.is_empty(), "{differences}");
            // A connection that ends says why only if replies are on. (Redis waits for the client.)
            for end in [&b"*1\r\nx\r\n"[..], b"QUIT\r\n"] {
                let mut pair = Pair::connect(&server, &context, &stores[0]);
                let input = [b"CLIENT REPLY OFF\r\n", end].concat();
                let [theirs, ours] = after(&mut pair, &input).await;
                assert_eq!((&*theirs.0, ours), ("", (String::new(), true)), "{}", shown(&input));
            }
        });
    }
}

#[test]
fn http_closes_the_connection_before_its_body_runs() {
    let Some(server) = RedisServer::start() else { return };
    let cases: &[&[u8]] = &[
        b"POST / HTTP/1.1\r\nHost: x\r\n\r\nSET p 1\r\n",
        b"post / HTTP/1.1\r\n\r\nSET p 1\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost:6379\r\n\r\nSET p 1\r\n",
        b"PUT /x HTTP/1.1\r\nUser-Agent: x\r\nhost: x\r\n\r\nSET p 1\r\n",
        b"HOST: x\r\nSET p 1\r\n",
        b"*1\r\n$4\r\nPoSt\r\n*3\r\n$3\r\nSET\r\n$1\r\np\r\n$1\r\n1\r\n",
        b"*2\r\n$5\r\nHost:\r\n$1\r\nx\r\n*3\r\n$3\r\nSET\r\n$1\r\np\r\n$1\r\n1\r\n",
        b"MULTI\r\nSET p 1\r\nHost: x\r\nEXEC\r\nSET p 1\r\n",
        b"CLIENT REPLY OFF\r\nPOST /\r\nSET p 1\r\n",
    ];
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let context = ours::context(&stores[0]);
            for case in cases {
                let mut pair = Pair::connect(&server, &context, &stores[0]);
                let [theirs, ours] = after(&mut pair, case).await;
                assert!(theirs.1 && ours.1, "both are closed after {}", shown(case));
                // Redis does not even send the replies of the commands before it.
                assert!(theirs.0.is_empty() && !ours.0.contains("p 1"), "{}", shown(case));
            }
            // What came before it has run and is answered.
            let mut pair = Pair::connect(&server, &context, &stores[0]);
            let input = b"SET before 1\r\nGET before\r\nPOST /\r\nSET p 1\r\n";
            let [theirs, ours] = after(&mut pair, input).await;
            assert_eq!(ours, ("+OK\\r\\n$1\\r\\n1\\r\\n".to_owned(), true));
            assert!(theirs.1);
            let mut pair = Pair::connect(&server, &context, &stores[0]);
            for line in ["EXISTS p", "EXISTS before"] {
                assert_eq!(pair.difference(&words(line), &[]).await, None, "{line}");
            }
            assert_eq!(pair.ours.line("EXISTS p before").await.integer(), Some(1));
        });
    }
}

#[test]
fn http_closes_the_connection_of_a_client_that_has_not_authenticated() {
    testbed(1).run(async |stores, _| {
        let options = ContextOptions {
            password: Some("secret".into()),
            ..ContextOptions::new(stores[0].now_ms(), 1)
        };
        let context = Arc::new(Context::new(options));
        let mut client = Ours::connect(&context, &stores[0]);
        let input = b"GET / HTTP/1.1\r\nHost: x\r\n\r\nAUTH secret\r\nSET p 1\r\n";
        let refused = "-ERR wrong number of arguments for 'get' command\r\n";
        assert_eq!(text(&client.exchange(input).await), refused);
        assert!(client.closed);
        let mut client = Ours::connect(&context, &stores[0]);
        client.line("AUTH secret").await;
        assert_eq!(client.line("EXISTS p").await.integer(), Some(0));
    });
}

#[test]
fn every_command_enters_the_slow_log_at_a_threshold_of_zero() {
    let Some(server) = RedisServer::start() else { return };
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let context = ours::context(&stores[0]);
            let mut pair = Pair::connect(&server, &context, &stores[0]);
            for line in [
                "FLUSHALL",
                "CONFIG SET slowlog-max-len 1000",
                "CONFIG SET slowlog-log-slower-than 0",
                "SLOWLOG RESET",
                "PING",
                "SET key value",
                "GET key",
                "GET absent",
                "MSET a 1 b 2 c 3",
                "MGET a b c d",
                "INCR key",
                "GET",
                "NOSUCH",
                "EVALSHA 0123456789012345678901234567890123456789 1 a",
                "EVALSHA short 0",
                "EVAL nosuch 0",
                "EVAL nosuch 3 a",
                "EXISTS a b c",
                "DBSIZE",
                "KEYS *",
                "CLIENT SETNAME me",
                "WATCH a",
                "UNWATCH",
                "MULTI",
                "INCR a",
                "GET a",
                "INFO server",
                "EXEC",
                "MULTI",
                "PING",
                "DISCARD",
                "CONFIG GET port",
                "SLOWLOG LEN",
            ] {
                both(&mut pair, line).await;
            }
            let pipeline = lines(&["GET a", "SET b 1", "PING", "GET b", "MGET a b", "DEL c"]);
            pair.theirs.send(&pipeline);
            (0..6).for_each(|_| drop(pair.theirs.reply()));
            pair.ours.send(&pipeline).await;
            pair.ours.received();
            let question = ["SLOWLOG", "GET", "-1"];
            let logs = [Frame::whole(&pair.theirs.ask(&question)), pair.ours.ask(&question).await];
            let [theirs, mut ours] = logs.map(|log| {
                let entries = log.items().iter().rev();
                entries.map(|entry| entry.items()[3].clone()).collect::<Vec<_>>()
            });
            let mut theirs = theirs;
            if shards > 1 {
                // The commands of a pipeline on several shards run at the same time.
                theirs.sort();
                ours.sort();
            }
            assert_eq!(ours, theirs);
            pair.theirs.ask(&["CONFIG", "SET", "slowlog-log-slower-than", "10000"]);
        });
    }
}

#[test]
fn a_command_that_does_not_wait_is_slow_if_it_takes_long() {
    testbed(1).run(async |stores, _| {
        let mut client = Ours::connect(&ours::context(&stores[0]), &stores[0]);
        client.line("CONFIG SET slowlog-log-slower-than 100").await;
        assert_eq!(client.line("SET key value").await.text(), b"OK");
        client.line("SLOWLOG RESET").await;
        // All of them from memory.
        client.line(&format!("MGET {}", "key ".repeat(20_000))).await;
        client.line("PING").await;
        let log = client.line("SLOWLOG GET -1").await;
        let names: Vec<_> =
            log.items().iter().map(|entry| text(entry.items()[3].items()[0].text())).collect();
        assert!(names.contains(&"MGET".to_owned()), "{names:?}");
    });
}

#[test]
fn passwords_do_not_enter_the_slow_log() {
    testbed(1).run(async |stores, _| {
        let mut client = Ours::connect(&ours::context(&stores[0]), &stores[0]);
        for line in [
            "CONFIG SET slowlog-log-slower-than 0",
            "ACL SETUSER ann on >marker +@all ~*",
            "AUTH ann marker",
            "HELLO 2 AUTH ann marker",
            "ACL LIST",
            "PING",
        ] {
            client.line(line).await;
        }
        let log = format!("{:?}", client.line("SLOWLOG GET -1").await);
        assert!(log.contains("PING") && !log.contains("marker") && !log.contains("ACL"), "{log}");
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the real redis-server runs in real time")]
fn hits_misses_and_errors_are_counted_as_redis_counts_them() {
    let Some(server) = RedisServer::start() else { return };
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let context = ours::context(&stores[0]);
            let mut pair = Pair::connect(&server, &context, &stores[0]);
            both(&mut pair, "FLUSHALL").await;
            let script: &[&[&str]] = &[
                &["SET a 1", "GET a", "GET b", "MGET a b c a", "STRLEN a", "STRLEN b"],
                &["EXISTS a a b", "TYPE a", "TTL a", "PTTL b", "EXPIRETIME a", "PEXPIRETIME b"],
                &["TOUCH a b", "OBJECT ENCODING a", "OBJECT REFCOUNT a", "OBJECT ENCODING b"],
                &["MEMORY USAGE a", "MEMORY USAGE b", "GETRANGE a 0 1", "SUBSTR b 0 1"],
                &["SET b 2 NX", "SET b 3 XX", "SET b 4 GET", "SET n 4 GET", "SETNX a 1"],
                &["SET q 1 XX GET", "SET a 2 KEEPTTL", "GETSET a 5", "GETSET g 5", "GETDEL g"],
                &["GETDEL g", "GETEX a", "GETEX nothing", "GETEX a EX 100", "GETEX a PERSIST"],
                &[
                    "INCR a",
                    "APPEND a x",
                    "SETRANGE a 0 y",
                    "INCR a",
                    "DECR new",
                    "INCRBYFLOAT f 1",
                ],
                &["COPY a copy", "COPY a copy", "COPY nothing copy", "COPY a copy REPLACE"],
                &["RENAME a r", "RENAME nothing r", "RENAMENX r copy", "DEL r nothing", "UNLINK n"],
                &["EXPIRE copy 100", "EXPIRE nothing 1", "PERSIST copy", "MSETNX a 1 b 2"],
                &["KEYS *", "SCAN 0", "RANDOMKEY", "DBSIZE", "WATCH a b", "UNWATCH"],
                &["MULTI", "GET b", "GET nothing", "INCR b", "SET b 1 EX 0", "EXEC"],
                &["MULTI", "GET b", "NOSUCH", "EXEC", "MULTI", "GET b", "DISCARD"],
                &["GET", "NOSUCH", "SET a", "EXEC", "INCR f", "GETEX b EX 0", "GETRANGE b x y"],
                &["AUTH wrong", "CLIENT REPLY NOSUCH", "SELECT 7", "OBJECT NOSUCH a"],
                &["SET short 1 PX 10"],
            ];
            both(&mut pair, "CONFIG RESETSTAT").await;
            for line in script.iter().copied().flatten() {
                both(&mut pair, line).await;
            }
            std::thread::sleep(Duration::from_millis(20));
            pause(&stores[0], 20).await;
            for line in ["GET short", "GET short", "EXISTS short"] {
                both(&mut pair, line).await;
            }
            let [theirs, ours] = info(&mut pair, "stats").await;
            for name in [
                "keyspace_hits",
                "keyspace_misses",
                "expired_keys",
                "evicted_keys",
                "total_error_replies",
                "total_commands_processed",
            ] {
                assert_eq!(ours.get(name), theirs.get(name), "{name}, {shards} shards");
            }
            assert_eq!(ours["expired_keys"], "1");
            let [theirs, ours] = info(&mut pair, "errorstats").await;
            assert_eq!(ours, theirs);
            assert!(ours.len() >= 2, "{ours:?}");
            // A reset sets the same to zero.
            both(&mut pair, "CONFIG RESETSTAT").await;
            let [theirs, ours] = info(&mut pair, "stats").await;
            for (name, value) in &theirs {
                // The server counts those, and Redis counts the reset itself.
                let is_of_sockets = name.contains("_net_") || name.ends_with("s_processed");
                let same = ours.get(name).is_none_or(|ours| ours == value);
                assert!(same || is_of_sockets, "{name}: {ours:?}");
            }
            assert_eq!((&*ours["keyspace_hits"], &*ours["expired_keys"]), ("0", "0"));
            assert!(info(&mut pair, "errorstats").await.iter().all(BTreeMap::is_empty));
        });
    }
}

#[test]
fn info_has_the_fields_of_redis_that_say_something_here() {
    let Some(server) = RedisServer::start() else { return };
    testbed(1).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut pair = Pair::connect(&server, &context, &stores[0]);
        for section in ["cluster", "clients", "replication"] {
            let [theirs, ours] = info(&mut pair, section).await;
            let lacks = |name: &&String| {
                let none = ["maxclients", "master_replid", "master_replid2"];
                let sizes = name.starts_with("client_recent") || name.ends_with("backlog_size");
                !ours.contains_key(*name) && !none.contains(&name.as_str()) && !sizes
            };
            let missing: Vec<_> = theirs.keys().filter(lacks).collect();
            assert!(missing.is_empty(), "{section}: {missing:?}");
            for (name, value) in ours.iter().filter(|(name, _)| *name != "connected_clients") {
                let same = theirs.get(name).is_none_or(|theirs| theirs == value);
                assert!(same || name == "repl_backlog_size", "{section}, {name}: {value}");
            }
        }
        // Monitors read INFO as one list of names.
        let everything = text(pair.ours.line("INFO everything").await.text());
        let mut names: Vec<_> =
            everything.lines().filter_map(|line| line.split_once(':')).collect();
        names.sort();
        let twice = names.windows(2).find(|pair| pair[0].0 == pair[1].0);
        assert_eq!(twice, None);
        let [_, ours] = info(&mut pair, "server").await;
        assert!(
            ours["run_id"].len() == 40 && ours["run_id"].chars().all(|c| c.is_ascii_hexdigit())
        );
        assert_eq!(info(&mut pair, "memory").await[1]["maxmemory_policy"], "noeviction");
        // Everything that came within the last seconds is in the rate.
        for _ in 0..320 {
            pair.ours.line("PING").await;
        }
        pause(&stores[0], 150).await;
        let [_, ours] = info(&mut pair, "stats").await;
        let rate: f64 = ours["instantaneous_ops_per_sec"].parse().unwrap();
        assert!((190.0..=230.0).contains(&rate), "{rate}");
        assert!(ours["instantaneous_input_kbps"] == "0.00", "the server counts bytes");
    });
}

#[test]
fn a_permission_revoked_before_exec_is_one_error_among_the_replies() {
    let Some(server) = RedisServer::start() else { return };
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let context = ours::context(&stores[0]);
            for (before, change) in [
                ("~* +@all", "-set"),
                ("~* +@all", "resetkeys ~b*"),
                ("~a* ~b* +@all", "resetkeys ~b* -get"),
                ("~* +@all", "-@all"),
            ] {
                let mut admin = Pair::connect(&server, &context, &stores[0]);
                both(&mut admin, "FLUSHALL").await;
                both(&mut admin, &format!("ACL SETUSER ann reset on nopass {before}")).await;
                both(&mut admin, "ACL LOG RESET").await;
                let mut ann = Pair::connect(&server, &context, &stores[0]);
                let exact = [crate::generator::Rule::Exact];
                for line in ["AUTH ann x", "MULTI", "SET b1 v", "SET a1 v", "GET b1", "INCR b1"] {
                    assert_eq!(ann.difference(&words(line), &exact).await, None, "{line}");
                }
                both(&mut admin, &format!("ACL SETUSER ann {change}")).await;
                assert_eq!(ann.difference(&words("EXEC"), &exact).await, None, "{change}");
                for line in ["GET a1", "GET b1"] {
                    assert_eq!(admin.difference(&words(line), &exact).await, None, "{change}");
                }
                let question = ["ACL", "LOG"];
                let logs =
                    [Frame::whole(&admin.theirs.ask(&question)), admin.ours.ask(&question).await];
                let [theirs, ours] = logs.map(|log| {
                    // Count, reason, context, object, username; what the client did.
                    let entries = log.items().iter().map(|entry| {
                        let entry = entry.items();
                        let client = text(entry[13].text());
                        let shown =
                            |word: &&str| ["cmd", "multi", "flags"].contains(&name_in(word));
                        let client: Vec<_> = client.split(' ').filter(shown).collect();
                        (entry[..10].to_vec(), client.join(" "))
                    });
                    entries.collect::<Vec<_>>()
                });
                assert_eq!(ours, theirs, "{change}");
                assert!(ours.iter().all(|(entry, client)| {
                    entry[5].text() == b"multi" && client.contains("cmd=exec")
                }));
            }
        });
    }
}

#[test]
fn rules_may_name_every_command_of_redis_and_are_kept() {
    let Some(server) = RedisServer::start() else { return };
    testbed(1).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut pair = Pair::connect(&server, &context, &stores[0]);
        let exact = [crate::generator::Rule::Exact];
        let list = Frame::whole(&pair.theirs.ask(&["COMMAND", "LIST"]));
        let names: Vec<String> = list.items().iter().map(|name| text(name.text())).collect();
        assert!(names.len() > 200 && names.iter().any(|name| name.contains('|')), "{names:?}");
        for name in &names {
            for sign in ["+", "-"] {
                let set = words(&format!("ACL SETUSER u reset +@all {sign}{name}"));
                assert_eq!(pair.difference(&set, &exact).await, None, "{sign}{name}");
            }
        }
        for (rules, kept) in [
            ("+@all -publish", "+@all -publish"),
            ("-@all +hget +HSET +get -hget", "-@all +hset +get -hget"),
            (
                "+@read +@hash -cluster|info +client|pause",
                "-@all +@read +@hash -cluster|info +client|pause",
            ),
            ("+xgroup|create +xgroup -xinfo|stream", "-@all +xgroup -xinfo|stream"),
        ] {
            let set = words(&format!("ACL SETUSER u reset {rules}"));
            assert_eq!(pair.difference(&set, &exact).await, None, "{rules}");
            let user = pair.ours.line("ACL GETUSER u").await;
            let at = user.items().iter().position(|name| name.text() == b"commands").unwrap();
            assert_eq!(text(user.items()[at + 1].text()), kept);
            let list = text(pair.ours.line("ACL LIST").await.items()[1].text());
            assert_eq!(list, format!("user u off {kept}"));
        }
        for name in ["nosuch", "nosuch|get", "client|nosuch", "xgroup|nosuch", "@nosuch", ""] {
            let refused = pair.ours.line(&format!("ACL SETUSER u +{name}")).await;
            let theirs = Frame::whole(&pair.theirs.ask(&words(&format!("ACL SETUSER u +{name}"))));
            for reply in [refused, theirs] {
                assert!(
                    reply.text().starts_with(b"ERR Error in ACL SETUSER modifier"),
                    "{reply:?}"
                );
            }
        }
        pair.theirs.ask(&["ACL", "DELUSER", "u"]);
    });
}
