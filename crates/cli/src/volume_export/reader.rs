//! Reading an export.

use super::description::Fields;
use super::position::Position;
use super::{
    DATA, Described, END, END_OF_IMAGE, ExportError, FORMAT_VERSION, FRAME_HEADER_BYTES,
    HEADER_BYTES, MAGIC, MAX_FRAME_BYTES, MOST_DATA_BYTES, Totals, VOLUME, ZEROS, frame_checksum,
    header,
};
use bytes::{Buf, Bytes};
use softflash_base::cast::{index, wide};
use softflash_volume::MAPPING_UNIT_BYTES;
use std::io::{ErrorKind, Read};

/// A range in which an image differs from the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It has these data.
    Data {
        /// Where.
        offset: u64,
        /// The data.
        data: Bytes,
    },
    /// It reads as zeros.
    Zeros {
        /// Where.
        offset: u64,
        /// How many bytes.
        bytes: u64,
    },
}

/// Reads the volumes of a stream; what is returned has the checksum of its frame.
pub struct ExportReader<R> {
    input: R,
    volumes: Vec<Described>,
    position: Position,
    frames: u64,
    /// Offset of the current frame.
    offset: u64,
    next_offset: u64,
    /// The end of the last change of the image.
    changed_to: u64,
}

impl<R: Read> ExportReader<R> {
    /// Reads the header and the descriptions.
    pub fn begin(mut input: R) -> Result<ExportReader<R>, ExportError> {
        let volumes = read_header(&mut input)?;
        let position = Position::before(&[]);
        let (offset, next_offset) = (0, HEADER_BYTES as u64);
        let mut reader = ExportReader {
            input,
            volumes: Vec::new(),
            position,
            frames: 0,
            offset,
            next_offset,
            changed_to: 0,
        };
        for _ in 0..volumes {
            let (kind, payload) = reader.frame()?;
            let volume = Some(payload).filter(|_| kind == VOLUME);
            let volume = volume.and_then(|payload| Described::decode(&payload));
            let volume = volume.ok_or_else(|| reader.damaged("not the description of a volume"))?;
            reader.volumes.push(volume);
        }
        reader.position = Position::before(&reader.volumes);
        Ok(reader)
    }

    /// The volumes of the stream.
    pub fn volumes(&self) -> &[Described] {
        &self.volumes
    }

    /// Bytes of the stream read so far.
    pub fn bytes_read(&self) -> u64 {
        self.next_offset
    }

    /// The next change of the image; none at its end, where the next image begins.
    pub fn change(&mut self) -> Result<Option<Change>, ExportError> {
        let (kind, mut payload) = self.frame()?;
        let at = self.position.at();
        let (volume, image) = at.ok_or_else(|| self.damaged("more images than were announced"))?;
        let size = self.volumes[volume].image_bytes(image);
        match kind {
            DATA if payload.len() > 8 => {
                let offset = payload.get_u64_le();
                let bytes = wide(payload.len());
                self.check_range(offset, bytes, size)?;
                if bytes > MOST_DATA_BYTES {
                    return Err(self.damaged("more data than fit a frame"));
                }
                self.position.count_data(bytes);
                Ok(Some(Change::Data { offset, data: payload }))
            }
            ZEROS if payload.len() == 16 => {
                let (offset, bytes) = (payload.get_u64_le(), payload.get_u64_le());
                self.check_range(offset, bytes, size)?;
                self.position.count_zeros(bytes);
                Ok(Some(Change::Zeros { offset, bytes }))
            }
            END_OF_IMAGE if payload == self.position.end_of_image() => {
                self.position.next_image();
                self.changed_to = 0;
                Ok(None)
            }
            END_OF_IMAGE => Err(self.damaged("the counts of an image do not match")),
            _ => Err(self.damaged("neither a change nor the end of an image")),
        }
    }

    /// Reads the end, after the last image. Nothing follows it.
    pub fn finish(&mut self) -> Result<Totals, ExportError> {
        let totals = self.end()?;
        self.offset = self.next_offset;
        let mut behind = Vec::new();
        (&mut self.input).take(1).read_to_end(&mut behind)?;
        match behind.is_empty() {
            true => Ok(totals),
            false => Err(self.damaged(
                "something follows the end of the export; if the file is a dump with volumes, use \
                 `softflash load --volumes`",
            )),
        }
    }

    /// Reads the end, after the last image; something else may follow.
    pub fn end(&mut self) -> Result<Totals, ExportError> {
        let (kind, payload) = self.frame()?;
        let totals = self.position.totals();
        if kind != END || payload != totals.encode() || self.position.at().is_some() {
            return Err(self.damaged("not the end of the export, or its counts do not match"));
        }
        Ok(totals)
    }

    /// What follows the [end](ExportReader::end), and the offset of that.
    pub fn into_rest(self) -> (R, u64) {
        (self.input, self.next_offset)
    }

    /// Whether all images were read.
    pub fn is_at_end(&self) -> bool {
        self.position.at().is_none()
    }

    /// Ranges of an image are whole mapping units inside it, and ascend.
    fn check_range(&mut self, offset: u64, bytes: u64, size: u64) -> Result<(), ExportError> {
        let unit = MAPPING_UNIT_BYTES as u64;
        let is_whole = offset.is_multiple_of(unit) && bytes.is_multiple_of(unit) && bytes > 0;
        let end = offset.checked_add(bytes).filter(|&end| end <= size && is_whole);
        let end = end.filter(|_| offset >= self.changed_to);
        self.changed_to = end.ok_or_else(|| self.damaged("an impossible range"))?;
        Ok(())
    }

    fn frame(&mut self) -> Result<(u32, Bytes), ExportError> {
        self.offset = self.next_offset;
        let mut head = [0; FRAME_HEADER_BYTES];
        self.read_exact(&mut head)?;
        let mut fields = &head[..];
        let (length, kind) = (fields.get_u32_le(), fields.get_u32_le());
        let checksum = fields.get_u64_le();
        let bytes = index(length);
        // Only descriptions are long: what is damaged does not take much memory.
        let most = match kind {
            VOLUME => MAX_FRAME_BYTES,
            _ => index(u32::try_from(MOST_DATA_BYTES).unwrap_or(u32::MAX)) + 8,
        };
        if bytes > most {
            return Err(self.damaged("a frame of impossible length"));
        }
        let mut payload = vec![0; bytes];
        self.read_exact(&mut payload)?;
        if frame_checksum(self.frames, length, kind, &payload) != checksum {
            return Err(self.damaged("its checksum does not match"));
        }
        self.frames += 1;
        self.next_offset += wide(FRAME_HEADER_BYTES + bytes);
        Ok((kind, Bytes::from(payload)))
    }

    fn read_exact(&mut self, into: &mut [u8]) -> Result<(), ExportError> {
        match self.input.read_exact(into) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Err(self.damaged("the file ends here"))
            }
            read => Ok(read?),
        }
    }

    fn damaged(&self, reason: &'static str) -> ExportError {
        ExportError::Damaged { offset: self.offset, reason }
    }
}

/// Reads the header; returns the number of volumes.
fn read_header(input: &mut impl Read) -> Result<u32, ExportError> {
    let mut found = [0; HEADER_BYTES];
    match input.read_exact(&mut found) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            return Err(ExportError::NotAnExport);
        }
        read => read?,
    }
    let damaged = ExportError::Damaged { offset: 0, reason: "its header" };
    let mut fields = Fields(&found);
    if fields.u64() != Some(u64::from_le_bytes(MAGIC)) {
        return Err(ExportError::NotAnExport);
    }
    let (Some(version), Some(volumes)) = (fields.u32(), fields.u32()) else { return Err(damaged) };
    if version > FORMAT_VERSION {
        return Err(ExportError::NewerVersion { found: version });
    }
    match version > 0 && found == header(version, volumes) {
        true => Ok(volumes),
        false => Err(damaged),
    }
}
