//! The sections of a job file.

use crate::import::ImportError;
use std::collections::BTreeMap;

/// The value of an option, and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub value: String,
    /// From 1.
    pub line: usize,
}

/// A job with its options and those of the global sections before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub name: String,
    /// The line of its name.
    pub line: usize,
    pub options: BTreeMap<String, Setting>,
}

/// The jobs of a file in their order.
pub fn jobs(file: &str, text: &str) -> Result<Vec<Job>, ImportError> {
    let mut global: BTreeMap<String, Setting> = BTreeMap::new();
    let (mut jobs, mut in_global) = (Vec::<Job>::new(), false);
    for (index, raw) in text.lines().enumerate() {
        let line = index + 1;
        let wrong =
            |problem: String| ImportError { file: file.to_owned(), line: Some(line), problem };
        let content = raw.trim();
        if content.is_empty() || content.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = content.strip_prefix('[') {
            let Some((name, _)) = rest.split_once(']') else {
                return Err(wrong(format!("`{content}` has no `]` behind the name")));
            };
            in_global = name == "global";
            if !in_global {
                jobs.push(Job { name: name.to_owned(), line, options: global.clone() });
            }
            continue;
        }
        if content.split_whitespace().next() == Some("include") {
            return Err(wrong("include: other files are not read; put their sections here".into()));
        }
        let (key, value) = content.split_once('=').unwrap_or((content, "1"));
        let (key, value) = (key.trim().to_lowercase(), without_comment(value.trim()));
        if value.contains("${") {
            return Err(wrong(format!(
                "`{value}`: environment variables are not read; write the value"
            )));
        }
        let options = match (in_global, jobs.last_mut()) {
            (true, _) => &mut global,
            (false, Some(job)) => &mut job.options,
            (false, None) => {
                return Err(wrong(format!(
                    "`{content}` is before the first section; a job file of fio begins with [global] or [NAME]"
                )));
            }
        };
        options.insert(key, Setting { value: value.to_owned(), line });
    }
    Ok(jobs)
}

/// A value without a comment behind it.
fn without_comment(value: &str) -> &str {
    let comment = value.find([';', '#']).filter(|at| {
        let before = value.get(..*at).and_then(|before| before.chars().last());
        before.is_none_or(char::is_whitespace)
    });
    comment.and_then(|at| value.get(..at)).unwrap_or(value).trim()
}
