//! Finds choices of victims, wear, placement or order outside the registry of policies: a source
//! with such a name asks the crate `policy`, or its flash, for the choice.

use crate::files::SourceFile;
use crate::findings::Findings;

/// Names of sources that choose.
const STEMS: [&str; 7] =
    ["victim", "wear", "wear_levelling", "placement", "placing", "volume_placement", "scheduler"];

/// Words by which a source asks for a choice.
const ASKS: [&str; 2] = ["softflash_policy", "worth_moving"];

/// Sources of these names that make another choice, or none, with the reason.
const OTHERS: [(&str, &str); 3] = [
    ("crates/cli/src/cmd/record/placement.rs", "places the keys of a recorded trace"),
    ("crates/drive/src/space/placement.rs", "hands pages to `placing.rs`"),
    ("crates/ftl/src/policy/wear.rs", "orders free superblocks that are equally ready"),
];

/// Checks the sources of all crates but the registry's.
pub fn check(files: &[SourceFile], findings: &mut Findings) {
    let chooses = |file: &&SourceFile| {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let stem = name.strip_suffix(".rs").unwrap_or_default();
        file.path.starts_with("crates/")
            && file.path.contains("/src/")
            && !file.path.starts_with("crates/policy/")
            && STEMS.contains(&stem)
    };
    for file in files.iter().filter(chooses) {
        let is_other = OTHERS.iter().any(|(path, _)| *path == file.path);
        if !is_other && !ASKS.iter().any(|ask| file.text.contains(ask)) {
            let problem =
                "chooses without the registry; add a policy to `crates/policy`, and ask it";
            findings.add(&file.path, problem);
        }
    }
}
