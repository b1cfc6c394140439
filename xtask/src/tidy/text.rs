//! Checks each file by itself: length, forbidden words, line ends.

use crate::files::SourceFile;
use crate::findings::Findings;

/// Maximum number of lines of a source file. Most have fewer than half of that.
const LINES_MAX: usize = 700;

/// Maximum size of any file in bytes: larger files are generated, not written.
const BYTES_MAX: usize = 512 << 10;

/// Extensions of files written by people, to which the rules on words apply.
const WRITTEN: [&str; 6] = ["rs", "md", "toml", "sh", "py", "yml"];

/// Words of unfinished work. In two parts, so that this file passes.
const UNFINISHED: [(&str, &str); 6] = [
    ("TO", "DO"),
    ("FIX", "ME"),
    ("XX", "X:"),
    ("dbg", "!("),
    ("todo", "!("),
    ("unimplemented", "!("),
];

/// The beginnings of paths that exist on one machine only.
const MACHINE: [(&str, &str); 4] =
    [("/ho", "me/"), ("/ro", "ot/"), ("/wo", "rk/"), ("/Us", "ers/")];

/// Maximum width of a comment on a line of its own, in characters: that of the code.
const COMMENT_WIDTH: usize = 100;

/// Checks the text of one file.
pub fn check(file: &SourceFile, findings: &mut Findings) {
    if file.text.len() > BYTES_MAX {
        findings.add(&file.path, format!("{} bytes; the maximum is {BYTES_MAX}", file.text.len()));
    }
    let script = file.text.starts_with("#!");
    if !WRITTEN.contains(&file.extension()) && !script {
        return;
    }
    let lines = file.text.lines().count();
    if lines > LINES_MAX && file.extension() != "md" {
        findings.add(&file.path, format!("{lines} lines; split it, the maximum is {LINES_MAX}"));
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        findings.add(&file.path, "does not end with a newline");
    }
    for (number, line) in (1..).zip(file.text.lines()) {
        if is_wide_comment(file.extension(), line) {
            let problem = format!("a comment wider than {COMMENT_WIDTH} columns; wrap it");
            findings.add(format!("{}:{number}", file.path), problem);
        }
        for problem in problems(line) {
            findings.add(format!("{}:{number}", file.path), problem);
        }
    }
    if file.extension() == "md" && !file.text.starts_with("# ") {
        findings.add(&file.path, "a document begins with its title");
    }
}

fn problems(line: &str) -> Vec<String> {
    let word = |(first, second): (&str, &str)| format!("{first}{second}");
    let unfinished = UNFINISHED.into_iter().map(word).filter(|word| line.contains(word));
    let mut problems: Vec<String> = unfinished.map(|word| format!("`{word}`: finish it")).collect();
    let machine = MACHINE.into_iter().map(word).filter(|path| has_absolute(line, path));
    problems.extend(machine.map(|path| format!("`{path}...` is a path of one machine")));
    if line.ends_with([' ', '\t']) {
        problems.push("blanks at the end of the line".to_owned());
    }
    problems
}

/// Whether a line is a comment that is too wide. A link, a row of a table and indented code cannot
/// be wrapped.
fn is_wide_comment(extension: &str, line: &str) -> bool {
    let begin = match extension {
        "rs" => "//",
        "md" => return false,
        _ => "#",
    };
    let Some(text) = line.trim_start().strip_prefix(begin) else { return false };
    let text = text.trim_start_matches(['/', '!', '#']);
    let is_fixed = text.starts_with("     ") || text.trim_start().starts_with('|');
    line.chars().count() > COMMENT_WIDTH && !is_fixed && text.trim().contains(' ')
}

/// Whether the path begins there, as opposed to being part of a longer one.
fn has_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"._-~}/*".contains(c))
    })
}
