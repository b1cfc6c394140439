//! Bisection: finds where a condition changes along the values of a grid, in as few values as
//! possible.

/// Which value for which the condition holds is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// The smallest.
    Smallest,
    /// The largest.
    Largest,
}

/// What the condition says at both ends of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// It holds at one end only, the one away from the answer: it changes in between.
    Change,
    /// It holds at both: the bound is the answer, and values beyond it were not asked.
    BothHold,
    /// It holds at the end of the answer only: the bound is the answer, and the other direction has
    /// a change.
    OtherWay,
}

/// The end of a bisection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The condition holds at this place of the grid.
    At(usize, Ends),
    /// It holds at neither end. That no value between them is better is an assumption.
    Nowhere,
}

/// The course of a bisection over so many values. It assumes that the condition changes once.
#[derive(Debug, Clone)]
pub struct Bisection {
    count: usize,
    want: Want,
    /// What the condition says at the end that is asked for, and at the other.
    ends: [Option<bool>; 2],
    /// Places, counted from the end that is asked for: the last at which the condition is known not
    /// to hold, and the first at which it holds.
    between: (usize, usize),
}

impl Bisection {
    /// A bisection over `count` values, at least one.
    pub fn new(count: usize, want: Want) -> Bisection {
        let count = count.max(1);
        Bisection { count, want, ends: [None; 2], between: (0, count - 1) }
    }

    /// The places that are to be asked next; none when the [`answer`](Bisection::answer) is known.
    /// The first are both ends.
    pub fn next(&self) -> Vec<usize> {
        match self.ends {
            [None, _] | [_, None] if self.count == 1 => vec![0],
            [None, _] | [_, None] => {
                let mut ends = vec![self.place(0), self.place(self.count - 1)];
                ends.sort_unstable();
                ends
            }
            [Some(false), Some(true)] if self.between.1 - self.between.0 > 1 => {
                vec![self.place(self.between.0 + (self.between.1 - self.between.0) / 2)]
            }
            _ => Vec::new(),
        }
    }

    /// Takes what the condition says at a place.
    pub fn told(&mut self, place: usize, holds: bool) {
        let at = self.place(place);
        if at == 0 {
            self.ends[0] = Some(holds);
        }
        if at == self.count - 1 {
            self.ends[1] = Some(holds);
        }
        let (below, above) = &mut self.between;
        if (*below..=*above).contains(&at) {
            *(if holds { above } else { below }) = at;
        }
    }

    /// The answer, if it is known.
    pub fn answer(&self) -> Option<Answer> {
        let first = self.place(0);
        match self.ends {
            [Some(true), Some(true)] => Some(Answer::At(first, Ends::BothHold)),
            [Some(true), Some(false)] => Some(Answer::At(first, Ends::OtherWay)),
            [Some(false), Some(false)] => Some(Answer::Nowhere),
            [Some(false), Some(true)] if self.between.1 - self.between.0 <= 1 => {
                Some(Answer::At(self.place(self.between.1), Ends::Change))
            }
            _ => None,
        }
    }

    /// The most values that can still be asked.
    pub fn most_left(&self) -> usize {
        let halvings =
            |width: usize| width.saturating_sub(1).checked_ilog2().map_or(0, |log| log + 1);
        match self.ends {
            [Some(false), Some(true)] => halvings(self.between.1 - self.between.0) as usize,
            [Some(_), Some(_)] => 0,
            _ if self.count == 1 => 1,
            _ => 2 + halvings(self.count - 1) as usize,
        }
    }

    /// The place on the grid of one that is counted from the end that is asked for, and the other
    /// way round.
    fn place(&self, at: usize) -> usize {
        match self.want {
            Want::Smallest => at,
            Want::Largest => self.count - 1 - at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer, and how many values it took.
    fn search(count: usize, want: Want, holds: impl Fn(usize) -> bool) -> (Answer, usize) {
        let mut bisection = Bisection::new(count, want);
        let (most, mut asked) = (bisection.most_left(), 0);
        loop {
            let next = bisection.next();
            if next.is_empty() {
                assert!(asked <= most, "{asked} values, at most {most} were announced");
                return (bisection.answer().unwrap(), asked);
            }
            assert_eq!(bisection.answer(), None);
            for place in next {
                assert!(asked + bisection.most_left() <= most || asked < 2, "{asked} of {most}");
                bisection.told(place, holds(place));
                asked += 1;
            }
        }
    }

    #[test]
    fn every_threshold_is_found_in_both_directions() {
        for count in 2..70 {
            for threshold in 1..count {
                let (answer, asked) = search(count, Want::Smallest, |place| place >= threshold);
                assert_eq!(answer, Answer::At(threshold, Ends::Change), "{threshold} of {count}");
                assert!(asked <= 2 + count.ilog2() as usize + 1, "{asked} values of {count}");
                let (answer, _) = search(count, Want::Largest, |place| place < threshold);
                assert_eq!(answer, Answer::At(threshold - 1, Ends::Change));
            }
        }
    }

    #[test]
    fn ends_that_agree_are_told_from_a_change() {
        for want in [Want::Smallest, Want::Largest] {
            let bound = if want == Want::Smallest { 0 } else { 9 };
            assert_eq!(search(10, want, |_| true), (Answer::At(bound, Ends::BothHold), 2));
            assert_eq!(search(10, want, |_| false), (Answer::Nowhere, 2));
        }
        let falls = search(10, Want::Smallest, |place| place < 4);
        assert_eq!(falls, (Answer::At(0, Ends::OtherWay), 2));
        assert_eq!(search(1, Want::Largest, |_| true), (Answer::At(0, Ends::BothHold), 1));
        assert_eq!(search(1, Want::Smallest, |_| false), (Answer::Nowhere, 1));
    }
}
