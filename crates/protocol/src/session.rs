//! A connection's state, and how its requests are run.

use crate::acl::User;
use crate::clients::Client;
use crate::commands::Handler;
use crate::context::Context;
use crate::dispatch::{Admitted, Command, Scope};
use crate::error::{CommandError, Result};
use crate::exec::{Transaction, Watched};
use crate::identity::Identity;
use crate::lane::{Lane, Origin, Sink};
use crate::load::load;
use crate::output::Output;
use crate::reply::{Protocol, Reply};
use crate::request::Request;
use crate::segment::{Segment, wait_durable};
use crate::wide::Wide;
use crate::write::run_alone;
use bytes::Bytes;
use softflash_store::{Store, Ticket};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Commands run before their replies are handed out.
const MAX_BATCH_COMMANDS: usize = 1024;
/// Bytes of replies gathered before they are handed out.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// Which replies the client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ReplyMode {
    #[default]
    On,
    Off,
    SkipNext,
}

/// The state of a connection.
pub struct Session {
    pub(crate) context: Arc<Context>,
    pub(crate) client: Arc<Client>,
    pub(crate) protocol: Protocol,
    pub(crate) name: Bytes,
    pub(crate) identity: Identity,
    pub(crate) transaction: Option<Transaction>,
    pub(crate) watched: Vec<Watched>,
    pub(crate) reply_mode: ReplyMode,
    pub(crate) last_command: &'static str,
    pub(crate) tally: Tally,
    /// What is to be attended to before anything else.
    waiting: Option<Command>,
    closing: bool,
    encoder: Encoder,
}

impl Session {
    /// The session of a client that connects at `now_ms` (milliseconds since the Unix epoch).
    pub(crate) fn new(
        context: Arc<Context>,
        address: String,
        local_address: String,
        now_ms: u64,
    ) -> Session {
        context.counters.connections.fetch_add(1, Ordering::Relaxed);
        let client = context.clients.enter(address, local_address, now_ms);
        let identity = Identity::of_guest(&context.acl);
        let session = Session {
            identity,
            context,
            client,
            protocol: Protocol::default(),
            name: Bytes::new(),
            transaction: None,
            watched: Vec::new(),
            reply_mode: ReplyMode::default(),
            last_command: "",
            tally: Tally::default(),
            waiting: None,
            closing: false,
            encoder: Encoder::default(),
        };
        session.publish_user();
        session
    }

    /// The client as CLIENT LIST knows it; its [`killed`](Client::killed) is to be awaited beside reads.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Whether the client may do more than authenticate.
    pub fn is_authenticated(&self) -> bool {
        self.identity.user().is_some()
    }

    /// Whether the connection ends once its output is sent.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing || self.client.is_killed()
    }

    /// Bytes of requests that a transaction keeps until EXEC.
    pub(crate) fn queued_bytes(&self) -> u64 {
        self.transaction.as_ref().map_or(0, |transaction| transaction.bytes)
    }

    /// What is to be sent.
    pub(crate) fn output(&mut self) -> &mut Output {
        &mut self.encoder.output
    }

    /// Does what takes long and needs no store, such as AUTH. It is apart from [`run`](Self::run), before which
    /// it is called, so that a client holds nothing that others want while its password is tried.
    pub(crate) async fn attend(&mut self, store: &Store) {
        let Some(command) = self.waiting.take() else { return };
        let Handler::Waiting(waiting) = command.spec.handler else { return };
        let reply = Reply::from((waiting.run)(self, store, &command.args).await);
        self.encoder.accept(command.heard(reply));
        self.account(store);
    }

    /// Runs requests until `next`, which is told whether the client has authenticated, has no more, or
    /// enough replies are gathered (then it returns true: call it again once they are sent). The
    /// replies are in [`output`](Self::output), and everything that they tell is durable.
    ///
    /// Commands take effect in the order of the requests as far as one key is concerned; commands on
    /// different shards may run at the same time.
    pub(crate) async fn run(
        &mut self,
        store: &Store,
        mut next: impl FnMut(bool) -> Option<Request>,
    ) -> bool {
        let origin = self.origin();
        self.identity.refresh(&self.context.acl);
        let mut encoder = std::mem::take(&mut self.encoder);
        let mut batch = Batch {
            lane: Lane::new(store, &origin, load),
            segment: (store.layout().shards > 1).then(Segment::default),
            ticket: Ticket::default(),
        };
        let unsent = encoder.begin();
        let mut commands = 0;
        let mut more = true;
        while !self.is_closing() {
            if commands == MAX_BATCH_COMMANDS || encoder.output.len() > MAX_BATCH_BYTES {
                break;
            }
            let Some(request) = next(self.is_authenticated()) else {
                more = false;
                break;
            };
            commands += 1;
            match self.admit(store, request) {
                Admitted::Answer(reply) => match &mut batch.segment {
                    Some(segment) => segment.answer(reply),
                    None => batch.lane.answer(reply, &mut encoder),
                },
                Admitted::Keyed(command) => {
                    match (command.scope(store.layout()), &mut batch.segment) {
                        (Scope::One(shard), Some(segment)) => segment.add(shard, command),
                        (Scope::One(_), None) => batch.lane.run(command, &mut encoder).await,
                        (Scope::Several(shards), _) => {
                            batch.settle(store, &origin, &mut encoder).await;
                            let (recordings, ticket) =
                                (&origin.context.recordings, &mut batch.ticket);
                            let alone =
                                run_alone(store, &command, shards.to_vec(), recordings, ticket);
                            let reply = timed(&origin, store, &command, Box::pin(alone)).await;
                            encoder.accept(command.heard(reply));
                        }
                    }
                }
                Admitted::Wide(command) => {
                    batch.settle(store, &origin, &mut encoder).await;
                    let viewer = self.identity.short_sighted();
                    let wide = run_wide(store, &origin, &command, viewer);
                    let reply = timed(&origin, store, &command, Box::pin(wide)).await;
                    encoder.accept(command.heard(reply));
                }
                Admitted::Watch(command) => {
                    batch.settle(store, &origin, &mut encoder).await;
                    let reply = Box::pin(self.watch(store, &command)).await.into();
                    encoder.accept(command.heard(reply));
                }
                Admitted::Waiting(command) => {
                    self.waiting = Some(command);
                    break;
                }
                Admitted::Exec { silent } => {
                    batch.settle(store, &origin, &mut encoder).await;
                    let reply = Box::pin(self.exec(store, &mut batch.ticket)).await.into();
                    encoder.accept(if silent { Reply::None } else { reply });
                }
            }
        }
        batch.settle(store, &origin, &mut encoder).await;
        batch.ticket.merge(&batch.lane.ticket);
        if let Err(error) = wait_durable(store, &batch.ticket).await {
            encoder.withdraw(&error);
        }
        encoder.join(unsent);
        self.encoder = encoder;
        if commands > 0 {
            self.account(store);
        }
        (more || self.waiting.is_some()) && !self.is_closing()
    }

    /// Whose commands these are.
    pub(crate) fn origin(&self) -> Origin {
        Origin { context: Arc::clone(&self.context), client: Arc::clone(&self.client) }
    }

    /// Brings the counters that all connections share up to date, once per batch.
    fn account(&mut self, store: &Store) {
        self.tally.flush(&self.context);
        let errors = std::mem::take(&mut self.encoder.errors);
        if errors > 0 {
            self.context.counters.errors.fetch_add(errors, Ordering::Relaxed);
        }
        self.publish(store);
    }

    /// Shows the session's state to CLIENT LIST.
    pub(crate) fn publish(&self, store: &Store) {
        let at_ms = store.now_ms();
        self.client.update(|activity| {
            activity.command = self.last_command;
            activity.at_ms = at_ms;
            activity.protocol = self.protocol.number();
            activity.watched = self.watched.len();
            activity.queued = match &self.transaction {
                Some(transaction) => i64::try_from(transaction.commands.len()).unwrap_or(i64::MAX),
                None => -1,
            };
        });
    }

    pub(crate) fn set_name(&mut self, name: Bytes) {
        self.name = name.clone();
        self.client.update(|activity| activity.name = name);
    }

    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// As after the connection was made.
    pub(crate) fn reset(&mut self) {
        self.protocol = Protocol::default();
        self.set_name(Bytes::new());
        self.log_out();
        self.transaction = None;
        self.watched.clear();
        self.reply_mode = ReplyMode::On;
        self.context.recordings.stop(self.client.id);
    }

    /// Ends the connection with an error that the client gets as its last reply.
    pub(crate) fn fail(&mut self, text: &[u8]) {
        let text = [b"ERR ", text].concat();
        self.encoder.output.error_text(&text);
        self.closing = true;
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the words that wait: there may be a password among them.
        f.debug_struct("Session").field("client", &self.client.id).finish_non_exhaustive()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.context.recordings.stop(self.client.id);
        self.context.clients.leave(self.client.id);
    }
}

/// What is under way of a batch.
struct Batch<'a, F, B> {
    lane: Lane<'a, F, B>,
    /// Only where there are several shards.
    segment: Option<Segment>,
    ticket: Ticket,
}

impl<F, B> Batch<'_, F, B>
where
    F: Future<Output = Result<crate::load::Loaded>>,
    B: Fn(Store, crate::load::KeyList) -> F,
{
    /// Waits until everything so far has taken effect and is answered.
    async fn settle(&mut self, store: &Store, origin: &Origin, encoder: &mut Encoder) {
        match &mut self.segment {
            Some(segment) => segment.finish(store, origin, encoder).await,
            None => self.lane.drain(encoder).await,
        }
    }
}

async fn run_wide(
    store: &Store,
    origin: &Origin,
    command: &Command,
    viewer: Option<&Arc<User>>,
) -> Reply {
    let Handler::Wide(run) = command.spec.handler else { return Reply::None };
    let (context, viewer) = (&origin.context, viewer.map(|user| &**user));
    run(Wide { store, context, args: &command.args, viewer, overlay: None }).await.into()
}

/// Runs a command that may take long and enters it into the slow log if it did.
async fn timed(
    origin: &Origin,
    store: &Store,
    command: &Command,
    work: impl Future<Output = Reply>,
) -> Reply {
    let since = store.runtime().now();
    let reply = work.await;
    origin.note_wait(store, &command.args, since);
    reply
}

/// Writes replies in the version of the protocol that holds at their place in the stream.
#[derive(Debug, Default)]
struct Encoder {
    output: Output,
    protocol: Protocol,
    answers: usize,
    errors: u64,
}

impl Sink for Encoder {
    fn accept(&mut self, reply: Reply) {
        self.answers += usize::from(reply != Reply::None);
        self.errors += u64::from(reply.is_error());
        self.protocol = self.output.reply(&reply, self.protocol);
    }
}

impl Encoder {
    /// Begins a batch; what was not sent of the one before is put aside.
    fn begin(&mut self) -> Option<Output> {
        self.answers = 0;
        (!self.output.is_empty()).then(|| std::mem::take(&mut self.output))
    }

    fn join(&mut self, unsent: Option<Output>) {
        if let Some(mut unsent) = unsent {
            unsent.append(&mut self.output);
            self.output = unsent;
        }
    }

    /// Puts an error in the place of every answer of the batch, because none may be believed.
    fn withdraw(&mut self, error: &CommandError) {
        self.output.clear();
        (0..self.answers).for_each(|_| self.output.error(error));
    }
}

/// Commands counted and not yet entered into the shared counters: clients mostly send the same one.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    runs: Vec<(usize, u64)>,
}

impl Tally {
    pub fn add(&mut self, index: usize) {
        match self.runs.iter_mut().find(|(of, _)| *of == index) {
            Some((_, count)) => *count += 1,
            None => self.runs.push((index, 1)),
        }
    }

    fn flush(&mut self, context: &Context) {
        for (index, count) in self.runs.drain(..) {
            context.count_commands(index, count);
        }
    }
}
