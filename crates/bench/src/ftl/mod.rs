//! `softflash bench ftl`: the mapped translation layer of volumes, on a device that costs nothing.

mod amplification;
mod cost;
mod counters;
mod load;
mod null_device;
mod recovery;
mod report;
mod testbed;

use amplification::{Amplification, Occupancy, Steady, data_waf, difference};
use clap::Args;
use cost::{Spent, UnitCosts};
use indicatif::ProgressBar;
use load::{Hot, Load};
use null_device::{Medium, PAGE_BYTES, SharedMedium};
use report::{Costs, Report};
use softflash_base::random::Rng;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_console::sizes::{human_bytes, parse_size};
use softflash_policy::{Chosen, LifetimePolicy};
use softflash_volume::{DomainConfig, VolumeError};
use std::cell::RefCell;
use std::rc::Rc;
use testbed::Testbed;

/// Payload of a superblock, as that of a file device.
const SUPERBLOCK_BYTES: u64 = 8 << 20;
/// Pages of the headers of a superblock.
const HEADER_PAGES: u64 = 2;
/// Superblocks of a unit below which the reserves of a domain leave no space.
const LEAST_SUPERBLOCKS: u64 = 16;
/// Samples of the occupied superblocks in the measured part.
const SAMPLES: u64 = 256;

/// Arguments of `bench ftl`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash bench ftl
  softflash bench ftl --spare 7 --batch 64 -o json
  softflash bench ftl --size 16GiB --recovery
  softflash bench ftl --policy victim=d-choices:8
  softflash bench ftl --lifetime sepbit --hot 90/10

Measures the mapped FTL of volumes: processor time of random writes and reads of 4 KiB, write \
amplification beside theory, and memory. The device below costs next to nothing: every command has \
ended at the next poll, there is no kernel and no time, and pages of data are not kept. A volume \
that takes all usable space is filled, then overwritten at random places (uniform without --hot) \
until the write amplification of an overwrite differs by less than 1 % from that of the one before \
(at least three overwrites, at most twelve); then the measured writes begin. --batch requests of \
4 KiB are under way at a time.

Times of writes include the collection and the checkpoints that they cause. `net` is without the \
checksums and copies of mapping units and without the null device, which are measured alone at the \
end of the run. With --recovery the power is cut immediately before a checkpoint, and the domain \
is mounted again.")]
pub struct FtlBench {
    /// Size of the flash
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size)]
    size: u64,
    /// Number of units
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    units: u16,
    /// Spare space for collection: share of the space for data that no volume may take, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 25.0, allow_negative_numbers = true)]
    spare: f64,
    /// Number of measured writes
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    writes: u64,
    /// Number of measured reads
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    reads: u64,
    /// Concurrent requests
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    batch: u16,
    /// Policies, as `victim=cost-benefit,wear=static:100`, separated by commas. `softflash lab keys
    /// policy` lists them
    #[arg(long, value_name = "KIND=POLICY")]
    policy: Option<Chosen>,
    /// Which data share superblocks, as `sepbit`: the policy `lifetime=NAME` of --policy
    #[arg(long, value_name = "NAME")]
    lifetime: Option<LifetimePolicy>,
    /// Skewed writes: so many percent of them go to so many percent of the volume, as `90/10`
    #[arg(long, value_name = "WRITES/SPACE")]
    hot: Option<Hot>,
    /// Also measure the recovery after a power cut
    #[arg(long)]
    recovery: bool,
    /// Seed of the places
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

impl FtlBench {
    /// Measures and prints the result.
    pub fn run(self) -> Result<(), CliError> {
        let (config, medium) = (self.config()?, self.medium()?);
        let bar = output::steps(5);
        let measured = self.measure(&config, &medium, &bar);
        bar.finish_and_clear();
        let report = measured.map_err(|error| CliError::Failed(error.to_string()))?;
        match self.output {
            Form::Json => output::json(&report),
            Form::Table => {
                output::pairs(report.lines());
                Ok(())
            }
        }
    }

    fn medium(&self) -> Result<SharedMedium, CliError> {
        if !(1.0..=90.0).contains(&self.spare) {
            let spare = self.spare;
            return Err(CliError::Usage(format!("--spare: {spare} is not between 1 and 90")));
        }
        let superblocks = self.size / u64::from(self.units) / SUPERBLOCK_BYTES;
        if superblocks < LEAST_SUPERBLOCKS {
            let least = u64::from(self.units) * SUPERBLOCK_BYTES * LEAST_SUPERBLOCKS;
            return Err(CliError::Usage(format!(
                "--size: {} units need at least {}",
                self.units,
                human_bytes(least)
            )));
        }
        let places = superblocks * u64::from(self.units) * (SUPERBLOCK_BYTES / 4096);
        if places > u64::from(u32::MAX - 3) {
            return Err(CliError::Usage("--size: a domain has at most 16 TiB".into()));
        }
        let pages = SUPERBLOCK_BYTES / PAGE_BYTES as u64 + HEADER_PAGES;
        let medium = Medium::new(self.units, superblocks as u32, pages as u32);
        Ok(Rc::new(RefCell::new(medium)))
    }

    /// The policies of --policy and --lifetime.
    fn chosen(&self) -> Result<Chosen, CliError> {
        let mut chosen = self.policy.unwrap_or_default();
        if let Some(lifetime) = self.lifetime {
            chosen
                .choose_lifetime(lifetime)
                .map_err(|error| CliError::Usage(format!("--lifetime: {error}")))?;
        }
        Ok(chosen)
    }

    fn config(&self) -> Result<DomainConfig, CliError> {
        let op_percent = 100.0 * self.spare / (100.0 - self.spare);
        let config = DomainConfig { op_percent, seed: self.seed, ..DomainConfig::default() };
        Ok(config.with_policies(&self.chosen()?))
    }

    fn measure(
        &self,
        config: &DomainConfig,
        medium: &SharedMedium,
        bar: &ProgressBar,
    ) -> Result<Report, VolumeError> {
        let load = Load { batch: usize::from(self.batch), hot: self.hot };
        let mut rng = Rng::seeded(self.seed).fork("places");
        bar.set_message("filling");
        let testbed = Testbed::mount(medium, config, load)?;
        testbed.fill()?;
        bar.inc(1);
        let steady = self.overwrite_until_steady(&testbed, &mut rng, bar)?;
        bar.inc(1);

        bar.set_message("writing");
        let (counters, pages) = (testbed.domain.counters(), medium.borrow().commands());
        let mut occupancy = Occupancy::default();
        let mut next_sample = 0;
        let writes = Spent::by(self.writes, || {
            testbed.overwrite(self.writes, &mut rng, |done| {
                if done >= next_sample {
                    occupancy.add(testbed.domain.closed_superblocks());
                    next_sample += self.writes / SAMPLES + 1;
                }
                true
            })
        })?;
        let counters = difference(counters, testbed.domain.counters());
        let write_commands = medium.borrow().commands().since(pages);
        let programmed = write_commands.programs.pages;
        let amplification = Amplification::of(&counters, programmed, &occupancy);
        bar.inc(1);

        bar.set_message("reading");
        let before = medium.borrow().commands();
        let reads = Spent::by(self.reads, || testbed.read(self.reads, &mut rng))?;
        let read_commands = medium.borrow().commands().since(before);
        bar.inc(1);

        let costs = Costs {
            writes,
            reads,
            unit: UnitCosts::measure(),
            write_device_seconds: cost::of_device(medium, write_commands),
            read_device_seconds: cost::of_device(medium, read_commands),
        };
        let space = testbed.domain.space();
        let memory_bytes = testbed.domain.memory_bytes();
        let recovery = if self.recovery {
            bar.set_message("recovering");
            Some(recovery::measure(testbed, medium, config, load, &mut rng)?)
        } else {
            testbed.cut();
            None
        };
        bar.inc(1);
        Ok(self.report(space, memory_bytes, steady, &counters, &costs, amplification, recovery))
    }

    fn overwrite_until_steady(
        &self,
        testbed: &Testbed,
        rng: &mut Rng,
        bar: &ProgressBar,
    ) -> Result<usize, VolumeError> {
        let mut steady = Steady::default();
        loop {
            bar.set_message(format!("overwriting, {} times so far", steady.windows()));
            let before = testbed.domain.counters();
            testbed.overwrite(testbed.units, rng, |_| true)?;
            if steady.add(data_waf(&difference(before, testbed.domain.counters()))) {
                return Ok(steady.windows());
            }
        }
    }
}
