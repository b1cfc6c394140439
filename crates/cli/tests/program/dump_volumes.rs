//! `softflash dump --volumes` and `load --volumes`: keys and volumes move to another directory in
//! one file.

use crate::support::noise;
use crate::support::program::{binary, check_clean, fails, said, softflash};
use crate::support::server::Server;
use crate::support::time_of_day_us;
use crate::volume_moves::{contents, directory, list, ten_volumes, volume};
use softflash_base::random::Rng;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const KEYS: u64 = 300;

fn key(number: u64) -> Vec<u8> {
    format!("key{number}").into_bytes()
}

fn value(number: u64) -> Vec<u8> {
    noise(number, 10 + 37 * number as usize)
}

fn with_keys(data: &Path) {
    let server = Server::start(data, &["--memory", "64MiB"]);
    let mut client = server.client();
    (0..KEYS).for_each(|number| assert!(client.set(&key(number), &value(number)).is_ok()));
    assert!(server.terminate().success());
}

fn has_keys(data: &Path) -> bool {
    let server = Server::start(data, &["--memory", "64MiB"]);
    let mut client = server.client();
    let all = (0..KEYS).all(|number| client.get(&key(number)) == Some(value(number)));
    assert!(server.terminate().success());
    all
}

fn done(words: &[&str]) -> String {
    let output = softflash(words);
    assert!(output.status.success(), "{words:?}: {}", said(&output));
    said(&output)
}

#[test]
fn a_directory_moves_with_its_volumes_through_one_file() {
    let seed = u64::from(time_of_day_us());
    println!("seed {seed}");
    let temp = tempfile::tempdir().unwrap();
    let (old, new) = (directory(&temp, "old", 2, 2), directory(&temp, "new", 3, 6));
    with_keys(&old);
    ten_volumes(&old, &mut Rng::seeded(seed));
    let file = temp.path().join("all.sfdump");
    let [from, to, path] = [&old, &new, &file].map(|path| path.to_str().unwrap());
    let told = done(&["dump", from, path, "--volumes"]);
    assert!(told.contains("300 keys, 10 volumes"), "{told}");
    let told = done(&["load", to, path, "--volumes"]);
    for part in ["`a0`, a clone of `d0@s2`", "10 volumes", "300 keys loaded"] {
        assert!(told.contains(part), "`{part}` is missing in {told}");
    }
    assert_eq!(list(&new), list(&old), "seed {seed}");
    assert!(contents(&new) == contents(&old), "seed {seed}: contents differ");
    assert!(has_keys(&new));
    check_clean(&new);

    // Twice is refused before anything changes; without the volumes it goes on.
    fails(1, &["load", to, path, "--volumes"], &["exists"]);
    assert!(contents(&new) == contents(&old));
    let told = done(&["load", to, path, "--skip", "100"]);
    assert!(told.contains("10 volumes left out; --volumes") && told.contains("200 keys"), "{told}");
    // The same states give the same volumes, whatever the clock says.
    let of_new = temp.path().join("of-new");
    done(&["dump", to, of_new.to_str().unwrap(), "--volumes"]);
    let exported = temp.path().join("exported");
    volume("export", &new, &[exported.to_str().unwrap()]);
    let volumes = fs::read(&exported).unwrap();
    for dump in [&file, &of_new] {
        assert!(fs::read(dump).unwrap().starts_with(&volumes), "seed {seed}");
    }
    fails(1, &["volume", "import", to, path], &["exists"]);
}

#[test]
fn a_dump_with_volumes_goes_through_a_pipe_and_each_part_can_be_left_out() {
    let temp = tempfile::tempdir().unwrap();
    let (old, new) = (directory(&temp, "old", 1, 1), directory(&temp, "new", 1, 1));
    let [from, to] = [&old, &new].map(|path| path.to_str().unwrap());
    with_keys(&old);
    volume("create", &old, &["disk", "4MiB"]);
    crate::sets::write_volume(&old, "disk", &noise(1, 1 << 20));
    let mut dumping = Command::new(binary());
    dumping.args(["dump", from, "-", "--volumes"]);
    let mut dumping = dumping.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut loading = Command::new(binary());
    loading.args(["load", to, "-", "--volumes"]).stdin(dumping.stdout.take().unwrap());
    let loaded = loading.output().unwrap();
    assert!(dumping.wait().unwrap().success() && loaded.status.success(), "{}", said(&loaded));
    assert!(contents(&new) == contents(&old) && has_keys(&new));

    let (keys, all) = (temp.path().join("keys"), temp.path().join("all"));
    let [keys, all] = [&keys, &all].map(|path| path.to_str().unwrap());
    done(&["dump", from, keys]);
    done(&["dump", from, all, "--volumes"]);
    fails(1, &["load", to, keys, "--volumes"], &["it has no volumes", "dump --volumes"]);
    fails(2, &["dump", "--resp", "127.0.0.1:1", keys, "--volumes"], &["--volumes"]);
    volume("delete", &new, &["disk", "--force"]);
    fails(1, &["volume", "import", to, all], &["load --volumes", "nothing was imported"]);
    assert_eq!(list(&new).as_array().unwrap().len(), 0);

    // A directory without volumes, as a source and as a target.
    let none = temp.path().join("none");
    done(&["format", none.to_str().unwrap(), "--size", "256MiB", "--units", "2"]);
    let empty = temp.path().join("empty");
    let [none, empty] = [&none, &empty].map(|path| path.to_str().unwrap());
    done(&["dump", none, empty, "--volumes"]);
    done(&["load", to, empty, "--volumes"]);
    fails(1, &["load", none, all, "--volumes"], &["without volume units"]);
    let told = done(&["load", none, all]);
    assert!(told.contains("1 volume left out"), "{told}");
}

#[test]
fn a_damaged_dump_with_volumes_loads_no_volume_and_says_where() {
    let temp = tempfile::tempdir().unwrap();
    let (old, new) = (directory(&temp, "old", 1, 1), directory(&temp, "new", 1, 1));
    let [from, to] = [&old, &new].map(|path| path.to_str().unwrap());
    with_keys(&old);
    volume("create", &old, &["disk", "4MiB"]);
    crate::sets::write_volume(&old, "disk", &noise(1, 3 << 20));
    let file = temp.path().join("all");
    let path = file.to_str().unwrap();
    done(&["dump", from, path, "--volumes"]);
    let whole = fs::read(&file).unwrap();
    let mut damaged = whole.clone();
    damaged[2 << 20] ^= 1;
    fs::write(&file, &damaged).unwrap();
    fails(1, &["load", to, path, "--volumes"], &["damaged at byte", "nothing was imported"]);
    assert_eq!(list(&new).as_array().unwrap().len(), 0);
    // Behind the volumes the offsets are those of the file.
    let mut damaged = whole.clone();
    let place = whole.len() - 100_000;
    damaged[place] ^= 1;
    fs::write(&file, &damaged).unwrap();
    let failed = softflash(["load", to, path, "--volumes"]);
    let told = said(&failed);
    assert_eq!(failed.status.code(), Some(1), "{told}");
    assert!(told.contains("run it again without --volumes"), "{told}");
    let at = told.split("damaged at byte ").nth(1).unwrap().split(' ').next().unwrap();
    let at: usize = at.parse().unwrap();
    assert!((3 << 20..=place).contains(&at), "{at} of {place}");
    assert_eq!(list(&new).as_array().unwrap().len(), 1, "the volumes were loaded before");
    fs::write(&file, &whole).unwrap();
    done(&["load", to, path]);
    assert!(has_keys(&new) && contents(&new) == contents(&old));
}
