//! What a table of sets may not be.

use super::changes::name_problem;
use super::{MappedSet, SetTable, store_name};
use crate::pairs::{MOST_WINDOW_MS, PairOfSets};
use crate::volume_units::spare_space_problem;
use softflash_base::UnitSet;

impl SetTable {
    /// The reason why this cannot be the table of a store of so many shards on a device of
    /// `device_units` units, if there is one.
    pub(crate) fn problem(&self, shards: u16, device_units: u16) -> Option<String> {
        let of_all =
            || self.of_numbers(shards).or_else(|| self.same_twice()).or_else(|| self.two_owners());
        let of_each = || self.mapped.iter().find_map(|set| self.of_set(set, shards));
        let of_pairs = || self.of_pairs();
        of_all().or_else(of_each).or_else(of_pairs).or_else(|| self.shortage(device_units))
    }

    /// The problem of the pairs.
    fn of_pairs(&self) -> Option<String> {
        self.pairs.iter().enumerate().find_map(|(place, pair)| {
            let PairOfSets { first, second, window_ms, .. } = pair;
            let of = |set: &u16| self.mapped.iter().find(|mapped| mapped.id == *set);
            let others = &self.pairs[..place];
            match (of(first), of(second)) {
                (None, _) => Some(format!("set {first} is one of a pair, and there is none")),
                (_, None) => Some(format!("set {second} is one of a pair, and there is none")),
                (Some(one), Some(_)) if first == second => {
                    Some(format!("the set `{}` is a pair with itself; a pair has two", one.name))
                }
                (Some(one), Some(other)) if one.shard != other.shard => Some(format!(
                    "the sets `{}` and `{}` are a pair, and of two shards; a pair is of one",
                    one.name, other.name
                )),
                (Some(one), Some(other)) => {
                    let twice = [one, other].into_iter();
                    let mut twice = twice.filter(|set| others.iter().any(|it| it.includes(set.id)));
                    match (twice.next(), window_ms) {
                        (Some(set), _) => {
                            Some(format!("the set `{}` is one of two pairs; keep one", set.name))
                        }
                        (None, Some(ms)) if *ms == 0 || *ms > MOST_WINDOW_MS => Some(format!(
                            "the windows of `{}` have {ms} ms; use 1 to {MOST_WINDOW_MS}",
                            one.name
                        )),
                        (None, _) => None,
                    }
                }
            }
        })
    }

    /// The problem of the numbers of the table.
    fn of_numbers(&self, shards: u16) -> Option<String> {
        if self.epoch == 0 {
            return Some("the table of sets has epoch 0; epochs begin with 1".to_owned());
        }
        let sets = self.store.len();
        (sets != usize::from(shards)).then(|| {
            format!(
                "the table of sets has the units of {sets} shards of the store, which has {shards}; \
                 give each shard its own"
            )
        })
    }

    /// The problem where two sets have the same name or number.
    fn same_twice(&self) -> Option<String> {
        self.mapped.iter().enumerate().find_map(|(place, set)| {
            let MappedSet { id, name, .. } = set;
            let others = &self.mapped[..place];
            if others.iter().any(|other| other.name == *name) {
                Some(format!("two sets are named `{name}`; give each its own name"))
            } else {
                let other = &others.iter().find(|other| other.id == *id)?.name;
                Some(format!(
                    "the sets `{other}` and `{name}` have the number {id}; use another one"
                ))
            }
        })
    }

    /// The problem where a unit is in two sets.
    fn two_owners(&self) -> Option<String> {
        let (names, units): (Vec<String>, Vec<UnitSet>) = self.units_of_all().unzip();
        let (unit, sets) = UnitSet::in_two_of(&units)?;
        let [first, second] = sets.map(|set| &names[set]);
        Some(format!(
            "unit {unit} is in the sets `{first}` and `{second}`; a unit has one owner: take it from \
             one of them"
        ))
    }

    /// The problem of a mapped set by itself.
    fn of_set(&self, set: &MappedSet, shards: u16) -> Option<String> {
        let MappedSet { id, name, shard, op_percent, .. } = set;
        if let Some(reason) = name_problem(name) {
            Some(format!("a set cannot be named `{name}`: {reason}"))
        } else if (0..shards).any(|shard| *name == store_name(shard)) {
            Some(format!("`{name}` is the name of a set of the store; use another one"))
        } else if *id == 0 {
            Some(format!(
                "the set `{name}` has the number 0, which is the store's; use another one"
            ))
        } else if *id >= self.next_id {
            let next = self.next_id;
            Some(format!(
                "the set `{name}` has the number {id}, and the next one is {next}; it must be greater"
            ))
        } else if *shard >= shards {
            Some(format!(
                "the set `{name}` is of shard {shard}, and there are {shards}, numbered from 0"
            ))
        } else {
            spare_space_problem(*op_percent).map(|problem| format!("the set `{name}`: {problem}"))
        }
    }

    /// The problem where a set has no unit, or one that the device lacks.
    fn shortage(&self, device_units: u16) -> Option<String> {
        self.units_of_all().find_map(|(name, units)| match units.last() {
            None => Some(format!("the set `{name}` has no units; it needs at least one")),
            Some(last) if last >= device_units => Some(format!(
                "unit {last} is in the set `{name}`, and the device has {device_units} units; use \
                 the device that the directory was made with"
            )),
            Some(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
epoch = 4
next_id = 6
store = [\"0-1\", \"2-3\"]

[[mapped]]
id = 1
name = \"vol-0\"
shard = 0
op_percent = 7
slots = \"4,-,5\"

[[mapped]]
id = 5
name = \"fast\"
shard = 1
op_percent = 25
slots = \"7\"
";

    /// Two pairs could follow the sets.
    const PAIR: &str = "\
[[pairs]]
first = 1
second = 5
since = 3
window_ms = 100
";

    fn problem(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        let table: SetTable = toml::from_str(&GOOD.replacen(from, to, 1)).unwrap();
        table.problem(2, 8).unwrap_or_default()
    }

    #[test]
    fn a_table_without_a_problem_is_written_as_it_is_read() {
        assert_eq!(problem("epoch", "epoch"), "");
        let table: SetTable = toml::from_str(GOOD).unwrap();
        assert_eq!(toml::from_str(&toml::to_string(&table).unwrap()), Ok(table));
    }

    #[test]
    fn each_problem_is_named_with_its_set() {
        let cases = [
            ("epoch = 4", "epoch = 0", "begin with 1"),
            (", \"2-3\"", "", "units of 1 shards of the store, which has 2"),
            ("\"2-3\"", "\"2-4\"", "unit 4 is in the sets `store-1` and `vol-0`"),
            ("\"7\"", "\"5\"", "unit 5 is in the sets `vol-0` and `fast`"),
            ("\"2-3\"", "\"\"", "`store-1` has no units"),
            ("\"7\"", "\"-\"", "`fast` has no units"),
            ("\"7\"", "\"8\"", "unit 8 is in the set `fast`, and the device has 8 units"),
            ("\"fast\"", "\"vol-0\"", "two sets are named `vol-0`"),
            ("\"fast\"", "\"store-1\"", "name of a set of the store"),
            ("\"fast\"", "\"a b\"", "cannot be named `a b`"),
            ("id = 5", "id = 1", "the sets `vol-0` and `fast` have the number 1"),
            ("id = 5", "id = 6", "the next one is 6"),
            ("id = 5", "id = 0", "which is the store's"),
            ("shard = 1", "shard = 2", "`fast` is of shard 2"),
            ("op_percent = 25", "op_percent = 101", "`fast`: 101 %"),
        ];
        for (from, to, expected) in cases {
            let problem = problem(from, to);
            assert!(problem.contains(expected), "{to}: {problem}");
        }
    }

    #[test]
    fn each_problem_of_a_pair_is_named() {
        let problem = |replaced: &[(&str, &str)]| {
            let mut text = format!("{}\n{PAIR}", GOOD.replace("shard = 1", "shard = 0"));
            for (from, to) in replaced {
                assert!(text.contains(from), "{from}");
                text = text.replacen(from, to, 1);
            }
            let table: SetTable = toml::from_str(&text).unwrap();
            if replaced.is_empty() {
                assert_eq!(toml::from_str(&toml::to_string(&table).unwrap()), Ok(table.clone()));
            }
            table.problem(2, 8).unwrap_or_default()
        };
        assert_eq!(problem(&[]), "");
        for (from, to, expected) in [
            ("first = 1", "first = 2", "set 2 is one of a pair, and there is none"),
            ("second = 5", "second = 4", "set 4"),
            ("second = 5", "second = 1", "`vol-0` is a pair with itself"),
            ("name = \"fast\"\nshard = 0", "name = \"fast\"\nshard = 1", "of two shards"),
            ("window_ms = 100", "window_ms = 0", "have 0 ms; use 1 to 60000"),
            (PAIR, &format!("{PAIR}{PAIR}"), "`vol-0` is one of two pairs"),
        ] {
            let problem = problem(&[(from, to)]);
            assert!(problem.contains(expected), "{to}: {problem}");
        }
    }

    #[test]
    fn fields_that_no_table_has_are_refused() {
        for (from, to) in
            [("next_id = 6", ""), ("id = 5", "id = 5\nkind = \"store\""), ("\"7\"", "7")]
        {
            toml::from_str::<SetTable>(&GOOD.replacen(from, to, 1)).unwrap_err();
        }
    }
}
