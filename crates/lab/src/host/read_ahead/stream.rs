//! A sequential read of a block, in windows.

use softflash_base::{IoBuf, Time};
use softflash_device::backend::Accepted;
use softflash_device::{Completion, DeviceError, Hint, Target};

/// A window of a stream.
enum Window {
    /// Submitted to the device.
    UnderWay,
    /// In memory.
    Here(IoBuf),
    /// Its read failed.
    Failed(DeviceError),
    /// Copied completely by the reader.
    Passed,
}

/// The current reader of a stream.
struct Reader {
    accepted: Accepted,
    buffer: IoBuf,
    /// The rows of the read.
    first: u32,
    end: u32,
}

/// Consecutive windows of one block, and their reader.
pub(super) struct Stream {
    /// The target with the first row of the first window; further windows are other rows of the
    /// same blocks.
    target: Target,
    window_rows: u32,
    row_bytes: usize,
    /// The end of the rows.
    end: u32,
    windows: Vec<Window>,
    /// The window of the current reader, or of the last one.
    at: usize,
    reader: Option<Reader>,
    /// The hint of the last read.
    hint: Hint,
    /// The end of the last read.
    read_to: u32,
}

impl Stream {
    /// A stream from the beginning of a read on. `row_bytes` is the size of a row of the target,
    /// `end` the end of its rows.
    pub(super) fn new(target: Target, window_rows: u32, row_bytes: usize, end: u32) -> Stream {
        Stream {
            target,
            window_rows,
            row_bytes,
            end,
            windows: Vec::new(),
            at: 0,
            reader: None,
            hint: Hint::FOREGROUND,
            read_to: target.page,
        }
    }

    /// Whether a read begins in the windows of the stream, and the stream has no other reader.
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

    /// The hint of the last read.
    pub(super) fn hint(&self) -> Hint {
        self.hint
    }

    /// The unit of its blocks.
    pub(super) fn unit(&self) -> u16 {
        self.target.unit.0
    }

    /// Whether it has no reader.
    pub(super) fn is_idle(&self) -> bool {
        self.reader.is_none()
    }

    /// Sets the reader of the stream.
    pub(super) fn read(&mut self, accepted: Accepted, target: &Target, hint: Hint, buffer: IoBuf) {
        let (first, end) = (target.page, target.page + target.rows);
        self.read_to = end;
        self.hint = hint;
        self.reader = Some(Reader { accepted, buffer, first, end });
    }

    /// Handles the completion of a window.
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

    /// Advances the reader as far as possible. Calls `ask` for each window to submit; returns the
    /// completion of the read when it has all its data.
    pub(super) fn advance(
        &mut self,
        now: Time,
        mut ask: impl FnMut(usize, Target),
    ) -> Option<Completion> {
        loop {
            // As soon as the reader is at a window, the next one is submitted.
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
            let Reader { accepted, buffer, .. } = self.reader.take()?;
            return Some(accepted.ended(now, Some(buffer), result));
        }
    }

    fn first_row(&self, window: usize) -> u32 {
        self.target.page + window as u32 * self.window_rows
    }

    fn reader_end(&self) -> u32 {
        self.reader.as_ref().map_or(0, |reader| reader.end)
    }
}
