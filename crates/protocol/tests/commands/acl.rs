//! Users on a real store: their permissions, the keys that they see, their logins, and the log of
//! denials.

use crate::support::encode;
use crate::support::frame::Frame;
use crate::support::ours::{self, Ours};
use crate::support::store::{lines, testbed, text};
use softflash_protocol::{Context, ContextOptions};
use softflash_store::Store;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// A file in memory.
#[derive(Clone, Default)]
struct MemoryFile(Arc<Mutex<String>>);

impl softflash_protocol::acl::UserFile for MemoryFile {
    fn read(&self) -> Result<String, String> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn write(&self, text: &str) -> Result<(), String> {
        *self.0.lock().unwrap() = text.to_owned();
        Ok(())
    }
}

fn error(frame: &Frame) -> String {
    assert!(matches!(frame, Frame::Line(b'-', _)), "an error, not {frame:?}");
    text(frame.text())
}

fn names(frame: &Frame) -> BTreeSet<String> {
    frame.items().iter().map(|name| text(name.text())).collect()
}

async fn log_in(context: &Arc<Context>, store: &Store, user: &str, password: &str) -> Ours {
    let mut client = Ours::connect(context, store);
    assert_eq!(client.line(&format!("AUTH {user} {password}")).await.text(), b"OK");
    client
}

#[test]
fn a_user_runs_permitted_commands_and_gets_errors_for_others() {
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let context = ours::context(&stores[0]);
            let mut admin = Ours::connect(&context, &stores[0]);
            let rules = "ACL SETUSER ann on >pw ~ann:* %R~all:* +@all -@dangerous +keys +flushall";
            assert_eq!(admin.line(rules).await.text(), b"OK");
            admin.line("SET all:x 1").await;
            let mut ann = log_in(&context, &stores[0], "ann", "pw").await;
            assert_eq!(ann.line("ACL WHOAMI").await.text(), b"ann");
            assert_eq!(ann.line("SET ann:1 v").await.text(), b"OK");
            assert_eq!(ann.line("GET all:x").await.text(), b"1");
            let key =
                "NOPERM this user has no permissions to access one of the keys used as arguments";
            for line in [
                "SET all:x 2",
                "GET bob:1",
                "MGET ann:1 bob:1",
                "MSET ann:1 v bob:1 v",
                "RENAME ann:1 bob:1",
                "COPY ann:1 all:y",
                "INCR all:x",
                "GETSET all:x 1",
                "DEL all:x",
                "EXPIRE all:x 10",
                "WATCH bob:1",
                "OBJECT ENCODING bob:1",
                "MEMORY USAGE bob:1",
                "TTL bob:1",
                "UNLINK ann:1 bob:1",
            ] {
                assert_eq!(error(&ann.line(line).await), key, "{line}");
            }
            assert_eq!(ann.line("COPY all:x ann:copy").await.integer(), Some(1));
            assert_eq!(ann.line("STRLEN all:x").await.integer(), Some(1));
            assert!(error(&ann.line("FLUSHALL").await).starts_with("NOPERM"), "not with some keys");
            for line in [
                "CONFIG GET *",
                "SHUTDOWN",
                "CLIENT LIST",
                "ACL LIST",
                "INFO",
                "FLASH.RECORD START",
            ] {
                let refused = error(&ann.line(line).await);
                assert!(
                    refused.starts_with("NOPERM this user has no permissions to run the '"),
                    "{line}: {refused}"
                );
            }
            assert_eq!(
                error(&ann.line("ACL SETUSER ann +@all").await),
                "NOPERM this user has no permissions to run the 'acl|setuser' command"
            );
            // The store is unchanged.
            assert_eq!(admin.line("GET all:x").await.text(), b"1");
        });
    }
}

#[test]
fn keys_of_others_are_not_shown() {
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let context = ours::context(&stores[0]);
            let mut admin = Ours::connect(&context, &stores[0]);
            admin.line("ACL SETUSER ann on >pw ~ann:* %W~drop:* +@all").await;
            admin.line("ACL SETUSER none on >pw +@all").await;
            let mut mine = BTreeSet::new();
            for number in 0..60 {
                for owner in ["ann", "bob", "drop"] {
                    admin.line(&format!("SET {owner}:{number} v")).await;
                }
                mine.insert(format!("ann:{number}"));
                mine.insert(format!("drop:{number}"));
            }
            let mut ann = log_in(&context, &stores[0], "ann", "pw").await;
            assert_eq!(names(&ann.line("KEYS *").await), mine);
            assert!(names(&ann.line("KEYS bob:*").await).is_empty());
            let (mut found, mut cursor) = (BTreeSet::new(), "0".to_owned());
            loop {
                let page = ann.line(&format!("SCAN {cursor} COUNT 7")).await;
                found.extend(names(&page.items()[1]));
                cursor = text(page.items()[0].text());
                if cursor == "0" {
                    break;
                }
            }
            assert_eq!(found, mine);
            for _ in 0..50 {
                let key = text(ann.line("RANDOMKEY").await.text());
                assert!(mine.contains(&key), "{key}");
            }
            let mut none = log_in(&context, &stores[0], "none", "pw").await;
            assert_eq!(none.line("RANDOMKEY").await, Frame::Nil(b'$'));
            assert!(names(&none.line("KEYS *").await).is_empty());
            // The same in a transaction, where commands take a different path.
            let replies = ann
                .exchange(&lines(&[
                    "MULTI",
                    "SET ann:new v",
                    "KEYS *",
                    "RANDOMKEY",
                    "SCAN 0 COUNT 1000",
                    "EXEC",
                ]))
                .await;
            assert!(!text(&replies).contains("bob:"), "{}", text(&replies));
            assert!(text(&replies).contains("ann:new"));
            // Found without luck: one key among many.
            admin.line("ACL SETUSER one on >pw ~bob:7 +@all").await;
            let mut one = log_in(&context, &stores[0], "one", "pw").await;
            for _ in 0..10 {
                assert_eq!(one.line("RANDOMKEY").await.text(), b"bob:7");
            }
        });
    }
}

#[test]
fn rules_are_checked_when_commands_are_queued_and_again_when_they_run() {
    testbed(1).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut admin = Ours::connect(&context, &stores[0]);
        admin.line("ACL SETUSER ann on >pw ~a* +@all").await;
        let mut ann = log_in(&context, &stores[0], "ann", "pw").await;
        ann.line("MULTI").await;
        assert!(error(&ann.line("SET b v").await).starts_with("NOPERM"));
        assert!(error(&ann.line("EXEC").await).starts_with("EXECABORT"));
        for change in ["-set", "resetkeys ~z*"] {
            ann.line("MULTI").await;
            assert_eq!(ann.line("SET a1 v").await.text(), b"QUEUED");
            admin.line(&format!("ACL SETUSER ann {change}")).await;
            assert_eq!(ann.line("PING").await.text(), b"QUEUED");
            let replies = ann.line("EXEC").await;
            let refused = error(&replies.items()[0]);
            assert!(refused.starts_with("NOPERM ACLs rules changed"), "{refused}");
            assert_eq!(replies.items()[1].text(), b"PONG", "the others run");
            admin.line("ACL SETUSER ann +set resetkeys ~a*").await;
        }
        assert_eq!(admin.line("EXISTS a1").await.integer(), Some(0), "nothing of it was done");
        // A password is not checked while a transaction is open.
        ann.line("MULTI").await;
        assert_eq!(
            error(&ann.line("AUTH ann pw").await),
            "ERR Command not allowed inside a transaction"
        );
    });
}

#[test]
fn changes_hold_at_once_and_users_that_are_gone_are_cut_off() {
    testbed(1).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut admin = Ours::connect(&context, &stores[0]);
        admin.line("ACL SETUSER ann on >pw ~* +@all").await;
        let mut ann = log_in(&context, &stores[0], "ann", "pw").await;
        let listed = text(admin.line("CLIENT LIST").await.text());
        assert!(listed.contains("user=ann ") && listed.contains("user=default "), "{listed}");
        assert_eq!(ann.line("PING").await.text(), b"PONG");
        admin.line("ACL SETUSER ann -ping").await;
        assert!(error(&ann.line("PING").await).starts_with("NOPERM"));
        // As in Redis, `off` applies to new connections only.
        admin.line("ACL SETUSER ann off").await;
        assert_eq!(ann.line("GET k").await, Frame::Nil(b'$'));
        assert_eq!(admin.line("CLIENT KILL USER ann").await.integer(), Some(1));
        assert_eq!(ann.exchange(&lines(&["GET k"])).await, b"");
        assert!(ann.closed);
        admin.line("ACL SETUSER ann on").await;
        let mut again = log_in(&context, &stores[0], "ann", "pw").await;
        assert_eq!(admin.line("ACL DELUSER ann nobody").await.integer(), Some(1));
        assert_eq!(again.exchange(&lines(&["GET k"])).await, b"");
        assert!(again.closed);
        assert!(error(&admin.line("ACL DELUSER default").await).contains("cannot be removed"));
        // A failed change changes nothing.
        assert!(error(&admin.line("ACL SETUSER bob on +nosuch").await).contains("'+nosuch'"));
        assert_eq!(names(&admin.line("ACL USERS").await), ["default".to_owned()].into());
    });
}

#[test]
fn wrong_passwords_are_answered_late_and_three_are_enough() {
    testbed(1).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut admin = Ours::connect(&context, &stores[0]);
        admin.line("ACL SETUSER ann on >pw ~* +@all").await;
        admin.line("ACL SETUSER off off nopass ~* +@all").await;
        admin.line("ACL SETUSER open on nopass ~* +@all").await;
        let wrong = "WRONGPASS invalid username-password pair or user is disabled.";
        for line in ["AUTH ann wrong", "AUTH nobody pw", "AUTH off any", "HELLO 3 AUTH ann wrong"] {
            let mut client = Ours::connect(&context, &stores[0]);
            let runtime = stores[0].runtime();
            let before = runtime.now();
            assert_eq!(error(&client.line(line).await), wrong, "{line}");
            let took = runtime.now() - before;
            assert!(took.as_millis() >= 500, "{line}: {took:?}");
            assert!(!client.closed);
        }
        let mut client = Ours::connect(&context, &stores[0]);
        assert_eq!(client.line("AUTH open anything").await.text(), b"OK");
        let mut guesser = Ours::connect(&context, &stores[0]);
        let guesses: Vec<String> =
            (0..10).map(|number| format!("AUTH ann guess{number}")).collect();
        let guesses: Vec<&str> = guesses.iter().map(String::as_str).collect();
        let replies = text(&guesser.exchange(&lines(&guesses)).await);
        assert_eq!(replies.lines().count(), 3, "{replies}");
        assert!(guesser.closed);
        let log = admin.line("ACL LOG 100").await;
        let field = |entry: &Frame, name: &str| {
            let place =
                entry.items().iter().position(|item| item.text() == name.as_bytes()).unwrap();
            entry.items()[place + 1].clone()
        };
        let newest = &log.items()[0];
        assert_eq!(field(newest, "reason").text(), b"auth");
        assert_eq!(field(newest, "object").text(), b"AUTH");
        assert_eq!(field(newest, "username").text(), b"ann");
        assert_eq!(field(newest, "count").integer(), Some(4), "{newest:?}");
        let users: Vec<String> =
            log.items().iter().map(|e| text(field(e, "username").text())).collect();
        assert!(
            users.contains(&"(unknown)".to_owned()) && !users.contains(&"nobody".to_owned()),
            "{users:?}"
        );
        let stats = text(admin.line("INFO stats").await.text());
        assert!(stats.contains("acl_access_denied_auth:7\r\n"), "{stats}");
        assert_eq!(admin.line("ACL LOG RESET").await.text(), b"OK");
        assert!(admin.line("ACL LOG").await.items().is_empty());
    });
}

#[test]
fn users_are_saved_and_loaded_without_their_passwords() {
    testbed(1).run(async |stores, _| {
        let file = MemoryFile::default();
        let options = ContextOptions {
            user_file: Some(Box::new(file.clone())),
            ..ContextOptions::new(stores[0].now_ms(), 1)
        };
        let context = Arc::new(Context::new(options));
        let mut admin = Ours::connect(&context, &stores[0]);
        admin.line("ACL SETUSER ann on >marker-word ~a* +@read").await;
        assert_eq!(admin.line("ACL SAVE").await.text(), b"OK");
        let saved = file.0.lock().unwrap().clone();
        assert!(
            saved.contains("user ann on #$argon2id$") && !saved.contains("marker-word"),
            "{saved}"
        );
        let mut ann = log_in(&context, &stores[0], "ann", "marker-word").await;
        *file.0.lock().unwrap() = saved.replace("user ann", "user eve");
        assert_eq!(admin.line("ACL LOAD").await.text(), b"OK");
        assert_eq!(
            ann.exchange(&lines(&["GET a"])).await,
            b"",
            "a user that the file does not have"
        );
        log_in(&context, &stores[0], "eve", "marker-word").await;
        file.0.lock().unwrap().push_str("user bad on >marker2 +nosuch\n");
        let refused = error(&admin.line("ACL LOAD").await);
        assert!(refused.contains("line 3") && !refused.contains("marker2"), "{refused}");
        log_in(&context, &stores[0], "eve", "marker-word").await;
        let mut plain = Ours::connect(&ours::context(&stores[0]), &stores[0]);
        assert!(error(&plain.line("ACL SAVE").await).contains("not configured to use an ACL file"));
    });
}

#[test]
fn unauthenticated_clients_hold_little() {
    testbed(1).run(async |stores, _| {
        let options = ContextOptions {
            password: Some("secret".into()),
            ..ContextOptions::new(stores[0].now_ms(), 1)
        };
        let context = Arc::new(Context::new(options));
        let argument = "x".repeat(2000);
        let whole = vec![argument.as_str(); 10];
        let inline = format!("PING {}\r\n", "a ".repeat(12));
        let cases: [(Vec<u8>, &str); 5] = [
            (encode(&whole), "unauthenticated bulk length"),
            (b"*11\r\n".to_vec(), "unauthenticated multibulk length"),
            (inline.into_bytes(), "unauthenticated multibulk length"),
            (vec![b'x'; (16 << 10) + 1], "too big inline request"),
            (b"*1\r\n$16385\r\n".to_vec(), "unauthenticated bulk length"),
        ];
        for (input, reason) in cases {
            let mut client = Ours::connect(&context, &stores[0]);
            let reply = text(&client.exchange(&input).await);
            assert!(reply.contains(reason) && client.closed, "{reason}: {reply}");
            assert_eq!(client.reserved_bytes(), 0);
        }
        let mut friend = log_in(&context, &stores[0], "default", "secret").await;
        assert_eq!(friend.exchange(&encode(&whole)).await.first(), Some(&b'-'));
        assert!(!friend.closed, "an unknown command, and no more");
    });
}
