//! `serve --config`: settings from a file.

use crate::support::program::{Backend, fails, format, said, softflash};
use crate::support::resp::Reply;
use crate::support::server::Server;
use std::fs;
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;

fn file(directory: &Path, text: &str) -> PathBuf {
    let path = directory.join("serve.toml");
    fs::write(&path, text).unwrap();
    path
}

fn printed(arguments: &[&str]) -> String {
    let output = softflash([&["serve", "--print-config"][..], arguments].concat());
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The lines of settings that are in effect.
fn set(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[test]
fn the_server_has_the_settings_of_the_file_and_the_command_line_wins() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data, Backend::File, 512 * MIB);
    let text =
        "memory = \"48MiB\"\nmax-clients = 20\nidle-timeout = \"90s\"\nprotected-mode = false\n";
    let settings = file(temp.path(), text);
    let settings = settings.to_str().unwrap();
    let server = Server::start(&data, &["--max-clients", "30", "--config", settings]);
    let mut client = server.client();
    let mut config = |name: &str| match client.call(&[b"CONFIG", b"GET", name.as_bytes()]) {
        Reply::Array(pair) => String::from_utf8(pair[1].clone().bulk().unwrap()).unwrap(),
        reply => panic!("{name}: {reply:?}"),
    };
    assert_eq!(config("maxmemory"), (48 * MIB).to_string());
    assert_eq!((config("timeout"), config("protected-mode")), ("90".to_owned(), "no".to_owned()));
    assert_eq!(config("maxclients"), "30", "the command line wins");
    assert!(server.terminate().success());
}

#[test]
fn a_wrong_setting_is_named_with_its_line() {
    let temp = tempfile::tempdir().unwrap();
    let missing = temp.path().join("none.toml");
    fails(1, &["serve", "--config", missing.to_str().unwrap()], &["none.toml"]);
    for (text, line, problem) in [
        ("pin = true\n\nmemroy = 3\n", "line 3", "the nearest known one is `memory`"),
        ("config = \"x\"\n", "line 1", "unknown key `config`; known are data, resp, "),
        ("# first\nmemory = \"much\"\n", "line 2", "memory: `much` is not a size"),
        ("pin = \"on\"\n", "line 1", "pin: write true or false"),
        ("log = \"((\"\n", "line 1", "log: invalid filter directive"),
        ("http = [1]\n", "line 1", "http: write a string or a whole number"),
        ("http = \"\"\n", "line 1", "http: "),
        ("tls-client-auth = \"maybe\"\n", "line 1", "write one of no, optional, required"),
        ("pin = true\npin = false\n", "line 2", "duplicate key"),
        ("pin = \n", "line 1", ""),
        ("[serve]\npin = true\n", "line 1", "unknown key `serve`"),
    ] {
        let settings = file(temp.path(), text);
        fails(
            2,
            &["serve", "--config", settings.to_str().unwrap()],
            &["serve.toml", line, problem],
        );
    }
    // Options that belong together may be apart.
    let settings = file(temp.path(), "tls-port = \"0\"\n");
    let settings = settings.to_str().unwrap();
    fails(2, &["serve", "--config", settings], &["--tls-cert"]);
    let rest = ["--tls-cert", "c", "--tls-key", "k"];
    assert_eq!(set(&printed(&[&["--config", settings][..], &rest].concat())).len(), 3);
}

#[test]
fn one_option_may_be_standard_input() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data, Backend::File, 512 * MIB);
    let settings = file(temp.path(), "memory = \"48MiB\"\nmax-clients = 30\n");
    let from_settings = format!("exec <{}", settings.display());
    let server = Server::start_under(&from_settings, &data, &["--config", "-"]);
    let limit = server.client().call(&[b"CONFIG", b"GET", b"maxclients"]);
    assert!(format!("{limit:?}").contains("51, 48"), "30: {limit:?}");
    assert!(server.terminate().success());

    let password = temp.path().join("password");
    fs::write(&password, "secret\n").unwrap();
    let from_password = format!("exec <{}", password.display());
    let with_password = ["--memory", "32MiB", "--password-file", "-"];
    let server = Server::start_under(&from_password, &data, &with_password);
    let mut client = server.client();
    assert!(client.call(&[b"PING"]).error().unwrap().starts_with("NOAUTH"));
    assert!(client.call(&[b"AUTH", b"secret"]).is_ok());
    assert!(server.said().contains("--askpass"), "{}", server.said());
    assert!(server.terminate().success());

    let both = ["serve", "--config", "-", "--password-file", "-"];
    fails(2, &both, &["--password-file -: standard input is already --config"]);
}

#[test]
fn every_option_has_its_key_and_the_printed_file_has_the_same_effect() {
    let help = String::from_utf8(softflash(["serve", "--help"]).stdout).unwrap();
    let options = help.lines().filter_map(|line| {
        let option = line.strip_prefix("      --")?.split(' ').next()?;
        (!["config", "print-config"].contains(&option)).then_some(option)
    });
    let options: Vec<&str> = options.collect();
    assert!(options.len() > 20, "{options:?}");
    let defaults = printed(&[]);
    for option in &options {
        assert!(defaults.contains(&format!("\n# {option} = ")), "{option}: {defaults}");
    }
    assert!(set(&defaults).is_empty(), "{defaults}");

    let arguments = ["--memory", "1GiB", "--pin", "--data", "my \"data\"", "--max-clients", "7"];
    let first = printed(&arguments);
    let mut lines = set(&first);
    lines.sort_unstable();
    let expected = ["data = 'my \"data\"'", "max-clients = 7", "memory = \"1GiB\"", "pin = true"];
    assert_eq!(lines, expected);
    let temp = tempfile::tempdir().unwrap();
    let settings = file(temp.path(), &first);
    assert_eq!(printed(&["--config", settings.to_str().unwrap()]), first);
}

#[test]
fn the_example_is_what_the_program_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/serve.toml");
    let example = fs::read_to_string(path).unwrap();
    let printed = printed(&[]);
    assert!(
        example == printed,
        "options of `serve` have changed: `softflash serve --print-config > examples/serve.toml`"
    );
}
