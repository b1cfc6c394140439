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
use softflash_store::{Store, StoreError};

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

    /// Runs all commands and passes the replies on in the order of the requests. Everything that
    /// the replies reveal is durable.
    pub async fn finish(&mut self, store: &Store, origin: &Origin, sink: &mut impl Sink) {
        let shares = self.shares.drain(..).map(|(shard, commands)| {
            let origin = origin.clone();
            store.run_on(shard, move |store| {
                async move { run_share(&store, origin, commands).await }.boxed_local()
            })
        });
        let mut replies: Vec<_> =
            join_all(shares).await.into_iter().map(|share| share.map(Vec::into_iter)).collect();
        for source in self.order.drain(..) {
            sink.accept(match source {
                Source::Answer(reply) => reply,
                Source::Share(share) => match replies.get_mut(share) {
                    Some(Ok(replies)) => replies.next().unwrap_or_else(gone),
                    Some(Err(error)) => Reply::Error(error.clone().into()),
                    None => gone(),
                },
            });
        }
    }
}

fn gone() -> Reply {
    Reply::Error(StoreError::Closed.into())
}

/// Runs a shard's commands on the shard's thread.
async fn run_share(store: &Store, origin: Origin, commands: Vec<Command>) -> Vec<Reply> {
    let mut replies = Vec::with_capacity(commands.len());
    let watch = Stopwatch::new(store, &origin, store.runtime().now());
    let limit = origin.context.services.max_reply_bytes;
    let load = move |store, keys, wanted| load(store, keys, wanted, limit);
    let mut shard_pipeline = ShardPipeline::new(store, &origin, &watch, load);
    for command in commands {
        shard_pipeline.take_turns().await;
        shard_pipeline.run(command, &mut replies).await;
    }
    shard_pipeline.drain(&mut replies).await;
    if let Err(error) = wait_durable(store, &shard_pipeline.token).await {
        // None of the replies is durable.
        replies.iter_mut().for_each(|reply| *reply = Reply::Error(error.clone()));
    }
    replies
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
