//! Real clients: redis-cli, redis-benchmark and redis-py.

use crate::support::clients::{pythons, skip};
use crate::support::program::{Backend, check_clean, format_with, said};
use crate::support::server::Server;
use std::path::Path;
use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;

fn server(data: &Path) -> Server {
    format_with(data, Backend::File, 512 * MIB, &["--units", "4", "--shards", "2"]);
    Server::start(data, &["--memory", "64MiB"])
}

/// Whether a program can be started.
fn exists(program: &str) -> bool {
    let mut version = Command::new(program);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok()
}

#[test]
fn a_session_with_redis_cli() {
    if !exists("redis-cli") {
        return skip("redis-cli");
    }
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let server = server(&data);
    let port = server.address().port().to_string();
    for protocol in ["-2", "-3"] {
        let ask = |words: &[&str]| {
            let output = Command::new("redis-cli")
                .args(["-p", &port, protocol, "--no-raw"])
                .args(words)
                .output()
                .unwrap();
            assert!(output.status.success(), "{words:?}: {}", said(&output));
            String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
        };
        assert_eq!(ask(&["FLUSHALL"]), "OK");
        assert_eq!(ask(&["SET", "greeting", "hello, flash", "EX", "3600"]), "OK");
        assert_eq!(ask(&["GET", "greeting"]), "\"hello, flash\"");
        assert_eq!(ask(&["TTL", "greeting"]), "(integer) 3600");
        assert_eq!(ask(&["MSET", "a", "1", "b", "2", "c", "3"]), "OK");
        assert_eq!(ask(&["MGET", "a", "nothing", "c"]), "1) \"1\"\n2) (nil)\n3) \"3\"");
        assert_eq!(ask(&["INCRBY", "a", "41"]), "(integer) 42");
        assert_eq!(ask(&["DBSIZE"]), "(integer) 4");
        assert_eq!(ask(&["DEL", "a", "b", "nothing"]), "(integer) 2");
        assert!(ask(&["NOSUCHCOMMAND"]).starts_with("(error) ERR unknown command"));
        let absent = ask(&["HSET", "h", "field", "value"]);
        assert!(absent.contains("'HSET' of Redis is not built in SoftFlash"), "{absent}");
        assert!(ask(&["INFO", "server"]).contains("softflash_version"));
        assert!(ask(&["CONFIG", "GET", "maxclients"]).contains("10000"));
        assert!(!ask(&["FLASH.UNITS"]).is_empty());
    }
    assert!(server.terminate().success());
    check_clean(&data);
}

#[test]
fn redis_benchmark_runs_to_its_end() {
    if !exists("redis-benchmark") {
        return skip("redis-benchmark");
    }
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let server = server(&data);
    let port = server.address().port().to_string();
    let output = Command::new("redis-benchmark")
        .args(["-p", &port, "-t", "ping,set,get,incr,mset", "-n", "5000", "-c", "20", "-P", "16"])
        .args(["-d", "1024", "-r", "1000", "--csv"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    for test in ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET"] {
        assert!(table.contains(&format!("\"{test}")), "{test} is missing: {}", said(&output));
    }
    assert!(!said(&output).to_lowercase().contains("error"), "{}", said(&output));
    assert!(server.terminate().success());
    check_clean(&data);
}

const SESSION: &str = r#"
import inspect, sys, redis
speaks_resp3 = "protocol" in inspect.signature(redis.Redis.__init__).parameters
for options in ({"protocol": 2}, {"protocol": 3}) if speaks_resp3 else ({},):
    r = redis.Redis(port=int(sys.argv[1]), **options)
    r.flushall()
    assert r.set("k", b"\x00\xff" * 1000, ex=100) is True
    assert r.get("k") == b"\x00\xff" * 1000
    assert 98 <= r.ttl("k") <= 100
    assert r.set("k", "v", nx=True) is None
    with r.pipeline(transaction=True) as p:
        p.incr("n").incr("n").get("n")
        assert p.execute() == [1, 2, b"2"]
    with r.pipeline() as p:
        p.watch("n")
        r.set("n", 10)
        p.multi()
        p.incr("n")
        try:
            p.execute()
            raise SystemExit("a watched key changed and the transaction ran")
        except redis.WatchError:
            pass
    r.mset({f"key:{i}": i for i in range(1000)})
    assert len(set(r.scan_iter(match="key:*", count=100))) == 1000
    assert r.dbsize() == 1002
    large = bytes(range(256)) * (4 << 12)
    r.set("large", large)
    assert r.get("large") == large
    assert r.getrange("large", 255, 257) == b"\xff\x00\x01"
    assert r.info("server")["redis_mode"] == "standalone"
    try:
        r.execute_command("NOSUCHCOMMAND")
        raise SystemExit("an unknown command was taken")
    except redis.ResponseError as error:
        assert "unknown command" in str(error)
print("done")
"#;

const LOCKS: &str = r#"
import sys, redis
from redis.exceptions import LockError, LockNotOwnedError
r, other = (redis.Redis(port=int(sys.argv[1])) for _ in range(2))
r.flushall()
for name in ("lock:1", "lock:2", "lock:3"):
    lock = r.lock(name, timeout=100, thread_local=False)
    rival = other.lock(name, timeout=100, blocking=False, thread_local=False)
    assert lock.acquire() and not rival.acquire()
    assert lock.extend(100) is True
    assert 190_000 < r.pttl(name) <= 200_000
    assert lock.extend(50, replace_ttl=True) is True
    assert 40_000 < r.pttl(name) <= 50_000
    assert lock.reacquire() is True
    assert 90_000 < r.pttl(name) <= 100_000
    for attempt in (rival.release, lambda: rival.extend(1), rival.reacquire):
        rival.local.token = b"wrong"
        try:
            attempt()
            raise SystemExit("a wrong token was taken")
        except LockNotOwnedError:
            pass
    assert lock.owned() and 90_000 < r.pttl(name)
    lock.release()
    assert not r.exists(name) and rival.acquire()
    rival.release()
    try:
        lock.release()
        raise SystemExit("a lock was released twice")
    except LockError:
        pass
    with r.lock(name, timeout=10):
        assert r.get(name)
    assert not r.exists(name)
    r.script_flush()
try:
    r.register_script("return redis.call('lpush', KEYS[1], ARGV[1])")(keys=["k"], args=["v"])
    raise SystemExit("an unknown script was taken")
except redis.ResponseError as error:
    assert "scripts are not built" in str(error), error
try:
    r.hset("h", "field", "value")
    raise SystemExit("a hash was taken")
except redis.ResponseError as error:
    assert "HSET" in str(error) and "docs/redis.md" in str(error), error
print("done")
"#;

#[test]
fn a_session_with_redis_py() {
    run_with_redis_py(SESSION);
}

#[test]
fn the_locks_of_redis_py_are_taken_extended_and_released() {
    run_with_redis_py(LOCKS);
}

fn run_with_redis_py(session: &str) {
    let pythons = pythons();
    if pythons.is_empty() {
        return skip("redis-py");
    }
    for python in pythons {
        let temp = tempfile::tempdir().unwrap();
        let data = temp.path().join("data");
        let server = server(&data);
        let port = server.address().port().to_string();
        let output = Command::new(&python).args(["-c", session, &port]).output().unwrap();
        assert!(output.status.success(), "{python}: {}", said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "done");
        assert!(server.terminate().success());
        check_clean(&data);
    }
}
