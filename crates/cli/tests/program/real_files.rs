//! A tree of real files as keys and values: loaded, read back, and overwritten until `kill -9`.

use crate::support::program::{Backend, check_clean, format};
use crate::support::resp::Reply;
use crate::support::second_load::{Promise, kill_in_the_middle};
use crate::support::server::Server;
use crate::support::tree::Tree;
use crate::support::{clients, setting};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Size of the device: room for the tree and for compaction.
const DEVICE_BYTES: u64 = 1 << 30;

/// Bytes of files on the file device, and on the model, which has the speed of real flash.
/// `SOFTFLASH_TREE_MIB` sets more.
fn tree(default_mib: u64) -> Option<Tree> {
    Tree::load(setting("SOFTFLASH_TREE_MIB", default_mib) * MIB)
}

#[test]
fn a_tree_of_files_is_read_back_byte_for_byte() {
    let Some(tree) = tree(96) else { return };
    assert!(tree.files.len() > 500, "a whole tree has more than {} files", tree.files.len());
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    format(&data, Backend::File, DEVICE_BYTES);
    let server = Server::start(&data, &["--memory", "64MiB"]);
    let mut client = server.client();
    tree.store(&mut client, b"");
    tree.compare(&mut client, b"");
    assert_eq!(client.call(&[b"DBSIZE"]).integer(), tree.files.len() as i64);
    drop(client);
    assert!(server.terminate().success());
    check_clean(&data);

    let server = Server::start(&data, &["--memory", "64MiB"]);
    tree.compare(&mut server.client(), b"");
    compare_with_python(&server, &tree);
    assert!(server.terminate().success());
}

/// The Python client reads every key and compares it with the value that Rust read from the file.
fn compare_with_python(server: &Server, tree: &Tree) {
    const SCRIPT: &str = "
import hashlib, redis, sys
client = redis.Redis(port=int(sys.argv[1]))
lines = sys.stdin.buffer.read().split(b'\\n')
for start in range(0, len(lines), 64):
    pairs = [line.split(b' ', 1) for line in lines[start:start + 64] if line]
    values = client.mget([bytes.fromhex(key.decode()) for key, _ in pairs])
    for (key, length), value in zip(pairs, values):
        assert value is not None and len(value) == int(length), bytes.fromhex(key.decode())
        print(key.decode(), hashlib.sha256(value).hexdigest())
";
    let Some(python) = clients::python() else { return clients::skip("python3-redis") };
    let mut child = Command::new(python)
        .args(["-c", SCRIPT, &server.address().port().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut listed = Vec::new();
    for (path, content) in &tree.files {
        writeln!(listed, "{} {}", hex(path), content.len()).unwrap();
    }
    child.stdin.take().unwrap().write_all(&listed).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "python: {}", output.status);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed.lines().count(), tree.files.len());
    compare_with_sha256sum(tree, &printed);
}

/// Python's checksums are those of the contents, computed by a third program.
fn compare_with_sha256sum(tree: &Tree, printed: &str) {
    let step = tree.files.len() / 16;
    for ((path, content), line) in tree.files.iter().zip(printed.lines()).step_by(step.max(1)) {
        let mut child =
            Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(content).unwrap();
        let sum = child.wait_with_output().unwrap().stdout;
        let sum = String::from_utf8(sum).unwrap();
        let sum = sum.split(' ').next().unwrap();
        assert_eq!(line, format!("{} {sum}", hex(path)));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Loads the tree, kills the server during a second load, and checks the contents.
fn survive_a_kill(backend: Backend, tree: &Tree, durability: &str, promise: Promise) {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    format(&data, backend, DEVICE_BYTES);
    let arguments = ["--memory", "64MiB", "--durability", durability];
    // Where the order of writes matters, all keys are in one slot and so in one log.
    let (prefix, connections): (&[u8], usize) = match promise {
        Promise::Acknowledged => (b"", 3),
        Promise::PrefixUpTo(_) => (b"{tree}/", 2),
    };
    let server = Server::start(&data, &arguments);
    tree.store(&mut server.client(), prefix);
    // The first load is complete and durable before the second starts.
    assert!(server.terminate().success());
    let server = Server::start(&data, &arguments);
    let load = kill_in_the_middle(server, tree, prefix, connections);
    check_clean(&data);

    let server = Server::start(&data, &arguments);
    let mut client = server.client();
    load.verify(&mut client, tree, prefix, promise);
    // Not `DBSIZE`, which is an estimate for keys that were replayed from the log.
    let Reply::Array(keys) = client.call(&[b"KEYS", b"*"]) else { panic!("an array") };
    assert_eq!(keys.len(), tree.files.len());
    drop(client);
    assert!(server.terminate().success());
    check_clean(&data);
}

/// Interval durability covers writes acknowledged at least an interval ago; a busy machine may be
/// late.
const INTERVAL: (&str, Promise) = ("200ms", Promise::PrefixUpTo(Duration::from_millis(1200)));

#[test]
fn a_kill_in_the_middle_of_a_load_loses_nothing_acknowledged_on_the_file_device() {
    let Some(tree) = tree(48) else { return };
    survive_a_kill(Backend::File, &tree, "flash", Promise::Acknowledged);
}

#[test]
fn a_kill_in_the_middle_of_a_load_loses_at_most_the_interval_on_the_file_device() {
    let Some(tree) = tree(48) else { return };
    survive_a_kill(Backend::File, &tree, INTERVAL.0, INTERVAL.1);
}

#[test]
fn a_kill_in_the_middle_of_a_load_loses_nothing_acknowledged_on_the_model() {
    let Some(tree) = tree(12) else { return };
    survive_a_kill(Backend::Model, &tree, "flash", Promise::Acknowledged);
}

#[test]
fn a_kill_in_the_middle_of_a_load_loses_at_most_the_interval_on_the_model() {
    let Some(tree) = tree(12) else { return };
    survive_a_kill(Backend::Model, &tree, INTERVAL.0, INTERVAL.1);
}

/// `examples/tree.py` on the project's own documents: put, compare, scan, write out again.
#[test]
fn the_example_keeps_a_tree() {
    let Some(python) = clients::python() else { return clients::skip("python3-redis") };
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    format(&data, Backend::File, 256 * MIB);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let copy = directory.path().join("copy");
    let run = |arguments: &[&str]| {
        let mut example = Command::new(&python);
        example.arg(root.join("examples/tree.py")).arg(server.address().port().to_string());
        example.args(arguments).current_dir(&root).status().unwrap().success()
    };
    assert!(run(&["put", "docs"]));
    assert!(run(&["compare", "docs"]));
    assert!(run(&["get", "docs", copy.to_str().unwrap()]));
    let mut diff = Command::new("diff");
    let diff = diff.arg("-r").arg(root.join("docs")).arg(copy.join("docs")).status().unwrap();
    assert!(diff.success(), "the copy differs");
    assert!(!run(&["compare", "bench"]), "files that were never put are missed");
    for wrong in
        [&[][..], &["6379"], &["6379", "put"], &["6379", "take", "docs"], &["x", "put", "docs"]]
    {
        let mut example = Command::new(&python);
        let output = example.arg(root.join("examples/tree.py")).args(wrong).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: wrong usage");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("tree.py 6379 put docs") && !said.contains("Traceback"), "{said}");
    }
}
