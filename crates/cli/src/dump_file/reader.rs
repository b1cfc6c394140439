//! Reading a dump file.

use super::{
    DumpError, END, FORMAT_VERSION, FRAME_HEADER_BYTES, HEADER_BYTES, MAGIC, MAX_FRAME_BYTES,
    RECORD_HEADER_BYTES, Record, frame_checksum, header,
};
use bytes::{Buf, Bytes};
use std::io::{ErrorKind, Read};

/// Reads records from a stream of one dump or of several, one behind the other; a record is
/// returned only after its frame's checksum was verified.
pub struct DumpReader<R> {
    input: R,
    frame: Bytes,
    records_left: u32,
    /// Frames of this dump.
    frames: u64,
    /// Offset of the current frame.
    offset: u64,
    next_offset: u64,
    records: u64,
    /// Records before this dump.
    records_before: u64,
    ended: bool,
}

impl<R: Read> DumpReader<R> {
    /// Reads the header. The stream begins at this offset of its file.
    pub fn begin(mut input: R, at: u64) -> Result<DumpReader<R>, DumpError> {
        let mut found = [0; HEADER_BYTES];
        match input.read_exact(&mut found) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(DumpError::NotADump);
            }
            read => read?,
        }
        match check_header(&found)? {
            Header::Whole => {}
            Header::None => return Err(DumpError::NotADump),
            Header::Damaged => {
                return Err(DumpError::Damaged { offset: at, reason: "its header", records: 0 });
            }
        }
        let start = at + HEADER_BYTES as u64;
        Ok(DumpReader {
            input,
            frame: Bytes::new(),
            records_left: 0,
            frames: 0,
            offset: start,
            next_offset: start,
            records: 0,
            records_before: 0,
            ended: false,
        })
    }

    /// Bytes of the file read so far.
    pub fn bytes_read(&self) -> u64 {
        self.next_offset
    }

    /// Number of records returned so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The next record; none at the end of a complete stream.
    pub fn read(&mut self) -> Result<Option<Record>, DumpError> {
        while self.records_left == 0 {
            if !self.frame.is_empty() {
                return Err(self.damaged("bytes after the last record of a frame"));
            }
            if self.ended || !self.next_frame()? && !self.next_dump()? {
                return Ok(None);
            }
        }
        let record =
            self.record().ok_or_else(|| self.damaged("a record beyond the end of its frame"))?;
        self.records_left -= 1;
        self.records += 1;
        Ok(Some(record))
    }

    fn record(&mut self) -> Option<Record> {
        if self.frame.len() < RECORD_HEADER_BYTES {
            return None;
        }
        let (key, value) = (self.frame.get_u32_le() as usize, self.frame.get_u32_le() as usize);
        let expires_at_ms = self.frame.get_u64_le();
        if self.frame.len() < key.checked_add(value)? {
            return None;
        }
        let key = self.frame.split_to(key);
        Some(Record { key, value: self.frame.split_to(value), expires_at_ms })
    }

    /// Reads a frame; false for the last one.
    fn next_frame(&mut self) -> Result<bool, DumpError> {
        self.offset = self.next_offset;
        let mut head = [0; FRAME_HEADER_BYTES];
        self.read_exact(&mut head)?;
        let mut fields = &head[..];
        let (length, records) = (fields.get_u32_le(), fields.get_u32_le());
        let checksum = fields.get_u64_le();
        let bytes = length as usize;
        if bytes > MAX_FRAME_BYTES {
            return Err(self.damaged("a frame of impossible length"));
        }
        let mut payload = vec![0; bytes];
        self.read_exact(&mut payload)?;
        if frame_checksum(self.frames, length, records, &payload) != checksum {
            return Err(self.damaged("its checksum does not match"));
        }
        self.frames += 1;
        self.next_offset += (FRAME_HEADER_BYTES + bytes) as u64;
        if records != END {
            self.frame = Bytes::from(payload);
            self.records_left = records;
            return Ok(true);
        }
        let total: Result<[u8; 8], _> = payload.try_into();
        if total.map(u64::from_le_bytes) != Ok(self.records - self.records_before) {
            return Err(self.damaged("the number of records does not match"));
        }
        Ok(false)
    }

    /// Begins the dump behind the end frame of another one; false at the end of the stream.
    fn next_dump(&mut self) -> Result<bool, DumpError> {
        self.offset = self.next_offset;
        let mut head = Vec::with_capacity(HEADER_BYTES);
        (&mut self.input).take(HEADER_BYTES as u64).read_to_end(&mut head)?;
        if head.is_empty() {
            self.ended = true;
            return Ok(false);
        }
        let head: Result<[u8; HEADER_BYTES], _> = head.try_into();
        match head.as_ref().map_or(Ok(Header::None), check_header)? {
            Header::Whole => {}
            Header::None => {
                return Err(self.damaged("what follows the end of the dump is no other dump"));
            }
            Header::Damaged => return Err(self.damaged("the header of a further dump")),
        }
        self.next_offset += HEADER_BYTES as u64;
        self.frames = 0;
        self.records_before = self.records;
        Ok(true)
    }

    fn read_exact(&mut self, into: &mut [u8]) -> Result<(), DumpError> {
        match self.input.read_exact(into) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Err(self.damaged("the file ends here"))
            }
            read => Ok(read?),
        }
    }

    fn damaged(&self, reason: &'static str) -> DumpError {
        DumpError::Damaged { offset: self.offset, reason, records: self.records }
    }
}

/// What the first bytes of a dump are.
enum Header {
    Whole,
    Damaged,
    /// They are those of something else.
    None,
}

fn check_header(found: &[u8; HEADER_BYTES]) -> Result<Header, DumpError> {
    let mut fields = &found[..];
    if fields.copy_to_bytes(8) != MAGIC[..] {
        return Ok(Header::None);
    }
    let version = fields.get_u32_le();
    if version > FORMAT_VERSION {
        return Err(DumpError::NewerVersion { found: version });
    }
    fields.advance(4);
    match version > 0 && *found == header(version, fields.get_u64_le()) {
        true => Ok(Header::Whole),
        false => Ok(Header::Damaged),
    }
}
