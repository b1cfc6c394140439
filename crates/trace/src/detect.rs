//! Detection of a trace's format by its first lines.

use crate::fields::Words;
use crate::format::{Decoder, Format};

/// The most lines that are tried.
const LINES: usize = 64;

/// The format of a trace that begins with `beginning` (decompressed): the one whose header is the
/// first line, or the one that decodes the most of the first lines as requests, and more than it
/// finds malformed. A last line without a line end is ignored if there are others, because it may
/// be incomplete.
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
                // In Tencent's format this field is the request kind, 0 or 1; requests have at
                // least 2 bytes.
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
