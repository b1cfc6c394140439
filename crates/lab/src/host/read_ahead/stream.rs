//! A block that is being read front to back, in windows.

use softflash_base::{IoBuf, Time};
use softflash_device::{Completion, DeviceError, Tag, Target};

/// A window of a stream.
enum Window {
    /// Asked for.
    UnderWay,
    /// In memory.
    Here(IoBuf),
    /// It could not be read.
    Failed(DeviceError),
    /// The reader has passed it.
    Passed,
}

/// The current reader of a stream.
struct Reader {
    tag: Tag,
    buffer: IoBuf,
    /// Rows that it wants.
    first: u32,
    end: u32,
}

/// Windows of one block, one behind the other, and the reader that goes through them.
pub(super) struct Stream {
    /// Where the first window begins; other rows of the same blocks are meant by the rest.
    target: Target,
    window_rows: u32,
    row_bytes: usize,
    /// Behind the last row that there is.
    end: u32,
    windows: Vec<Window>,
    /// The window that the reader is at, or the last one was.
    at: usize,
    reader: Option<Reader>,
    /// Behind the last row that anybody wanted.
    read_to: u32,
}

impl Stream {
    /// A stream that begins where a read does. `row_bytes` are those of a row of the target, `end`
    /// is behind the last row.
    pub(super) fn new(target: Target, window_rows: u32, row_bytes: usize, end: u32) -> Stream {
        Stream {
            target,
            window_rows,
            row_bytes,
            end,
            windows: Vec::new(),
            at: 0,
            reader: None,
            read_to: target.page,
        }
    }

    /// Whether a read finds the stream ahead of it, and no other reader.
    pub(super) fn meets(&self, target: &Target) -> bool {
        let row = target.page;
        let ahead = self.windows.get(self.at..).unwrap_or_default();
        let sound = |window: &Window| matches!(window, Window::UnderWay | Window::Here(_));
        self.reader.is_none()
            && row + target.rows <= self.end
            && row >= self.first_row(self.at)
            && row < self.first_row(self.windows.len())
            && ahead.iter().all(sound)
    }

    /// Whether the last read ended at `row`, or in it.
    pub(super) fn ended_at(&self, row: u32) -> bool {
        row == self.read_to || row + 1 == self.read_to
    }

    /// The unit of its blocks.
    pub(super) fn unit(&self) -> u16 {
        self.target.unit.0
    }

    /// Whether it has no reader.
    pub(super) fn is_idle(&self) -> bool {
        self.reader.is_none()
    }

    /// A reader comes.
    pub(super) fn read(&mut self, tag: Tag, target: &Target, buffer: IoBuf) {
        let (first, end) = (target.page, target.page + target.rows);
        self.read_to = end;
        self.reader = Some(Reader { tag, buffer, first, end });
    }

    /// A window has arrived, or not.
    pub(super) fn arrived(
        &mut self,
        window: usize,
        data: Option<IoBuf>,
        result: Result<(), DeviceError>,
    ) {
        let Some(place) = self.windows.get_mut(window) else { return };
        if matches!(place, Window::UnderWay) {
            *place = match (result, data) {
                (Ok(()), Some(data)) => Window::Here(data),
                (Ok(()), None) => Window::Failed(DeviceError::OutOfRange("no buffer".to_owned())),
                (Err(error), _) => Window::Failed(error),
            };
        }
    }

    /// Lets the reader go as far as it can. Windows to ask for are given to `ask`; the completion
    /// of the read is returned when it has all it wants.
    pub(super) fn advance(
        &mut self,
        now: Time,
        mut ask: impl FnMut(usize, Target),
    ) -> Option<Completion> {
        loop {
            // As soon as the reader is at a window, the next one is asked for.
            while self.reader.is_some() && self.windows.len() < self.at + 2 {
                let next = self.windows.len();
                let (page, end) = (self.first_row(next), self.end.max(self.reader_end()));
                if page >= end {
                    break;
                }
                let rows = self.window_rows.min(end - page);
                self.windows.push(Window::UnderWay);
                ask(next, Target { page, rows, ..self.target });
            }
            let begin = self.first_row(self.at);
            let (reader, window) = (self.reader.as_mut()?, self.windows.get_mut(self.at)?);
            let result = match window {
                Window::UnderWay => return None,
                Window::Here(data) => {
                    let rows = (data.len() / self.row_bytes) as u32;
                    let (from, to) = (reader.first.max(begin), reader.end.min(begin + rows));
                    if from < to {
                        let bytes = |row: u32| row as usize * self.row_bytes;
                        let source = data.get(bytes(from - begin)..bytes(to - begin));
                        let wanted = bytes(from - reader.first)..bytes(to - reader.first);
                        if let (Some(source), Some(into)) = (source, reader.buffer.get_mut(wanted))
                        {
                            into.copy_from_slice(source);
                        }
                    }
                    if reader.end > begin + rows {
                        *window = Window::Passed;
                        self.at += 1;
                        continue;
                    }
                    Ok(())
                }
                Window::Failed(error) => Err(error.clone()),
                Window::Passed => return None,
            };
            let Reader { tag, buffer, .. } = self.reader.take()?;
            return Some(Completion {
                tag,
                buffer: Some(buffer),
                result,
                retries: 0,
                finished_at: now,
            });
        }
    }

    fn first_row(&self, window: usize) -> u32 {
        self.target.page + window as u32 * self.window_rows
    }

    fn reader_end(&self) -> u32 {
        self.reader.as_ref().map_or(0, |reader| reader.end)
    }
}
