//! The NBD connections of a shard's thread.

use super::budget::ExportBudget;
use super::client::Client;
use super::range_locks::RangeLocks;
use super::receive::{MOST_REQUESTS, Receiver};
use super::recorder::RequestRecorder;
use super::send::send;
use super::target::Target;
use crate::connection::CLIENT_HINT;
use crate::volumes::SNAPSHOT_MARK;
use softflash_nbd::Transmission;
use softflash_protocol::shared::recording::volume::VolumeRecordings;
use softflash_runtime::{ByteSemaphore, Event, RuntimeHandle};
use softflash_volume::{Domain, Volume, VolumeError};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;

/// All NBD connections of a thread.
pub(crate) struct Connections {
    runtime: RuntimeHandle,
    recordings: Arc<VolumeRecordings>,
    count: Cell<usize>,
    empty: Event,
    stopping: Event,
    /// What the clients of each export in use share, by its name.
    common: RefCell<HashMap<String, Weak<Common>>>,
}

/// What all clients of an export share.
struct Common {
    locks: Rc<RangeLocks>,
    budget: ExportBudget,
}

impl Connections {
    pub fn new(runtime: RuntimeHandle, recordings: Arc<VolumeRecordings>) -> Connections {
        let empty = Event::new();
        empty.set();
        Connections {
            runtime,
            recordings,
            count: Cell::new(0),
            empty,
            stopping: Event::new(),
            common: RefCell::default(),
        }
    }

    /// Serves a client until it disconnects or the server stops.
    pub fn begin(self: &Rc<Self>, client: Client, domain: &Domain) {
        let name = client.session.export().name.clone();
        // It may have been deleted since the handshake.
        match open(domain, &name) {
            Ok(volume) => {
                let common = self.common_of(&name);
                let target = Target::new(volume, Rc::clone(&common.locks));
                let member = Member::enter(self);
                self.runtime.spawn(Box::pin(async move {
                    if let Err(error) = member.connections.serve(client, target, &common).await {
                        tracing::debug!(export = name, %error, "NBD client lost");
                    }
                }));
            }
            Err(error) => tracing::debug!(export = name, %error, "NBD client disconnected"),
        }
    }

    async fn serve(&self, client: Client, target: Target, common: &Common) -> io::Result<()> {
        let Client { connection, session, received, permit } = client;
        let stream = connection.attach().await?;
        let (socket, writer) = tokio::io::split(stream);
        let (replies, outgoing) = unbounded_channel();
        let lost = Event::new();
        let export = session.export().name.clone();
        let recorder =
            RequestRecorder::new(Arc::clone(&self.recordings), export, self.runtime.clone());
        let receiver = Receiver {
            socket,
            transmission: Transmission::new(session),
            target,
            recorder,
            runtime: self.runtime.clone(),
            replies,
            requests: ByteSemaphore::new(MOST_REQUESTS),
            memory: common.budget.of_connection(),
            gone: Event::new(),
            ends: [lost.clone(), self.stopping.clone()],
        };
        let sending = send(writer, outgoing, common.budget.clone(), lost);
        futures_util::future::join(receiver.run(received), sending).await;
        drop(permit);
        Ok(())
    }

    /// The number of clients of an export.
    pub fn clients_of(&self, name: &str) -> usize {
        self.common.borrow().get(name).map_or(0, Weak::strong_count)
    }

    fn common_of(&self, name: &str) -> Rc<Common> {
        let mut all = self.common.borrow_mut();
        if let Some(common) = all.get(name).and_then(Weak::upgrade) {
            return common;
        }
        all.retain(|_, common| common.strong_count() > 0);
        let common = Rc::new(Common { locks: Rc::default(), budget: ExportBudget::new() });
        all.insert(name.to_owned(), Rc::downgrade(&common));
        common
    }

    /// Ends all connections: requests under way are replied to, within this time.
    pub async fn drain(&self, within: Duration) {
        self.stopping.set();
        let timeout = self.runtime.sleep_until(self.runtime.now() + within);
        let emptied = std::pin::pin!(async {
            while self.count.get() > 0 {
                self.empty.wait().await;
            }
        });
        futures_util::future::select(emptied, timeout).await;
        if self.count.get() > 0 {
            tracing::warn!(connections = self.count.get(), "NBD clients are disconnected");
        }
    }
}

/// A volume, or the snapshot of one.
fn open(domain: &Domain, name: &str) -> Result<Volume, VolumeError> {
    let volume = match name.split_once(SNAPSHOT_MARK) {
        Some((volume, snapshot)) => domain.open_snapshot(volume, snapshot),
        None => domain.volume(name),
    };
    volume.map(|volume| volume.hinted(CLIENT_HINT))
}

/// A connection in the count of all; leaves it on drop.
struct Member {
    connections: Rc<Connections>,
}

impl Member {
    fn enter(connections: &Rc<Connections>) -> Member {
        connections.count.set(connections.count.get() + 1);
        connections.empty.reset();
        Member { connections: Rc::clone(connections) }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let left = self.connections.count.get().saturating_sub(1);
        self.connections.count.set(left);
        if left == 0 {
            self.connections.empty.set();
        }
    }
}
