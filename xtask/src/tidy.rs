//! Checks that the compiler does not do: paths and links to missing files, overlong files,
//! unfinished work, sources that no module names, formats that allow lossy casts, paths of one
//! machine, circular dependencies of files, mechanisms with many visible fields, crates with few
//! assertions, choices outside the registry of policies, wrong places of planted bugs, examples
//! that no test runs, maps that are not those of the sources.

mod architecture;
mod assertions;
mod circles;
mod doctests;
mod fields;
mod formats;
mod links;
mod methods;
mod modules;
mod paths;
mod places;
mod planted;
mod policies;
#[cfg(test)]
mod tests;
mod text;
mod uses;

use crate::files::{self, SourceFile};
use crate::findings::Findings;
use crate::{Outcome, code_map};

/// Checks every file of the project.
pub fn check() -> Outcome<Findings> {
    let files = files::all()?;
    let mut findings = Findings::new("tidy");
    look(&files, &mut findings);
    formats::check_lists(&files, &mut findings);
    planted::check(&files, &mut findings);
    architecture::check(&files, &mut findings);
    code_map::check(&files, &mut findings);
    findings.looked_at(format!("{} files", files.len()));
    Ok(findings)
}

/// The checks that hold for any project.
fn look(files: &[SourceFile], findings: &mut Findings) {
    for file in files {
        text::check(file, findings);
        paths::check(file, files, findings);
        links::check(file, files, findings);
    }
    modules::check(files, findings);
    formats::check(files, findings);
    circles::check(files, findings);
    fields::check(files, findings);
    assertions::check(files, findings);
    policies::check(files, findings);
    doctests::check(files, findings);
}
