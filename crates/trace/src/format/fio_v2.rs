//! fio's I/O log, version 2: `filename action`, `filename action offset length`.
//!
//! Requests have no times. `wait N` delays the following requests until N milliseconds after the
//! start. This is fio's behaviour (measured with 3.33), although its manual describes microseconds
//! since the last wait.

use super::fio::{Action, Files, OpenFiles, action, put_request};
use super::raw::{Decoded, Raw};
use crate::fields::{Words, put};
use crate::malformed::Problem;
use crate::request::Request;

pub(super) const HEADER: &str = "fio version 2 iolog";

const MILLISECOND_NS: u64 = 1_000_000;

#[derive(Default)]
pub(crate) struct Decoder {
    files: Files,
    now_ns: u64,
}

impl Decoder {
    #[inline]
    pub(super) fn decode(&mut self, line: &[u8]) -> Decoded {
        let mut words = Words::new(line);
        let device = self.files.device(words.next("filename")?)?;
        let action = action(words.next("action")?)?;
        if matches!(action, Action::Manage) {
            words.end()?;
            return Ok(None);
        }
        let offset_bytes = words.number("offset")?;
        let bytes = words.number("length")?;
        words.end()?;
        match action {
            Action::Request(kind) => {
                Ok(Some(Raw { ticks: self.now_ns, device, kind, offset_bytes, bytes }))
            }
            Action::Wait | Action::Manage => {
                let until = offset_bytes.checked_mul(MILLISECOND_NS);
                self.now_ns = self.now_ns.max(until.ok_or(Problem::TooLarge.of("offset"))?);
                Ok(None)
            }
        }
    }
}

#[derive(Default)]
pub(crate) struct Encoder {
    files: OpenFiles,
    now_ms: u64,
}

impl Encoder {
    pub(super) fn encode(&mut self, request: &Request, line: &mut Vec<u8>) {
        if self.files.opens(request.device) {
            OpenFiles::put_manage(None, request.device, " add", line);
            OpenFiles::put_manage(None, request.device, " open", line);
        }
        let at_ms = request.at_ns / MILLISECOND_NS;
        if at_ms > self.now_ms {
            self.now_ms = at_ms;
            OpenFiles::put_manage(None, request.device, " wait ", line);
            // Removes the line end, which follows after the numbers.
            line.pop();
            put(line, at_ms);
            line.extend_from_slice(b" 0\n");
        }
        put_request(request, line);
    }

    pub(super) fn end(&mut self, line: &mut Vec<u8>) {
        self.files.close(None, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Kind;

    #[test]
    fn a_wait_is_until_a_time_and_never_back() {
        let mut decoder = Decoder::default();
        let mut times = Vec::new();
        for line in ["/f read 0 1", "/f wait 700 0", "/f read 0 1", "/f wait 500 0", "/f sync 0 0"]
        {
            times.extend(decoder.decode(line.as_bytes()).unwrap().map(|raw| (raw.ticks, raw.kind)));
        }
        assert_eq!(times, [(0, Kind::Read), (700_000_000, Kind::Read), (700_000_000, Kind::Flush)]);
    }
}
