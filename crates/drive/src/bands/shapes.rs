//! The shapes of requests: which are long, or continue others. A run of requests, each of which
//! begins where the one before it ended, counts as one long request.

/// Runs that are followed at once.
const RUNS: usize = 16;

/// The runs of requests.
#[derive(Debug)]
pub(crate) struct Shapes {
    wide_from_bytes: u64,
    /// The one that was continued last is the first.
    runs: [Run; RUNS],
}

/// A run of requests.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    end: u64,
    bytes: u64,
}

impl Shapes {
    /// No request has come. Runs of so many bytes are wide.
    pub(crate) fn new(wide_from_bytes: u64) -> Shapes {
        Shapes { wide_from_bytes, runs: [Run::default(); RUNS] }
    }

    /// Whether a request is wide.
    pub(crate) fn is_wide(&mut self, offset_bytes: u64, bytes: u64) -> bool {
        let continued = |run: &Run| run.bytes > 0 && run.end == offset_bytes;
        let known = self.runs.iter().position(continued);
        let before = known.map_or(0, |place| self.runs[place].bytes);
        self.runs[..=known.unwrap_or(RUNS - 1)].rotate_right(1);
        let run = Run { end: offset_bytes + bytes, bytes: before + bytes };
        self.runs[0] = run;
        run.bytes >= self.wide_from_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_requests_and_runs_are_wide_also_between_others() {
        let mut shapes = Shapes::new(64);
        assert!(!shapes.is_wide(0, 63) && shapes.is_wide(1000, 64));
        // A run of 16 bytes each, between requests elsewhere.
        let wide: Vec<bool> = (0..6)
            .map(|step| {
                assert!(!shapes.is_wide(10_000 + 100 * step, 16));
                shapes.is_wide(5000 + 16 * step, 16)
            })
            .collect();
        assert_eq!(wide, [false, false, false, true, true, true]);
        // More other runs than are followed end it.
        (0..RUNS as u64).for_each(|other| assert!(!shapes.is_wide(1 << 20 | other << 8, 16)));
        assert!(!shapes.is_wide(5096, 16));
    }
}
