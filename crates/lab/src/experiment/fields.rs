//! Fields of devices, layouts, workloads and parameters by their dotted paths, such as
//! `device.link.read_bytes_per_second` or `op_percent`.

use crate::cell::Parameters;
use crate::keys;
use crate::presets::Kind;
use crate::toml_text::suggestion;
use toml::{Table, Value};

/// First parts of paths of fields in presets.
const ROOTS: [&str; 3] = ["device", "layout", "workload"];

/// A field and its new value.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// Its path.
    pub path: String,
    /// Its value.
    pub value: Value,
}

/// The leaves of a table of fields, in the order of the table. `device.link.x = 1` and
/// `"device.link.x" = 1` are the same for numbers; a path in quotes replaces a whole table.
pub fn assignments(table: &Table) -> Vec<Assignment> {
    let mut all = Vec::new();
    collect("", table, &mut all);
    all
}

fn collect(prefix: &str, table: &Table, all: &mut Vec<Assignment>) {
    for (key, value) in table {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(inner) if !key.contains('.') => collect(&path, inner, all),
            _ => all.push(Assignment { path, value: value.clone() }),
        }
    }
}

/// The fields of a cell before they are parsed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tables {
    /// The device's preset.
    pub device: Table,
    /// The layout's.
    pub layout: Table,
    /// The workload's.
    pub workload: Table,
    /// Further parameters, such as over-provisioning.
    pub parameters: Table,
}

impl Tables {
    /// Sets a field; the error names the problem of the path.
    pub fn set(&mut self, assignment: &Assignment) -> Result<(), String> {
        let path = assignment.path.as_str();
        let (root, rest) = path.split_once('.').unwrap_or((path, ""));
        let table = match root {
            "device" => &mut self.device,
            "layout" => &mut self.layout,
            "workload" => &mut self.workload,
            _ if Parameters::NAMES.contains(&path) => {
                self.parameters.insert(path.to_owned(), assignment.value.clone());
                return Ok(());
            }
            _ => {
                return Err(unknown(path, root));
            }
        };
        if rest.is_empty() {
            return Err(format!("`{path}` is a preset; say which of its fields, as `{path}.name`"));
        }
        set_in(table, rest, &assignment.value)
            .map_err(|astray| format!("`{path}`: {}", astray.words(path)))
    }

    /// The value of a field; a path without a root is that of a parameter.
    pub fn get(&self, path: &str) -> Option<&Value> {
        let (root, rest) = path.split_once('.').unwrap_or((path, ""));
        match root {
            "device" if !rest.is_empty() => get_in(&self.device, rest),
            "layout" if !rest.is_empty() => get_in(&self.layout, rest),
            "workload" if !rest.is_empty() => get_in(&self.workload, rest),
            _ => get_in(&self.parameters, path),
        }
    }
}

/// The error for a path that begins with no preset and no parameter: it may lack its beginning.
pub(crate) fn unknown(path: &str, root: &str) -> String {
    let kinds = [Kind::Device, Kind::Layout, Kind::Workload];
    let complete = kinds.into_iter().find_map(|kind| {
        let listed = keys::of(kind).into_iter().any(|key| key.key == path);
        listed.then(|| format!("{}.{path}", kind.name()))
    });
    let hint = complete.map(|complete| format!("write `{complete}`")).unwrap_or_else(|| {
        suggestion(root, ROOTS.iter().chain(&Parameters::NAMES).copied().collect::<Vec<_>>())
    });
    format!("unknown field `{path}`; {hint}")
}

/// How to replace the value at `part` of a path as a whole.
fn whole(path: &str, part: &str) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    let end = parts.iter().position(|known| *known == part).unwrap_or(0);
    let (head, tail) = parts.split_at_checked(end + 1).unwrap_or((&parts, &[]));
    let inner =
        tail.iter().rev().fold("...".to_owned(), |inner, key| format!("{{ {key} = {inner} }}"));
    format!("replace it as a whole: set.\"{}\" = {inner}", head.join("."))
}

/// Where a path leads nowhere.
enum Astray {
    /// At a part that is no table.
    NoTable(String),
    /// At a list of tables, of which none has the name; these are the names.
    NoneNamed { list: String, names: Vec<String> },
}

impl Astray {
    fn words(&self, path: &str) -> String {
        match self {
            Astray::NoTable(part) => format!("`{part}` is no table; {}", whole(path, part)),
            Astray::NoneNamed { list, names } => {
                format!("write {list}.NAME.KEY, of the {list}s `{}`", names.join("`, `"))
            }
        }
    }
}

/// Creates missing tables of the path, as presets may omit fields with a default. In a list of
/// tables, as that of flows, a part of the path is the `name` of one.
fn set_in(table: &mut Table, path: &str, value: &Value) -> Result<(), Astray> {
    match path.split_once('.') {
        None => {
            table.insert(path.to_owned(), value.clone());
            Ok(())
        }
        Some((first, rest)) if table.get(first).is_some_and(Value::is_array) => {
            let list = table.get_mut(first).and_then(Value::as_array_mut);
            let list = list.map(Vec::as_mut_slice).unwrap_or_default();
            let names = list.iter().filter_map(Value::as_table).filter_map(name_of);
            let names = names.map(str::to_owned).collect();
            let named = rest.split_once('.').and_then(|(name, rest)| {
                let mut tables = list.iter_mut().filter_map(Value::as_table_mut);
                Some((tables.find(|table| name_of(table) == Some(name))?, rest))
            });
            match named {
                Some((inner, rest)) => set_in(inner, rest, value),
                None => Err(Astray::NoneNamed { list: first.to_owned(), names }),
            }
        }
        Some((first, rest)) => {
            let inner = table.entry(first).or_insert_with(|| Value::Table(Table::new()));
            match inner {
                Value::Table(inner) => set_in(inner, rest, value),
                _ => Err(Astray::NoTable(first.to_owned())),
            }
        }
    }
}

fn get_in<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        None => table.get(path),
        Some((first, rest)) => match table.get(first)? {
            Value::Array(list) => {
                let (name, rest) = rest.split_once('.')?;
                let mut tables = list.iter().filter_map(Value::as_table);
                get_in(tables.find(|table| name_of(table) == Some(name))?, rest)
            }
            inner => get_in(inner.as_table()?, rest),
        },
    }
}

fn name_of(table: &Table) -> Option<&str> {
    table.get("name").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn leaves_come_in_the_order_of_the_file() {
        let text = "op_percent = 7\nworkload.size = 8192\ndevice.link.half_duplex = true\n\
                    \"workload.pattern\" = { zipf = 0.9 }\n";
        let all = assignments(&table(text));
        let paths: Vec<&str> = all.iter().map(|a| a.path.as_str()).collect();
        let expected =
            ["op_percent", "workload.size", "device.link.half_duplex", "workload.pattern"];
        assert_eq!(paths, expected);
        assert!(all[3].value.is_table(), "a path in quotes names a table as a whole");
    }

    #[test]
    fn fields_are_set_where_their_path_leads() {
        let mut tables = Tables { device: table("[link]\nx = 1"), ..Tables::default() };
        for assignment in assignments(&table("device.link.x = 2\ndevice.host.y = 3\nrequests = 9"))
        {
            tables.set(&assignment).unwrap();
        }
        assert_eq!(tables.get("device.link.x"), Some(&Value::Integer(2)));
        assert_eq!(tables.get("device.host.y"), Some(&Value::Integer(3)));
        assert_eq!(tables.get("requests"), Some(&Value::Integer(9)));
        assert_eq!(tables.get("device"), None);
    }

    #[test]
    fn a_flow_is_named_in_a_path() {
        let flows = table("[[flow]]\nname = \"a\"\nsize = 1\n[[flow]]\nname = \"b\"\n");
        let mut tables = Tables { workload: flows, ..Tables::default() };
        for assignment in assignments(&table("workload.flow.b.span.share = 0.5")) {
            tables.set(&assignment).unwrap();
        }
        assert_eq!(tables.get("workload.flow.b.span.share"), Some(&Value::Float(0.5)));
        assert_eq!(tables.get("workload.flow.a.size"), Some(&Value::Integer(1)));
        assert_eq!(tables.get("workload.flow.a.span.share"), None);
        for wrong in ["workload.flow.c.size", "workload.flow.a"] {
            let assignment = Assignment { path: wrong.to_owned(), value: Value::Integer(1) };
            let error = tables.set(&assignment).unwrap_err();
            assert!(error.contains("write flow.NAME.KEY, of the flows `a`, `b`"), "{error}");
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_is_named() {
        let set = |path: &str| {
            let assignment = Assignment { path: path.to_owned(), value: Value::Integer(1) };
            Tables { device: table("name = \"x\""), ..Tables::default() }.set(&assignment)
        };
        assert!(set("worklaod.size").unwrap_err().contains("nearest known one is `workload`"));
        assert!(set("op_precent").unwrap_err().contains("nearest known one is `op_percent`"));
        assert!(set("device").unwrap_err().contains("say which of its fields"));
        let error = set("device.name.x.y").unwrap_err();
        assert!(error.contains("`name` is no table; replace it as a whole"), "{error}");
        assert!(error.ends_with("set.\"device.name\" = { x = { y = ... } }"), "{error}");
        assert!(
            set("pattern.zipf.exponent")
                .unwrap_err()
                .ends_with("write `workload.pattern.zipf.exponent`")
        );
    }
}
