//! Clients of volumes that move from one domain to another: they wait, connected, until it is known
//! which domain has the volumes.

use super::client::Client;
use crate::volumes::SNAPSHOT_MARK;
use softflash_runtime::Notify;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Where clients go on.
type Onward = Rc<dyn Fn(Client)>;

/// The clients of a domain that wait.
#[derive(Default)]
pub(super) struct Parking {
    /// While a move needs it.
    place: RefCell<Option<Place>>,
    /// Where the volumes are that have left.
    moved: RefCell<HashMap<String, Onward>>,
    /// Notified when a connection has ended, or is parked.
    ended: Notify,
}

struct Place {
    volumes: Vec<String>,
    clients: Vec<Client>,
}

impl Parking {
    /// Clients of these volumes, and of their snapshots, wait from now on.
    pub fn begin(&self, volumes: &[String]) {
        let place = Place { volumes: volumes.to_vec(), clients: Vec::new() };
        self.place.replace(Some(place));
    }

    /// Whether clients of an export wait.
    pub fn is_of(&self, export: &str) -> bool {
        let place = self.place.borrow();
        place.as_ref().is_some_and(|place| place.volumes.iter().any(|it| it == volume_of(export)))
    }

    /// Keeps a client that has come, if it has to wait; otherwise returns it.
    pub fn keep(&self, client: Client) -> Option<Client> {
        if !self.is_of(client.export()) {
            return Some(client);
        }
        self.park(client);
        None
    }

    /// A connection waits. One that leaves when nobody waits any more is closed.
    pub fn park(&self, client: Client) {
        if let Some(place) = self.place.borrow_mut().as_mut() {
            place.clients.push(client);
        }
    }

    /// A connection has ended.
    pub fn note_end(&self) {
        self.ended.notify_all();
    }

    /// Waits until a connection ends.
    pub async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Nobody waits any more; returns those who did.
    pub fn end(&self) -> Vec<Client> {
        self.place.take().map(|place| place.clients).unwrap_or_default()
    }

    /// Nobody waits any more: all go on elsewhere.
    pub fn hand_over(&self, onward: Onward) {
        let Some(Place { volumes, clients }) = self.place.take() else { return };
        clients.into_iter().for_each(|client| onward(client));
        let all = volumes.into_iter().map(|volume| (volume, Rc::clone(&onward)));
        self.moved.borrow_mut().extend(all);
    }

    /// These volumes are here, also those that had left.
    pub fn settle(&self, volumes: &[String]) {
        self.moved.borrow_mut().retain(|volume, _| !volumes.contains(volume));
    }

    /// Sends a client after its volume, if that has left; otherwise returns it.
    pub fn forward(&self, client: Client) -> Option<Client> {
        let onward = self.moved.borrow().get(volume_of(client.export())).cloned();
        match onward {
            Some(onward) => {
                onward(client);
                None
            }
            None => Some(client),
        }
    }
}

/// The volume of an export, which may be a snapshot.
fn volume_of(export: &str) -> &str {
    export.split_once(SNAPSHOT_MARK).map_or(export, |(volume, _)| volume)
}
