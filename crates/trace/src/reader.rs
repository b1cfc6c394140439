//! Reading a trace: an iterator of requests.

use crate::compression::Input;
use crate::detect::detect;
use crate::error::TraceError;
use crate::foreign;
use crate::format::{Decoder, Format, Raw};
use crate::lines::{Line, Lines};
use crate::malformed::{FieldError, Malformed, Problem};
use crate::request::{Kind, Request};
use serde::{Serialize, Serializer};
use std::io::{self, Read};
use std::sync::Arc;

/// The most malformed lines that a lenient reader keeps; all are counted.
pub const KEPT_MALFORMED: usize = 10;

/// Options for reading a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format; `None` to detect it by the first lines.
    pub format: Option<Format>,
    /// Whether malformed lines are counted and skipped; otherwise the first one ends the trace.
    pub lenient: bool,
    /// Nanoseconds per time unit of vscsi, which does not state its unit: seconds in the published
    /// sample.
    pub vscsi_tick_ns: u64,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions { format: None, lenient: false, vscsi_tick_ns: 1_000_000_000 }
    }
}

/// The counters of a reader.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// All lines.
    pub lines: u64,
    /// Requests returned.
    pub requests: u64,
    /// Valid lines without a request: headers, other events, statistics.
    pub passed_over: u64,
    /// Malformed lines, which were skipped.
    pub malformed: u64,
    /// The first malformed lines.
    #[serde(serialize_with = "as_texts")]
    pub first_malformed: Vec<Malformed>,
    /// Requests whose time was before that of the previous request; they got the time of that
    /// request.
    pub out_of_order: u64,
    /// Requests more than 30 days after the previous one: more likely a damaged time than a pause.
    pub jumps: u64,
    /// The line of the first of them, and its distance from the previous request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_jump: Option<Jump>,
}

/// A request that comes long after the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Jump {
    /// Its line, from 1.
    pub line: u64,
    /// From the previous request, in nanoseconds.
    pub ns: u64,
}

/// The longest time from a request to the next that is no jump: 30 days.
const LONGEST_PAUSE_NS: u64 = 30 * 86_400_000_000_000;

fn as_texts<S: Serializer>(malformed: &[Malformed], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(malformed.iter().map(ToString::to_string))
}

/// Reads the requests of a trace, in order.
pub struct Reader<R: Read> {
    lines: Lines<Input<R>>,
    decoder: Decoder,
    clock: Clock,
    format: Format,
    file: Arc<str>,
    lenient: bool,
    ended: bool,
    /// The time of the previous request.
    before_ns: u64,
    tally: Tally,
}

impl<R: Read> Reader<R> {
    /// Reads the beginning of the stream; `file` is its name in messages. Compression and format
    /// are detected by the first bytes: up to 64 KiB are read before the first request is returned.
    pub fn open(input: R, file: &str, options: ReadOptions) -> Result<Reader<R>, TraceError> {
        let file: Arc<str> = file.into();
        let failed = |source| TraceError::Read { file: Arc::clone(&file), source };
        let mut lines = Lines::new(Input::open(input).map_err(failed)?);
        let beginning = lines.peek().map_err(failed)?;
        if let Some(foreign) = foreign::of(beginning) {
            return Err(TraceError::Foreign { remedy: foreign.remedy(&file), foreign, file });
        }
        let format = options.format.or_else(|| detect(beginning));
        let Some(format) = format else {
            return Err(match beginning.trim_ascii().is_empty() {
                true => TraceError::Empty { file },
                false => TraceError::UnknownFormat { file },
            });
        };
        Ok(Reader {
            decoder: Decoder::new(format, beginning),
            lines,
            clock: Clock::new(format.tick_ns(options.vscsi_tick_ns)),
            format,
            file,
            lenient: options.lenient,
            ended: false,
            before_ns: 0,
            tally: Tally::default(),
        })
    }

    /// The format of the trace.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The counters up to now.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Reads and decodes the next line.
    #[inline]
    fn next_line(&mut self) -> Step {
        let line = match self.lines.next() {
            Ok(Some(Line::Whole(line))) => line,
            Ok(Some(Line::TooLong(line))) => {
                let (reason, number) = (Problem::TooLong.of("line"), self.tally.lines + 1);
                return Step::Malformed(Malformed::new(&self.file, number, reason, line));
            }
            Ok(None) => return Step::End,
            Err(error) => return Step::Failed(error),
        };
        let decoded = match self.tally.lines {
            0 => match self.decoder.header(line) {
                Ok(false) => decode(&mut self.decoder, line),
                Ok(true) => Ok(None),
                Err(reason) => Err(reason),
            },
            _ => decode(&mut self.decoder, line),
        };
        match decoded.and_then(|raw| raw.map(|raw| self.clock.request(raw)).transpose()) {
            Ok(Some(request)) => Step::Request(request),
            Ok(None) => Step::PassedOver,
            Err(reason) => {
                let number = self.tally.lines + 1;
                Step::Malformed(Malformed::new(&self.file, number, reason, line))
            }
        }
    }

    #[cold]
    fn note_jump(&mut self, ns: u64) {
        self.tally.jumps += 1;
        let line = self.tally.lines;
        self.tally.first_jump.get_or_insert(Jump { line, ns });
    }

    /// The error of a trace with malformed lines and without a request: it has another format.
    fn nothing_read(&self) -> Option<TraceError> {
        let first = self.tally.first_malformed.first().filter(|_| self.tally.requests == 0)?;
        let (lines, format) = (self.tally.malformed, self.format);
        Some(TraceError::NothingRead { first: first.clone(), lines, format })
    }
}

/// Decodes a line. Empty lines are skipped: no format has them, but many files do.
#[inline]
fn decode(decoder: &mut Decoder, line: &[u8]) -> Result<Option<Raw>, FieldError> {
    if line.is_empty() || line.trim_ascii().is_empty() { Ok(None) } else { decoder.decode(line) }
}

/// The result of a line.
enum Step {
    Request(Request),
    PassedOver,
    Malformed(Malformed),
    Failed(io::Error),
    End,
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Request, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Result<Request, TraceError>> {
        while !self.ended {
            let step = self.next_line();
            self.tally.lines = self.lines.number();
            match step {
                Step::Request(request) => {
                    if request.at_ns - self.before_ns > LONGEST_PAUSE_NS {
                        self.note_jump(request.at_ns - self.before_ns);
                    }
                    self.before_ns = request.at_ns;
                    self.tally.requests += 1;
                    self.tally.out_of_order = self.clock.out_of_order;
                    return Some(Ok(request));
                }
                Step::PassedOver => self.tally.passed_over += 1,
                Step::Malformed(malformed) if self.lenient => {
                    self.tally.malformed += 1;
                    if self.tally.first_malformed.len() < KEPT_MALFORMED {
                        self.tally.first_malformed.push(malformed);
                    }
                }
                Step::Malformed(malformed) => {
                    self.ended = true;
                    return Some(Err(TraceError::Malformed(malformed)));
                }
                Step::Failed(source) => {
                    self.ended = true;
                    return Some(Err(TraceError::Read { file: Arc::clone(&self.file), source }));
                }
                Step::End => {
                    self.ended = true;
                    return self.nothing_read().map(Err);
                }
            }
        }
        None
    }
}

/// Converts a format's times into nanoseconds since the first request, which never decrease.
struct Clock {
    tick_ns: u64,
    first: Option<u64>,
    now_ns: u64,
    out_of_order: u64,
}

impl Clock {
    fn new(tick_ns: u64) -> Clock {
        Clock { tick_ns, first: None, now_ns: 0, out_of_order: 0 }
    }

    #[inline]
    fn request(&mut self, raw: Raw) -> Result<Request, FieldError> {
        if raw.offset_bytes.checked_add(raw.bytes).is_none() {
            return Err(Problem::TooLarge.of("end of the request"));
        }
        let first = *self.first.get_or_insert(raw.ticks);
        let at_ns = match raw.ticks.checked_sub(first) {
            Some(ticks) => ticks.checked_mul(self.tick_ns).ok_or(Problem::TooLarge.of("time"))?,
            // Before the first request; a time before now counts as now.
            None => 0,
        };
        if at_ns < self.now_ns || raw.ticks < first {
            self.out_of_order += 1;
        }
        self.now_ns = self.now_ns.max(at_ns);
        let (offset_bytes, bytes) = match raw.kind {
            Kind::Flush => (0, 0),
            _ => (raw.offset_bytes, raw.bytes),
        };
        Ok(Request { at_ns: self.now_ns, device: raw.device, kind: raw.kind, offset_bytes, bytes })
    }
}
