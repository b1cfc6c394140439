//! Writing a dump file.

use super::{
    DumpError, END, FORMAT_VERSION, FRAME_BYTES, FRAME_HEADER_BYTES, Record, frame_checksum, header,
};
use softflash_base::cast::saturating_u32;
use std::io::Write;

/// Writes records to a stream.
pub struct DumpWriter<W> {
    out: W,
    payload: Vec<u8>,
    records_in_frame: u32,
    frames: u64,
    records: u64,
}

impl<W: Write> DumpWriter<W> {
    /// Starts a file.
    pub fn begin(mut out: W, created_at_ms: u64) -> Result<DumpWriter<W>, DumpError> {
        out.write_all(&header(FORMAT_VERSION, created_at_ms))?;
        Ok(DumpWriter { out, payload: Vec::new(), records_in_frame: 0, frames: 0, records: 0 })
    }

    /// Adds a record.
    pub fn write(&mut self, record: &Record) -> Result<(), DumpError> {
        self.payload.extend_from_slice(&length(record.key.len()));
        self.payload.extend_from_slice(&length(record.value.len()));
        self.payload.extend_from_slice(&record.expires_at_ms.to_le_bytes());
        self.payload.extend_from_slice(&record.key);
        self.payload.extend_from_slice(&record.value);
        self.records_in_frame += 1;
        self.records += 1;
        match self.payload.len() >= FRAME_BYTES {
            true => self.end_frame(self.records_in_frame),
            false => Ok(()),
        }
    }

    /// Ends the file; returns the stream and the number of records.
    pub fn finish(mut self) -> Result<(W, u64), DumpError> {
        if self.records_in_frame > 0 {
            self.end_frame(self.records_in_frame)?;
        }
        self.payload.extend_from_slice(&self.records.to_le_bytes());
        self.end_frame(END)?;
        self.out.flush()?;
        Ok((self.out, self.records))
    }

    fn end_frame(&mut self, records: u32) -> Result<(), DumpError> {
        let length = saturating_u32(self.payload.len());
        let checksum = frame_checksum(self.frames, length, records, &self.payload);
        let mut head = [0; FRAME_HEADER_BYTES];
        head[..4].copy_from_slice(&length.to_le_bytes());
        head[4..8].copy_from_slice(&records.to_le_bytes());
        head[8..].copy_from_slice(&checksum.to_le_bytes());
        self.out.write_all(&head)?;
        self.out.write_all(&self.payload)?;
        self.payload.clear();
        self.records_in_frame = 0;
        self.frames += 1;
        Ok(())
    }
}

/// Keys and values are far shorter than 4 GiB.
fn length(bytes: usize) -> [u8; 4] {
    saturating_u32(bytes).to_le_bytes()
}
