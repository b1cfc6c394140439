//! CLIENT REPLY: which replies are sent.

/// The state of CLIENT REPLY. As in Redis, a skip lasts for the command after CLIENT REPLY SKIP,
/// and CLIENT REPLY ON ends it even there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReplyMode {
    is_off: bool,
    skips_this: bool,
    skips_next: bool,
}

impl ReplyMode {
    /// Whether the reply of the command that is running now is not sent.
    #[inline]
    pub fn is_silent(self) -> bool {
        self.is_off || self.skips_this
    }

    /// CLIENT REPLY ON
    pub fn switch_on(&mut self) {
        (self.is_off, self.skips_this) = (false, false);
    }

    /// CLIENT REPLY OFF
    pub fn switch_off(&mut self) {
        self.is_off = true;
    }

    /// CLIENT REPLY SKIP
    pub fn skip_next(&mut self) {
        self.skips_next |= !self.is_off;
    }

    /// RESET, whose own reply may be skipped.
    pub fn reset(&mut self) {
        (self.is_off, self.skips_next) = (false, false);
    }

    /// A command of the connection has ended; those of a transaction end with their EXEC.
    #[inline]
    pub fn end_command(&mut self) {
        self.skips_this = std::mem::take(&mut self.skips_next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs commands; returns which replies are sent.
    fn sent(commands: &str) -> String {
        let mut mode = ReplyMode::default();
        let run = |command: &str| {
            match command {
                "on" => mode.switch_on(),
                "off" => mode.switch_off(),
                "skip" => mode.skip_next(),
                "reset" => mode.reset(),
                _ => {}
            }
            // OFF and SKIP have no reply of their own.
            let is_sent = !mode.is_silent() && !["off", "skip"].contains(&command);
            mode.end_command();
            if is_sent { '1' } else { '0' }
        };
        commands.split(' ').map(run).collect()
    }

    #[test]
    fn a_skip_lasts_for_one_command_and_on_ends_it() {
        for (commands, expected) in [
            ("ping skip ping ping", "1001"),
            ("skip on ping", "011"),
            ("skip skip ping ping", "0001"),
            ("off ping skip ping on ping", "000011"),
            ("skip off ping on ping", "00011"),
            ("skip reset ping", "001"),
            ("off reset ping", "011"),
        ] {
            assert_eq!(sent(commands), expected, "{commands}");
        }
    }
}
