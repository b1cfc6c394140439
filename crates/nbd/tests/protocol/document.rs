//! The table of requirements names tests that exist.

use std::fs;
use std::path::Path;

#[test]
fn every_test_named_in_the_table_of_requirements_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("../../docs/nbd.md")).unwrap();
    let table = document.split("### Handshake and conventions").nth(1).unwrap();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut tests = 0;
    for span in table.split('`').skip(1).step_by(2) {
        let Some((file, name)) = span.split_once("::") else { continue };
        if file.starts_with(char::is_uppercase) || !name.chars().all(is_name) {
            continue;
        }
        let found = ["tests/protocol", "src"].iter().any(|directory| {
            let source = fs::read_to_string(root.join(directory).join(format!("{file}.rs")));
            source.is_ok_and(|source| source.contains(&format!("fn {name}()")))
        });
        assert!(found, "no test {span}");
        tests += 1;
    }
    assert!(tests > 100, "only {tests} tests in the table");
}
