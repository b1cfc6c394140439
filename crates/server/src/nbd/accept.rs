//! Accepts NBD connections, and has their handshakes run on the main thread.

use super::admission::{Admitted, NbdAdmission};
use super::handshake::Handshake;
use crate::listener::{pause_after, set_options};
use crate::registry::AUTHENTICATION_TIMEOUT;
use crate::volumes::Volumes;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Accepts until the future is dropped; then the handshakes under way end, too.
pub(crate) async fn accept(listener: TcpListener, admission: NbdAdmission, volumes: Volumes) {
    let mut handshakes = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = handshakes.join_next() => continue,
        };
        match accepted {
            Ok((socket, peer)) => match admission.admit(peer) {
                Ok(admitted) => {
                    let tls = admission.tls.clone();
                    let Admitted { tls: mode, permit, slot } = admitted;
                    let volumes = volumes.clone();
                    handshakes.spawn(async move {
                        // Where this fails, the connection is lost anyway.
                        let _ = set_options(&socket);
                        let handshake = Handshake::new(socket, mode, tls, volumes.clone());
                        match timeout(AUTHENTICATION_TIMEOUT, handshake.run(permit)).await {
                            Ok(Ok(Some((shard, client)))) => volumes.serve(shard, client),
                            Ok(Ok(None)) => {}
                            Ok(Err(error)) => tracing::debug!(%peer, %error, "NBD client lost"),
                            Err(_) => tracing::debug!(%peer, "an NBD handshake timed out"),
                        }
                        drop(slot);
                    });
                }
                Err(reason) => admission.refused(peer, reason),
            },
            Err(error) => pause_after(error).await,
        }
    }
}
