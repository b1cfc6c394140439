//! Accepts NBD connections, and has their handshakes run on the main thread.

use super::door::{Admitted, Door};
use super::handshake::Handshake;
use crate::listener::PAUSE_AFTER_ERROR;
use crate::registry::AUTHENTICATION_TIMEOUT;
use crate::volumes::Volumes;
use socket2::SockRef;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Accepts until the future is dropped; then the handshakes under way end, too.
pub(crate) async fn accept(listener: TcpListener, door: Door, volumes: Volumes) {
    let mut handshakes = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = handshakes.join_next() => continue,
        };
        match accepted {
            Ok((socket, peer)) => match door.admit(peer) {
                Ok(admitted) => {
                    let tls = door.tls.clone();
                    let Admitted { tls: mode, place, slot } = admitted;
                    let volumes = volumes.clone();
                    handshakes.spawn(async move {
                        prepare(&socket);
                        let handshake = Handshake::new(socket, mode, tls, volumes.clone());
                        match timeout(AUTHENTICATION_TIMEOUT, handshake.run(place)).await {
                            Ok(Ok(Some((shard, client)))) => volumes.serve(shard, client),
                            Ok(Ok(None)) => {}
                            Ok(Err(error)) => tracing::debug!(%peer, %error, "NBD client lost"),
                            Err(_) => tracing::debug!(%peer, "an NBD handshake timed out"),
                        }
                        drop(slot);
                    });
                }
                Err(reason) => refused(peer, reason),
            },
            Err(error) => {
                tracing::warn!(%error, "cannot accept an NBD connection");
                sleep(PAUSE_AFTER_ERROR).await;
            }
        }
    }
}

/// Without Nagle's delay, because replies are written whole.
fn prepare(socket: &TcpStream) {
    // Where these fail, the connection is lost anyway.
    let _ = socket.set_nodelay(true);
    let _ = SockRef::from(socket).set_keepalive(true);
}

fn refused(peer: SocketAddr, reason: &str) {
    // There is no reply for this in the protocol: the client sees the end of the connection.
    tracing::warn!(%peer, reason, "an NBD connection is refused");
}
