//! The command line of the campaign, which runs also where nothing can be mounted.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use std::process::{Command, Output};

fn campaign(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_softflash-filesystems")).args(arguments).output().unwrap()
}

#[test]
fn help_has_every_option_and_examples() {
    let help = campaign(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    let text = String::from_utf8(help.stdout).unwrap();
    let parts = [
        "--fs",
        "--work",
        "--crash",
        "--copies",
        "--resize",
        "--seed",
        "--rounds",
        "--quick",
        "-o json",
        "examples:",
    ];
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn wrong_usage_exits_with_2_and_names_the_remedy() {
    for (arguments, part) in [
        (&["--rounds", "0"][..], "give at least 1"),
        (&["--fs", "fat"], "there is no `fat`, but ext4, xfs"),
        (&["fast"], "usage: cargo xtask filesystems"),
    ] {
        let refused = campaign(arguments);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{said}");
        assert!(refused.stdout.is_empty());
    }
}
