//! The settings that CONFIG GET shows.

use softflash_store::value::DEFAULT_VALUE_BYTES;

/// A setting that cannot be changed at run time.
pub type FixedSetting = (String, String);

/// Settings that Redis clients ask for, with the values that apply here.
pub(crate) fn defaults() -> Vec<FixedSetting> {
    let limit = DEFAULT_VALUE_BYTES.to_string();
    let settings = [
        ("appendfsync", "always"),
        ("appendonly", "yes"),
        ("cluster-enabled", "no"),
        ("databases", "1"),
        ("maxmemory", "0"),
        ("maxmemory-policy", "noeviction"),
        ("proto-max-bulk-len", limit.as_str()),
        ("save", ""),
        ("timeout", "0"),
    ];
    settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}
