//! Reading commands where nothing can be written: keys on a failing drive are saved in place.

use crate::support::clients::skip;
use crate::support::noise;
use crate::support::program::{Backend, binary, format_with, json, said, softflash};
use crate::support::server::Server;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const KEYS: u64 = 60;
/// A user without any rights.
const NOBODY: u32 = 65_534;

/// A directory with keys, some of them in the log only, and a volume.
fn with_data(backend: Backend) -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let shares = ["--units", "4", "--shards", "1", "--volume-units", "1"];
    format_with(&data, backend, 256 * MIB, &shares);
    let created = softflash(["volume", "create", data.to_str().unwrap(), "disk", "1MiB"]);
    assert!(created.status.success(), "{}", said(&created));
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let mut client = server.client();
    for key in 0..KEYS {
        // Some are values of their own.
        let len = if key.is_multiple_of(7) { 70_000 } else { 2000 };
        assert!(client.set(format!("k{key}").as_bytes(), &noise(key, len)).is_ok());
    }
    server.kill();
    (temp, data)
}

/// All files of a directory with their contents.
fn contents(data: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Runs the program in a namespace in which the directory is read-only; none where that is not
/// allowed.
fn on_read_only(data: &Path, arguments: &[&OsStr]) -> Option<Output> {
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" || exit 77; \
                  if touch \"$0/x\" 2>/dev/null; then exit 78; fi; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script]).arg(data).arg(binary()).args(arguments);
    let output = command.output().ok()?;
    assert_ne!(output.status.code(), Some(78), "it can be written");
    let is_refused = output.status.code() == Some(77) || said(&output).contains("unshare failed");
    (!is_refused).then_some(output)
}

/// Loads a dump elsewhere and finds all keys there.
fn holds_all_keys(dump: &Path) {
    let temp = tempfile::tempdir().unwrap();
    let copy = temp.path().join("copy");
    format_with(&copy, Backend::File, 256 * MIB, &["--units", "2", "--shards", "1"]);
    let loaded = softflash([OsStr::new("load"), copy.as_os_str(), dump.as_os_str()]);
    assert!(said(&loaded).contains("60 keys loaded"), "{}", said(&loaded));
    let server = Server::start(&copy, &["--memory", "32MiB"]);
    let mut client = server.client();
    for key in 0..KEYS {
        let len = if key.is_multiple_of(7) { 70_000 } else { 2000 };
        assert!(client.get(format!("k{key}").as_bytes()) == Some(noise(key, len)), "k{key}");
    }
    assert!(server.terminate().success());
}

/// The reading commands, by `run`; none where that cannot be done.
fn all_read(temp: &TempDir, data: &Path, run: &dyn Fn(&[&OsStr]) -> Option<Output>) -> Option<()> {
    let before = contents(data);
    let (data, dump) = (data.as_os_str(), temp.path().join("dump"));
    let word = OsStr::new;
    let commands: [&[&OsStr]; 9] = [
        &[word("info"), data],
        &[word("units"), data],
        &[word("check"), data],
        &[word("volume"), word("list"), data, word("-o"), word("json")],
        &[word("check"), data, word("--repair"), word("--dry-run")],
        &[word("set"), word("list"), data],
        &[word("clock"), data],
        &[word("volume"), word("export"), data, word("-")],
        &[word("dump"), data, word("-"), word("--salvage")],
    ];
    for command in commands {
        let output = run(command)?;
        assert!(output.status.success(), "{command:?}: {}", said(&output));
        if command[..2] == ["volume", "list"] {
            assert_eq!(json(&output)[0]["name"], "disk");
        }
    }
    // Through standard output, which needs no place to write.
    let dumped = run(&[word("dump"), data, word("-")])?;
    assert!(dumped.status.success(), "{}", said(&dumped));
    fs::write(&dump, &dumped.stdout).unwrap();
    holds_all_keys(&dump);
    let create = [word("volume"), word("create"), data, word("more"), word("1MiB")];
    let refused = run(&create)?;
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(said(&refused).contains("cannot be written"), "{}", said(&refused));
    assert!(contents(Path::new(data)) == before, "nothing has changed");
    Some(())
}

#[test]
fn reading_commands_work_on_a_read_only_file_system() {
    for backend in [Backend::File, Backend::Model] {
        for with_lock in [true, false] {
            let (temp, data) = with_data(backend);
            if !with_lock {
                fs::remove_file(data.join("lock")).unwrap();
            }
            if all_read(&temp, &data, &|arguments| on_read_only(&data, arguments)).is_none() {
                return skip("namespaces for mounts");
            }
        }
    }
}

#[test]
fn reading_commands_work_for_a_user_who_may_only_read() {
    let (temp, data) = with_data(Backend::File);
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    mode(temp.path(), 0o755).unwrap();
    mode(&data, 0o555).unwrap();
    for entry in fs::read_dir(&data).unwrap() {
        mode(&entry.unwrap().path(), 0o444).unwrap();
    }
    let run = |arguments: &[&OsStr]| {
        let mut command = Command::new(binary());
        command.args(arguments).uid(NOBODY).gid(NOBODY).current_dir("/");
        command.output().ok()
    };
    if all_read(&temp, &data, &run).is_none() {
        skip("the right to become another user");
    }
    mode(&data, 0o755).unwrap();
}

#[test]
fn a_reader_and_a_server_exclude_each_other() {
    let (_temp, data) = with_data(Backend::File);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let dump = softflash([OsStr::new("dump"), data.as_os_str(), OsStr::new("-")]);
    assert_eq!(dump.status.code(), Some(1));
    assert!(said(&dump).contains("busy") && said(&dump).contains("--resp"), "{}", said(&dump));
    assert!(server.terminate().success());
}
