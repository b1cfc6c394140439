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
}

/// The name and the number of a policy in text, `name:number`; `None` unless the number is at least
/// 1.
pub(super) fn with_number(text: &str) -> Option<(&str, u32)> {
    let (name, number) = text.split_once(':')?;
    // Signs, which `parse` accepts, are no part of the form.
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse().ok().filter(|&number| digits && number > 0)?;
    Some((name, number))
}
