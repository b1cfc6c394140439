//! Volumes that leave a domain and come to another one, on the threads of both. The main thread
//! tells both what has become of it.

use super::requests::Request;
use crate::nbd::connections::Connections;
use async_channel::{Receiver, Sender};
use softflash_datadir::{Arrival, Departure, Family, MoveError, MoveProgress, Piece};
use softflash_volume::{Domain, VolumeError};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// Volumes that leave a domain.
pub(crate) struct Leaving {
    pub family: Family,
    pub progress: Arc<MoveProgress>,
    pub pieces: Sender<Piece>,
    /// Told when everything was sent, and the clients of the volumes wait; or why not.
    pub sent: oneshot::Sender<Result<(), MoveError>>,
    pub verdict: oneshot::Receiver<Verdict>,
}

/// Volumes that come to a domain.
pub(crate) struct Coming {
    pub family: Family,
    pub pieces: Receiver<Piece>,
    /// Told when everything is there, durably; or why not.
    pub came: oneshot::Sender<Result<(), MoveError>>,
    pub verdict: oneshot::Receiver<Verdict>,
}

/// Which domain has the volumes.
pub(crate) struct Verdict {
    /// The one to which they come, which clients reach by this; `None` for the one that they leave.
    pub moved: Option<UnboundedSender<Request>>,
    /// Told when the domain has acted on it.
    pub done: oneshot::Sender<Result<(), VolumeError>>,
}

/// Copies volumes away while clients use them; then the clients wait for the verdict.
pub(super) async fn leave(domain: Domain, connections: Rc<Connections>, order: Leaving) {
    let Leaving { family, progress, pieces, sent, verdict } = order;
    let names = family.names();
    let copied = copy(&domain, &connections, family, progress, &pieces).await;
    drop(pieces);
    let (departure, told) = match copied {
        Ok(departure) => (Some(departure), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let _ = sent.send(told);
    match (verdict.await, departure) {
        (Ok(Verdict { moved: Some(target), done }), Some(departure)) => {
            departure.hide();
            connections.hand_over(move |client| {
                let _ = target.send(Request::Serve(Box::new(client)));
            });
            let _ = done.send(departure.leave().await);
        }
        (Ok(Verdict { done, .. }), _) => {
            connections.resume(&domain);
            let _ = done.send(Ok(()));
        }
        // Nobody knows here which domain has them: no client may write.
        (Err(_), Some(departure)) => {
            departure.hide();
            connections.resume(&domain);
            tracing::error!(?names, "a move has ended without a verdict; the next start knows it");
        }
        (Err(_), None) => connections.resume(&domain),
    }
}

async fn copy(
    domain: &Domain,
    connections: &Rc<Connections>,
    family: Family,
    progress: Arc<MoveProgress>,
    pieces: &Sender<Piece>,
) -> Result<Departure, MoveError> {
    let names = family.names();
    let departure = Departure::begin(domain, family, progress)?;
    let mut sink =
        async |piece: Piece| pieces.send(piece).await.map_err(|_| MoveError::Interrupted);
    departure.copy(&mut sink).await?;
    connections.park(&names).await;
    departure.finish(&mut sink).await?;
    Ok(departure)
}

/// Takes volumes that come, and shows them once they are this domain's.
pub(super) async fn come(domain: Domain, connections: Rc<Connections>, order: Coming) {
    let Coming { family, pieces, came, verdict } = order;
    let names = family.names();
    let mut arrival = Arrival::begin(&domain, family);
    let taken = async {
        while let Ok(piece) = pieces.recv().await {
            arrival.take(piece).await?;
        }
        arrival.finish().await
    };
    let taken = taken.await;
    // Whoever sends more gets an error.
    drop(pieces);
    let _ = came.send(taken);
    match verdict.await {
        Ok(Verdict { moved: Some(_), done }) => {
            connections.settle(&names);
            arrival.show();
            let _ = done.send(Ok(()));
        }
        Ok(Verdict { moved: None, done }) => {
            let _ = done.send(arrival.undo().await);
        }
        // The next start knows whether they are this domain's.
        Err(_) => {}
    }
}
