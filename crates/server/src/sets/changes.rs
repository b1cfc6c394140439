//! Changes of the sets for volumes while they are served: a unit is drained before it leaves its
//! set, and erased before it joins another one; the table of sets is written in between, so that a
//! crash at any time leaves what one of the two tables says.

use super::directory::Directory;
use super::{STOPPING, growing};
use crate::thread::{Erasure, Message, PairOfHosts};
use crate::volumes::{HostSpec, PairChange, UnitChange, Volumes};
use async_channel::Sender;
use softflash_base::UnitSet;
use softflash_datadir::{DEFAULT_OP_PERCENT, NewSet, Resize, SetTable, ShardDomain, parse_window};
use softflash_device::Device;
use softflash_policy::Chosen;
use softflash_protocol::sets::SetChange;
use softflash_protocol::shared::recording::volume::VolumeRecordings;
use softflash_volume::UnitSlots;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, oneshot};

/// The threads of the shards, and what a new domain on one of them needs.
pub(crate) struct Hosts {
    pub threads: Vec<Sender<Message>>,
    pub policies: Chosen,
    pub recordings: Arc<VolumeRecordings>,
}

/// Changes the sets of a directory, one change at a time.
pub(super) struct Changes {
    directory: Directory,
    pub(super) volumes: Option<Volumes>,
    hosts: Hosts,
    pub(super) under_way: Mutex<()>,
    /// Nothing is left of a move but its record.
    is_only_recorded: AtomicBool,
}

pub(super) type Outcome<T> = Result<T, String>;

/// The time between two attempts to record the end of a move.
const AGAIN: Duration = Duration::from_secs(5);

/// The error of a second change.
pub(super) const UNDER_WAY: &str = "another change of the sets, or a move of volumes between them, is \
    under way; FLASH.SET LIST shows the draining_bytes of units that leave a set, and FLASH.VOLUME LIST \
    how far a move is";

impl Changes {
    pub fn new(directory: Directory, volumes: Option<Volumes>, hosts: Hosts) -> Changes {
        let is_only_recorded = AtomicBool::new(false);
        Changes { directory, volumes, hosts, under_way: Mutex::new(()), is_only_recorded }
    }

    pub fn directory(&self) -> &Directory {
        &self.directory
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
            SetChange::Grow(growth) => growing::grow(self, growth).await,
        }
    }

    async fn create(&self, new: &NewSet) -> Outcome<()> {
        let device_units = self.directory.units();
        let (joining, epoch, next) = self.directory.plan(|table| {
            let next = table.with_set(new, device_units)?;
            Ok((table.given_by(&next, device_units), table.epoch, next))
        })?;
        self.directory.check(&next)?;
        let shard = next.mapped.last().map_or(0, |set| set.shard);
        self.erase(shard, joining, epoch).await?;
        self.replace(next).await?;
        let domain = self.domain(&new.name)?.with_policies(&self.hosts.policies);
        let requests = self.volumes()?.add(&domain);
        let recordings = Arc::clone(&self.hosts.recordings);
        let spec = HostSpec { domain, requests, recordings };
        self.send(shard, Message::Host(Box::new(spec), self.directory.device()))?;
        self.volumes()?.ready(&new.name).await.map_err(|error| error.to_string())
    }

    async fn resize(&self, name: &str, units: u16) -> Outcome<()> {
        let device_units = self.directory.units();
        let plan = |table: &SetTable| Ok((table.epoch, table.resized(name, units, device_units)?));
        match self.directory.plan(plan)? {
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
        self.directory.check(&next)?;
        let shard = self.domain(name)?.shard.0;
        self.erase(shard, joining.clone(), epoch).await?;
        self.replace(next).await?;
        self.join(name, joining).await
    }

    /// Units that the table gives to a set are used by it from now on.
    pub(super) async fn join(&self, name: &str, joining: UnitSet) -> Outcome<()> {
        let slots = self.slots(name)?;
        let joined = UnitChange::Join(joining.clone(), slots, self.directory.device());
        self.change_units(name, joined).await.map_err(|error| {
            format!("the set `{name}` has the units {joining} from the next start on: {error}")
        })
    }

    async fn shrink(&self, name: &str, leaving: UnitSet, next: SetTable) -> Outcome<()> {
        self.directory.check(&next)?;
        self.change_units(name, UnitChange::Drain(leaving.clone())).await?;
        if let Err(error) = self.replace(next).await {
            self.change_units(name, UnitChange::Keep(leaving)).await?;
            return Err(error);
        }
        let left = UnitChange::Leave(leaving.clone(), self.slots(name)?);
        self.change_units(name, left).await.map_err(|error| {
            format!(
                "the units {leaving} are spare, and can be used from the next start on: {error}"
            )
        })
    }

    /// Makes a pair of two sets. One that is empty gets a copy of everything, after the return.
    async fn pair(&self, names: [String; 2]) -> Outcome<()> {
        let [first, second] = &names;
        let next = self.directory.plan(|table| table.with_pair(first, second))?;
        self.directory.check(&next)?;
        let pair = next.pairs.last().cloned().ok_or_else(|| STOPPING.to_owned())?;
        let shard = self.domain(first)?.shard.0;
        self.volumes()?.check_pair([first, second]).await.map_err(|error| error.to_string())?;
        self.replace(next).await?;
        let (answer, paired) = oneshot::channel();
        self.send(shard, Message::Pair(PairOfHosts { names: names.clone(), pair, answer }))?;
        let paired = paired.await.unwrap_or_else(|_| Err(STOPPING.to_owned()));
        if paired.is_err() {
            let before = self.directory.plan(|table| table.without_pair(first))?;
            self.replace(before).await?;
        }
        paired
    }

    async fn window(&self, name: &str, length: &str) -> Outcome<()> {
        let window_ms = parse_window(length).map_err(|error| error.to_string())?;
        let next = self.directory.plan(|table| table.with_window(name, window_ms))?;
        self.directory.check(&next)?;
        self.replace(next).await?;
        let window = window_ms.map(|ms| Duration::from_millis(ms.into()));
        let change = PairChange::Window(window);
        self.volumes()?.change_pair(name, change).await.map_err(|error| error.to_string())
    }

    /// Ends the pair of a set, whose partner keeps the volumes.
    async fn end_pair(&self, name: &str) -> Outcome<()> {
        let of = self.domain(name)?;
        let Some(pair) = &of.pair else { return Ok(()) };
        let partner = pair.partner_of(of.config.domain);
        let domains = self.directory.domains();
        let partner = domains.iter().find(|domain| domain.config.domain == partner);
        let partner = partner.ok_or_else(|| STOPPING.to_owned())?;
        let volumes = self.volumes()?;
        volumes.check_second(name).await.map_err(|error| error.to_string())?;
        let ended = volumes.change_pair(&partner.name, PairChange::End).await;
        ended.map_err(|error| error.to_string())
    }

    async fn delete(&self, name: &str) -> Outcome<()> {
        let next = self.directory.plan(|table| table.without_set(name))?;
        self.directory.check(&next)?;
        let had_pair = self.domain(name)?.pair.is_some();
        self.end_pair(name).await?;
        if had_pair {
            // Its volumes are those that the other set keeps.
            let ended = self.volumes()?.end_copy(name, self.directory.replace(next)).await;
            self.update()?;
            return ended;
        }
        let ended = self.volumes()?.end(name, self.directory.replace(next)).await;
        self.update()?;
        ended
    }

    pub(super) fn volumes(&self) -> Outcome<&Volumes> {
        self.volumes.as_ref().ok_or_else(|| "the directory has no units for volumes".to_owned())
    }

    /// The domain of a set by the table.
    pub(super) fn domain(&self, name: &str) -> Outcome<ShardDomain> {
        let found = self.directory.domains().into_iter().find(|domain| domain.name == name);
        found.ok_or_else(|| format!("no set for volumes is named `{name}`"))
    }

    /// The slots of a set by the table.
    fn slots(&self, name: &str) -> Outcome<UnitSlots> {
        let slots = self.domain(name)?.config.slots;
        slots.ok_or_else(|| format!("no table of sets names the units of `{name}`"))
    }

    async fn change_units(&self, name: &str, change: UnitChange) -> Outcome<()> {
        self.volumes()?.change_units(name, change).await.map_err(|error| error.to_string())
    }

    /// Replaces the table, of which the domains then have their descriptions.
    async fn replace(&self, next: SetTable) -> Outcome<()> {
        self.directory.replace(next).await?;
        self.update()
    }

    pub(super) fn update(&self) -> Outcome<()> {
        self.volumes()?.update(&self.directory.domains());
        Ok(())
    }

    async fn erase(&self, shard: u16, units: UnitSet, epoch: u32) -> Outcome<()> {
        self.erase_on(self.directory.device(), shard, units, epoch).await
    }

    /// Erases units of a handle of the device on the thread of a shard.
    pub(super) async fn erase_on(
        &self,
        device: Arc<dyn Device>,
        shard: u16,
        units: UnitSet,
        epoch: u32,
    ) -> Outcome<()> {
        let (answer, erased) = oneshot::channel();
        self.send(shard, Message::Erase(Erasure { device, units, epoch, answer }))?;
        erased.await.unwrap_or_else(|_| Err(STOPPING.to_owned()))
    }

    pub(super) fn send(&self, shard: u16, message: Message) -> Outcome<()> {
        let thread = self.hosts.threads.get(usize::from(shard));
        let sent = thread.is_some_and(|thread| thread.try_send(message).is_ok());
        if sent { Ok(()) } else { Err(STOPPING.to_owned()) }
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
        self.directory.end_move().await?;
        self.is_only_recorded.store(false, Ordering::SeqCst);
        if let Ok(volumes) = self.volumes() {
            volumes.set_recorded(Vec::new());
        }
        Ok(())
    }

    /// Tries to record the end of a move until that succeeds, or another change sees to it.
    pub async fn end_later(&self) {
        while self.is_only_recorded.load(Ordering::SeqCst) {
            tokio::time::sleep(AGAIN).await;
            let Ok(_one) = self.under_way.try_lock() else { continue };
            if let Err(error) = self.end_again().await {
                tracing::warn!("the end of a move of volumes is not recorded yet: {error}");
            }
        }
    }
}
