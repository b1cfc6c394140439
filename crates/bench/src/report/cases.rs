//! Turns of several rounds put together by what was measured.

use super::input::Turn;
use softflash_report::Cell;

/// The turns of all rounds of one engine with one workload, and their medians.
pub struct Case<'a> {
    turns: Vec<&'a Turn>,
}

impl<'a> Case<'a> {
    /// All cases, in the order of their first turns.
    pub fn all(turns: &'a [Turn]) -> Vec<Case<'a>> {
        let mut cases: Vec<Case> = Vec::new();
        for turn in turns {
            match cases.iter_mut().find(|case| key(case.first()) == key(turn)) {
                Some(case) => case.turns.push(turn),
                None => cases.push(Case { turns: vec![turn] }),
            }
        }
        cases
    }

    /// Its first turn, for what is the same in all.
    pub fn first(&self) -> &'a Turn {
        // A case is made of a turn.
        self.turns[0]
    }

    /// The engine, and how full its device is.
    pub fn engine(&self) -> String {
        let turn = self.first();
        match turn.full_percent {
            Some(percent) => format!("{}, {percent} % full", turn.engine),
            None => turn.engine.clone(),
        }
    }

    /// The median over the rounds that have a figure.
    pub fn median(&self, figure: impl Fn(&Turn) -> Option<f64>) -> Option<f64> {
        let mut values: Vec<f64> = self.turns.iter().filter_map(|turn| figure(turn)).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match (values.len() % 2, values.get(middle)) {
            (_, None) => None,
            (1, found) => found.copied(),
            (_, Some(above)) => Some((values.get(middle - 1)? + above) / 2.0),
        }
    }

    /// The median as a cell of a table.
    pub fn cell(&self, figure: impl Fn(&Turn) -> Option<f64>) -> Cell {
        self.median(figure).map_or(Cell::Empty, Cell::number)
    }

    /// Why there are no figures.
    pub fn refused(&self) -> Option<&'a str> {
        self.turns.iter().find_map(|turn| turn.refused.as_deref())
    }

    /// Whether it is of this workload on keys of this distribution.
    pub fn is_of(&self, workload: &str, distribution: &str) -> bool {
        self.first().workload == workload && self.first().distribution == distribution
    }
}

fn key(turn: &Turn) -> (&str, &str, u64, &str, Option<u64>) {
    let percent = turn.full_percent.map(f64::to_bits);
    (&turn.workload, &turn.distribution, turn.value_bytes, &turn.engine, percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(engine: &str, full_percent: Option<f64>, rate: Option<f64>) -> Turn {
        let engine = engine.to_owned();
        Turn { engine, full_percent, operations_per_second: rate, ..Turn::default() }
    }

    #[test]
    fn rounds_are_put_together_and_their_median_counts() {
        let turns = [
            turn("a", Some(70.0), Some(9.0)),
            turn("a", Some(25.0), Some(1.0)),
            turn("b", None, None),
            turn("a", Some(70.0), Some(3.0)),
            turn("a", Some(70.0), Some(5.0)),
            turn("a", Some(25.0), Some(2.0)),
        ];
        let cases = Case::all(&turns);
        let names: Vec<String> = cases.iter().map(Case::engine).collect();
        assert_eq!(names, ["a, 70 % full", "a, 25 % full", "b"]);
        let medians: Vec<Option<f64>> =
            cases.iter().map(|case| case.median(|turn| turn.operations_per_second)).collect();
        assert_eq!(medians, [Some(5.0), Some(1.5), None]);
    }
}
