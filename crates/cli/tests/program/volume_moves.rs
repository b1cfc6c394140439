//! `softflash volume export` and `import`: volumes move to another directory, whole and by
//! increments.

use crate::support::program::{
    Backend, binary, check_clean, fails, format_with, json, said, softflash,
};
use crate::support::{has_unfinished, noise, time_of_day_us};
use crate::volume_shrink::{has_terminal, volume_on_a_terminal};
use serde_json::Value;
use softflash_base::random::Rng;
use softflash_datadir::{OpenDir, with_domains};
use softflash_volume::{Domain, Setting, Volume};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const UNIT: u64 = 4096;

/// A directory with so many shards, each with a unit for keys and some for volumes.
pub fn directory(temp: &TempDir, name: &str, shards: u64, volume_units: u64) -> PathBuf {
    let data = temp.path().join(name);
    let units = (shards + volume_units).to_string();
    let (size, shards) = ((shards + volume_units) * 128 * MIB, shards.to_string());
    let volume_units = volume_units.to_string();
    let shares = ["--units", &units, "--shards", &shards, "--volume-units", &volume_units];
    format_with(&data, Backend::File, size, &shares);
    data
}

/// Calls `work` with the mounted domains of a directory.
fn on_domains(data: &Path, mut work: impl AsyncFnMut(&Domain)) {
    let directory = OpenDir::open(data).unwrap();
    let done = with_domains(&directory, async |domains| {
        for (_, domain) in &domains.all {
            work(domain).await;
        }
        Ok::<_, softflash_datadir::DataDirError>(())
    });
    done.unwrap();
}

/// Calls `work` with a volume of a directory and its domain.
fn on_volume(data: &Path, name: &str, mut work: impl AsyncFnMut(&Domain, &Volume)) {
    on_domains(data, async |domain| {
        if let Ok(volume) = domain.volume(name) {
            work(domain, &volume).await;
        }
    });
}

/// The contents of each volume, and of each snapshot as `disk@monday`.
pub fn contents(data: &Path) -> BTreeMap<String, Vec<u8>> {
    async fn read(volume: Volume) -> Vec<u8> {
        let mut bytes = vec![0; volume.size_bytes().unwrap() as usize];
        volume.without_limits().read(0, &mut bytes).await.unwrap();
        bytes
    }
    let mut all = BTreeMap::new();
    on_domains(data, async |domain| {
        for volume in domain.list() {
            for snapshot in &volume.snapshots {
                let opened = domain.open_snapshot(&volume.name, snapshot).unwrap();
                all.insert(format!("{}@{snapshot}", volume.name), read(opened).await);
            }
            all.insert(volume.name.clone(), read(domain.volume(&volume.name).unwrap()).await);
        }
    });
    all
}

pub fn listed(data: &Path) -> Value {
    json(&softflash(["volume", "list", data.to_str().unwrap(), "-o", "json"]))
}

/// The list of volumes without the sets that hold them.
pub fn list(data: &Path) -> Value {
    let mut listed = listed(data);
    for volume in listed.as_array_mut().unwrap() {
        volume["set"] = Value::Null;
    }
    listed
}

/// A list of volumes without what they hold: of a volume that was set back to its snapshot, both
/// hold the same data.
fn without_used_bytes(mut listed: Value) -> Value {
    for volume in listed.as_array_mut().unwrap() {
        volume["used_bytes"] = Value::Null;
    }
    listed
}

/// Runs `softflash volume COMMAND DIR ...`, which succeeds, and returns what it says.
pub fn volume(command: &str, data: &Path, more: &[&str]) -> String {
    let output = softflash([&["volume", command, data.to_str().unwrap()], more].concat());
    assert!(output.status.success(), "{command} {more:?}: {}", said(&output));
    said(&output)
}

/// Writes and discards at random places of a volume.
async fn change(volume: &Volume, rng: &mut Rng) {
    let units = volume.size_bytes().unwrap() / UNIT;
    for _ in 0..1 + rng.below(12) {
        let at = rng.below(units);
        let count = (1 + rng.below(40)).min(units - at);
        if rng.chance(0.25) {
            volume.discard(at * UNIT, count * UNIT).await.unwrap();
            continue;
        }
        let mut data = vec![0; (count * UNIT) as usize];
        if rng.chance(0.9) {
            rng.fill(&mut data);
        }
        volume.write(at * UNIT, &data).await.unwrap();
    }
}

/// Changes a volume and takes snapshots; it may change its size in between.
async fn live(domain: &Domain, name: &str, rng: &mut Rng) {
    let volume = domain.volume(name).unwrap();
    for round in 0..3 {
        change(&volume, rng).await;
        domain.snapshot(name, &format!("s{round}")).await.unwrap();
        if rng.chance(0.4) {
            let size = (200 + rng.below(1400)) * UNIT;
            domain.shrink(name, size).await.unwrap();
        }
    }
    if rng.chance(0.7) {
        change(&volume, rng).await;
    }
    if rng.chance(0.5) {
        domain.delete_snapshot(name, "s1").await.unwrap();
    }
}

/// Ten volumes in two domains: in each a clone, and a clone of that.
pub fn ten_volumes(data: &Path, rng: &mut Rng) {
    let mut shard = 0;
    on_domains(data, async |domain| {
        let name = |letter: char| format!("{letter}{shard}");
        for letter in ['x', 'b', 'c'] {
            let size = (200 + rng.below(1400)) * UNIT;
            domain.create(&name(letter), size).await.unwrap();
            live(domain, &name(letter), rng).await;
        }
        // Clones come before their parents in the order of names.
        for (parent, clone) in [('x', 'd'), ('d', 'a')] {
            domain.clone_snapshot(&name(parent), "s2", &name(clone)).await.unwrap();
            live(domain, &name(clone), rng).await;
        }
        // A quota below what it holds, and limits that no copy waits for.
        let settings = [
            Setting::Quota(Some(8192)),
            Setting::Iops(Some(1)),
            Setting::Bandwidth(Some(4096)),
            Setting::Weight(300),
            Setting::parse("temperature", "cold").unwrap(),
            Setting::Stream(3),
        ];
        domain.set(&name('x'), &settings).await.unwrap();
        shard += 1;
    });
}

/// Exports through a pipe.
fn pipe(from: &Path, to: &Path, export: &[&str]) -> (Output, Output) {
    let mut exporting = Command::new(binary());
    exporting.args(["volume", "export", from.to_str().unwrap(), "-"]).args(export);
    let mut exporting = exporting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut importing = Command::new(binary());
    importing.args(["volume", "import", to.to_str().unwrap(), "-"]);
    let importing = importing.stdin(exporting.stdout.take().unwrap()).output().unwrap();
    (exporting.wait_with_output().unwrap(), importing)
}

#[test]
fn ten_volumes_with_snapshots_and_clones_move_through_a_pipe() {
    let seed = u64::from(time_of_day_us());
    println!("seed {seed}");
    let mut rng = Rng::seeded(seed);
    let temp = tempfile::tempdir().unwrap();
    let (old, new) = (directory(&temp, "old", 2, 2), directory(&temp, "new", 3, 6));
    ten_volumes(&old, &mut rng);
    let (exported, imported) = pipe(&old, &new, &[]);
    let told = [said(&exported), said(&imported)].concat();
    assert!(exported.status.success() && imported.status.success(), "{told}");
    assert!(told.contains("standard output: 10 volumes"), "{told}");
    assert!(told.contains("`a0`, a clone of `d0@s2`"), "{told}");
    let listed = list(&old);
    assert_eq!(listed.as_array().unwrap().len(), 10);
    // With sizes, settings, snapshots, parents, and the space that clones share.
    assert_eq!(list(&new), listed, "seed {seed}");
    let (before, after) = (contents(&old), contents(&new));
    assert!(before.len() >= 30, "{} images", before.len());
    for (name, bytes) in &before {
        assert!(after[name] == *bytes, "seed {seed}: {name} differs");
    }
    check_clean(&new);

    // The same volumes give the same bytes, wherever they are.
    let files = [&old, &new].map(|data| data.with_extension("sfvolumes"));
    for (data, file) in [&old, &new].into_iter().zip(&files) {
        volume("export", data, &[file.to_str().unwrap()]);
    }
    let [one, other] = files.map(|file| fs::read(file).unwrap());
    assert!(one == other, "seed {seed}: the exports differ");
}

#[test]
fn a_clone_without_its_parent_is_exported_in_full() {
    let temp = tempfile::tempdir().unwrap();
    let (old, new) = (directory(&temp, "old", 1, 1), directory(&temp, "new", 1, 1));
    volume("create", &old, &["disk", "8MiB"]);
    on_volume(&old, "disk", async |_, disk| disk.write(0, &noise(1, 65536)).await.unwrap());
    volume("snapshot", &old, &["disk", "s"]);
    volume("clone", &old, &["disk", "s", "trial"]);
    let (exported, imported) = pipe(&old, &new, &["trial"]);
    assert!(said(&exported).contains("`trial` is exported in full"), "{}", said(&exported));
    assert!(imported.status.success(), "{}", said(&imported));
    let listed = list(&new);
    assert_eq!((&listed[0]["name"], &listed[0]["used_bytes"]), (&"trial".into(), &65536.into()));
    assert_eq!(listed[0].get("clone_of"), None);
    assert!(contents(&new)["trial"] == contents(&old)["trial"]);
}

/// A volume `disk` with a snapshot `monday` in two directories.
fn two_with_monday(temp: &TempDir) -> (PathBuf, PathBuf) {
    let (old, new) = (directory(temp, "old", 1, 1), directory(temp, "new", 2, 2));
    volume("create", &old, &["disk", "32MiB"]);
    on_volume(&old, "disk", async |_, disk| {
        disk.write(MIB, &noise(1, 10 << 20)).await.unwrap();
    });
    volume("snapshot", &old, &["disk", "monday"]);
    let (exported, imported) = pipe(&old, &new, &[]);
    assert!(exported.status.success() && imported.status.success(), "{}", said(&imported));
    (old, new)
}

#[test]
fn an_increment_carries_only_what_changed() {
    let temp = tempfile::tempdir().unwrap();
    let (old, new) = two_with_monday(&temp);
    let file = temp.path().join("increment");
    let path = file.to_str().unwrap();
    on_volume(&old, "disk", async |domain, disk| {
        disk.write(2 * MIB, &noise(2, 3 * 4096)).await.unwrap();
        disk.discard(4 * MIB, MIB).await.unwrap();
        domain.snapshot("disk", "tuesday").await.unwrap();
        domain.resize("disk", 40 * MIB).await.unwrap();
        disk.write(36 * MIB, &noise(3, 4096)).await.unwrap();
        domain.set("disk", &[Setting::Quota(Some(8192)), Setting::Iops(Some(1))]).await.unwrap();
    });
    volume("export", &old, &[path, "--from", "monday"]);
    let bytes = fs::metadata(&file).unwrap().len();
    assert!((4 * UNIT..4 * UNIT + 1024).contains(&bytes), "{bytes} bytes");
    let imported = volume("import", &new, &[path]);
    assert!(
        imported.contains("`disk` went on from snapshot `monday`: 1 snapshot more"),
        "{imported}"
    );
    assert_eq!(list(&new), list(&old));
    assert!(contents(&new) == contents(&old));

    // Twice is refused, and so is an increment whose base is not there.
    let import = ["volume", "import", new.to_str().unwrap(), path];
    fails(1, &import, &["has the snapshots `tuesday` after `monday`"]);
    volume("snapshot", &old, &["disk", "wednesday"]);
    let refused = ["volume", "export", old.to_str().unwrap(), "-", "--from", "friday"];
    fails(1, &refused, &["no snapshot `friday`", "without --from"]);
    volume("export", &old, &[path, "--from", "wednesday", "--force"]);
    fails(1, &import, &["has no snapshot `wednesday`"]);

    // A second increment; the copy was written to since.
    volume("set", &new, &["disk", "--quota", "none"]);
    on_volume(&new, "disk", async |_, disk| disk.write(0, &noise(9, 4096)).await.unwrap());
    on_volume(&old, "disk", async |domain, _| {
        domain.set("disk", &[Setting::Quota(None)]).await.unwrap();
    });
    volume("export", &old, &[path, "--from", "tuesday", "--quick", "--force"]);
    let bytes = fs::metadata(&file).unwrap().len();
    assert!((UNIT..UNIT + 1024).contains(&bytes), "{bytes} bytes");
    let before = contents(&new);
    fails(1, &import, &["has changed since its snapshot `tuesday`", "--revert"]);
    assert!(contents(&new) == before, "nothing has changed");
    if has_terminal() {
        let revert = format!("import {} {path} --revert", new.display());
        let asked = volume_on_a_terminal(&revert, "n");
        assert_eq!(asked.status.code(), Some(1), "{}", said(&asked));
        assert!(said(&asked).contains("[y/N]"), "{}", said(&asked));
        assert!(contents(&new) == before, "nothing has changed");
    }
    volume("import", &new, &[path, "--revert"]);
    assert!(contents(&new) == contents(&old));
    check_clean(&new);
}

#[test]
fn an_increment_does_not_go_on_from_another_snapshot_of_the_same_name() {
    let temp = tempfile::tempdir().unwrap();
    let (old, new) = two_with_monday(&temp);
    // One byte is different.
    volume("delete-snapshot", &new, &["disk", "monday"]);
    on_volume(&new, "disk", async |_, disk| {
        let mut unit = vec![0; 4096];
        disk.read(5 * MIB, &mut unit).await.unwrap();
        unit[77] ^= 1;
        disk.write(5 * MIB, &unit).await.unwrap();
    });
    volume("snapshot", &new, &["disk", "monday"]);
    let (exported, imported) = pipe(&old, &new, &["--from", "monday"]);
    assert!(exported.status.success(), "{}", said(&exported));
    let told = said(&imported);
    assert!(told.contains("has other contents") && !imported.status.success(), "{told}");
}

#[test]
fn names_are_checked_before_anything_is_created() {
    let temp = tempfile::tempdir().unwrap();
    let (old, new) = (directory(&temp, "old", 2, 2), directory(&temp, "new", 1, 1));
    for name in ["a", "b", "z"] {
        volume("create", &old, &[name, "1MiB"]);
    }
    volume("create", &new, &["z", "2MiB"]);
    let listed = list(&new);
    let file = temp.path().join("all");
    let path = file.to_str().unwrap();
    volume("export", &old, &[path]);
    fails(1, &["volume", "import", new.to_str().unwrap(), path], &["`z` exists"]);
    assert_eq!(list(&new), listed);
    // A file stays, unless it is to be replaced.
    let export = ["volume", "export", old.to_str().unwrap(), path];
    fails(1, &export, &["exists already", "--force"]);
    volume("export", &old, &[path, "--force", "a"]);
    fails(1, &[&export[..], &["none", "--force"]].concat(), &["no volume `none`"]);
    volume("import", &new, &[path]);
    assert_eq!(list(&new).as_array().unwrap().len(), 2);
    assert!(!has_unfinished(temp.path()));
}

#[test]
fn a_damaged_export_changes_nothing() {
    let seed = u64::from(time_of_day_us());
    println!("seed {seed}");
    let mut rng = Rng::seeded(seed);
    let temp = tempfile::tempdir().unwrap();
    let (old, new) = two_with_monday(&temp);
    on_volume(&old, "disk", async |domain, disk| {
        change(disk, &mut rng).await;
        domain.snapshot("disk", "tuesday").await.unwrap();
        change(disk, &mut rng).await;
        domain.clone_snapshot("disk", "tuesday", "trial").await.unwrap();
        domain.snapshot("trial", "s").await.unwrap();
    });
    let empty = directory(&temp, "empty", 1, 1);
    let file = temp.path().join("file");
    let damaged = temp.path().join("damaged");
    let (path, damaged_path) = (file.to_str().unwrap(), damaged.to_str().unwrap());
    for (data, export) in [(&empty, &[path][..]), (&new, &[path, "disk", "--from", "monday"])] {
        let (listed, before) = (list(data), contents(data));
        volume("export", &old, &[export, &["--force"]].concat());
        let bytes = fs::read(&file).unwrap();
        let length = bytes.len() as u64;
        let mut damages: Vec<(String, Vec<u8>)> = [0, 31, 100, length / 2, length - 60, length - 1]
            .into_iter()
            .chain((0..4).map(|_| rng.below(length)))
            .map(|end| (format!("ends at {end}"), bytes[..end as usize].to_vec()))
            .collect();
        for _ in 0..6 {
            let mut flipped = bytes.clone();
            let at = rng.below(length);
            flipped[at as usize] ^= 1 << rng.below(8);
            damages.push((format!("flipped at {at}"), flipped));
        }
        damages.push(("is followed by another one".into(), [&bytes[..], &bytes].concat()));
        let import = ["volume", "import", data.to_str().unwrap(), damaged_path];
        for (what, bytes) in damages {
            fs::write(&damaged, bytes).unwrap();
            let output = softflash(import);
            let told = said(&output);
            assert_eq!(output.status.code(), Some(1), "seed {seed}: {what}: {told}");
            assert!(told.contains(damaged_path), "seed {seed}: {what}: {told}");
            let is_named = told.contains("damaged at byte") || told.contains("not an export");
            // The version is a part of the header, too.
            assert!(is_named || told.contains("newer"), "seed {seed}: {what}: {told}");
            assert_eq!(without_used_bytes(list(data)), without_used_bytes(listed.clone()));
        }
        assert!(contents(data) == before, "seed {seed}: nothing has changed");
        volume("import", data, &[path]);
    }
    let (old, new) = (contents(&old), contents(&new));
    assert!(new.iter().all(|(name, bytes)| old[name] == *bytes), "seed {seed}");
    assert!(contents(&empty) == old, "seed {seed}");
}

#[test]
fn an_import_that_was_killed_is_known_and_can_be_undone() {
    let temp = tempfile::tempdir().unwrap();
    let (old, new) = two_with_monday(&temp);
    volume("create", &old, &["other", "8MiB"]);
    on_volume(&old, "other", async |_, other| other.write(0, &noise(6, 4096)).await.unwrap());
    on_volume(&old, "disk", async |_, disk| {
        disk.write(0, &noise(5, 4 << 20)).await.unwrap();
    });
    volume("set", &old, &["disk", "--weight", "7"]);
    let empty = directory(&temp, "empty", 1, 1);
    let path = temp.path().join("file");
    let file = path.to_str().unwrap();
    let (listed, before) = (list(&new), contents(&new));
    for (data, export) in [(&empty, &[file][..]), (&new, &[file, "disk", "--from", "monday"])] {
        volume("export", &old, &[export, &["--force"]].concat());
        let bytes = fs::read(&path).unwrap();
        let mut import = Command::new(binary());
        import.args(["volume", "import", data.to_str().unwrap(), "-"]).stdin(Stdio::piped());
        let mut import = import.stderr(Stdio::null()).spawn().unwrap();
        // What it has taken of a pipe, but 64 KiB in it and 1 MiB in its buffer, was imported.
        let mut input = import.stdin.take().unwrap();
        input.write_all(&bytes[..bytes.len() * 9 / 10]).unwrap();
        import.kill().unwrap();
        import.wait().unwrap();
        let directory = data.to_str().unwrap();
        let shown = said(&softflash(["volume", "list", directory]));
        for part in ["unfinished-import", "not complete: `disk`", "import", "--undo"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let refused = ["an import was interrupted", "`disk`", "--undo"];
        fails(1, &["volume", "import", directory, file], &refused);
        fails(1, &["volume", "export", directory, "-"], &refused);
        fails(1, &["volume", "rename", directory, "disk", "other-name"], &refused);
        fails(1, &["volume", "promote", directory, "disk"], &refused);
        fails(1, &["volume", "rollback", directory, "disk", "monday"], &refused);
        if has_terminal() {
            let asked = volume_on_a_terminal(&format!("import {directory} --undo"), "n");
            assert_eq!(asked.status.code(), Some(1), "{}", said(&asked));
            assert!(said(&asked).contains("[y/N]"), "{}", said(&asked));
            fails(1, &["volume", "export", directory, "-"], &refused);
        }
        volume("import", data, &["--undo"]);
        fails(1, &["volume", "import", directory, "--undo"], &["no import was interrupted"]);
    }
    assert_eq!(list(&empty), Value::Array(Vec::new()));
    let listed = without_used_bytes(listed);
    assert_eq!(without_used_bytes(list(&new)), listed, "with the settings that it had");
    assert!(contents(&new) == before);
    volume("import", &new, &[file]);
    assert!(contents(&new)["disk"] == contents(&old)["disk"]);
    check_clean(&new);
    check_clean(&empty);
}

#[test]
fn an_export_of_a_full_disk_fails_and_leaves_no_file() {
    let temp = tempfile::tempdir().unwrap();
    let (old, _) = two_with_monday(&temp);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut export = Command::new(binary());
    export.args(["volume", "export", old.to_str().unwrap(), "-"]);
    let output = export.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("standard output: No space left"), "{}", said(&output));
    fails(2, &["volume", "import", old.to_str().unwrap()], &["FILE"]);
    let quick = ["volume", "export", old.to_str().unwrap(), "-", "--quick"];
    fails(2, &quick, &["--from"]);
}
