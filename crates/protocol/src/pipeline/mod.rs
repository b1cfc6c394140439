//! Runs the requests of a connection: checks them, distributes them to the shards, keeps their
//! order per key, and replies.

mod dispatch;
mod encoder;
mod exec;
mod little;
mod load;
mod segment;
mod shard_pipeline;
mod write;

use crate::acl::User;
use crate::command::{Command, CommandId, KeyList, Scope};
use crate::error::Result;
use crate::handlers::keyspace_context::KeyspaceContext;
use crate::handlers::{Handler, handler_of, scans_little};
use crate::resp::output::Output;
use crate::resp::reply::Reply;
use crate::resp::request::Request;
use crate::session::{Origin, Session, Stopwatch};
use dispatch::Admitted;
use encoder::{Encoder, Sink};
pub(crate) use little::{LITTLE_BYTES, is_little, little_bytes};
use load::{Loaded, load};
use segment::{Segment, wait_durable};
use shard_pipeline::ShardPipeline;
use softflash_base::Time;
use softflash_store::memory::HeldValues;
use softflash_store::value::Wanted;
use softflash_store::{CommitToken, Store};
use std::future::Future;
use std::sync::Arc;
use write::run_alone;

/// Maximum number of commands before the replies are returned.
const MAX_BATCH_COMMANDS: usize = 1024;
/// Maximum bytes of replies before they are returned, exceeded by at most one reply of a shard.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// A session and the replies to its requests.
pub(crate) struct Pipeline {
    session: Session,
    /// A command to be run before anything else.
    waiting: Option<Command>,
    rest: Rest,
    encoder: Encoder,
}

/// What a batch has left for the next one, since its replies were large enough.
#[derive(Default)]
struct Rest {
    /// Commands that were given to their shards, and replies after the first of them.
    segment: Segment,
    /// The command that needs them to be finished.
    next: Option<Admitted>,
    /// Admitted bytes of the requests, or more.
    bytes: u64,
}

impl Rest {
    fn is_empty(&self) -> bool {
        self.segment.is_empty() && self.next.is_none()
    }
}

impl Pipeline {
    pub fn new(session: Session) -> Pipeline {
        Pipeline { session, waiting: None, rest: Rest::default(), encoder: Encoder::default() }
    }

    /// The client's state.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Admitted bytes of the requests that the last batch has left for the next one, if it has left
    /// any.
    pub fn rest_bytes(&self) -> Option<u64> {
        (!self.rest.is_empty()).then_some(self.rest.bytes)
    }

    /// The bytes to send.
    pub fn output(&mut self) -> &mut Output {
        &mut self.encoder.output
    }

    /// Runs a waiting command that does not need the store, such as AUTH. It is separate from
    /// [`run`](Self::run), and called before it, so that a client holds no shared resources while
    /// its password is checked.
    pub async fn run_waiting(&mut self, store: &Store) {
        let Some(command) = self.waiting.take_if(|_| self.rest.is_empty()) else { return };
        let Handler::Waiting(waiting) = handler_of(command.spec) else { return };
        let since = store.runtime().now();
        let origin = self.session.origin();
        let watch = Stopwatch::new(store, &origin, since);
        self.session.tally.add(command.spec.id);
        let reply = Reply::from((waiting.run)(&mut self.session, store, &command.args).await);
        watch.lap(command.spec, &command.args);
        self.session.context.note_reply(store, command.spec, &reply);
        self.encoder.accept(command.filter_reply(reply));
        self.account(store, since);
    }

    /// Runs requests until `next`, which is given the client's state, returns none, or the batch
    /// limits are reached. In the second case it returns true: call it again once the replies are
    /// sent. The replies are in [`output`](Self::output), and all data that they reveal are
    /// durable.
    ///
    /// Commands on one key take effect in the order of the requests; commands on different shards
    /// may run concurrently.
    pub async fn run(
        &mut self,
        store: &Store,
        mut next: impl FnMut(&Session) -> Option<Request>,
    ) -> bool {
        let since = store.runtime().now();
        let origin = self.session.origin();
        let watch = Stopwatch::new(store, &origin, since);
        self.session.identity.refresh(&self.session.context.acl);
        let mut encoder = std::mem::take(&mut self.encoder);
        let limit = origin.context.services.max_reply_bytes;
        let load = |store, keys, wanted| load(store, keys, wanted, limit);
        let held = store.held_values();
        let holding = store.holding(&held);
        let Rest { segment, next: mut left, bytes: mut rest_bytes } =
            std::mem::take(&mut self.rest);
        let mut batch = Batch {
            shard_pipeline: ShardPipeline::new(&holding, &origin, &watch, load),
            segment: (store.layout().shards > 1).then_some(segment),
            token: CommitToken::default(),
            watch: &watch,
            held: &held,
        };
        let unsent = encoder.begin();
        let mut commands = 0;
        let mut more = true;
        let mut is_settled = true;
        if batch.has_commands() {
            is_settled = batch.settle(store, &origin, &mut encoder).await;
        }
        while is_settled && !self.session.is_closing() {
            let is_full = encoder.output.len() > MAX_BATCH_BYTES || batch.shard_pipeline.is_full();
            if commands == MAX_BATCH_COMMANDS || is_full || self.waiting.is_some() {
                break;
            }
            batch.shard_pipeline.take_turns().await;
            let admitted = match left.take() {
                Some(admitted) => admitted,
                None => {
                    let Some(request) = next(&self.session) else {
                        more = false;
                        break;
                    };
                    commands += 1;
                    rest_bytes += request.admitted_bytes;
                    self.session.admit(store, request, &watch)
                }
            };
            if admitted.runs_alone(store) {
                is_settled = batch.settle(store, &origin, &mut encoder).await;
                // It waits for memory by itself, and not for that of the replies before it.
                if !is_settled || held.is_any() {
                    left = Some(admitted);
                    break;
                }
            }
            match admitted {
                Admitted::Answer(reply) => match &mut batch.segment {
                    Some(segment) => segment.answer(reply),
                    None => batch.shard_pipeline.answer(reply, &mut encoder),
                },
                Admitted::Keyed(command) => {
                    match (command.scope(store.layout()), &mut batch.segment) {
                        (Scope::One(shard), Some(segment)) => segment.add(shard, command),
                        (Scope::One(_), None) => {
                            batch.shard_pipeline.run(command, &mut encoder).await
                        }
                        (Scope::Several(shards), _) => {
                            let (context, token) = (&*origin.context, &mut batch.token);
                            let alone = run_alone(store, &command, shards.to_vec(), context, token);
                            let reply = Box::pin(alone).await;
                            batch.answer(store, &origin, &command, reply, &mut encoder);
                        }
                    }
                }
                Admitted::Keyspace(command) => {
                    let viewer = self.session.identity.short_sighted();
                    let running = run_keyspace_command(store, &origin, &command, viewer);
                    let reply = Box::pin(running).await;
                    batch.answer(store, &origin, &command, reply, &mut encoder);
                }
                Admitted::Watch(command) => {
                    let reply = Box::pin(self.session.watch(store, &command)).await.into();
                    batch.answer(store, &origin, &command, reply, &mut encoder);
                }
                Admitted::Waiting(command) => {
                    self.waiting = Some(command);
                    break;
                }
                Admitted::Exec(command) => {
                    let exec = self.session.exec(store, &mut batch.token, &watch);
                    let reply = Box::pin(exec).await.into();
                    batch.answer(store, &origin, &command, reply, &mut encoder);
                    self.session.reply_mode.end_command();
                }
            }
        }
        // A client that quits gets the replies to all that it has asked before.
        while is_settled || self.session.is_closing() {
            is_settled = batch.settle(store, &origin, &mut encoder).await;
            if is_settled {
                break;
            }
        }
        batch.token.merge(&batch.shard_pipeline.token);
        if let Err(error) = wait_durable(store, &batch.token).await {
            encoder.withdraw(&error);
        }
        encoder.join(unsent);
        self.encoder = encoder;
        self.rest.segment = batch.segment.take().unwrap_or_default();
        self.rest.next = left;
        self.rest.bytes = if self.rest.is_empty() { 0 } else { rest_bytes };
        held.release();
        if commands > 0 {
            self.account(store, since);
        }
        let has_more = more || self.waiting.is_some() || !self.rest.is_empty();
        has_more && !self.session.is_closing()
    }

    /// Adds to the shared counters, once for the batch that began at `since`. All its replies are
    /// sent together, so all its commands have its latency.
    fn account(&mut self, store: &Store, since: Time) {
        let Session { tally, context, .. } = &mut self.session;
        let now = store.runtime().now();
        let commands = tally.flush(&context.command_stats, now.since_ns(since));
        context.counters.count_commands(commands, now);
        self.session.publish(store);
    }

    /// Ends the connection with an error as the last reply.
    pub fn fail(&mut self, text: &[u8]) {
        let text = [b"ERR ", text].concat();
        self.session.context.counters.count_error(&text);
        if !self.session.reply_mode.is_silent() {
            self.encoder.output.error_text(&text);
        }
        self.session.close();
    }
}

/// State of a batch.
struct Batch<'a, F, B> {
    shard_pipeline: ShardPipeline<'a, F, B>,
    /// Used only with several shards.
    segment: Option<Segment>,
    token: CommitToken,
    watch: &'a Stopwatch<'a>,
    held: &'a HeldValues,
}

impl<F, B> Batch<'_, F, B>
where
    F: Future<Output = Result<Loaded>>,
    B: Fn(Store, KeyList, Wanted) -> F,
{
    /// Whether commands have been given to shards and not run.
    fn has_commands(&self) -> bool {
        self.segment.as_ref().is_some_and(|segment| !segment.is_empty())
    }

    /// Waits until all commands so far have taken effect and are answered. Returns false if some
    /// are left for the next batch.
    async fn settle(&mut self, store: &Store, origin: &Origin, encoder: &mut Encoder) -> bool {
        match &mut self.segment {
            Some(segment) => segment.finish(store, origin, self.held, encoder).await,
            None => self.shard_pipeline.drain(encoder).await,
        }
        self.watch.restart();
        !self.has_commands()
    }

    /// Passes on the reply of a command that ran alone.
    fn answer(
        &self,
        store: &Store,
        origin: &Origin,
        command: &Command,
        reply: Reply,
        encoder: &mut Encoder,
    ) {
        self.watch.lap(command.spec, &command.args);
        origin.context.note_reply(store, command.spec, &reply);
        encoder.accept(command.filter_reply(reply));
    }
}

async fn run_keyspace_command(
    store: &Store,
    origin: &Origin,
    command: &Command,
    viewer: Option<&Arc<User>>,
) -> Reply {
    let Handler::Keyspace(run) = handler_of(command.spec) else { return Reply::None };
    let is_long = match command.spec.id {
        CommandId::Keys => true,
        CommandId::Scan => !scans_little(&command.args),
        _ => false,
    };
    let _work = store.begin_long(if is_long { usize::MAX } else { 1 }).await;
    let (context, viewer) = (&origin.context, viewer.map(|user| &**user));
    run(KeyspaceContext { store, context, args: &command.args, viewer, overlay: None }).await.into()
}
