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

/// Crates that choose blocks, units and write frontiers.
const CHOOSERS: [&str; 6] = ["ftl", "blocks", "mapping", "drive", "volume", "store"];

/// The least or most of these is a policy's choice.
const MEASURES: [&str; 6] = ["wear", "erases", "valid", "load", "waiting", "under_way"];

/// Sources that take the least or most of a measure for another reason.
const OTHER_EXTREMES: [(&str, &str); 1] =
    [("crates/ftl/src/policy/bad_block.rs", "a spare takes the place of a bad block")];

/// Checks the sources of all crates but the registry's.
pub fn check(files: &[SourceFile], findings: &mut Findings) {
    check_names(files, findings);
    check_extremes(files, findings);
}

/// Finds the least or most of a measure, whatever the name of the source.
fn check_extremes(files: &[SourceFile], findings: &mut Findings) {
    let is_chooser = |file: &&SourceFile| {
        CHOOSERS.iter().any(|name| file.path.starts_with(&format!("crates/{name}/src/")))
            && OTHER_EXTREMES.iter().all(|(path, _)| *path != file.path)
    };
    let chooses = |line: &str| {
        (line.contains("min_by_key(") || line.contains("max_by_key("))
            && MEASURES.iter().any(|measure| line.contains(measure))
    };
    for file in files.iter().filter(is_chooser) {
        for (number, line) in (1..).zip(file.text.lines()).filter(|(_, line)| chooses(line)) {
            let place = format!("{}:{number}", file.path);
            let problem = "chooses without the registry; fill its columns, and ask a policy";
            findings.add(place, format!("{problem}: {}", line.trim()));
        }
    }
}

/// Finds sources whose name says that they choose, and that do not ask.
fn check_names(files: &[SourceFile], findings: &mut Findings) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let file = SourceFile { path: path.to_owned(), text: text.to_owned() };
        let mut findings = Findings::new("tidy");
        check(&[file], &mut findings);
        findings.all().to_vec()
    }

    #[test]
    fn a_choice_is_found_by_its_name_and_by_what_it_compares() {
        let extreme = "let idlest = open.min_by_key(|frontier| frontier.under_way.len())?;";
        assert_eq!(found("crates/store/src/shard/values/frontier.rs", extreme).len(), 1);
        assert_eq!(found("crates/server/src/listener.rs", extreme), [""; 0]);
        assert_eq!(found("crates/ftl/src/policy/bad_block.rs", extreme), [""; 0]);
        let oldest = "let oldest = slices.min_by_key(|slice| slice.first_segment())?;";
        assert_eq!(found("crates/store/src/shard/mod.rs", oldest), [""; 0]);
        assert_eq!(found("crates/volume/src/victim.rs", "fn greedy() {}").len(), 1);
        assert_eq!(found("crates/volume/src/victim.rs", "use softflash_policy::victim;"), [""; 0]);
    }
}
