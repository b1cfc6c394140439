//! Rewrites of a drive, in no time, by the writes and trims of a workload: of the drive itself, or
//! of the sibling that settles for it.

use crate::cell::{Control, Settling};
use crate::engine::drive::foresight::{Foresight, foretold};
use crate::engine::drive::writing::Writes;
use crate::engine::level::Level;
use crate::engine::progress::prepared;
use crate::error::LabError;
use softflash_drive::{Drive, Sibling};
use softflash_workload::{Access, AccessKind};

/// Bytes written between two reports of progress, and checks for a stop.
const REPORT_EVERY: u64 = 1 << 28;

/// What is rewritten.
pub(super) enum Rewritten<'a> {
    Drive(&'a mut Drive),
    Sibling(&'a mut Sibling),
}

impl Rewritten<'_> {
    pub(super) fn drive(&mut self) -> &mut Drive {
        match self {
            Rewritten::Drive(drive) => drive,
            Rewritten::Sibling(sibling) => sibling.drive(),
        }
    }

    /// The offset of the page that is written for the page at an offset of the drive.
    #[inline]
    fn offset(&self, offset_bytes: u64) -> Option<u64> {
        match self {
            Rewritten::Drive(_) => Some(offset_bytes),
            Rewritten::Sibling(sibling) => sibling.contract(offset_bytes),
        }
    }

    /// Plays a write or a trim.
    #[inline]
    pub(super) fn play(&mut self, access: Access, page_bytes: u64) {
        let (begin, end) = (access.offset_bytes, access.end_bytes());
        let is_trim = access.kind == AccessKind::Trim;
        let pages = match is_trim {
            true => begin.div_ceil(page_bytes)..end / page_bytes,
            false => begin / page_bytes..end.div_ceil(page_bytes),
        };
        for page in pages {
            let Some(offset_bytes) = self.offset(page * page_bytes) else { continue };
            match is_trim {
                true => self.drive().trim_now(offset_bytes, page_bytes),
                false => self.drive().overwrite_hinted_now(offset_bytes, access.hint),
            }
        }
    }
}

/// Rewrites under way.
pub(super) struct Rewriting<'a> {
    rewritten: Rewritten<'a>,
    source: Writes,
    foresight: Option<Foresight<Access>>,
    control: &'a Control<'a>,
}

impl<'a> Rewriting<'a> {
    pub(super) fn new(
        rewritten: Rewritten<'a>,
        source: Writes,
        control: &'a Control<'a>,
    ) -> Rewriting<'a> {
        Rewriting { rewritten, source, foresight: None, control }
    }

    /// The same with foretold lifetimes.
    pub(super) fn with(self, foresight: Option<Foresight<Access>>) -> Rewriting<'a> {
        Rewriting { foresight, ..self }
    }

    /// Writes so many times the capacity, and adds their write amplification to the level. False if
    /// the caller's limit of time ends it before.
    pub(super) fn window(&mut self, level: &mut Level, rewrites: u32) -> Result<bool, LabError> {
        self.rewritten.drive().clear_counters();
        for rewrite in 0..rewrites {
            if !self.rewrite(level, rewrite)? {
                level.add(rewrite, self.waf());
                return Ok(false);
            }
        }
        level.add(rewrites, self.waf());
        Ok(true)
    }

    /// The write amplification of the window up to now.
    fn waf(&mut self) -> f64 {
        self.rewritten.drive().counters().waf()
    }

    /// Writes the capacity once; false if it is to end before.
    fn rewrite(&mut self, level: &Level, rewrite: u32) -> Result<bool, LabError> {
        let page_bytes = u64::from(self.rewritten.drive().page_bytes());
        let capacity_bytes = self.rewritten.drive().capacity_bytes();
        let (mut written, mut report_at) = (0, 0);
        while written < capacity_bytes {
            let access = foretold(&mut self.foresight, || self.source.next());
            self.rewritten.play(access, page_bytes);
            if access.kind == AccessKind::Write {
                written += u64::from(access.bytes);
            }
            if written >= report_at {
                report_at = written + REPORT_EVERY;
                let rewrites = f64::from(level.rewrites() + rewrite);
                let rewrites = rewrites + written as f64 / capacity_bytes as f64;
                let settling = Settling { rewrites, most: level.most(), waf: self.waf() };
                let goes_on = (self.control.on_settling)(&settling);
                prepared(self.control, rewrites / f64::from(level.most()))?;
                if !goes_on {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
