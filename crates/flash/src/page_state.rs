//! Classifies single pages, to find lost pages and the written part of a superblock.

use crate::Flash;
use softflash_device::DeviceError;
use softflash_ftl::{FtlError, Hint, Superblock};

/// The state of a page, from a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageState {
    Readable,
    Uncorrectable,
    Erased,
}

impl Flash {
    /// Whether a page of a superblock was whole and then lost: ECC cannot correct it, and pages
    /// that are programmed only after it are written. A power cut leaves such a page only at the
    /// end, without written pages behind it.
    pub async fn has_lost(
        &self,
        superblock: &Superblock,
        page: u32,
        hint: Hint,
    ) -> Result<bool, FtlError> {
        if self.page_state(superblock, page, hint).await? != PageState::Uncorrectable {
            return Ok(false);
        }
        let unit = superblock.unit;
        let successors =
            self.with_driver(unit, |driver| driver.ftl.borrow().successors(superblock, page));
        for later in successors {
            if self.page_state(superblock, later, hint).await? != PageState::Erased {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a superblock has been written beyond page `page`. Only flash blocks with erased
    /// pages count: a flash block whose erase was interrupted reads like a full one. A page that a
    /// misdirected program wrote does not count either.
    pub async fn was_written_beyond(
        &self,
        superblock: &Superblock,
        page: u32,
        hint: Hint,
    ) -> Result<bool, FtlError> {
        let blocks: Vec<(u32, u32)> = self.driver.ftl.borrow().rest_of_blocks(page).collect();
        for before in 0..page {
            if self.page_state(superblock, before, hint).await? == PageState::Erased {
                return Ok(false);
            }
        }
        for (first, last) in blocks {
            if self.page_state(superblock, first, hint).await? == PageState::Erased {
                return Ok(false);
            }
            if self.page_state(superblock, last, hint).await? == PageState::Erased {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn page_state(
        &self,
        superblock: &Superblock,
        page: u32,
        hint: Hint,
    ) -> Result<PageState, FtlError> {
        match self.read(superblock, page, 1, hint).await {
            Ok(_) => Ok(PageState::Readable),
            Err(FtlError::Device { error: DeviceError::Uncorrectable, .. }) => {
                Ok(PageState::Uncorrectable)
            }
            Err(
                FtlError::Device { error: DeviceError::Erased { .. }, .. }
                | FtlError::Unwritten { .. },
            ) => Ok(PageState::Erased),
            Err(error) => Err(error),
        }
    }
}
