//! Writing an export.

use super::position::Position;
use super::{
    DATA, Described, END, END_OF_IMAGE, ExportError, FORMAT_VERSION, MAX_FRAME_BYTES, Totals,
    VOLUME, ZEROS, frame_checksum, header,
};
use softflash_base::cast::{saturating_u32, wide};
use std::io::Write;

/// Writes the images of some volumes to a stream: their changes in ascending order, image by image.
pub struct ExportWriter<W> {
    out: W,
    frames: u64,
    position: Position,
    /// Zeros that were not written yet: neighbouring ones become one frame.
    zeros: Option<(u64, u64)>,
    payload: Vec<u8>,
}

impl<W: Write> ExportWriter<W> {
    /// Starts a stream of these volumes.
    pub fn begin(mut out: W, volumes: &[Described]) -> Result<ExportWriter<W>, ExportError> {
        out.write_all(&header(FORMAT_VERSION, saturating_u32(volumes.len())))?;
        let position = Position::before(volumes);
        let mut writer =
            ExportWriter { out, frames: 0, position, zeros: None, payload: Vec::new() };
        for volume in volumes {
            writer.payload = volume.encode();
            if writer.payload.len() > MAX_FRAME_BYTES {
                return Err(ExportError::TooManySnapshots { name: volume.name.clone() });
            }
            writer.end_frame(VOLUME)?;
        }
        Ok(writer)
    }

    /// Adds data of the image.
    pub fn data(&mut self, offset: u64, data: &[u8]) -> Result<(), ExportError> {
        self.write_zeros()?;
        self.payload.extend_from_slice(&offset.to_le_bytes());
        self.payload.extend_from_slice(data);
        self.position.count_data(wide(data.len()));
        self.end_frame(DATA)
    }

    /// Adds a range of the image that reads as zeros.
    pub fn zeros(&mut self, offset: u64, bytes: u64) -> Result<(), ExportError> {
        if let Some((start, before)) = &mut self.zeros
            && *start + *before == offset
        {
            *before += bytes;
            return Ok(());
        }
        self.write_zeros()?;
        self.zeros = Some((offset, bytes));
        Ok(())
    }

    /// The image is complete; the next one follows.
    pub fn end_image(&mut self) -> Result<(), ExportError> {
        self.write_zeros()?;
        self.payload = self.position.end_of_image();
        self.position.next_image();
        self.end_frame(END_OF_IMAGE)
    }

    /// Ends the stream, after the last image; returns it, and what it has.
    pub fn finish(mut self) -> Result<(W, Totals), ExportError> {
        let totals = self.position.totals();
        self.payload = totals.encode();
        self.end_frame(END)?;
        self.out.flush()?;
        Ok((self.out, totals))
    }

    fn write_zeros(&mut self) -> Result<(), ExportError> {
        let Some((offset, bytes)) = self.zeros.take() else { return Ok(()) };
        self.payload.extend([offset, bytes].map(u64::to_le_bytes).concat());
        self.position.count_zeros(bytes);
        self.end_frame(ZEROS)
    }

    fn end_frame(&mut self, kind: u32) -> Result<(), ExportError> {
        let length = saturating_u32(self.payload.len());
        let checksum = frame_checksum(self.frames, length, kind, &self.payload);
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&checksum.to_le_bytes())?;
        self.out.write_all(&self.payload)?;
        self.frames += 1;
        self.payload.clear();
        Ok(())
    }
}
