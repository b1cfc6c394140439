//! fio's I/O log, version 3: `timestamp filename action`, `timestamp filename action offset
//! length`, microseconds.

use super::fio::{Action, Files, OpenFiles, action, put_request};
use super::raw::{Decoded, Raw};
use crate::fields::{Words, put};
use crate::malformed::Problem;
use crate::request::Request;

pub(super) const HEADER: &str = "fio version 3 iolog";

#[derive(Default)]
pub(crate) struct Decoder {
    files: Files,
}

impl Decoder {
    #[inline]
    pub(super) fn decode(&mut self, line: &[u8]) -> Decoded {
        let mut words = Words::new(line);
        let ticks = words.number("timestamp")?;
        let device = self.files.device(words.next("filename")?)?;
        let kind = match action(words.next("action")?)? {
            Action::Request(kind) => kind,
            Action::Manage => {
                words.end()?;
                return Ok(None);
            }
            Action::Wait => return Err(Problem::Unknown.of("action")),
        };
        let offset_bytes = words.number("offset")?;
        let bytes = words.number("length")?;
        words.end()?;
        Ok(Some(Raw { ticks, device, kind, offset_bytes, bytes }))
    }
}

#[derive(Default)]
pub(crate) struct Encoder {
    files: OpenFiles,
    now_us: u64,
}

impl Encoder {
    pub(super) fn encode(&mut self, request: &Request, line: &mut Vec<u8>) {
        self.now_us = request.at_ns / 1000;
        if self.files.opens(request.device) {
            OpenFiles::put_manage(Some(self.now_us), request.device, " add", line);
            OpenFiles::put_manage(Some(self.now_us), request.device, " open", line);
        }
        put(line, self.now_us);
        line.push(b' ');
        put_request(request, line);
    }

    pub(super) fn end(&mut self, line: &mut Vec<u8>) {
        self.files.close(Some(self.now_us), line);
    }
}
