//! How places in the order of their popularity lie on a device.

use crate::permutation::Permutation;

/// The spans of a device over which popular places are scattered; elsewhere places lie in the order
/// of their popularity.
#[derive(Debug, Clone, Default)]
pub struct Scatter {
    /// By their begin; they do not overlap.
    spans: Vec<ScatteredSpan>,
}

#[derive(Debug, Clone)]
struct ScatteredSpan {
    begin_bytes: u64,
    granule_bytes: u32,
    permutation: Permutation,
}

impl Scatter {
    pub(super) fn of_span(
        begin_bytes: u64,
        granule_bytes: u32,
        permutation: Permutation,
    ) -> Scatter {
        Scatter { spans: vec![ScatteredSpan { begin_bytes, granule_bytes, permutation }] }
    }

    /// Whether nothing is scattered.
    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Adds the spans of another one, none of which overlaps one of these.
    pub(crate) fn add(&mut self, other: Scatter) {
        self.spans.extend(other.spans);
        self.spans.sort_by_key(|span| span.begin_bytes);
    }

    /// Whether all scattered places are whole pages of this size.
    pub fn keeps_pages(&self, page_bytes: u64) -> bool {
        self.spans.iter().all(|span| {
            u64::from(span.granule_bytes).is_multiple_of(page_bytes)
                && span.begin_bytes.is_multiple_of(page_bytes)
        })
    }

    /// The offset on the device of an offset in the order of popularity.
    pub fn place(&self, offset_bytes: u64) -> u64 {
        let next = self.spans.partition_point(|span| span.begin_bytes <= offset_bytes);
        match next.checked_sub(1).and_then(|before| self.spans.get(before)) {
            Some(span) => span.place(offset_bytes),
            None => offset_bytes,
        }
    }
}

impl ScatteredSpan {
    /// The same of an offset at or behind the begin.
    fn place(&self, offset_bytes: u64) -> u64 {
        let within_bytes = offset_bytes - self.begin_bytes;
        let granule_bytes = u64::from(self.granule_bytes);
        let granule = within_bytes / granule_bytes;
        if granule >= self.permutation.items() {
            return offset_bytes;
        }
        let place = self.permutation.place(granule) * granule_bytes;
        self.begin_bytes + place + within_bytes % granule_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Begin, BlockWorkload, Pattern, RequestSize, Span};
    use softflash_base::random::Rng;

    #[test]
    fn requests_by_rank_are_the_same_once_they_are_placed() {
        for pattern in [
            Pattern::Zipf { exponent: 0.9, scattered: true },
            Pattern::Pareto { share: 0.2, scattered: true },
        ] {
            let mut workload = BlockWorkload::new("w", RequestSize::Fixed(4096), pattern);
            (workload.read_fraction, workload.begin) = (0.0, Begin::Share(0.25));
            workload.span = Span::Share(0.5);
            let mut source = workload.source(1 << 30, Rng::seeded(3)).unwrap();
            let (mut by_rank, scatter) = source.clone().by_rank().unwrap();
            let places: Vec<(u64, u64)> = (0..1000)
                .map(|_| (source.next().offset_bytes, by_rank.next().offset_bytes))
                .collect();
            assert!(places.iter().all(|&(place, rank)| scatter.place(rank) == place));
            assert!(places.iter().any(|(place, rank)| place != rank));
        }
    }

    const GRANULE: u64 = 4096;

    fn span(begin: u64, granules: u64) -> Scatter {
        let permutation = Permutation::new(granules, &mut Rng::seeded(begin));
        Scatter::of_span(begin * GRANULE, GRANULE as u32, permutation)
    }

    #[test]
    fn places_are_scattered_within_their_span_alone() {
        let mut scatter = span(300, 64);
        scatter.add(span(100, 50));
        assert!(scatter.keeps_pages(GRANULE) && scatter.keeps_pages(512));
        assert!(!scatter.keeps_pages(3 * GRANULE));
        let scattered = [100..150, 300..364];
        for granules in [0..100, 150..300, 364..500].iter().chain(&scattered) {
            let in_order: Vec<u64> =
                granules.clone().map(|granule| granule * GRANULE + 7).collect();
            let mut places: Vec<u64> =
                in_order.iter().map(|offset| scatter.place(*offset)).collect();
            assert_eq!(places != in_order, scattered.contains(granules));
            places.sort_unstable();
            assert_eq!(places, in_order);
        }
    }
}
