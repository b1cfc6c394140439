//! Appends and reads: splits requests into commands.

use crate::ftl::Ftl;
use crate::hint::Hint;
use crate::layout::{HEADER_PAGES, Run};
use crate::request::{Op, RequestId, Work};
use crate::scheduler::{OpKind, QueueClass};
use crate::superblock::{FtlError, Superblock};
use crate::unit::State;
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, Time};
use softflash_device::Target;
use softflash_device::geometry::MAX_PLANES;

impl Ftl {
    /// Appends whole pages and returns the number of the first. Appends to one superblock may be
    /// issued without waiting for each other. On several dies they may finish in another order. The
    /// first append also writes the opening header, and no append is done before the headers are.
    ///
    /// When a `durable` append is done, it and the headers survive a power cut. It does not make
    /// earlier appends durable: for those use [`flush`](Ftl::flush).
    ///
    /// # Errors
    /// [`Stale`](FtlError::Stale), [`Sealed`](FtlError::Sealed) if the superblock is full, sealed
    /// or has failed, [`NotWholePages`](FtlError::NotWholePages). The data is returned with the
    /// error.
    pub fn append(
        &mut self,
        now: Time,
        superblock: &Superblock,
        mut data: IoBuf,
        durable: bool,
        hint: Hint,
    ) -> Result<(RequestId, u32), (FtlError, IoBuf)> {
        let (unit, pages) = match self.check_append(superblock, data.len()) {
            Ok(checked) => checked,
            Err(error) => return Err((error, data)),
        };
        let index = superblock.index;
        let class = QueueClass::new(OpKind::Program, hint.priority);
        let first_page = self.units[unit].slot(index).written_pages;
        let whole = self.layout.run(HEADER_PAGES + first_page, pages).pages() == pages;
        let (request, id) = self.new_request(Some(*superblock));

        // A single command is made durable by itself. Several are cheaper with one flush.
        let durable_alone = durable && whole;
        self.write_opening_header(now, unit, index, durable_alone, class);
        let slot = self.units[unit].slot_mut(index);
        slot.written_pages += pages;
        let payload_pages = self.layout.payload_pages();
        assert!(slot.written_pages <= payload_pages, "{superblock}: an append beyond the end");
        let full = slot.written_pages == payload_pages;
        let header_lags = !slot.header_durable;
        if slot.headers_pending > 0 {
            self.units[unit].awaiting_headers.push((index, request));
            self.requests.get_mut(request).remaining += 1;
        }
        self.requests.get_mut(request).flush_at_end = durable && (!whole || header_lags);
        if full {
            self.units[unit].set_state(index, State::Live);
        }

        let mut page = HEADER_PAGES + first_page;
        let mut left = pages;
        while left > 0 {
            let run = self.layout.run(page, left);
            let piece = data.split_to((run.pages() * self.layout.page_bytes) as usize);
            let part = self.add_part(request);
            let op = Op {
                work: Work::Append { request, part },
                unit,
                index,
                target: self.target(unit, index, run),
                data: Some(piece),
                durable: durable_alone,
                class,
                since: now,
            };
            self.add_program(op);
            page += run.pages();
            left -= run.pages();
        }
        assert!(data.is_empty(), "{superblock}: {} bytes are not appended", data.len());
        self.run_queues(now);
        Ok((id, first_page))
    }

    fn check_append(
        &self,
        superblock: &Superblock,
        bytes: usize,
    ) -> Result<(usize, u32), FtlError> {
        let unit = self.locate(superblock)?;
        let slot = self.units[unit].slot(superblock.index);
        let pages = self.whole_pages(bytes)?;
        let room = self.layout.payload_pages() - slot.written_pages;
        if slot.state != State::Open || slot.failed || pages > room {
            return Err(FtlError::Sealed { superblock: *superblock });
        }
        Ok((unit, pages))
    }

    /// Reads `pages` payload pages from `first_page` on into `buffer`, which must have that length.
    /// Any payload page of a superblock found by the mount may be read; the device reports pages
    /// that were never written.
    ///
    /// # Errors
    /// [`Stale`](FtlError::Stale), [`Unwritten`](FtlError::Unwritten),
    /// [`NotWholePages`](FtlError::NotWholePages). The buffer is returned with the error.
    pub fn read(
        &mut self,
        now: Time,
        superblock: &Superblock,
        first_page: u32,
        pages: u32,
        mut buffer: IoBuf,
        hint: Hint,
    ) -> Result<RequestId, (FtlError, IoBuf)> {
        let unit = match self.check_read(superblock, first_page, pages, buffer.len()) {
            Ok(unit) => unit,
            Err(error) => return Err((error, buffer)),
        };
        let (request, id) = self.new_request(Some(*superblock));
        let mut page = HEADER_PAGES + first_page;
        let mut left = pages;
        while left > 0 {
            let mut run = self.layout.run(page, left);
            if planted::bug(Bug::WrongPageRead) && page > self.layout.payload_pages() {
                run = self.layout.run(page - 1, 1);
            }
            let piece = buffer.split_to((run.pages() * self.layout.page_bytes) as usize);
            let part = self.add_part(request);
            let op = Op {
                work: Work::Read { request, part },
                unit,
                index: superblock.index,
                target: self.target(unit, superblock.index, run),
                data: Some(piece),
                durable: false,
                class: QueueClass::new(OpKind::Read, hint.priority),
                since: now,
            };
            let op = self.add_op(op);
            self.enqueue(op);
            page += run.pages();
            left -= run.pages();
        }
        assert!(buffer.is_empty(), "{superblock}: {} bytes are not read", buffer.len());
        self.run_queues(now);
        Ok(id)
    }

    fn check_read(
        &self,
        superblock: &Superblock,
        first: u32,
        pages: u32,
        bytes: usize,
    ) -> Result<usize, FtlError> {
        let unit = self.locate(superblock)?;
        if self.whole_pages(bytes)? != pages {
            return Err(FtlError::NotWholePages { bytes, page_bytes: self.layout.page_bytes });
        }
        let end = first.saturating_add(pages);
        if end > self.units[unit].slot(superblock.index).written_pages {
            return Err(FtlError::Unwritten { superblock: *superblock, first, end });
        }
        Ok(unit)
    }

    /// The number of pages in `bytes`, at least one.
    fn whole_pages(&self, bytes: usize) -> Result<u32, FtlError> {
        let page_bytes = self.layout.page_bytes;
        let pages = bytes / page_bytes as usize;
        match u32::try_from(pages) {
            Ok(pages) if pages > 0 && bytes.is_multiple_of(page_bytes as usize) => Ok(pages),
            _ => Err(FtlError::NotWholePages { bytes, page_bytes }),
        }
    }

    fn add_part(&mut self, request: u32) -> u32 {
        let request = self.requests.get_mut(request);
        request.parts.push(None);
        request.remaining += 1;
        request.parts.len() as u32 - 1
    }

    /// The place of a run of superblock pages on the device.
    pub(crate) fn target(&self, unit: usize, index: u32, run: Run) -> Target {
        assert!(
            run.page + run.rows <= self.layout.pages_per_block,
            "superblock {index}: pages {}+{} of a block",
            run.page,
            run.rows
        );
        let unit = &self.units[unit];
        let column = usize::from(run.die) * self.layout.planes as usize + usize::from(run.plane);
        let columns = column..column + usize::from(run.planes);
        let mut blocks = [0; MAX_PLANES];
        for (block, used) in blocks.iter_mut().zip(&unit.blocks.blocks_of(index)[columns]) {
            *block = *used;
        }
        Target {
            unit: unit.id,
            die: run.die,
            plane: run.plane,
            planes: run.planes,
            blocks,
            page: run.page,
            rows: run.rows,
        }
    }
}
