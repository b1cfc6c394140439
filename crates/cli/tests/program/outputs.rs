//! Outputs of commands: links are followed, pipes and standard output are written at once, and
//! files that exist stay without `--force`.

use crate::support::clients::skip;
use crate::support::noise;
use crate::support::program::{Backend, binary, check_clean, fails, format_with, said, softflash};
use crate::support::server::Server;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A directory with some keys.
fn with_keys(keys: u64) -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, 256 * MIB, &["--units", "2", "--shards", "1"]);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let mut client = server.client();
    for key in 0..keys {
        assert!(client.set(format!("k{key}").as_bytes(), &noise(key, 3000)).is_ok());
    }
    assert!(server.terminate().success());
    (temp, data)
}

/// A trace in the format of alibaba.
fn trace(directory: &Path) -> String {
    let path = directory.join("disk.csv");
    let lines: String =
        (0..50).map(|at| format!("1,W,{},4096,{}\n", at * 4096, at * 1000)).collect();
    fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs the program with its standard output in a file.
fn into_file(arguments: &[&str], file: &Path) -> Output {
    let mut command = Command::new(binary());
    command.args(arguments).stdout(File::create(file).unwrap()).stderr(Stdio::piped());
    command.output().unwrap()
}

#[test]
fn a_link_to_standard_output_stays_and_what_it_leads_to_is_written() {
    let (temp, data) = with_keys(20);
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let (data, trace) = (data.to_str().unwrap(), trace(temp.path()));
    let (out, results) = (path("out"), path("results"));
    symlink("/proc/self/fd/1", &out).unwrap();
    assert!(softflash(["lab", "run", "sdf-erase", "--quick", "--out", &results]).status.success());
    let replay = ["replay", "--device", "sdf", &trace, "--precondition", "none"];
    let commands: [&[&str]; 6] = [
        &["trace", "convert", &trace, &out, "--to", "msr"],
        &[&replay[..], &["--log-requests", &out, "-o", "json"]].concat(),
        &["lab", "report", &results, "--to", "-"],
        &["lab", "report", &results, "--to", &out, "--force"],
        &["dump", data, &out, "--force"],
        &["dump", data, "/dev/stdout"],
    ];
    for command in commands {
        let file = temp.path().join("f");
        let output = into_file(command, &file);
        let is_link = fs::symlink_metadata(&out).unwrap().is_symlink();
        assert!(is_link, "{command:?}: the link stays");
        assert!(output.status.success(), "{command:?}: {}", said(&output));
        assert!(fs::metadata(&file).unwrap().len() > 0, "{command:?}: it is written");
    }
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());
}

#[test]
fn a_link_to_a_file_stays_and_the_file_is_replaced_with_its_permissions() {
    let (temp, data) = with_keys(5);
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(path("elsewhere")).unwrap();
    fs::write(path("elsewhere/real"), "old").unwrap();
    fs::set_permissions(path("elsewhere/real"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("elsewhere/real", path("link")).unwrap();
    let (data, link) = (data.to_str().unwrap(), path("link"));
    fails(1, &["dump", data, &link], &[&link, "exists already", "--force"]);
    let forced = softflash(["dump", data, &link, "--force"]);
    assert!(forced.status.success(), "{}", said(&forced));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("elsewhere/real"));
    let real = fs::metadata(path("elsewhere/real")).unwrap();
    assert!(real.len() > 3, "the new dump is there");
    assert_eq!(real.permissions().mode() & 0o777, 0o600, "it is not opened to others");

    // To nothing yet: the file is made where the link leads.
    symlink("elsewhere/new", path("dangling")).unwrap();
    assert!(softflash(["dump", data, &path("dangling")]).status.success());
    assert!(fs::symlink_metadata(path("dangling")).unwrap().is_symlink());
    assert!(fs::metadata(path("elsewhere/new")).unwrap().len() > 3);
    // In a circle.
    symlink("circle", path("circle")).unwrap();
    fails(1, &["dump", data, &path("circle")], &["circle", "symbolic links"]);
    fails(1, &["dump", data, data, "--force"], &[data, "not a file"]);
}

#[test]
fn a_dump_goes_through_a_pipe_to_a_load() {
    let (temp, data) = with_keys(40);
    let other = temp.path().join("other");
    format_with(&other, Backend::File, 256 * MIB, &["--units", "2", "--shards", "1"]);
    let mut dump = Command::new(binary());
    dump.args(["dump", data.to_str().unwrap(), "-"]).current_dir(temp.path());
    let mut dump = dump.stdout(Stdio::piped()).spawn().unwrap();
    let mut load = Command::new(binary());
    load.args(["load", other.to_str().unwrap(), "-"]).stdin(dump.stdout.take().unwrap());
    let loaded = load.stderr(Stdio::piped()).output().unwrap();
    assert!(loaded.status.success(), "{}", said(&loaded));
    assert!(said(&loaded).contains("40 keys loaded"), "{}", said(&loaded));
    assert!(dump.wait().unwrap().success());
    assert!(!temp.path().join("-").exists(), "no file has that name");
    check_clean(&other);
}

#[test]
fn a_named_pipe_is_written_at_once_and_stays() {
    let temp = tempfile::tempdir().unwrap();
    let (trace, pipe) = (trace(temp.path()), temp.path().join("pipe"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let to = pipe.to_str().unwrap().to_owned();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
        text
    });
    let converted = softflash(["trace", "convert", &trace, &to, "--to", "msr"]);
    assert!(converted.status.success(), "{}", said(&converted));
    assert_eq!(reader.join().unwrap().lines().count(), 50);
    use std::os::unix::fs::FileTypeExt;
    assert!(fs::metadata(&to).unwrap().file_type().is_fifo());
}

/// Opened once: a reader takes the end of the first opening for the end of the report.
#[test]
fn a_named_pipe_gets_a_report() {
    let temp = tempfile::tempdir().unwrap();
    let (results, pipe) = (temp.path().join("results"), temp.path().join("pipe"));
    let run = ["lab", "run", "sdf-erase", "--quick", "--out", results.to_str().unwrap()];
    assert!(softflash(run).status.success());
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let to = pipe.to_str().unwrap().to_owned();
    let reader = std::thread::spawn(move || fs::read_to_string(pipe).unwrap());
    let reported = softflash(["lab", "report", results.to_str().unwrap(), "--to", &to]);
    assert!(reported.status.success(), "{}", said(&reported));
    assert!(reader.join().unwrap().ends_with("</html>\n"));
}

#[test]
fn a_file_that_exists_is_replaced_only_by_force() {
    let temp = tempfile::tempdir().unwrap();
    let (trace, out) = (trace(temp.path()), temp.path().join("out"));
    fs::write(&out, "precious").unwrap();
    let out = out.to_str().unwrap();
    fails(1, &["trace", "convert", &trace, out, "--to", "msr"], &[out, "exists", "--force"]);
    fails(1, &["record", out, "--connect", "127.0.0.1:1"], &[out, "exists", "--force"]);
    assert_eq!(fs::read_to_string(out).unwrap(), "precious");
    let forced = softflash(["trace", "convert", &trace, out, "--to", "msr", "--force"]);
    assert!(forced.status.success(), "{}", said(&forced));
    assert_ne!(fs::read_to_string(out).unwrap(), "precious");
}

#[test]
fn two_dumps_to_one_name_do_not_mix() {
    let (temp, data) = with_keys(200);
    let other = temp.path().join("other");
    format_with(&other, Backend::File, 256 * MIB, &["--units", "2", "--shards", "1"]);
    let file = temp.path().join("dump");
    let start = |data: &Path| {
        let mut dump = Command::new(binary());
        dump.arg("dump").arg(data).arg(&file).arg("--force").stderr(Stdio::null());
        dump.spawn().unwrap()
    };
    for _ in 0..3 {
        let mut dumps = [start(&data), start(&other)];
        assert!(dumps.iter_mut().all(|dump| dump.wait().unwrap().success()));
        let loaded = softflash(["load".as_ref(), other.as_os_str(), file.as_os_str()]);
        assert!(loaded.status.success(), "one of them is there as a whole: {}", said(&loaded));
    }
}

#[test]
fn dumps_behind_each_other_are_all_loaded_and_anything_else_is_an_error() {
    let (temp, first) = with_keys(10);
    let (_other, second) = with_keys(25);
    let path = |name: &str| temp.path().join(name);
    for (data, name) in [(&first, "a"), (&second, "b")] {
        let output = softflash(["dump".as_ref(), data.as_os_str(), path(name).as_os_str()]);
        assert!(output.status.success(), "{}", said(&output));
    }
    let (a, b) = (fs::read(path("a")).unwrap(), fs::read(path("b")).unwrap());
    fs::write(path("both"), [&a[..], &b].concat()).unwrap();
    let target = path("target");
    format_with(&target, Backend::File, 256 * MIB, &["--units", "2", "--shards", "1"]);
    let load =
        |name: &str| softflash(["load".as_ref(), target.as_os_str(), path(name).as_os_str()]);
    let loaded = load("both");
    assert!(loaded.status.success(), "{}", said(&loaded));
    assert!(said(&loaded).contains("35 keys loaded"), "{}", said(&loaded));
    let server = Server::start(&target, &["--memory", "32MiB"]);
    assert_eq!(server.client().call(&[b"DBSIZE"]).integer(), 25);
    assert!(server.terminate().success());

    let end = a.len();
    for (name, rest) in
        [("letter", &b"and a letter"[..]), ("zeros", &[0; 4096]), ("half", &b[..20])]
    {
        fs::write(path(name), [&a[..], rest].concat()).unwrap();
        let refused = load(name);
        assert_eq!(refused.status.code(), Some(1), "{name}: {}", said(&refused));
        let offset = format!("damaged at byte {end}");
        assert!(said(&refused).contains(&offset), "{name}: {}", said(&refused));
        assert!(said(&refused).contains("10 records"), "{name}: {}", said(&refused));
    }
    let mut flipped = [&a[..], &b].concat();
    flipped[end + 20] ^= 1;
    fs::write(path("flipped"), flipped).unwrap();
    assert!(said(&load("flipped")).contains("the header of a further dump"));
}

#[test]
fn standard_input_is_a_configuration_too() {
    let temp = tempfile::tempdir().unwrap();
    let out = temp.path().join("out");
    let mut import = Command::new(binary());
    import.args(["lab", "import", "mqsim", "-", "--out"]).arg(&out);
    let mut child = import.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"<html>no configuration</html>").unwrap();
    let refused = child.wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("the outermost element is `html`"), "{}", said(&refused));
}

#[test]
fn a_terminal_is_written_at_once() {
    if Command::new("script").arg("--version").output().is_err() {
        return skip("`script` of util-linux");
    }
    let temp = tempfile::tempdir().unwrap();
    let trace = trace(temp.path());
    let convert = format!("{} trace convert {trace} /dev/tty --to msr", binary().display());
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--flush", "--command", &convert, "/dev/null"]);
    let shown = script.stdin(Stdio::null()).output().unwrap();
    assert!(shown.status.success(), "{}", said(&shown));
    let requests = said(&shown).lines().filter(|line| line.contains(",Write,")).count();
    assert_eq!(requests, 50, "{}", said(&shown));
}

#[test]
fn a_dash_is_standard_input_or_output_and_never_a_file() {
    let temp = tempfile::tempdir().unwrap();
    let trace = trace(temp.path());
    let sdf = ["--device", "sdf", "--precondition", "none"];
    let commands: [(&[&str], &str); 3] = [
        (&["trace", "summary", "-"], "50"),
        (&[&["replay", "-"][..], &sdf].concat(), "50"),
        (&[&["replay", "-"][..], &sdf, &["--log-requests", "-"]].concat(), "arrival_ns,"),
    ];
    for (command, part) in commands {
        let mut program = Command::new(binary());
        program.args(command).current_dir(temp.path()).stdin(File::open(&trace).unwrap());
        let output = program.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", said(&output));
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains(part), "{command:?}: {printed}");
        assert!(!temp.path().join("-").exists(), "{command:?}: a file has that name");
    }
}
