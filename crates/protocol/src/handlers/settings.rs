//! The settings of CONFIG GET, some of which CONFIG SET can change.

use crate::context::Context;
use crate::context::settings::FixedSetting;
use crate::error::{CommandError, Result};
use crate::resp::number::parse_i64;
use crate::shared::glob::Glob;
use bytes::Bytes;

const THRESHOLD: &str = "slowlog-log-slower-than";
const LIMIT: &str = "slowlog-max-len";

/// All settings and their current values.
fn settings(context: &Context) -> Vec<FixedSetting> {
    let mut all = context.services.settings.clone();
    all.push((THRESHOLD.into(), context.slowlog.threshold_us().to_string()));
    all.push((LIMIT.into(), context.slowlog.limit().to_string()));
    all.sort();
    all
}

/// The settings whose names match one of the patterns.
pub(crate) fn get(context: &Context, patterns: &[Bytes]) -> Vec<FixedSetting> {
    let fits = |name: &str| {
        patterns.iter().any(|pattern| Glob::ignoring_case(pattern).matches(name.as_bytes()))
    };
    settings(context).into_iter().filter(|(name, _)| fits(name)).collect()
}

/// Changes all of these settings, or none and returns an error.
pub(crate) fn set(context: &Context, pairs: &[Bytes]) -> Result<()> {
    let mut changes: Vec<(&'static str, i64)> = Vec::new();
    let known = settings(context);
    for pair in pairs.chunks_exact(2) {
        let [name, value] = pair else { continue };
        let is = |setting: &str| name.eq_ignore_ascii_case(setting.as_bytes());
        let Some(setting) = [THRESHOLD, LIMIT].into_iter().find(|setting| is(setting)) else {
            return Err(if known.iter().any(|(setting, _)| is(setting)) {
                failed(name, "can't set immutable config")
            } else {
                CommandError::quoting(&[
                    b"ERR Unknown option or number of arguments for CONFIG SET - '",
                    name,
                    b"'",
                ])
            });
        };
        if changes.iter().any(|(earlier, _)| *earlier == setting) {
            return Err(failed(name, "duplicate parameter"));
        }
        let number = parse_i64(value)
            .ok_or_else(|| failed(name, "argument couldn't be parsed into an integer"))?;
        if number < if setting == THRESHOLD { -1 } else { 0 } {
            let range = if setting == THRESHOLD { "-1" } else { "0" };
            let reason = format!("argument must be between {range} and {} inclusive", i64::MAX);
            return Err(failed(name, &reason));
        }
        changes.push((setting, number));
    }
    for (setting, number) in changes {
        if setting == THRESHOLD {
            context.slowlog.set_threshold_us(number);
        } else {
            context.slowlog.set_limit(usize::try_from(number).unwrap_or(usize::MAX));
        }
    }
    Ok(())
}

fn failed(name: &[u8], reason: &str) -> CommandError {
    CommandError::quoting(&[
        b"ERR CONFIG SET failed (possibly related to argument '",
        name,
        b"') - ",
        reason.as_bytes(),
    ])
}
