//! Settings as text, for command lines and for the protocol.

use super::{Setting, Temperature};
use crate::error::VolumeError;
use bytesize::ByteSize;

/// Removes a quota or a limit; so does 0.
const NO_LIMIT: &str = "none";

/// Each setting by name, with its rule.
const RULES: [(&str, &str); 6] = [
    ("quota", "4KiB to 16TiB, or none"),
    ("iops", "1 to 10000000 requests a second, or none"),
    ("bandwidth", "4KiB to 1TiB a second, or none"),
    ("weight", "1 to 1000; a new volume has 100"),
    ("temperature", "hot, warm or cold"),
    ("stream", "0 to 7"),
];

impl Setting {
    /// The setting of this name with a value in text. Quotas and limits are removed by `none`, or
    /// by 0. Neither upper nor lower case matters.
    pub fn parse(name: &str, value: &str) -> Result<Setting, VolumeError> {
        let (name, lower) = (name.to_ascii_lowercase(), value.to_ascii_lowercase());
        let rule = RULES.iter().find(|(known, _)| *known == name).map(|(_, rule)| *rule);
        let Some(rule) = rule else { return Err(VolumeError::NoSetting { name }) };
        let value_of = |name: &str| match name {
            "quota" => bytes(&lower).map(Setting::Quota),
            "iops" => number(&lower).map(|iops| Setting::Iops(Some(iops).filter(|&it| it > 0))),
            "bandwidth" => bytes(&lower).map(Setting::Bandwidth),
            "weight" => lower.parse().ok().map(Setting::Weight),
            "temperature" => temperature(&lower).map(Setting::Temperature),
            _ => lower.parse().ok().map(Setting::Stream),
        };
        value_of(&name).filter(|setting| setting.is_possible()).ok_or_else(|| {
            VolumeError::BadSetting { name, value: value.to_owned(), rule: rule.to_owned() }
        })
    }

    /// Checks a value that is not from text.
    pub(crate) fn check(self) -> Result<(), VolumeError> {
        if self.is_possible() {
            return Ok(());
        }
        let or_none = |number: Option<u64>| {
            number.map_or_else(|| NO_LIMIT.to_owned(), |number| number.to_string())
        };
        let (at, value) = match self {
            Setting::Quota(bytes) => (0, or_none(bytes)),
            Setting::Iops(iops) => (1, or_none(iops.map(u64::from))),
            Setting::Bandwidth(bytes) => (2, or_none(bytes)),
            Setting::Weight(weight) => (3, weight.to_string()),
            Setting::Temperature(temperature) => (4, temperature.to_string()),
            Setting::Stream(stream) => (5, stream.to_string()),
        };
        let (name, rule) = RULES[at];
        Err(VolumeError::BadSetting { name: name.to_owned(), value, rule: rule.to_owned() })
    }
}

/// A size; 0 for none.
fn bytes(text: &str) -> Option<Option<u64>> {
    if text == NO_LIMIT {
        return Some(None);
    }
    let size: ByteSize = text.parse().ok()?;
    Some(Some(size.as_u64()).filter(|&bytes| bytes > 0))
}

/// A number; 0 for none.
fn number(text: &str) -> Option<u32> {
    if text == NO_LIMIT { Some(0) } else { text.parse().ok() }
}

fn temperature(text: &str) -> Option<Temperature> {
    let all = [Temperature::Hot, Temperature::Warm, Temperature::Cold];
    all.into_iter().find(|one| one.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_from_text() {
        for (name, value, setting) in [
            ("quota", "10GiB", Setting::Quota(Some(10 << 30))),
            ("QUOTA", "none", Setting::Quota(None)),
            ("quota", "0", Setting::Quota(None)),
            ("iops", "500", Setting::Iops(Some(500))),
            ("iops", "NONE", Setting::Iops(None)),
            ("iops", "0", Setting::Iops(None)),
            ("bandwidth", "50MiB", Setting::Bandwidth(Some(50 << 20))),
            ("weight", "1000", Setting::Weight(1000)),
            ("temperature", "Cold", Setting::Temperature(Temperature::Cold)),
            ("stream", "7", Setting::Stream(7)),
        ] {
            assert_eq!(Setting::parse(name, value), Ok(setting), "{name} {value}");
        }
    }

    #[test]
    fn an_error_names_the_setting_the_value_and_the_rule() {
        for (name, value) in [
            ("quota", "4095"),
            ("quota", "17TiB"),
            ("quota", "much"),
            ("iops", "-1"),
            ("iops", "10000001"),
            ("bandwidth", "1"),
            ("bandwidth", "2TiB"),
            ("weight", "0"),
            ("weight", "1001"),
            ("weight", "none"),
            ("temperature", "tepid"),
            ("stream", "8"),
        ] {
            let refused = Setting::parse(name, value).unwrap_err().to_string();
            let (_, rule) = RULES.iter().find(|(known, _)| *known == name).unwrap();
            for part in [name, value, rule] {
                assert!(refused.contains(part), "{refused}");
            }
        }
        let refused = Setting::parse("size", "1").unwrap_err().to_string();
        assert!(refused.contains("`size`") && refused.contains("temperature"), "{refused}");
    }

    #[test]
    fn values_that_are_not_from_text_have_the_same_rules() {
        for setting in [
            Setting::Quota(Some(1)),
            Setting::Iops(Some(u32::MAX)),
            Setting::Bandwidth(Some(4095)),
            Setting::Weight(0),
            Setting::Stream(8),
        ] {
            assert!(matches!(setting.check(), Err(VolumeError::BadSetting { .. })), "{setting:?}");
        }
        assert_eq!(Setting::Quota(None).check(), Ok(()));
    }
}
