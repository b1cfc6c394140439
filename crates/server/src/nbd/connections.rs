//! The NBD connections of a shard's thread.

use super::budget::ExportBudget;
use super::client::Client;
use super::parking::Parking;
use super::range_locks::RangeLocks;
use super::receive::{Left, MOST_REQUESTS, Receiver};
use super::recorder::RequestRecorder;
use super::send::{close, send};
use super::target::Target;
use crate::connection::CLIENT_HINT;
use crate::volumes::SNAPSHOT_MARK;
use futures_util::future::{Either, join, select};
use softflash_protocol::shared::recording::volume::VolumeRecordings;
use softflash_runtime::{ByteSemaphore, Event, RuntimeHandle};
use softflash_volume::{Domain, Volume, VolumeError};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;

/// The time for connections to leave this thread, after which they are disconnected.
const PARK_TIMEOUT: Duration = Duration::from_secs(10);

/// All NBD connections of a thread.
pub(crate) struct Connections {
    runtime: RuntimeHandle,
    recordings: Arc<VolumeRecordings>,
    count: Cell<usize>,
    empty: Event,
    stopping: Event,
    /// What the clients of each export in use share, by its name.
    common: RefCell<HashMap<String, Weak<Common>>>,
    /// Clients of volumes that move to another domain.
    parking: Parking,
}

/// What all clients of an export share.
struct Common {
    locks: Rc<RangeLocks>,
    budget: ExportBudget,
    /// Its connections leave this thread.
    leaving: Event,
    /// Those that have not left are disconnected.
    cut: Event,
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
            parking: Parking::default(),
        }
    }

    /// Serves a client until it disconnects or the server stops.
    pub fn begin(self: &Rc<Self>, client: Client, domain: &Domain) {
        let name = client.export().to_owned();
        let Some(client) = self.parking.keep(client) else { return };
        // It may have been deleted since the handshake.
        match open(domain, &name) {
            Ok(volume) => {
                let common = self.common_of(&name);
                let volume = volume.giving_up_at(common.cut.clone());
                let target = Target::new(volume, Rc::clone(&common.locks));
                let member = Member::enter(self);
                self.runtime.spawn(Box::pin(async move {
                    let connections = &member.connections;
                    let left = connections.serve_until_cut(client, target, &common, &name).await;
                    if let Some(client) = left {
                        connections.parking.park(client);
                    }
                    drop(common);
                    connections.parking.note_end();
                }));
            }
            Err(error) => {
                let Some(_client) = self.parking.forward(client) else { return };
                tracing::debug!(export = name, %error, "NBD client disconnected");
            }
        }
    }

    /// As [`serve`](Connections::serve), until the connections of the export are cut.
    async fn serve_until_cut(
        &self,
        client: Client,
        target: Target,
        common: &Common,
        export: &str,
    ) -> Option<Client> {
        let requests = ByteSemaphore::new(MOST_REQUESTS);
        let ended = {
            let serving = pin!(self.serve(client, target, common, requests.clone()));
            match select(serving, pin!(common.cut.wait())).await {
                Either::Left((ended, _)) => Some(ended),
                Either::Right(_) => None,
            }
        };
        match ended {
            Some(Ok(left)) => left,
            Some(Err(error)) => {
                tracing::debug!(export, %error, "NBD client lost");
                None
            }
            None => {
                tracing::warn!(
                    export,
                    "an NBD client that takes no replies, or whose requests wait for the limits of \
                     the volume, was disconnected"
                );
                // Those that have begun end before the volume goes on elsewhere.
                let _all = requests.acquire(MOST_REQUESTS).await;
                None
            }
        }
    }

    /// Serves a client; returns it if it leaves this thread.
    async fn serve(
        &self,
        client: Client,
        target: Target,
        common: &Common,
        requests: ByteSemaphore,
    ) -> io::Result<Option<Client>> {
        let Client { connection, transmission, received, begun, permit } = client;
        let stream = connection.attach().await?;
        let (socket, writer) = tokio::io::split(stream);
        let (replies, outgoing) = unbounded_channel();
        let lost = Event::new();
        let export = transmission.session().export().name.clone();
        let recorder =
            RequestRecorder::new(Arc::clone(&self.recordings), export, self.runtime.clone());
        let receiver = Receiver {
            socket,
            transmission,
            target,
            recorder,
            runtime: self.runtime.clone(),
            replies,
            requests,
            memory: common.budget.of_connection(),
            gone: Event::new(),
            ends: [lost.clone(), self.stopping.clone()],
            leaving: common.leaving.clone(),
            cut: common.cut.clone(),
        };
        let sending = send(writer, outgoing, common.budget.clone(), lost.clone());
        let (left, writer) = join(receiver.run(received, begun), sending).await;
        match left.filter(|_| !lost.is_set()) {
            Some(Left { socket, transmission, begun }) => {
                let (connection, received) = (socket.unsplit(writer).detach()?, Vec::new());
                Ok(Some(Client { connection, transmission, received, begun, permit }))
            }
            None => {
                close(writer).await;
                Ok(None)
            }
        }
    }

    /// Lets the connections to these volumes and their snapshots leave: no request is under way
    /// afterwards, and clients that come wait. Those that take no replies, or whose requests wait
    /// for the limits of their volume, are disconnected after a time: what has begun ends, and what
    /// has not never does.
    pub async fn park(&self, volumes: &[String]) {
        self.parking.begin(volumes);
        let of_volumes = || -> Vec<Rc<Common>> {
            let all = self.common.borrow();
            let theirs = all.iter().filter(|(name, _)| self.parking.is_of(name));
            theirs.filter_map(|(_, common)| common.upgrade()).collect()
        };
        of_volumes().iter().for_each(|common| common.leaving.set());
        let mut patience = pin!(self.runtime.sleep_until(self.runtime.now() + PARK_TIMEOUT));
        while !of_volumes().is_empty() {
            let ended = pin!(self.parking.ended());
            if let Either::Right(_) = select(ended, patience.as_mut()).await {
                of_volumes().iter().for_each(|common| common.cut.set());
                patience.set(self.runtime.sleep_until(self.runtime.now() + PARK_TIMEOUT));
            }
        }
    }

    /// The volumes stay: their clients go on here.
    pub fn resume(self: &Rc<Self>, domain: &Domain) {
        self.parking.end().into_iter().for_each(|client| self.begin(client, domain));
    }

    /// The volumes are here: no client is sent on any more.
    pub fn settle(&self, volumes: &[String]) {
        self.parking.settle(volumes);
    }

    /// The volumes have moved: their clients go on where `onward` brings them, also those that come
    /// later because they had found the volumes here.
    pub fn hand_over(&self, onward: impl Fn(Client) + 'static) {
        self.parking.hand_over(Rc::new(onward));
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
        let common = Rc::new(Common {
            locks: Rc::default(),
            budget: ExportBudget::new(),
            leaving: Event::new(),
            cut: Event::new(),
        });
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
        select(emptied, timeout).await;
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
