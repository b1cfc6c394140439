//! Changes of the sets while they are served: a unit is drained before it leaves its
//! set, and erased before it joins another one; the table of sets is written in between, so that a
//! crash at any time leaves what one of the two tables says.

use super::directory::{Directory, STOPPING};
use super::steps::{Hosts, Outcome, Steps, undecided};
use super::{growing, of_store};
use crate::thread::{Message, PairOfHosts};
use crate::volumes::{HostSpec, PairChange, UnitChange, Volumes};
use softflash_base::UnitSet;
use softflash_datadir::{DEFAULT_OP_PERCENT, NewSet, Resize, SetTable, parse_window};
use softflash_protocol::sets::SetChange;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, oneshot};

/// Changes the sets of a directory, one change at a time.
pub(super) struct Changes {
    pub(super) steps: Steps,
    pub(super) under_way: Mutex<()>,
    /// Nothing is left of a move but its record.
    is_only_recorded: AtomicBool,
    /// A task tries to remove that.
    is_tried_again: AtomicBool,
}

/// The time between two attempts to record the end of a move.
const AGAIN: Duration = Duration::from_secs(5);

/// The error of a second change.
pub(super) const UNDER_WAY: &str = "another change of the sets, or a move of volumes between them, is \
    under way; FLASH.SET LIST shows the draining_bytes of units that leave a set, and FLASH.VOLUME LIST \
    how far a move is";

impl Changes {
    pub fn new(directory: Directory, volumes: Option<Volumes>, hosts: Hosts) -> Changes {
        let is_only_recorded = AtomicBool::new(false);
        Changes {
            steps: Steps { directory, volumes, hosts },
            under_way: Mutex::new(()),
            is_only_recorded,
            is_tried_again: AtomicBool::new(false),
        }
    }

    pub fn directory(&self) -> &Directory {
        &self.steps.directory
    }

    /// Carries out a change; durable when it returns.
    pub async fn make(&self, change: SetChange) -> Outcome<()> {
        let Ok(_one) = self.under_way.try_lock() else { return Err(UNDER_WAY.to_owned()) };
        match change {
            SetChange::Create { name, units, shard, op_percent } => {
                let op_percent = op_percent.unwrap_or(DEFAULT_OP_PERCENT);
                self.create(&NewSet { name, units, shard, op_percent }).await
            }
            SetChange::Resize { name, units } => self.resize(&name, units).await,
            SetChange::Delete { name } => self.delete(&name).await,
            SetChange::Pair { first, second } => self.pair([first, second]).await,
            SetChange::Window { name, length } => self.window(&name, &length).await,
            SetChange::Grow(growth) => growing::grow(&self.steps, growth).await,
        }
    }

    async fn create(&self, new: &NewSet) -> Outcome<()> {
        let device_units = self.steps.directory.units();
        let (joining, epoch, next) = self.steps.directory.plan(|table| {
            let next = table.with_set(new, device_units)?;
            Ok((table.given_by(&next, device_units), table.epoch, next))
        })?;
        self.steps.directory.check(&next)?;
        let shard = next.mapped.last().map_or(0, |set| set.shard);
        self.steps.erase(shard, joining, epoch).await?;
        self.steps.replace(next).await?;
        let domain = self.steps.domain(&new.name)?.with_policies(&self.steps.hosts.policies);
        let requests = self.steps.volumes()?.add(&domain);
        let recordings = Arc::clone(&self.steps.hosts.recordings);
        let spec = HostSpec { domain, requests, recordings };
        self.steps.send(shard, Message::Host(Box::new(spec), self.steps.directory.device()))?;
        self.steps.volumes()?.ready(&new.name).await.map_err(|error| error.to_string())
    }

    async fn resize(&self, name: &str, units: u16) -> Outcome<()> {
        let device_units = self.steps.directory.units();
        let shard = self.steps.directory.plan(|table| Ok(table.shard_of_store(name)))?;
        let plan = |table: &SetTable| Ok((table.epoch, table.resized(name, units, device_units)?));
        let (epoch, resize) = self.steps.directory.plan(plan)?;
        if let Some(shard) = shard {
            return of_store::resize(&self.steps, shard, epoch, resize).await;
        }
        match (epoch, resize) {
            (_, Resize::None) => Ok(()),
            (epoch, Resize::Grow { joining, next }) => {
                self.enlarge(name, joining, epoch, next).await
            }
            (_, Resize::Shrink { leaving, next }) => self.shrink(name, leaving, next).await,
        }
    }

    async fn enlarge(
        &self,
        name: &str,
        joining: UnitSet,
        epoch: u32,
        next: SetTable,
    ) -> Outcome<()> {
        self.steps.directory.check(&next)?;
        let shard = self.steps.domain(name)?.shard.0;
        self.steps.erase(shard, joining.clone(), epoch).await?;
        self.steps.replace(next).await?;
        self.steps.join(name, joining).await
    }

    async fn shrink(&self, name: &str, leaving: UnitSet, next: SetTable) -> Outcome<()> {
        self.steps.directory.check(&next)?;
        self.steps.change_units(name, UnitChange::Drain(leaving.clone())).await?;
        if let Err(error) = self.steps.replace(next).await {
            if !self.steps.directory.is_as_known() {
                return Err(undecided(&leaving, &error));
            }
            self.steps.change_units(name, UnitChange::Keep(leaving)).await?;
            return Err(error);
        }
        let left = UnitChange::Leave(leaving.clone(), self.steps.slots(name)?);
        self.steps.change_units(name, left).await.map_err(|error| {
            format!(
                "the units {leaving} are spare, and can be used from the next start on: {error}"
            )
        })
    }

    /// Makes a pair of two sets. One that is empty gets a copy of everything, after the return.
    async fn pair(&self, names: [String; 2]) -> Outcome<()> {
        let [first, second] = &names;
        let next = self.steps.directory.plan(|table| table.with_pair(first, second))?;
        self.steps.directory.check(&next)?;
        let pair = next.pairs.last().cloned().ok_or_else(|| STOPPING.to_owned())?;
        let shard = self.steps.domain(first)?.shard.0;
        self.steps
            .volumes()?
            .check_pair([first, second])
            .await
            .map_err(|error| error.to_string())?;
        self.steps.replace(next).await?;
        let (answer, paired) = oneshot::channel();
        self.steps
            .send(shard, Message::Pair(PairOfHosts { names: names.clone(), pair, answer }))?;
        let paired = paired.await.unwrap_or_else(|_| Err(STOPPING.to_owned()));
        if paired.is_err() {
            let before = self.steps.directory.plan(|table| table.without_pair(first))?;
            self.steps.replace(before).await?;
        }
        paired
    }

    async fn window(&self, name: &str, length: &str) -> Outcome<()> {
        let window_ms = parse_window(length).map_err(|error| error.to_string())?;
        let next = self.steps.directory.plan(|table| table.with_window(name, window_ms))?;
        self.steps.directory.check(&next)?;
        self.steps.replace(next).await?;
        let window = window_ms.map(|ms| Duration::from_millis(ms.into()));
        let change = PairChange::Window(window);
        self.steps.volumes()?.change_pair(name, change).await.map_err(|error| error.to_string())
    }

    /// Ends the pair of a set, whose partner keeps the volumes.
    async fn end_pair(&self, name: &str) -> Outcome<()> {
        let of = self.steps.domain(name)?;
        let Some(pair) = &of.pair else { return Ok(()) };
        let partner = pair.partner_of(of.config.domain);
        let domains = self.steps.directory.domains();
        let partner = domains.iter().find(|domain| domain.config.domain == partner);
        let partner = partner.ok_or_else(|| STOPPING.to_owned())?;
        let volumes = self.steps.volumes()?;
        volumes.check_second(name).await.map_err(|error| error.to_string())?;
        let ended = volumes.change_pair(&partner.name, PairChange::End).await;
        ended.map_err(|error| error.to_string())
    }

    async fn delete(&self, name: &str) -> Outcome<()> {
        let next = self.steps.directory.plan(|table| table.without_set(name))?;
        self.steps.directory.check(&next)?;
        let had_pair = self.steps.domain(name)?.pair.is_some();
        self.end_pair(name).await?;
        if had_pair {
            // Its volumes are those that the other set keeps.
            let ended =
                self.steps.volumes()?.end_copy(name, self.steps.directory.replace(next)).await;
            self.steps.update();
            return ended;
        }
        let ended = self.steps.volumes()?.end(name, self.steps.directory.replace(next)).await;
        self.steps.update();
        ended
    }

    /// Records that nothing is left of a move. Where that fails, it is tried again: before the next
    /// move, and from time to time.
    pub(super) async fn end_move_or_later(&self) {
        self.is_only_recorded.store(true, Ordering::SeqCst);
        if let Err(error) = self.end_again().await {
            tracing::warn!("the end of a move of volumes is not recorded yet: {error}");
        }
    }

    /// Records the end of a move, where that has failed before.
    pub(super) async fn end_again(&self) -> Outcome<()> {
        if !self.is_only_recorded.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.steps.directory.end_move().await?;
        self.is_only_recorded.store(false, Ordering::SeqCst);
        if let Ok(volumes) = self.steps.volumes() {
            volumes.set_recorded(Vec::new());
        }
        Ok(())
    }

    /// Tries to record the end of a move until that succeeds, or another change sees to it; unless
    /// another task does.
    pub async fn end_later(&self) {
        while self.is_only_recorded.load(Ordering::SeqCst)
            && !self.is_tried_again.swap(true, Ordering::SeqCst)
        {
            self.try_again().await;
            self.is_tried_again.store(false, Ordering::SeqCst);
        }
    }

    async fn try_again(&self) {
        while self.is_only_recorded.load(Ordering::SeqCst) {
            tokio::time::sleep(AGAIN).await;
            let Ok(_one) = self.under_way.try_lock() else { continue };
            if let Err(error) = self.end_again().await {
                tracing::warn!("the end of a move of volumes is not recorded yet: {error}");
            }
        }
    }
}
