//! Queueing at one server with random arrivals.

/// The mean wait of a request before its service in an M/D/1 queue: Poisson arrivals, a fixed time
/// of `service` for each, and one server that is busy for `utilisation` (0 to 1, exclusive) of the
/// time.
///
/// Pollaczek, 1930, and Khinchine, 1932: ρ·(1 + c²) / (2·(1 − ρ)) services, with c = 0 where all
/// take equally long.
pub fn md1_wait(utilisation: f64, service: f64) -> f64 {
    service * utilisation / (2.0 * (1.0 - utilisation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_rises_without_bound() {
        assert_eq!(md1_wait(0.0, 280.0), 0.0);
        assert_eq!(md1_wait(0.5, 280.0), 140.0);
        assert!((md1_wait(0.9, 280.0) - 1260.0).abs() < 1e-9);
    }
}
