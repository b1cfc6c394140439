//! The edges of latency histograms for monitors.

/// The inclusive upper edges in microseconds: the powers of two, 1 µs to 34 s.
pub const EDGES_US: [u64; 26] = edges();

const fn edges() -> [u64; 26] {
    let mut edges = [1; 26];
    let mut power = 1;
    while power < edges.len() {
        edges[power] = edges[power - 1] * 2;
        power += 1;
    }
    edges
}
