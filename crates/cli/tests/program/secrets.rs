//! No password leaves the server: not in a reply, a log, a metric or a file.

use crate::support::http;
use crate::support::program::{Backend, format_with};
use crate::support::resp::{Client, Reply};
use crate::support::server::Server;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// Part of every password in these tests.
const MARKER: &str = "correct-horse-battery";

fn password(name: &str) -> String {
    format!("{MARKER}-{name}")
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Sends a command given as a line; returns the reply for inspection.
fn line(client: &mut Client, line: &str) -> (Reply, String) {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let reply = client.call(&words);
    let shown = text(&reply);
    (reply, shown)
}

/// All text of a reply.
fn text(reply: &Reply) -> String {
    match reply {
        Reply::Simple(text) | Reply::Error(text) => text.clone(),
        Reply::Integer(number) => number.to_string(),
        Reply::Bulk(bytes) => bytes
            .as_ref()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .unwrap_or_default(),
        Reply::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(" "),
    }
}

#[test]
fn passwords_are_nowhere_to_be_found() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, 512 << 20, &["--units", "4", "--shards", "2"]);
    let of_default = password("default");
    fs::write(temp.path().join("password"), &of_default).unwrap();
    fs::write(data.join("users.acl"), format!("user file on >{} ~* +@all\n", password("file")))
        .unwrap();
    let file = temp.path().join("password");
    // The trace filter logs all messages.
    let server = Server::start(
        &data,
        &["--memory", "64MiB", "--password-file", file.to_str().unwrap(), "--log", "trace"],
    );
    let mut replies = Vec::new();
    let mut admin = server.client();
    assert!(line(&mut admin, &format!("AUTH {of_default}")).0.is_ok());
    for setup in ["CONFIG SET slowlog-log-slower-than 0", "FLASH.RECORD START"] {
        assert!(line(&mut admin, setup).0.is_ok());
    }
    let commands = [
        format!("ACL SETUSER ann on >{} ~a:* +@all", password("ann")),
        format!("ACL SETUSER ann >{} <{}", password("second"), password("second")),
        format!("ACL SETUSER bad on >{} +nosuch", password("bad")),
        format!("ACL SETUSER bad <{}", password("missing")),
        format!("ACL SETUSER bad #{}", password("nohash")),
        "MULTI".to_owned(),
        format!("AUTH ann {}", password("ann")),
        "DISCARD".to_owned(),
        format!("HELLO 2 AUTH ann {}", password("wrong")),
        format!("AUTH {} ann", password("swapped")),
        format!("ACL GETUSER {}", password("name")),
    ];
    for command in &commands {
        replies.push(line(&mut admin, command).1);
    }
    let mut ann = server.client();
    assert!(line(&mut ann, &format!("AUTH ann {}", password("ann"))).0.is_ok());
    assert!(line(&mut ann, "SET a:1 v").0.is_ok());
    let mut file_user = server.client();
    assert!(line(&mut file_user, &format!("AUTH file {}", password("file"))).0.is_ok());
    let mut hello = server.client();
    let greeting = line(&mut hello, &format!("HELLO 2 AUTH file {}", password("file"))).1;
    assert!(greeting.contains("proto"), "{greeting}");
    // Input that is not RESP.
    let mut broken = server.client();
    let oversized = password("x").repeat(1000);
    let _ =
        broken.try_call(&[b"AUTH", oversized.as_bytes()]).map(|reply| replies.push(text(&reply)));

    for question in [
        "INFO everything",
        "INFO",
        "INFO commandstats",
        "CONFIG GET *",
        "SLOWLOG GET -1",
        "CLIENT LIST",
        "CLIENT INFO",
        "ACL LIST",
        "ACL USERS",
        "ACL GETUSER ann",
        "ACL GETUSER default",
        "ACL LOG 100",
        "COMMAND DOCS auth",
        "FLASH.RECORD READ",
        "FLASH.STATS",
        "FLASH.UNITS",
        "ACL SAVE",
        "DBSIZE",
        "KEYS *",
        "ACL LIST",
    ] {
        let (reply, shown) = line(&mut admin, question);
        assert!(reply.error().is_none(), "{question}: {shown}");
        replies.push(shown);
    }
    let address = server.address_of("http");
    for page in ["/metrics", "/health", "/api/stats", "/api/units", "/", "/config", "/users.acl"] {
        replies.push(http::get(address, page));
    }
    for reply in &replies {
        assert!(!reply.contains(MARKER), "{reply}");
    }
    let echoed = line(&mut admin, &format!("ECHO {}", password("echo"))).1;
    assert!(echoed.contains(MARKER), "the mark would be seen");
    let stats =
        replies.iter().find(|page| page.contains("softflash_authentication_failures_total"));
    assert!(stats.unwrap().contains("softflash_authentication_failures_total 2"), "{stats:?}");
    let mode = fs::metadata(data.join("users.acl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // It ends cleanly, and logs no secret meanwhile.
    server.signal_term();
    std::thread::sleep(Duration::from_secs(2));
    let said = server.said();
    assert!(said.contains("INFO") && said.contains("WARN"), "the log is on: {said}");
    assert!(!said.contains(MARKER));
    drop(server);
    for entry in files(&data) {
        let bytes = fs::read(&entry).unwrap();
        assert!(!contains(&bytes, MARKER), "{}", entry.display());
    }
    // The users exist again, with the same passwords.
    let server = Server::start(&data, &["--memory", "64MiB"]);
    for (name, known) in [("ann", "ann"), ("file", "file"), ("default", "default")] {
        let mut client = server.client();
        let (reply, shown) = line(&mut client, &format!("AUTH {name} {}", password(known)));
        assert!(reply.is_ok(), "{name}: {shown}");
    }
    assert!(server.terminate().success());
}

fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let found: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(found.iter().any(|path| path.ends_with("users.acl")), "{found:?}");
    found
}

/// The HTTP pages contain the counters that operators need, readable by everyone and read-only.
#[test]
fn http_has_read_only_counters() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, 512 << 20, &["--units", "4"]);
    let server = Server::start(&data, &["--memory", "64MiB"]);
    assert!(server.client().set(b"the-key", b"the-value").is_ok());
    let address = server.address_of("http");
    for (page, status) in [
        ("/metrics", "200"),
        ("/health", "200"),
        ("/api/stats", "200"),
        ("/api/units", "200"),
        ("/", "404"),
        ("/../users.acl", "404"),
        ("/%2e%2e/softflash.toml", "404"),
        ("/metrics/../../etc/passwd", "404"),
    ] {
        let answer = http::get(address, page);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{page}: {answer}");
        assert!(!answer.contains("the-key") && !answer.contains("the-value"), "{page}");
        for method in ["POST", "PUT", "DELETE"] {
            let refused = http::ask(address, method, page);
            let refused_with = if status == "200" { "405" } else { "404" };
            assert!(refused.starts_with(&format!("HTTP/1.1 {refused_with}")), "{method} {page}");
        }
    }
    assert!(server.terminate().success());
}
