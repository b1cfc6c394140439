//! Which format a trace is of, from how it begins.

use crate::fields::Words;
use crate::format::{Decoder, Format};

/// Lines that are tried.
const LINES: usize = 64;

/// The format of a trace that begins with `beginning` (unpacked): the one whose header stands
/// there, or which reads most of the first lines as requests, and more than it finds malformed. A
/// last line without an end is not looked at where there are others: it may have been cut.
pub fn detect(beginning: &[u8]) -> Option<Format> {
    let whole = match beginning.iter().rposition(|&byte| byte == b'\n') {
        Some(end) => beginning.get(..end).unwrap_or_default(),
        None => beginning,
    };
    let lines: Vec<&[u8]> = whole
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| Words::new(line).word().is_some())
        .take(LINES)
        .collect();
    let first = lines.first()?;
    let mut best = None;
    for format in Format::ALL {
        let mut decoder = Decoder::new(format, whole);
        match decoder.header(first) {
            Ok(true) => return Some(format),
            Ok(false) => {}
            Err(_) => continue,
        }
        let (mut requests, mut malformed) = (0_usize, 0_usize);
        for line in &lines {
            match decoder.decode(line) {
                // Where that is the kind of request in Tencent's format: no request is for a byte
                // or none.
                Ok(Some(raw)) if format == Format::Vscsi && raw.bytes < 2 => {}
                Ok(Some(_)) => requests += 1,
                Ok(None) => {}
                Err(_) => malformed += 1,
            }
        }
        if requests > malformed && best.is_none_or(|(most, _)| requests > most) {
            best = Some((requests, format));
        }
    }
    best.map(|(_, format)| format)
}
