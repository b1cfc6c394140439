//! The text of policies: a name, or a name and a number.

use thiserror::Error;

/// The text of a policy that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// No victim policy.
    #[error(
        "unknown victim policy `{0}`; there are `greedy`, `fifo`, `cost-benefit`, \
         `d-choices:NUMBER` and `windowed-greedy:NUMBER`"
    )]
    Victim(String),
    /// No wear policy.
    #[error("unknown wear policy `{0}`; there are `fifo`, `dynamic` and `static:NUMBER`")]
    Wear(String),
    /// No order of the operations of a die.
    #[error(
        "unknown schedule `{0}`; there are `fifo`, `reads-first`, `weighted-fair:READS:WRITES` and \
         `deadline:MILLISECONDS`, with whole numbers from 1"
    )]
    Schedule(String),
    /// No placement policy.
    #[error(
        "unknown placement `{0}`; there are `static`, `round-robin`, `least-queue`, `least-worn` \
         and `by-hint:CLASSES`, with 2 to 8 classes"
    )]
    Placement(String),
    /// No kind of map.
    #[error(
        "unknown map `{0}`; there are `page` and `cached:SHARE`, with a share above 0 and at most 1, \
         as 1/8 or 12.5%"
    )]
    Map(String),
}

/// The name and the number of a policy in text, `name:number`; `None` unless the number is at least
/// 1.
pub(super) fn with_number(text: &str) -> Option<(&str, u32)> {
    let (name, given) = text.split_once(':')?;
    Some((name, number(given)?))
}

/// A number of at least 1.
pub(crate) fn number(text: &str) -> Option<u32> {
    // Signs, which `parse` accepts, are no part of the form.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&number| digits && number > 0)
}
