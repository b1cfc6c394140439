//! The commands in the code blocks of a page.

/// A command of a page.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number in the page, from 1.
    pub number: usize,
    pub command: String,
    /// The lines that the page shows as its output, if it shows any.
    pub expected: Vec<String>,
}

/// The commands in the `sh` and `console` blocks of a page, in their order.
pub fn commands(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut language = None;
    for (number, line) in (1..).zip(text.lines()) {
        match (line.strip_prefix("```"), language) {
            (Some(opened), None) => language = Some(opened),
            (Some(_), Some(_)) => language = None,
            (None, Some("sh")) => add(&mut lines, number, line),
            (None, Some("console")) => match line.strip_prefix("$ ") {
                Some(command) => add(&mut lines, number, command),
                None => {
                    if let Some(last) = lines.last_mut() {
                        last.expected.push(line.to_owned());
                    }
                }
            },
            _ => {}
        }
    }
    lines
}

/// Adds a line of a block: a command, or the rest of the one before.
fn add(lines: &mut Vec<Line>, number: usize, line: &str) {
    let command = without_comment(line);
    if let Some(last) = lines.last_mut()
        && let Some(begun) = last.command.strip_suffix('\\')
    {
        last.command = format!("{begun}{}", command.trim_start());
    } else if !command.is_empty() {
        lines.push(Line { number, command: command.to_owned(), expected: Vec::new() });
    }
}

/// Comments begin with two spaces and `#`, or at the start of a line.
fn without_comment(line: &str) -> &str {
    let command = line.split("  #").next().unwrap_or_default().trim();
    if command.starts_with('#') { "" } else { command }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_with_their_outputs() {
        let page = "text\n```sh\nfirst --option   # why\n\nlong \\\n    rest\n# alone\n```\n```toml\nno = 1\n```\n\
                    ```console\n$ asked\nOK\n...\n```\n";
        let line = |number, command: &str, expected: &[&str]| Line {
            number,
            command: command.to_owned(),
            expected: expected.iter().map(|line| (*line).to_owned()).collect(),
        };
        let expected = [
            line(3, "first --option", &[]),
            line(5, "long rest", &[]),
            line(13, "asked", &["OK", "..."]),
        ];
        assert_eq!(commands(page), expected);
    }
}
