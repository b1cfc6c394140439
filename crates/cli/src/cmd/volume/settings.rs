//! The settings of a volume as arguments, and as words.

use clap::Args;
use softflash_volume::Setting;

/// New values of settings.
#[derive(Debug, Args)]
pub struct SettingArgs {
    /// The most that the volume and its snapshots may hold: 4KiB to 16TiB, or `none`
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = |text: &str| Setting::parse("quota", text))]
    quota: Option<Setting>,
    /// The most requests a second: 1 to 10000000, or `none`
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| Setting::parse("iops", text))]
    iops: Option<Setting>,
    /// The most that is read and written a second: 4KiB to 1TiB, or `none`
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = |text: &str| Setting::parse("bandwidth", text))]
    bandwidth: Option<Setting>,
    /// Its share where volumes compete, 1 to 1000; a new volume has 100
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| Setting::parse("weight", text))]
    weight: Option<Setting>,
    /// How soon its data are overwritten: `hot`, `warm` (a new volume) or `cold`
    #[arg(long, value_name = "T", value_parser = |text: &str| Setting::parse("temperature", text))]
    temperature: Option<Setting>,
    /// Keeps its data apart from those of other streams: 0 (a new volume) to 7
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| Setting::parse("stream", text))]
    stream: Option<Setting>,
}

impl SettingArgs {
    /// The given ones.
    pub fn given(&self) -> Vec<Setting> {
        let SettingArgs { quota, iops, bandwidth, weight, temperature, stream } = self;
        [quota, iops, bandwidth, weight, temperature, stream]
            .into_iter()
            .flatten()
            .copied()
            .collect()
    }
}

/// Settings as words: `weight=100`.
pub fn words(settings: &[Setting]) -> String {
    let number = |number: Option<u64>| number.unwrap_or(0).to_string();
    let word = |setting: &Setting| {
        let (name, value) = match *setting {
            Setting::Quota(bytes) => ("quota", number(bytes)),
            Setting::Iops(iops) => ("iops", number(iops.map(u64::from))),
            Setting::Bandwidth(bytes) => ("bandwidth", number(bytes)),
            Setting::Weight(weight) => ("weight", weight.to_string()),
            Setting::Temperature(temperature) => ("temperature", temperature.to_string()),
            Setting::Stream(stream) => ("stream", stream.to_string()),
        };
        format!("{name}={value}")
    };
    settings.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Settings from words; none if one is no setting.
pub fn from_words<'a>(words: impl Iterator<Item = &'a str>) -> Option<Vec<Setting>> {
    let setting = |word: &str| {
        let (name, value) = word.split_once('=')?;
        Setting::parse(name, value).ok()
    };
    words.map(setting).collect()
}
