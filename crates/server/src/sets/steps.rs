//! The steps of which changes of the sets are made: by the table in the directory, on the threads
//! of the shards, and in the domains of volumes.

use super::directory::{Directory, STOPPING};
use crate::thread::{Erasure, Message};
use crate::volumes::{UnitChange, Volumes};
use async_channel::Sender;
use softflash_base::UnitSet;
use softflash_datadir::{SetTable, ShardDomain};
use softflash_device::Device;
use softflash_policy::Chosen;
use softflash_protocol::shared::recording::volume::VolumeRecordings;
use softflash_volume::UnitSlots;
use std::sync::Arc;
use tokio::sync::oneshot;

pub(super) type Outcome<T> = Result<T, String>;

/// The threads of the shards, and what a new domain on one of them needs.
pub(crate) struct Hosts {
    pub threads: Vec<Sender<Message>>,
    pub policies: Chosen,
    pub recordings: Arc<VolumeRecordings>,
}

/// What changes of the sets use.
pub(super) struct Steps {
    pub directory: Directory,
    pub volumes: Option<Volumes>,
    pub hosts: Hosts,
}

impl Steps {
    pub fn volumes(&self) -> Outcome<&Volumes> {
        self.volumes.as_ref().ok_or_else(|| "the directory has no units for volumes".to_owned())
    }

    /// The domain of a set by the table.
    pub fn domain(&self, name: &str) -> Outcome<ShardDomain> {
        let found = self.directory.domains().into_iter().find(|domain| domain.name == name);
        found.ok_or_else(|| format!("no set for volumes is named `{name}`"))
    }

    /// The slots of a set by the table.
    pub fn slots(&self, name: &str) -> Outcome<UnitSlots> {
        let slots = self.domain(name)?.config.slots;
        slots.ok_or_else(|| format!("no table of sets names the units of `{name}`"))
    }

    pub async fn change_units(&self, name: &str, change: UnitChange) -> Outcome<()> {
        self.volumes()?.change_units(name, change).await.map_err(|error| error.to_string())
    }

    /// Replaces the table, of which the domains then have their descriptions.
    pub async fn replace(&self, next: SetTable) -> Outcome<()> {
        self.directory.replace(next).await?;
        self.update();
        Ok(())
    }

    /// The domains, where there are any, have their descriptions by the table.
    pub fn update(&self) {
        if let Some(volumes) = &self.volumes {
            volumes.update(&self.directory.domains());
        }
    }

    pub async fn erase(&self, shard: u16, units: UnitSet, epoch: u32) -> Outcome<()> {
        self.erase_on(self.directory.device(), shard, units, epoch).await
    }

    /// Erases units of a handle of the device on the thread of a shard.
    pub async fn erase_on(
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

    pub fn send(&self, shard: u16, message: Message) -> Outcome<()> {
        let thread = self.hosts.threads.get(usize::from(shard));
        let sent = thread.is_some_and(|thread| thread.try_send(message).is_ok());
        if sent { Ok(()) } else { Err(STOPPING.to_owned()) }
    }

    /// Units that the table gives to a set are used by it from now on.
    pub async fn join(&self, name: &str, joining: UnitSet) -> Outcome<()> {
        let slots = self.slots(name)?;
        let joined = UnitChange::Join(joining.clone(), slots, self.directory.device());
        self.change_units(name, joined).await.map_err(|error| {
            format!("the set `{name}` has the units {joining} from the next start on: {error}")
        })
    }
}

/// The error where drained units may have left their set by the table on the disk, or not: data
/// that they took would be lost if they have.
pub(super) fn undecided(units: &UnitSet, error: &str) -> String {
    format!(
        "{error}; the units {units} are empty and take no data: whether they are spare, the next start \
         decides by the table that it finds"
    )
}
