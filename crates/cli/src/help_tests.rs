//! The help of every command fits a narrow terminal, and the command line accepts the examples in
//! it and in the documents.

use crate::Arguments;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory};
use std::path::Path;

/// The program with each of its commands, as `volume set`, and their own commands.
fn commands() -> Vec<(String, Command)> {
    fn add(name: String, command: &Command, all: &mut Vec<(String, Command)>) {
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            add(format!("{name} {}", inner.get_name()), inner, all);
        }
        all.push((name, command.clone()));
    }
    let mut program = Arguments::command();
    program.build();
    let mut all = Vec::new();
    add("softflash".to_owned(), &program, &mut all);
    assert!(all.len() > 25, "{} commands", all.len());
    all
}

fn after_help(command: &Command) -> String {
    command.get_after_help().map(ToString::to_string).unwrap_or_default()
}

#[test]
fn help_fits_eighty_columns_and_breaks_no_example() {
    for (name, command) in commands() {
        let mut narrow = command.clone().term_width(80);
        let (short, help) =
            (narrow.render_help().to_string(), narrow.render_long_help().to_string());
        for line in short.lines().chain(help.lines()) {
            assert!(line.chars().count() <= 80, "{name} --help: {line}");
        }
        for line in after_help(&command).lines().filter(|line| line.starts_with("  ")) {
            assert!(help.contains(&format!("{line}\n")), "{name} --help breaks: {line}");
        }
    }
}

#[test]
fn paragraphs_of_help_fill_a_wider_terminal() {
    for (name, command) in commands() {
        let text = after_help(&command);
        let is_prose = |line: &&str| !line.is_empty() && !line.starts_with(' ');
        for (line, next) in text.lines().zip(text.lines().skip(1)) {
            let is_split = is_prose(&line) && is_prose(&next) && !line.ends_with(':');
            assert!(!is_split, "{name} --help has a fixed line end after: {line}");
        }
    }
}

#[test]
fn every_command_has_examples_that_it_accepts() {
    for (name, command) in commands() {
        let text = after_help(&command).replace("\\\n      ", "");
        let lines = text.lines().filter_map(|line| line.strip_prefix("  "));
        let mut examples = 0;
        for line in lines {
            let commands = commands_of(line);
            let own = commands.iter().find(|part| part.trim().starts_with("softflash "));
            let Some(own) = own else { continue };
            // A remark stands apart from the words of a command.
            let own = own.trim().split("   ").next().unwrap_or_default();
            let words = words_of(own);
            if let Err(error) = Arguments::command().try_get_matches_from(words) {
                assert!(error.kind() == ErrorKind::DisplayHelp, "{name} --help: {own}\n{error}");
            }
            examples += usize::from(own.starts_with(&name));
        }
        assert!(examples > 0, "{name} --help has no example of its own");
    }
}

/// The commands of a line: those of a pipeline, and the file that the last one writes.
fn commands_of(line: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut is_quoted = false;
    for character in line.chars() {
        is_quoted ^= character == '\'';
        match parts.last_mut() {
            Some(part) if is_quoted || !matches!(character, '|' | '>') => part.push(character),
            _ => parts.push(String::new()),
        }
    }
    parts
}

/// The words of a command; what is in quotes is one.
fn words_of(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in command.split('\'').enumerate() {
        match number % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// The commands of this program in the code blocks of a document.
fn commands_in(document: &str) -> Vec<String> {
    let blocks = document.split("\n```").skip(1).step_by(2);
    let shell = blocks.filter_map(|block| block.strip_prefix("sh\n"));
    let mut commands = Vec::new();
    for block in shell {
        for line in block.replace("\\\n", " ").lines() {
            let line = line.split(" #").next().unwrap_or_default();
            let parts = line.split(['|', '>', ';', '&']).map(str::trim);
            let own = parts.filter_map(|part| part.find("softflash ").map(|at| (part, at)));
            // Also behind another program that runs it, as `runuser -u softflash --`.
            let own = own.filter(|(part, at)| *at == 0 || part[..*at].ends_with("-- "));
            commands.extend(own.map(|(part, at)| part[at..].to_owned()));
        }
    }
    commands
}

#[test]
fn commands_of_the_documents_are_accepted() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let documents = std::fs::read_dir(project.join("docs")).unwrap();
    let documents = documents.map(|entry| entry.unwrap().path()).chain([project.join("README.md")]);
    let mut checked = 0;
    for path in documents.filter(|path| path.extension().is_some_and(|kind| kind == "md")) {
        for command in commands_in(&std::fs::read_to_string(&path).unwrap()) {
            // The names of examples are looked up when they are parsed.
            let command = command.replace("flash.example", "localhost");
            let words = command.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
            checked += 1;
            if let Err(error) = Arguments::command().try_get_matches_from(words) {
                panic!("{}: {command}\n{error}", path.display());
            }
        }
    }
    assert!(checked > 40, "{checked} commands");
}
