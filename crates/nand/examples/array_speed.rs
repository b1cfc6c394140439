//! Measures how many page operations a second the array simulates: `array_speed [OPERATIONS
//! [MIX]]`, where the mix is `read`, `program` or `mix`; all three by default.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use softflash_nand::{BenchmarkMix, array_benchmark, presets};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let operations = std::env::args().nth(1).map_or(Ok(20_000_000), |given| given.parse())?;
    let wanted = std::env::args().nth(2).unwrap_or_default();
    let mixes = [
        ("read", BenchmarkMix::READ),
        ("program", BenchmarkMix::PROGRAM),
        ("mix 70/29/1", BenchmarkMix::MIXED),
    ];
    for (name, mix) in mixes.into_iter().filter(|(name, _)| name.starts_with(&wanted)) {
        #[expect(clippy::disallowed_methods, reason = "the time of the run is what is measured")]
        let started = Instant::now();
        let result = array_benchmark(&presets::sdf(), mix, operations, 1)?;
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{name}: {:.1} M operations/s, {:.2} events each, {:.2} s simulated, {:.3} bytes a page",
            result.operations as f64 / seconds / 1e6,
            result.events as f64 / result.operations as f64,
            result.simulated_ns as f64 / 1e9,
            result.memory_bytes as f64 / result.pages as f64,
        );
    }
    Ok(())
}
