//! The places of requests.

use super::pattern::Pattern;
use super::scatter::Scatter;
use crate::error::Problem;
use crate::permutation::Permutation;
use softflash_base::random::{Rng, Zipf};

/// A size of requests and their possible offsets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SizeClass {
    pub(super) bytes: u32,
    align_bytes: u32,
    /// The number of possible offsets: multiples of the alignment, from 0.
    slots: u64,
}

impl SizeClass {
    pub(super) fn new(
        bytes: u32,
        align_bytes: u32,
        span_bytes: u64,
        capacity_bytes: u64,
    ) -> Result<SizeClass, Problem> {
        match span_bytes.checked_sub(bytes.into()) {
            Some(last) => {
                Ok(SizeClass { bytes, align_bytes, slots: last / u64::from(align_bytes) + 1 })
            }
            None => Err(Problem::TooSmall { bytes, align_bytes, span_bytes, capacity_bytes }),
        }
    }

    #[inline]
    fn anywhere(&self, rng: &mut Rng) -> u64 {
        rng.below(self.slots) * u64::from(self.align_bytes)
    }

    fn last_bytes(&self) -> u64 {
        (self.slots - 1) * u64::from(self.align_bytes)
    }
}

/// The distribution of places. Popularity belongs to places, not to requests: all sizes share the
/// *granules*, which have the smallest alignment, and a request begins at the last multiple of its
/// own alignment at or before the granule.
#[derive(Debug, Clone)]
pub(super) enum Places {
    Random,
    Sequential(Streams),
    Zipf { granule_bytes: u32, ranks: Zipf, scatter: Option<Permutation> },
    Pareto { granule_bytes: u32, granules: u64, power: f64, scatter: Option<Permutation> },
    HotCold { granule_bytes: u32, granules: u64, hot_granules: u64, hot_accesses: f64 },
}

impl Places {
    pub(super) fn new(
        pattern: Pattern,
        span_bytes: u64,
        classes: &[SizeClass],
        rng: &mut Rng,
    ) -> Result<Places, Problem> {
        let granule_bytes = classes.iter().map(|class| class.align_bytes).min().unwrap_or(1);
        // All places at which a request may begin, so that with one size each granule is a request.
        let granules = classes
            .iter()
            .map(|class| class.last_bytes() / u64::from(granule_bytes) + 1)
            .max()
            .unwrap_or(1);
        match pattern {
            Pattern::Random => Ok(Places::Random),
            Pattern::Sequential { streams } => {
                Streams::new(streams, span_bytes, classes).map(Places::Sequential)
            }
            Pattern::Zipf { exponent, scattered } => {
                let ranks = Zipf::new(granules, exponent).map_err(Problem::Zipf)?;
                let scatter = scattered.then(|| Permutation::new(granules, rng));
                Ok(Places::Zipf { granule_bytes, ranks, scatter })
            }
            Pattern::Pareto { share, scattered } => {
                // A share `x` of the accesses goes to the first `x^power` of the places: of
                // `1 - share` to `share`.
                let power = share.ln() / (1.0 - share).ln();
                let scatter = scattered.then(|| Permutation::new(granules, rng));
                Ok(Places::Pareto { granule_bytes, granules, power, scatter })
            }
            Pattern::HotCold { hot_space, hot_accesses } => {
                let hot_granules = (granules as f64 * hot_space).round() as u64;
                let hot_granules = hot_granules.clamp(1, granules);
                Ok(Places::HotCold { granule_bytes, granules, hot_granules, hot_accesses })
            }
        }
    }

    /// The same places in the order of their ranks, and how they are scattered over a span that
    /// begins at `begin_bytes`; `None` if requests of several places would then have others than
    /// before.
    pub(super) fn by_rank(
        self,
        classes: &[SizeClass],
        begin_bytes: u64,
    ) -> Option<(Places, Scatter)> {
        let alone = |granule_bytes: u32| {
            let is_alone = |class: &SizeClass| {
                class.bytes == granule_bytes && class.align_bytes == granule_bytes
            };
            classes.iter().all(is_alone)
        };
        match self {
            Places::Zipf { granule_bytes, ranks, scatter: Some(scatter) } => {
                let by_rank = Places::Zipf { granule_bytes, ranks, scatter: None };
                let scatter = Scatter::of_span(begin_bytes, granule_bytes, scatter);
                alone(granule_bytes).then_some((by_rank, scatter))
            }
            Places::Pareto { granule_bytes, granules, power, scatter: Some(scatter) } => {
                let by_rank = Places::Pareto { granule_bytes, granules, power, scatter: None };
                let scatter = Scatter::of_span(begin_bytes, granule_bytes, scatter);
                alone(granule_bytes).then_some((by_rank, scatter))
            }
            Places::Sequential(_) => None,
            places => Some((places, Scatter::default())),
        }
    }

    /// Draws the offset of a request of `class`, and the class of its data.
    #[inline(always)]
    pub(super) fn draw(&mut self, class: SizeClass, rng: &mut Rng) -> (u64, u32) {
        match self {
            Places::Random => (class.anywhere(rng), 0),
            places => places.draw_by_pattern(class, rng),
        }
    }

    /// As [`draw`](Places::draw), for patterns other than random.
    #[inline(never)]
    fn draw_by_pattern(&mut self, class: SizeClass, rng: &mut Rng) -> (u64, u32) {
        match self {
            Places::Random => (class.anywhere(rng), 0),
            Places::Sequential(streams) => streams.draw(class),
            Places::Zipf { granule_bytes, ranks, scatter } => {
                let rank = ranks.rank(rng);
                let granule = scatter.as_ref().map_or(rank, |scatter| scatter.place(rank));
                (at_or_before(granule, *granule_bytes, class), 0)
            }
            Places::Pareto { granule_bytes, granules, power, scatter } => {
                let rank = (*granules as f64 * rng.unit_f64().powf(*power)) as u64;
                let rank = rank.min(*granules - 1);
                let granule = scatter.as_ref().map_or(rank, |scatter| scatter.place(rank));
                (at_or_before(granule, *granule_bytes, class), 0)
            }
            Places::HotCold { granule_bytes, granules, hot_granules, hot_accesses } => {
                let cold = *granules - *hot_granules;
                let is_hot = cold == 0 || rng.chance(*hot_accesses);
                let granule =
                    if is_hot { rng.below(*hot_granules) } else { *hot_granules + rng.below(cold) };
                (at_or_before(granule, *granule_bytes, class), is_hot.into())
            }
        }
    }
}

/// The last place at or before a granule where a request of `class` may begin.
#[inline]
fn at_or_before(granule: u64, granule_bytes: u32, class: SizeClass) -> u64 {
    let at = granule * u64::from(granule_bytes);
    let aligned = if class.align_bytes == granule_bytes {
        at
    } else {
        at - at % u64::from(class.align_bytes)
    };
    aligned.min(class.last_bytes())
}

/// Sequential streams that take turns.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    streams: Box<[Stream]>,
    /// Round-robin cursor: the next stream.
    cursor: usize,
}

/// A part of the span that is accessed from begin to end, repeatedly.
#[derive(Debug, Clone, Copy)]
struct Stream {
    begin_bytes: u64,
    end_bytes: u64,
    next_bytes: u64,
}

impl Streams {
    /// Parts begin at multiples of the largest alignment; the last part includes the rest of the
    /// span.
    fn new(count: u32, span_bytes: u64, classes: &[SizeClass]) -> Result<Streams, Problem> {
        let align_bytes =
            u64::from(classes.iter().map(|class| class.align_bytes).max().unwrap_or(1));
        let part_bytes = match count {
            1 => span_bytes,
            _ => span_bytes / align_bytes / u64::from(count) * align_bytes,
        };
        let streams: Box<[Stream]> = (0..u64::from(count))
            .map(|index| {
                let begin_bytes = index * part_bytes;
                let is_last = index + 1 == u64::from(count);
                let end_bytes = if is_last { span_bytes } else { begin_bytes + part_bytes };
                Stream { begin_bytes, end_bytes, next_bytes: begin_bytes }
            })
            .collect();
        let fits = |class: &SizeClass| streams.iter().all(|stream| stream.has_room(class));
        match classes.iter().find(|class| !fits(class)) {
            Some(class) => {
                Err(Problem::TooManyStreams { streams: count, bytes: class.bytes, span_bytes })
            }
            None => Ok(Streams { streams, cursor: 0 }),
        }
    }

    #[inline]
    fn draw(&mut self, class: SizeClass) -> (u64, u32) {
        let cursor = self.cursor;
        self.cursor = if cursor + 1 == self.streams.len() { 0 } else { cursor + 1 };
        (self.streams[cursor].draw(class), cursor as u32)
    }
}

impl Stream {
    fn has_room(&self, class: &SizeClass) -> bool {
        let begin = self.begin_bytes.next_multiple_of(class.align_bytes.into());
        begin + u64::from(class.bytes) <= self.end_bytes
    }

    #[inline]
    fn draw(&mut self, class: SizeClass) -> u64 {
        let align_bytes = u64::from(class.align_bytes);
        let mut at = self.next_bytes.next_multiple_of(align_bytes);
        if at + u64::from(class.bytes) > self.end_bytes {
            at = self.begin_bytes.next_multiple_of(align_bytes);
        }
        self.next_bytes = at + u64::from(class.bytes);
        at
    }
}
