//! Commands of one pipeline on several shards: each shard gets its commands at once, in order, and
//! runs them concurrently with the other shards.

use crate::command::Command;
use crate::error::{CommandError, Result};
use crate::pipeline::encoder::Sink;
use crate::pipeline::load::load;
use crate::pipeline::shard_pipeline::ShardPipeline;
use crate::resp::reply::Reply;
use crate::session::{Origin, Stopwatch};
use futures_util::FutureExt;
use futures_util::future::join_all;
use softflash_base::ShardId;
use softflash_store::memory::HeldValues;
use softflash_store::{Store, StoreError};
use std::vec::IntoIter;

enum Source {
    Answer(Reply),
    Share(usize),
}

/// The commands between two commands that need all shards.
#[derive(Default)]
pub(crate) struct Segment {
    order: Vec<Source>,
    shares: Vec<(ShardId, Vec<Command>)>,
}

impl Segment {
    /// Adds a reply that is known already.
    pub fn answer(&mut self, reply: Reply) {
        self.order.push(Source::Answer(reply));
    }

    /// Adds a command whose keys are all on `shard`.
    pub fn add(&mut self, shard: ShardId, command: Command) {
        let known = self.shares.iter().position(|(of, _)| *of == shard);
        let share = known.unwrap_or_else(|| {
            self.shares.push((shard, Vec::new()));
            self.shares.len() - 1
        });
        if let Some((_, commands)) = self.shares.get_mut(share) {
            commands.push(command);
        }
        self.order.push(Source::Share(share));
    }

    /// Whether it has no commands.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Runs the commands, each shard until its replies are enough for one batch, and passes the
    /// replies on in the order of the requests. Everything that they reveal is durable. The
    /// commands that are left, and the replies after the first of them, stay in the segment.
    pub async fn finish(
        &mut self,
        store: &Store,
        origin: &Origin,
        held: &HeldValues,
        sink: &mut impl Sink,
    ) {
        let of: Vec<ShardId> = self.shares.iter().map(|(shard, _)| *shard).collect();
        let shares = self.shares.drain(..).map(|(shard, commands)| {
            let (origin, held) = (origin.clone(), held.clone());
            store.run_on(shard, move |store| {
                let store = store.holding(&held);
                run_share(store, origin, commands).boxed_local()
            })
        });
        let mut shares: Vec<_> = join_all(shares).await.into_iter().map(Share::of).collect();
        for source in std::mem::take(&mut self.order) {
            let reply = match source {
                Source::Answer(reply) => reply,
                Source::Share(place) => match shares.get_mut(place).map(Share::next) {
                    Some(Next::Reply(reply)) => reply,
                    Some(Next::Left(command)) => {
                        self.add(of.get(place).copied().unwrap_or(store.local_id()), command);
                        continue;
                    }
                    None => gone(),
                },
            };
            match self.is_empty() {
                true => sink.accept(reply),
                false => self.answer(reply),
            }
        }
    }
}

/// What a shard has done of its commands.
struct Share {
    replies: IntoIter<Reply>,
    left: IntoIter<Command>,
    failed: Option<StoreError>,
}

enum Next {
    Reply(Reply),
    Left(Command),
}

impl Share {
    fn of(ran: Result<(Vec<Reply>, Vec<Command>), StoreError>) -> Share {
        let (failed, (replies, left)) = match ran {
            Ok(ran) => (None, ran),
            Err(error) => (Some(error), Default::default()),
        };
        Share { replies: replies.into_iter(), left: left.into_iter(), failed }
    }

    fn next(&mut self) -> Next {
        if let Some(error) = &self.failed {
            return Next::Reply(Reply::Error(error.clone().into()));
        }
        let reply = self.replies.next().map(Next::Reply);
        reply.or_else(|| self.left.next().map(Next::Left)).unwrap_or(Next::Reply(gone()))
    }
}

fn gone() -> Reply {
    Reply::Error(StoreError::Closed.into())
}

/// Runs a shard's commands on the shard's thread, until the replies are enough for one batch.
/// Returns the replies, and the commands that are left.
async fn run_share(
    store: Store,
    origin: Origin,
    commands: Vec<Command>,
) -> (Vec<Reply>, Vec<Command>) {
    let mut replies = Vec::with_capacity(commands.len());
    let watch = Stopwatch::new(&store, &origin, store.runtime().now());
    let limit = origin.context.services.max_reply_bytes;
    let load = move |store, keys, wanted| load(store, keys, wanted, limit);
    let mut shard_pipeline = ShardPipeline::new(&store, &origin, &watch, load);
    let mut commands = commands.into_iter();
    while !shard_pipeline.is_full()
        && let Some(command) = commands.next()
    {
        shard_pipeline.take_turns().await;
        shard_pipeline.run(command, &mut replies).await;
    }
    shard_pipeline.drain(&mut replies).await;
    if let Err(error) = wait_durable(&store, &shard_pipeline.token).await {
        // None of the replies is durable.
        replies.iter_mut().for_each(|reply| *reply = Reply::Error(error.clone()));
    }
    (replies, commands.collect())
}

/// Waits until everything that the replies depend on survives a power cut.
pub(crate) async fn wait_durable(
    store: &Store,
    token: &softflash_store::CommitToken,
) -> Result<()> {
    if token.is_empty() {
        return Ok(());
    }
    store.durable(token).await.map_err(CommandError::from)
}
