//! The steps of a move in the manifest, each of which is durable.

use super::UnfinishedMove;
use super::error::{MoveError, quoted};
use crate::directory::DataDir;
use crate::error::DataDirError;
use crate::manifest::MOVE_FORMAT_VERSION;

impl DataDir {
    /// Records durably that volumes are being copied to another set: their copies count for nothing
    /// until they have [arrived](DataDir::arrived).
    ///
    /// # Errors
    /// [`MoveError::Unfinished`] of an earlier move, and errors of the file system. The record may
    /// be there then, which is to be [ended](DataDir::end_move).
    pub fn begin_move(
        &mut self,
        volumes: Vec<String>,
        from: u16,
        to: u16,
    ) -> Result<(), DataDirError> {
        self.check_no_move()?;
        let mut manifest = self.manifest().clone();
        let format_version = manifest.format_version;
        let unfinished = UnfinishedMove { volumes, from, to, has_arrived: false, format_version };
        manifest.unfinished_move = Some(unfinished);
        manifest.format_version = MOVE_FORMAT_VERSION;
        let begun = self.replace_manifest(manifest.clone());
        if begun.is_err() {
            // The disk may have the record: its end has to be there, too.
            self.presume(manifest);
            if let Err(error) = self.end_move() {
                tracing::warn!("the record of a move that did not begin may be left: {error}");
            }
        }
        begun
    }

    /// Fails while an earlier move is unfinished.
    ///
    /// # Errors
    /// [`MoveError::Unfinished`].
    pub fn check_no_move(&self) -> Result<(), DataDirError> {
        let Some(unfinished) = &self.manifest().unfinished_move else { return Ok(()) };
        let volumes = quoted(&unfinished.volumes);
        let set = self.name_of_set(unfinished.leftover_set());
        Err(DataDirError::moving(self.path())(MoveError::Unfinished { volumes, set }))
    }

    fn name_of_set(&self, number: u16) -> String {
        let domains = self.manifest().domains(u16::MAX);
        let found = domains.into_iter().find(|domain| domain.config.domain == number);
        found.map_or_else(|| number.to_string(), |domain| domain.name)
    }

    /// Records durably which set has the volumes: the one that they have come to, or the one that
    /// they leave.
    ///
    /// # Errors
    /// Errors of the file system. Both sets may have them after a crash then.
    pub fn arrived(&mut self, has_arrived: bool) -> Result<(), DataDirError> {
        let mut manifest = self.manifest().clone();
        if let Some(unfinished) = manifest.unfinished_move.as_mut() {
            unfinished.has_arrived = has_arrived;
        }
        self.replace_manifest(manifest)
    }

    /// Records durably that nothing is left of a move in the other set.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn end_move(&mut self) -> Result<(), DataDirError> {
        let mut manifest = self.manifest().clone();
        match manifest.unfinished_move.take() {
            None => Ok(()),
            Some(UnfinishedMove { format_version, .. }) => {
                manifest.format_version = format_version;
                self.replace_manifest(manifest)
            }
        }
    }
}
