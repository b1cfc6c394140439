//! Fuzz targets as ordinary tests, without instrumentation. Crates with decoders include this file.
//!
//! A target runs on its seeds, on its corpus in `fuzz/corpus` (seeds and findings of fuzzers), and
//! on random mutations of these. `SOFTFLASH_TEST_SEED` repeats the mutations,
//! `SOFTFLASH_FUZZ_ROUNDS` sets their number for each input, `SOFTFLASH_WRITE_SEEDS=1` writes the
//! seeds into the corpus.

use softflash_base::random::Rng;
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::{env, fs};

/// Mutations of each input.
const ROUNDS: u64 = 200;
/// Maximum length of a mutated input.
const LONGEST: usize = 16 << 10;

/// Runs a target on all of its inputs. It panics where a property does not hold.
pub fn replay(target: &str, seeds: &[Vec<u8>], run: fn(&[u8])) {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    if number("SOFTFLASH_WRITE_SEEDS").is_some() {
        fs::create_dir_all(&corpus).unwrap();
        for (index, seed) in seeds.iter().enumerate() {
            fs::write(corpus.join(format!("seed-{index:02}")), seed).unwrap();
        }
    }
    let mut inputs = seeds.to_vec();
    let mut kept: Vec<PathBuf> =
        fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    kept.sort();
    assert!(!kept.is_empty(), "no corpus for {target}: cargo xtask fuzz --seed-corpus");
    for path in kept {
        println!("{}", path.display());
        let input = fs::read(&path).unwrap();
        run(&input);
        inputs.push(input);
    }
    let fresh = || RandomState::new().hash_one(target);
    let seed = number("SOFTFLASH_TEST_SEED").unwrap_or_else(fresh);
    println!("replay with SOFTFLASH_TEST_SEED={seed}");
    let rounds = number("SOFTFLASH_FUZZ_ROUNDS").unwrap_or(ROUNDS);
    let mut rng = Rng::seeded(seed);
    for input in &inputs {
        for _ in 0..rounds {
            guarded(target, &changed(input, &inputs, &mut rng), run);
        }
    }
}

/// Saves an input that makes the target panic.
fn guarded(target: &str, input: &[u8], run: fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(input))) {
        let path = env::temp_dir().join(format!("softflash-fuzz-{target}"));
        fs::write(&path, input).unwrap();
        println!(
            "the input is in {}; fix the bug and keep the input as fuzz/corpus/{target}/found-...",
            path.display()
        );
        resume_unwind(panic);
    }
}

/// The input with a few mutations.
fn changed(input: &[u8], others: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(bytes.len() as u64 + 1) as usize;
        let len = rng.below(32).min((bytes.len() - at) as u64) as usize;
        match rng.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            1 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.below(5) as usize],
            2 => drop(bytes.drain(at..at + len)),
            3 => bytes.truncate(at),
            4 => drop(bytes.splice(at..at, bytes[at..at + len].to_vec())),
            5 => {
                let other = &others[rng.below(others.len() as u64) as usize];
                let from = rng.below(other.len() as u64 + 1) as usize;
                bytes.splice(at.., other[from..].iter().copied());
            }
            _ => bytes.insert(at, rng.below(256) as u8),
        }
    }
    bytes.truncate(LONGEST);
    bytes
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}
