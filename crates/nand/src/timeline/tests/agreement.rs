//! Random commands on the timeline and on the whole array, which is tested against the rules of the
//! flash: all times are equal. Each seed is a run of its own, and is printed if they differ.

use super::super::*;
use super::commands::commands;
use super::players::{play_array, play_timeline};
use crate::presets;
use crate::timing::SuspendTiming;
use softflash_base::random::Rng;

/// Runs random commands on both, once for each seed, and compares their times. Returns the number
/// of suspensions.
fn agree(name: &str, config: &ArrayConfig, seeds: u64) -> u64 {
    let mut suspensions = 0;
    for seed in 0..seeds {
        let mut rng = Rng::seeded(seed).fork("timeline");
        let work = commands(config, &mut rng);
        let given: usize = work.iter().map(|commands| commands.len()).sum();
        let ours = play_timeline(config, work.clone());
        let (arrays, suspended) = play_array(config, work);
        let other = ours.ends.iter().find(|&(command, end)| arrays.ends.get(command) != Some(end));
        assert_eq!(other, None, "{name}, seed {seed}: the array ends this command at another time");
        assert_eq!(ours, arrays, "{name}, seed {seed}");
        assert_eq!(ours.ends.len(), given, "{name}, seed {seed}: every command ends");
        suspensions += suspended;
    }
    suspensions
}

/// The flash of a preset, with and without each cache register, and each suspend. Dies keep few
/// blocks, as all commands use the first.
fn agree_with_every_register_and_suspend(name: &str, mut config: ArrayConfig, seeds: u64) {
    config.geometry.blocks_per_plane = config.geometry.blocks_per_plane.min(8);
    let own = (config.die.program_suspend, config.die.erase_suspend);
    let suspends =
        |suspend_ns, resume_ns, at_most| Some(SuspendTiming { suspend_ns, resume_ns, at_most });
    let often = suspends(20_000, 0, u16::MAX);
    let rarely = suspends(100_000, 20_000, 2);
    let mut kinds = vec![(None, None), (often, rarely), (rarely, None), (None, often)];
    kinds.extend((own != (None, None)).then_some(own));
    for (cache_read, cache_program) in [(false, false), (true, false), (false, true), (true, true)]
    {
        (config.die.cache_read, config.die.cache_program) = (cache_read, cache_program);
        for &(program, erase) in &kinds {
            (config.die.program_suspend, config.die.erase_suspend) = (program, erase);
            let name = format!("{name}, {:?}", config.die);
            let suspensions = agree(&name, &config, seeds);
            let expected = (program, erase) != (None, None);
            assert_eq!(suspensions > 0, expected, "{name}: {suspensions} suspensions");
        }
    }
}

/// The flash of a device preset.
fn flash_of(preset: &str) -> ArrayConfig {
    let table: toml::Table = preset.parse().unwrap();
    let flash: toml::Table = ["geometry", "die", "bus"]
        .into_iter()
        .map(|part| (part.to_owned(), table[part].clone()))
        .collect();
    flash.try_into().unwrap()
}

#[test]
fn times_are_those_of_the_array_on_the_small_preset() {
    agree_with_every_register_and_suspend("small", presets::small(), 60);
}

#[test]
fn times_are_those_of_the_array_on_sdf() {
    agree_with_every_register_and_suspend("sdf", presets::sdf(), 4);
}

#[test]
fn times_are_those_of_the_array_on_tlc() {
    agree_with_every_register_and_suspend("tlc", presets::tlc(), 4);
}

#[test]
fn times_are_those_of_the_array_on_the_device_presets() {
    macro_rules! preset {
        ($name:literal, $seeds:literal) => {
            (
                $name,
                include_str!(concat!("../../../../../presets/devices/", $name, ".toml")),
                $seeds,
            )
        };
    }
    for (name, preset, seeds) in [
        preset!("sdf", 2),
        preset!("huawei-gen3", 2),
        preset!("intel-320", 4),
        preset!("memblaze-q520", 2),
        preset!("mqsim-default", 4),
        preset!("tlc-modern", 20),
    ] {
        agree_with_every_register_and_suspend(name, flash_of(preset), seeds);
    }
}
