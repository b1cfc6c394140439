//! Generates the list of the repository's presets, experiments and traces, so that the binary
//! embeds new files without a further change.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// A constant of the generated source, and the directory that it lists.
const LISTS: [(&str, &str); 4] = [
    ("DEVICES", "presets/devices"),
    ("LAYOUTS", "presets/layouts"),
    ("WORKLOADS", "presets/workloads"),
    ("EXPERIMENTS", "experiments"),
];

/// The directory of the recorded traces.
const TRACES: &str = "experiments/traces";

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let mut source = String::new();
    for (constant, directory) in LISTS {
        let directory = root.join(directory);
        println!("cargo::rerun-if-changed={}", directory.display());
        writeln!(source, "pub const {constant}: &[(&str, &str)] = &[")?;
        for (name, path) in files(&directory, ".toml")? {
            writeln!(source, "    ({name:?}, include_str!({path:?})),")?;
        }
        writeln!(source, "];")?;
    }
    let directory = root.join(TRACES);
    println!("cargo::rerun-if-changed={}", directory.display());
    writeln!(source, "pub const TRACES: &[(&str, &[u8])] = &[")?;
    for (name, path) in files(&directory, ".csv.zst")? {
        writeln!(source, "    ({name:?}, include_bytes!({path:?})),")?;
    }
    writeln!(source, "];")?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("embedded.rs"), source)?;
    Ok(())
}

/// Names, without this ending, and paths of the files in a directory that have it, sorted.
fn files(directory: &Path, ending: &str) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = fs::canonicalize(entry?.path())?;
        let (Some(name), Some(text)) = (path.file_name().and_then(|s| s.to_str()), path.to_str())
        else {
            continue;
        };
        if let Some(name) = name.strip_suffix(ending) {
            files.push((name.to_owned(), text.to_owned()));
        }
    }
    files.sort();
    Ok(files)
}
