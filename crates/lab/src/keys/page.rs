//! The page of all keys in the documentation.

use super::{Key, of};
use crate::presets::Kind;

/// The kinds of files, with what the page says of each.
const KINDS: [(Kind, &str); 4] = [
    (
        Kind::Device,
        "Flash, link, controller and the host's software; [devices.md](devices.md) has the sources of the presets.",
    ),
    (
        Kind::Layout,
        "How a device uses its flash; [laboratory.md](laboratory.md#presets) explains the policies.",
    ),
    (
        Kind::Workload,
        "The requests; [workloads.md](workloads.md) explains patterns, load and rate caps.",
    ),
    (
        Kind::Experiment,
        "[laboratory.md](laboratory.md#experiments) has an example and explains the parts. The keys below `group.set` can also be in `group.vary` (as a list), `group.variant.set` and `group.quick`, together with keys of the other files, as `device.geometry.channels`.",
    ),
];

/// The page, in Markdown.
pub fn page() -> String {
    let mut text = "\
# Keys

Every key of the files that the laboratory reads. `softflash lab keys device` prints the same, with `-o json` for
programs; `softflash lab show NAME` prints a preset as a file to begin with.

This page is made from the structures that read the files; `SOFTFLASH_UPDATE=1 cargo test -p softflash-lab keys`
writes it again. Times are nanoseconds unless the name of a key says otherwise, sizes are bytes. A key without a
default is required, or has no effect where it is absent. `a.b` is the key `b` of the table `[a]`; a list of
tables is written `[[a]]`.
"
    .to_owned();
    for (kind, about) in KINDS {
        text += &format!("\n## {} files\n\n{about}\n", capitalised(kind.name()));
        let keys = of(kind);
        for part in keys.chunk_by(|a, b| a.only_in == b.only_in) {
            if let Some(only) = part.first().and_then(|key| key.only_in.as_ref()) {
                text += &format!("\n### With `{only}`\n");
            }
            text += "\n| key | type, unit, range | default | meaning |\n|---|---|---|---|\n";
            part.iter().for_each(|key| text += &row(key));
        }
    }
    text
}

fn row(key: &Key) -> String {
    let mut meaning = vec![key.meaning.clone()];
    meaning
        .extend(key.values.iter().map(|choice| format!("`{}`: {}", choice.value, choice.meaning)));
    let default = match &key.default {
        Some(value) => format!("`{value}`"),
        None => key.without_default().to_owned(),
    };
    let cells = [format!("`{}`", key.key), key.kind(), default, meaning.join("<br>")];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

impl Key {
    /// Type, unit and range.
    pub fn kind(&self) -> String {
        let parts = [Some(self.what.as_str()), self.unit, self.range.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// What holds for a key without a default.
    pub fn without_default(&self) -> &'static str {
        if self.required { "required" } else { "none" }
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
