//! Reads blocks of all kinds of redundancy. The caller passes a function that decodes the bytes. If
//! that function fails for one copy, it is called with the bytes of another copy, or with bytes
//! reconstructed from the parity group. A damaged copy is noted, so that the block gets a refresh.

use crate::copy_reader::{CopyReader, Extent};
use crate::damage::Damage;
use crate::directory::{Copies, Directory};
use crate::error::{BlockError, Result};
use crate::pools::Pools;
use crate::redundancy::{Groups, Reconstruction};
use crate::tag::BlockId;
use softflash_base::IoBuf;
use softflash_ftl::Superblock;
use std::rc::Rc;

/// Reads blocks, with all redundancy that they have.
pub(crate) struct Reader {
    pools: Rc<Pools>,
    directory: Rc<Directory>,
    groups: Rc<Groups>,
    damage: Rc<Damage>,
    copy_reader: Rc<CopyReader>,
    reconstruction: Rc<Reconstruction>,
}

impl Reader {
    pub(crate) fn new(
        pools: &Rc<Pools>,
        directory: &Rc<Directory>,
        groups: &Rc<Groups>,
        damage: &Rc<Damage>,
        copy_reader: &Rc<CopyReader>,
        reconstruction: &Rc<Reconstruction>,
    ) -> Reader {
        Reader {
            pools: Rc::clone(pools),
            directory: Rc::clone(directory),
            groups: Rc::clone(groups),
            damage: Rc::clone(damage),
            copy_reader: Rc::clone(copy_reader),
            reconstruction: Rc::clone(reconstruction),
        }
    }

    /// Reads whole pages of a block and decodes them with `make`. Where that fails, reads and
    /// decodes another copy, if there is one.
    pub(crate) async fn read_any<T, E: From<BlockError>>(
        &self,
        extent: Extent,
        make: impl Fn(IoBuf) -> Result<T, E>,
    ) -> Result<T, E> {
        let Extent { id, .. } = extent;
        let (copies, on_log) = match self.copy_reader.copies_to_read(id) {
            Err(_) if self.groups.contains(id) => (Copies::new(), false),
            found => found?,
        };
        let mut failure = None;
        for copy in copies.iter().filter(|copy| !self.is_passed_over(id, copy, on_log)) {
            let read = self.copy_reader.read_copy(extent, copy, on_log).await;
            match read.map_err(E::from).and_then(&make) {
                Ok(made) => {
                    if failure.is_some() {
                        self.damage.note_degraded(id);
                    }
                    return Ok(made);
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        let failure = failure.unwrap_or_else(|| BlockError::missing(id).into());
        if self.groups.contains(id) {
            let made = self.reconstruction.reconstruct_as(extent, &copies, make).await;
            return made.ok_or(failure);
        }
        if copies.len() > 1 {
            self.damage.note_degraded(id);
            let mixed = self.read_mixed(extent, &copies, on_log).await;
            return mixed.map_err(E::from).and_then(&make).map_err(|_| failure);
        }
        Err(failure)
    }

    /// As [`read_any`](Reader::read_any), but reads every copy, and notes the damaged ones.
    pub(crate) async fn read_every<T, E: From<BlockError>>(
        &self,
        extent: Extent,
        make: impl Fn(IoBuf) -> Result<T, E>,
    ) -> Result<T, E> {
        let Extent { id, .. } = extent;
        let (copies, on_log) = match self.copy_reader.copies_to_read(id) {
            Err(_) if self.groups.contains(id) => return self.read_any(extent, make).await,
            found => found?,
        };
        let Some((last, others)) = copies.split_last() else {
            return Err(BlockError::missing(id).into());
        };
        for copy in others {
            let read = self.copy_reader.read_copy(extent, copy, on_log).await.map_err(E::from);
            if read.and_then(&make).is_err() {
                self.damage.note_degraded(id);
            }
        }
        let read = self.copy_reader.read_copy(extent, last, on_log).await.map_err(E::from);
        match read.and_then(&make) {
            Err(_) if !others.is_empty() => {
                self.damage.note_degraded(id);
                self.read_any(extent, make).await
            }
            Err(_) if self.groups.contains(id) => self.read_any(extent, make).await,
            made => made,
        }
    }

    /// Whether [`read_any`](Reader::read_any) has other sources than the block's first copy.
    pub(crate) fn has_other_copy(&self, id: BlockId) -> bool {
        let has_copies = self.directory.ask(id, |place| place.copies.len() > 1);
        has_copies.unwrap_or(false) || self.groups.contains(id)
    }

    /// Whether a copy is not worth a read: its unit is lost, and the block can be reconstructed.
    fn is_passed_over(&self, id: BlockId, copy: &Superblock, on_log: bool) -> bool {
        self.pools.of(on_log).is_lost(copy.unit.0) && self.groups.contains(id)
    }

    /// Reads page by page, each page from a readable copy.
    async fn read_mixed(
        &self,
        extent: Extent,
        copies: &[Superblock],
        on_log: bool,
    ) -> Result<IoBuf> {
        let page_bytes = self.pools.page_bytes();
        let flash = self.pools.of(on_log).flash();
        let mut mixed = flash.buffer(extent.pages as usize * page_bytes);
        for (number, place) in (0..extent.pages).zip(mixed.chunks_mut(page_bytes)) {
            let mut failure = None;
            for copy in copies {
                match self.copy_reader.read_copy(extent.page(number), copy, on_log).await {
                    Ok(page) => {
                        place.copy_from_slice(&page);
                        failure = None;
                        break;
                    }
                    Err(error) => failure = Some(error),
                }
            }
            failure.map_or(Ok(()), Err)?;
        }
        Ok(mixed)
    }
}
