//! The generator of block requests.

use super::place::{Places, SizeClass};
use super::scatter::Scatter;
use super::size::RequestSize;
use super::spec::BlockWorkload;
use crate::access::Access;
use crate::error::Problem;
use softflash_base::random::Rng;
use softflash_base::{AccessKind, Durability};
use std::ops::Range;

/// The endless sequence of requests of a [`BlockWorkload`]. Equal seeds give equal requests.
#[derive(Debug, Clone)]
pub struct BlockSource {
    rng: Rng,
    mix: Mix,
    reads: Sizes,
    writes: Sizes,
    places: Places,
    /// Where the span begins.
    begin_bytes: u64,
    span_bytes: u64,
    syncs: Syncs,
}

impl BlockSource {
    /// `workload` must be valid.
    pub(super) fn new(
        workload: &BlockWorkload,
        capacity_bytes: u64,
        mut rng: Rng,
    ) -> Result<BlockSource, Problem> {
        let begin_bytes = workload.begin.of(capacity_bytes, workload.largest_align_bytes())?;
        let span_bytes = workload.span_bytes(capacity_bytes)?;
        let sizes = |sizes: Option<&RequestSize>| match sizes {
            Some(sizes) => Sizes::new(sizes, workload.align_bytes, span_bytes, capacity_bytes),
            None => Ok(Sizes::default()),
        };
        let reads = sizes(workload.sizes_of_reads()?)?;
        let writes = sizes(workload.sizes_of_writes()?)?;
        let classes: Vec<SizeClass> = reads.classes().chain(writes.classes()).collect();
        let places = Places::new(workload.pattern, span_bytes, &classes, &mut rng)?;
        let mix = Mix::new(workload.read_fraction, workload.trim_fraction);
        let syncs = Syncs::new(workload);
        Ok(BlockSource { rng, mix, reads, writes, places, begin_bytes, span_bytes, syncs })
    }

    /// Writes and trims alone, a share of `trim_fraction` trims, drawn from another generator. The
    /// popular places stay the same.
    #[must_use]
    pub fn without_reads(self, trim_fraction: f64, rng: Rng) -> BlockSource {
        BlockSource { rng, mix: Mix::new(0.0, trim_fraction), ..self }
    }

    /// The requests with their places in the order of popularity, and how the places are scattered
    /// over the device. `None` for requests that are not drawn one by one, or whose order matters:
    /// sequential ones, and several sizes at scattered places.
    pub fn by_rank(self) -> Option<(BlockSource, Scatter)> {
        let classes: Vec<SizeClass> = self.writes.classes().collect();
        let (places, scatter) = self.places.by_rank(&classes, self.begin_bytes)?;
        Some((BlockSource { places, ..self }, scatter))
    }

    /// The same requests, drawn from another generator. The popular places stay the same.
    #[must_use]
    pub fn with_rng(self, rng: Rng) -> BlockSource {
        BlockSource { rng, ..self }
    }

    /// The bytes of the device that it accesses.
    pub(crate) fn span(&self) -> Range<u64> {
        self.begin_bytes..self.begin_bytes + self.span_bytes
    }

    /// The longest write, in bytes.
    pub fn longest_write_bytes(&self) -> u32 {
        self.writes.classes().map(|class| class.bytes).max().unwrap_or(0)
    }

    /// The next request.
    #[inline(always)]
    #[expect(clippy::should_implement_trait, reason = "an iterator may end, this does not")]
    pub fn next(&mut self) -> Access {
        let kind = self.mix.draw(&mut self.rng);
        let sizes = if kind == AccessKind::Read { &self.reads } else { &self.writes };
        let class = sizes.draw(&mut self.rng);
        let (offset_bytes, hint) = self.places.draw(class, &mut self.rng);
        let durability = self.syncs.next(kind);
        let offset_bytes = self.begin_bytes + offset_bytes;
        Access { kind, offset_bytes, bytes: class.bytes, hint, durability }
    }
}

/// Which writes end when they are durable.
#[derive(Debug, Clone, Copy)]
struct Syncs {
    /// Every so many writes; 0: never.
    flush_every: u32,
    fua_every: u32,
    /// Writes so far: a counter that wraps.
    writes: u32,
}

impl Syncs {
    fn new(workload: &BlockWorkload) -> Syncs {
        let BlockWorkload { flush_every, fua_every, .. } = *workload;
        Syncs { flush_every, fua_every, writes: 0 }
    }

    /// When the next request ends.
    #[inline(always)]
    fn next(&mut self, kind: AccessKind) -> Durability {
        if self.flush_every | self.fua_every == 0 || kind != AccessKind::Write {
            return Durability::Accepted;
        }
        self.writes = self.writes.wrapping_add(1);
        let is_due = |every: u32| every > 0 && self.writes.is_multiple_of(every);
        match (is_due(self.flush_every), is_due(self.fua_every)) {
            (true, _) => Durability::AllBefore,
            (_, true) => Durability::Itself,
            _ => Durability::Accepted,
        }
    }
}

/// Reads, trims and writes, as thresholds of 53 random bits.
#[derive(Debug, Clone, Copy)]
struct Mix {
    reads_below: u64,
    trims_below: u64,
}

impl Mix {
    const CERTAIN: u64 = 1 << 53;

    fn new(read_fraction: f64, trim_fraction: f64) -> Mix {
        let threshold = |share: f64| (share * Mix::CERTAIN as f64).round() as u64;
        let trims_below = threshold((read_fraction + trim_fraction).min(1.0));
        Mix { reads_below: threshold(read_fraction), trims_below }
    }

    /// Draws a kind; uses no random number if all requests are reads or all are writes.
    #[inline]
    fn draw(self, rng: &mut Rng) -> AccessKind {
        if self.reads_below == Mix::CERTAIN {
            return AccessKind::Read;
        } else if self.trims_below == 0 {
            return AccessKind::Write;
        }
        let drawn = rng.next_u64() >> 11;
        if drawn < self.reads_below {
            AccessKind::Read
        } else if drawn < self.trims_below {
            AccessKind::Trim
        } else {
            AccessKind::Write
        }
    }
}

/// The sizes of a kind of requests. Most kinds have one size, which is stored separately.
#[derive(Debug, Clone, Default)]
struct Sizes {
    first: SizeClass,
    /// All of several sizes, each with the sum of the weights up to and including it, as a
    /// threshold of 53 random bits.
    several: Box<[(u64, SizeClass)]>,
}

impl Sizes {
    fn new(
        sizes: &RequestSize,
        align_bytes: Option<u32>,
        span_bytes: u64,
        capacity_bytes: u64,
    ) -> Result<Sizes, Problem> {
        let shares = sizes.shares();
        let all: f64 = shares.iter().map(|share| share.weight).sum();
        let (mut sum, mut several) = (0.0, Vec::with_capacity(shares.len()));
        for share in &shares {
            sum += share.weight;
            let align_bytes = align_bytes.unwrap_or(share.bytes);
            let class = SizeClass::new(share.bytes, align_bytes, span_bytes, capacity_bytes)?;
            several.push(((sum / all * (1_u64 << 53) as f64) as u64, class));
        }
        let first = several.first().map(|(_, class)| *class).unwrap_or_default();
        if several.len() == 1 {
            several.clear();
        }
        Ok(Sizes { first, several: several.into() })
    }

    /// All sizes; none if there are no such requests.
    fn classes(&self) -> impl Iterator<Item = SizeClass> {
        let first = Some(self.first).filter(|class| class.bytes > 0);
        first.into_iter().chain(self.several.iter().map(|(_, class)| *class))
    }

    #[inline(always)]
    fn draw(&self, rng: &mut Rng) -> SizeClass {
        if self.several.is_empty() { self.first } else { self.draw_of_several(rng) }
    }

    fn draw_of_several(&self, rng: &mut Rng) -> SizeClass {
        let drawn = rng.next_u64() >> 11;
        let found = self.several.partition_point(|(below, _)| *below <= drawn);
        // By rounding the last threshold may be a little below the largest draws.
        self.several.get(found).or(self.several.last()).map_or(self.first, |(_, class)| *class)
    }
}
