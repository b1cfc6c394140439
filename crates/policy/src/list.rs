//! The list of all policies, for those who choose one.

use crate::lifetime::Lifetime;
use crate::order::Order;
use crate::placement::Placement;
use crate::registry::{Entry, Kind};
use crate::victim::Victim;
use crate::wear::Wear;
use serde::Serialize;

/// A policy that can be chosen.
#[derive(Debug, Clone, Serialize)]
pub struct Listed {
    /// The name of its kind.
    pub kind: &'static str,
    /// Its name, without parameters.
    pub name: &'static str,
    /// The form of its text: `d-choices:D`.
    pub form: String,
    /// Its parameters.
    pub parameters: Vec<ListedParameter>,
    /// What it chooses.
    pub meaning: &'static str,
    /// Whether it is the default of drives.
    pub is_default: bool,
}

/// A parameter of a policy.
#[derive(Debug, Clone, Serialize)]
pub struct ListedParameter {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// The least value.
    pub least: u32,
    /// The greatest value.
    pub most: u32,
}

/// Every policy of every kind.
pub fn all() -> Vec<Listed> {
    [
        of_kind::<Victim>(),
        of_kind::<Wear>(),
        of_kind::<Placement>(),
        of_kind::<Order>(),
        of_kind::<Lifetime>(),
    ]
    .concat()
}

fn of_kind<K: Kind>() -> Vec<Listed> {
    let list = |(place, entry): (usize, &&Entry<K::Rule>)| Listed {
        kind: K::NAME,
        name: entry.name,
        form: entry.form(),
        parameters: parameters(entry),
        meaning: entry.meaning,
        is_default: place == 0,
    };
    K::ENTRIES.iter().enumerate().map(list).collect()
}

fn parameters<R>(entry: &Entry<R>) -> Vec<ListedParameter> {
    let list = |parameter: &crate::registry::Parameter| ListedParameter {
        name: parameter.name,
        meaning: parameter.meaning,
        least: *parameter.range.start(),
        most: *parameter.range.end(),
    };
    entry.parameters.iter().map(list).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_older_names_of_a_kind_are_distinct_and_can_be_typed() {
        fn check<K: Kind>() {
            let mut names = BTreeSet::new();
            for entry in K::ENTRIES {
                for name in entry.aliases.iter().chain([&entry.name]) {
                    assert!(names.insert(*name), "{}: two policies `{name}`", K::NAME);
                    let plain =
                        |byte: u8| byte.is_ascii_lowercase() || b"-0123456789".contains(&byte);
                    assert!(name.bytes().all(plain), "`{name}`");
                }
                assert!(entry.parameters.len() <= crate::registry::Numbers::default().len());
                let sentence = entry.meaning.ends_with('.') && entry.meaning.len() > 3;
                assert!(sentence, "`{}` has no meaning in a sentence", entry.name);
            }
        }
        check::<Victim>();
        check::<Wear>();
        check::<Placement>();
        check::<Order>();
        check::<Lifetime>();
    }

    #[test]
    fn the_list_has_all_kinds() {
        let kinds: BTreeSet<&str> = all().iter().map(|listed| listed.kind).collect();
        assert_eq!(kinds, BTreeSet::from(["lifetime", "order", "placement", "victim", "wear"]));
        let d = all().into_iter().find(|listed| listed.name == "d-choices").unwrap();
        assert_eq!((d.form.as_str(), d.parameters[0].least), ("d-choices:D", 1));
    }
}
