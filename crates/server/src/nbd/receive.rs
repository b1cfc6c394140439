//! Receives the requests of a connection and starts them; the limits of what is under way.

use super::budget::RequestMemory;
use super::carry_out::carry_out;
use super::client::BegunWrite;
use super::recorder::RequestRecorder;
use super::send::Outgoing;
use super::target::Target;
use crate::transport::Transport;
use softflash_nbd::{Command, Event as Parsed, Request, Transmission};
use softflash_runtime::{BytePermit, ByteSemaphore, Event, RuntimeHandle};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;

/// Maximum number of requests of a connection under way.
pub(super) const MOST_REQUESTS: u64 = 64;

/// Time limit without progress for a client that has begun a write.
const PAYLOAD_TIMEOUT: Duration = Duration::from_secs(30);

const READ_BYTES: usize = 64 << 10;

/// The receiving half of a connection.
pub(super) struct Receiver {
    pub socket: ReadHalf<Transport>,
    pub transmission: Transmission,
    pub target: Target,
    pub recorder: RequestRecorder,
    pub runtime: RuntimeHandle,
    pub replies: UnboundedSender<Outgoing>,
    /// Requests of this connection.
    pub requests: ByteSemaphore,
    /// The memory of their data.
    pub memory: RequestMemory,
    /// Set once the client sends nothing more: its reads that wait for memory are dropped.
    pub gone: Event,
    /// Set if the client or the server is going.
    pub ends: [Event; 2],
    /// Set if the volume moves to another thread, and the connection with it.
    pub leaving: Event,
    /// Set once nobody takes replies here: reads that wait for memory are dropped.
    pub cut: Event,
}

/// What is left of a connection that goes on elsewhere.
pub(super) struct Left {
    pub socket: ReadHalf<Transport>,
    pub transmission: Transmission,
    pub begun: Option<BegunWrite>,
}

/// Why nothing more is received here.
enum End {
    /// The client or the server is going.
    Gone,
    /// The connection goes on elsewhere.
    Left,
}

/// A write whose payload is being received.
struct Pending {
    request: Request,
    payload: Vec<u8>,
    held: Vec<BytePermit>,
}

impl Receiver {
    /// Receives requests until the client disconnects, the server stops or the connection leaves
    /// this thread, and waits until those under way are replied to. Returns the connection if it
    /// goes on elsewhere.
    pub async fn run(mut self, received: Vec<u8>, begun: Option<BegunWrite>) -> Option<Left> {
        let mut pending = None;
        if let Some(BegunWrite { request, payload }) = begun {
            let held = self.admit(&request).await;
            pending = Some(Pending { request, payload, held });
        }
        let ended = self.receive(received, &mut pending).await;
        if let Err(error) = &ended {
            tracing::debug!(%error, "NBD client lost");
            // Nobody reads the replies to what is under way.
            let [client, _] = &self.ends;
            client.set();
        }
        let leaves = matches!(ended, Ok(End::Left));
        let [_, server] = &self.ends;
        if !server.is_set() && !leaves {
            self.gone.set();
        }
        // It is admitted again where it goes on.
        let begun = pending.map(|Pending { request, payload, .. }| BegunWrite { request, payload });
        let _all = self.requests.acquire(MOST_REQUESTS).await;
        let Receiver { socket, transmission, .. } = self;
        leaves.then_some(Left { socket, transmission, begun })
    }

    async fn receive(
        &mut self,
        received: Vec<u8>,
        pending: &mut Option<Pending>,
    ) -> io::Result<End> {
        let mut goes_on = self.take(&received, pending).await?;
        drop(received);
        let mut buffer = vec![0; READ_BYTES];
        while goes_on {
            if let End::Left = self.receive_payload(pending).await? {
                return Ok(End::Left);
            }
            let [client, server] = &self.ends;
            let count = tokio::select! {
                count = self.socket.read(&mut buffer) => count?,
                () = client.wait() => 0,
                () = server.wait() => 0,
                () = self.leaving.wait() => return Ok(End::Left),
            };
            let input = buffer.get(..count).unwrap_or_default();
            goes_on = count > 0 && self.take(input, pending).await?;
        }
        Ok(End::Gone)
    }

    /// Receives the rest of a payload where it is needed.
    async fn receive_payload(&mut self, pending: &mut Option<Pending>) -> io::Result<End> {
        while let Some(write) = pending {
            let missing = self.transmission.payload_missing_bytes();
            if missing > 0 {
                let mut limited = (&mut self.socket).take(u64::from(missing));
                let [client, server] = &self.ends;
                let count = tokio::select! {
                    count = timeout(PAYLOAD_TIMEOUT, limited.read_buf(&mut write.payload)) => count??,
                    () = client.wait() => 0,
                    () = server.wait() => 0,
                    () = self.leaving.wait() => return Ok(End::Left),
                };
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.transmission.payload_received(u32::try_from(count).unwrap_or(u32::MAX));
                continue;
            }
            if let Some(Pending { request, payload, held }) = pending.take() {
                self.start(request, payload, held);
            }
        }
        Ok(End::Gone)
    }

    /// Takes the requests from received bytes; false if the client goes.
    async fn take(&mut self, input: &[u8], pending: &mut Option<Pending>) -> io::Result<bool> {
        let mut input = input;
        loop {
            match self.transmission.next(&mut input).map_err(io::Error::other)? {
                Parsed::NeedInput => return Ok(true),
                Parsed::Disconnect => return Ok(false),
                Parsed::Request(request) => {
                    let held = self.admit(&request).await;
                    match request.command.payload_bytes() {
                        0 => self.start(request, Vec::new(), held),
                        bytes => {
                            let payload = Vec::with_capacity(bytes as usize);
                            *pending = Some(Pending { request, payload, held });
                        }
                    }
                }
                Parsed::Payload { bytes, is_last } => {
                    if let Some(write) = pending {
                        write.payload.extend_from_slice(bytes);
                    }
                    if let Some(Pending { request, payload, held }) = pending.take_if(|_| is_last) {
                        self.start(request, payload, held);
                    }
                }
                Parsed::Rejected(rejection) => {
                    let held = vec![self.requests.acquire(1).await];
                    let mut head = Vec::new();
                    self.transmission.session().replies().reject(&rejection, &mut head);
                    self.reply(Outgoing { reply: head.into(), held });
                }
            }
        }
    }

    /// Waits until a request may be received as a whole.
    async fn admit(&self, request: &Request) -> Vec<BytePermit> {
        let mut held = vec![self.requests.acquire(1).await];
        if let Command::Write { range } = request.command {
            held.push(self.memory.write(u64::from(range.bytes)).await);
        }
        held
    }

    /// Starts a request, beside those under way. A read waits for its memory there, so that it does
    /// not hold up the requests behind it.
    fn start(&self, request: Request, payload: Vec<u8>, mut held: Vec<BytePermit>) {
        let (memory, gone, cut) = (self.memory.clone(), self.gone.clone(), self.cut.clone());
        let (target, replies) = (self.target.clone(), self.replies.clone());
        let session = self.transmission.session();
        let (encoder, has_holes) = (session.replies(), session.has_structured_replies());
        let recorded = self.recorder.begin(&request);
        self.runtime.spawn(Box::pin(async move {
            if let Command::Read { range, .. } = request.command {
                tokio::select! {
                    permit = memory.read(u64::from(range.bytes)) => held.push(permit),
                    () = gone.wait() => return,
                    () = cut.wait() => return,
                }
            }
            let reply = carry_out(&target, encoder, has_holes, &request, &payload).await;
            drop((payload, recorded));
            if let Command::Write { .. } = request.command {
                // Its reply is short: the memory of the data is free.
                held.truncate(1);
            }
            // The writer ends after all senders.
            let _ = replies.send(Outgoing { reply, held });
        }));
    }

    fn reply(&self, outgoing: Outgoing) {
        let _ = self.replies.send(outgoing);
    }
}
