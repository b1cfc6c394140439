//! Appends and reads: splits requests into commands.

use super::Ftl;
use crate::layout::HEADER_PAGES;
use crate::op::{Op, Work};
use crate::requests::RequestId;
use crate::scheduler::{OpKind, QueueClass};
use crate::slots::State;
use crate::superblock::{FtlError, Superblock};
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, Time};
use softflash_device::Hint;

impl Ftl {
    /// Appends whole pages and returns the number of the first. Appends to one superblock may be
    /// issued without waiting for each other. On several dies they may finish in another order. The
    /// first append also writes the opening header, and no append is done before the headers are.
    ///
    /// When a `durable` append is done, it and the headers survive a power cut. It does not make
    /// earlier appends durable: for those use [`flush`](Ftl::flush). Its data have the lifetime for
    /// which the superblock was allocated, not that of this hint.
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
        let hint = hint.lasting(self.units[unit].slot(index).lifetime());
        let class = QueueClass::new(OpKind::Program, hint.priority);
        let (state, commands) = (&mut self.units[unit], &mut self.commands);
        let first_page = state.slot(index).written_pages();
        let whole = self.layout.run(HEADER_PAGES + first_page, pages).pages() == pages;
        let (request, id) = self.requests.begin(Some(*superblock), hint);

        // A single command is made durable by itself. Several are cheaper with one flush.
        let durable_alone = durable && whole;
        self.headers.write_opening_header(state, commands, now, index, durable_alone, hint);
        let slot = state.slot_mut(index);
        let written_pages = slot.add_pages(pages);
        let payload_pages = self.layout.payload_pages();
        assert!(written_pages <= payload_pages, "{superblock}: an append beyond the end");
        if slot.awaits_headers() {
            self.requests.await_headers(request, unit, index);
        }
        let flush_at_end = durable && (!whole || slot.header_is_volatile());
        self.requests.set_flush_at_end(request, flush_at_end);
        if written_pages == payload_pages {
            state.set_state(index, State::Live);
        }

        let mut page = HEADER_PAGES + first_page;
        let mut left = pages;
        while left > 0 {
            let run = self.layout.run(page, left);
            let piece = data.split_to((run.pages() * self.layout.page_bytes) as usize);
            let part = self.requests.add_part(request);
            let op = Op {
                work: Work::Append { request, part },
                unit,
                index,
                target: state.target(index, run),
                data: Some(piece),
                durable: durable_alone,
                class,
                hint,
                since: now,
            };
            commands.add_program(state, op);
            page += run.pages();
            left -= run.pages();
        }
        assert!(data.is_empty(), "{superblock}: {} bytes are not appended", data.len());
        self.dispatch(now);
        Ok((id, first_page))
    }

    fn check_append(
        &self,
        superblock: &Superblock,
        bytes: usize,
    ) -> Result<(usize, u32), FtlError> {
        let unit = self.units.locate(superblock)?;
        let slot = self.units[unit].slot(superblock.index);
        let pages = self.whole_pages(bytes)?;
        let room = self.layout.payload_pages() - slot.written_pages();
        if slot.state() != State::Open || slot.has_failed() || pages > room {
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
        let (state, commands) = (&mut self.units[unit], &mut self.commands);
        let (request, id) = self.requests.begin(Some(*superblock), hint);
        let mut page = HEADER_PAGES + first_page;
        let mut left = pages;
        while left > 0 {
            let mut run = self.layout.run(page, left);
            if planted::bug(Bug::WrongPageRead) && page > self.layout.payload_pages() {
                run = self.layout.run(page - 1, 1);
            }
            let piece = buffer.split_to((run.pages() * self.layout.page_bytes) as usize);
            let part = self.requests.add_part(request);
            let op = Op {
                work: Work::Read { request, part },
                unit,
                index: superblock.index,
                target: state.target(superblock.index, run),
                data: Some(piece),
                durable: false,
                class: QueueClass::new(OpKind::Read, hint.priority),
                hint,
                since: now,
            };
            commands.add(state, op);
            page += run.pages();
            left -= run.pages();
        }
        assert!(buffer.is_empty(), "{superblock}: {} bytes are not read", buffer.len());
        self.dispatch(now);
        Ok(id)
    }

    fn check_read(
        &self,
        superblock: &Superblock,
        first: u32,
        pages: u32,
        bytes: usize,
    ) -> Result<usize, FtlError> {
        let unit = self.units.locate(superblock)?;
        if self.whole_pages(bytes)? != pages {
            return Err(FtlError::NotWholePages { bytes, page_bytes: self.layout.page_bytes });
        }
        let end = first.saturating_add(pages);
        if end > self.units[unit].slot(superblock.index).written_pages() {
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
}
