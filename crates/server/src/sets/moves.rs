//! Volumes that move from one set to another while they are served. The manifest says which set has
//! them, before the first byte is copied and again for the switch.

use super::changes::{Changes, UNDER_WAY};
use super::steps::Outcome;
use crate::volumes::{CopiedMove, PlannedMove};

impl Changes {
    /// Moves a volume, with all that share data with it; done when it returns.
    pub async fn move_volume(&self, name: &str, set: &str) -> Outcome<()> {
        let Ok(_one) = self.under_way.try_lock() else { return Err(UNDER_WAY.to_owned()) };
        self.end_again().await?;
        self.directory().check_no_move()?;
        let volumes = self.steps.volumes()?;
        let told = |error: &dyn std::fmt::Display| error.to_string();
        let planned = volumes.plan_move(name, set).await.map_err(|error| told(&error))?;
        let (names, [from, to]) = (planned.family.names(), planned.sets);
        volumes.set_recorded(names.clone());
        if let Err(error) = self.directory().begin_move(names, from, to).await {
            // The disk may have the record, although no set has got anything.
            self.end_move_or_later().await;
            return Err(error);
        }
        match volumes.copy(&planned).await {
            Ok(copied) => self.switch(&planned, copied).await,
            Err((error, is_undone)) => {
                if is_undone {
                    self.end_move_or_later().await;
                }
                Err(error.to_string())
            }
        }
    }

    /// Decides that the target has the volumes.
    async fn switch(&self, planned: &PlannedMove, copied: CopiedMove) -> Outcome<()> {
        let names = &planned.family;
        if let Err(error) = self.directory().arrived(true).await {
            // What the disk has is unknown, unless it takes the contrary.
            if self.directory().arrived(false).await.is_err() {
                drop(copied);
                return Err(format!(
                    "{error}; {names} are not served until the next start, which reads the manifest"
                ));
            }
            let given_up = copied.give_up().await;
            if given_up.is_ok() {
                self.end_move_or_later().await;
            }
            return Err(error);
        }
        copied.complete().await.map_err(|error| {
            format!("{names} have moved, and the next start deletes what is left of them: {error}")
        })?;
        self.end_move_or_later().await;
        Ok(())
    }

    /// Ends the record of a move that was interrupted, once the mount of the set whose copies count
    /// for nothing has taken them away.
    pub async fn finish_move(&self) {
        let Some(set) = self.directory().unfinished_move() else { return };
        if let Ok(volumes) = self.steps.volumes() {
            volumes.set_recorded(self.directory().recorded_volumes());
            if let Some(set) = set
                && volumes.ready(&set).await.is_err()
            {
                // Once it can be mounted, they are taken away.
                return;
            }
        }
        self.end_move_or_later().await;
    }
}
