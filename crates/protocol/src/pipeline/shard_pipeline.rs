//! Pipeline of the commands of one connection on one shard: keeps their order, but lets reads
//! overlap.
//!
//! A read takes its snapshot when it is first polled. A read that must wait for flash is therefore
//! polled once and queued, and the next command runs. A change that must wait blocks the commands
//! after it. Replies are returned in order.

use crate::command::{Command, KeyList, Lookups};
use crate::error::Result;
use crate::handlers::{loads, wanted};
use crate::pipeline::MAX_BATCH_BYTES;
use crate::pipeline::encoder::Sink;
use crate::pipeline::load::Loaded;
use crate::pipeline::write::{apply_read, run_single};
use crate::resp::reply::Reply;
use crate::session::{Origin, Stopwatch};
use crate::shared::poll::poll_once;
use softflash_base::Time;
use softflash_base::planted::{self, Bug};
use softflash_store::value::Wanted;
use softflash_store::{CommitToken, Store};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{self, Poll};

/// Maximum number of reads that wait for flash.
const MAX_WAITING: usize = 128;
/// Maximum bytes of their values, exceeded by at most one value.
const MAX_WAITING_BYTES: u64 = 16 << 20;
/// The length of a value for that, if memory does not tell it.
const UNKNOWN_BYTES: u64 = 128 << 10;

type Place<F> = Pin<Box<Option<F>>>;

enum Slot<F> {
    Done(Reply),
    Reading { command: Command, read: Place<F>, since: Time, bytes: Option<u64> },
}

/// The commands of one connection on one shard; `begin` starts a read.
pub(crate) struct ShardPipeline<'a, F, B> {
    store: &'a Store,
    origin: &'a Origin,
    watch: &'a Stopwatch<'a>,
    begin: B,
    waiting: VecDeque<Slot<F>>,
    reading: usize,
    /// About the bytes of the values that are being read, and those of which memory tells them.
    reading_bytes: u64,
    known_bytes: u64,
    /// Bytes of the values in the replies so far.
    replied_bytes: u64,
    /// Boxes of completed reads, for reuse.
    spare: Vec<Place<F>>,
    /// Of reads, not counted yet.
    lookups: Lookups,
    /// What must be durable before the replies may be sent.
    pub token: CommitToken,
}

impl<'a, F, B> ShardPipeline<'a, F, B>
where
    F: Future<Output = Result<Loaded>>,
    B: Fn(Store, KeyList, Wanted) -> F,
{
    pub fn new(
        store: &'a Store,
        origin: &'a Origin,
        watch: &'a Stopwatch<'a>,
        begin: B,
    ) -> ShardPipeline<'a, F, B> {
        let (waiting, spare) = (VecDeque::new(), Vec::new());
        ShardPipeline {
            store,
            origin,
            watch,
            begin,
            waiting,
            reading: 0,
            reading_bytes: 0,
            known_bytes: 0,
            replied_bytes: 0,
            spare,
            lookups: Lookups::default(),
            token: CommitToken::default(),
        }
    }

    /// Lets others run if the commands have taken long together; not while reads are under way,
    /// which may hold what others wait for, and let others run when they are awaited.
    pub async fn take_turns(&self) {
        if self.waiting.is_empty() {
            self.watch.take_turns().await;
        }
    }

    /// Runs a command whose keys are on this shard.
    pub async fn run(&mut self, command: Command, sink: &mut impl Sink) {
        if command.is_read() {
            self.read(command, sink).await;
        } else {
            self.change(command, sink).await;
        }
    }

    /// Adds a reply that is known already.
    pub fn answer(&mut self, reply: Reply, sink: &mut impl Sink) {
        if self.waiting.is_empty() {
            sink.accept(reply);
        } else {
            self.waiting.push_back(Slot::Done(reply));
        }
    }

    /// Whether the values read so far are all that a batch should reply at once.
    pub fn is_full(&self) -> bool {
        self.replied_bytes + self.known_bytes >= MAX_BATCH_BYTES as u64
    }

    async fn read(&mut self, command: Command, sink: &mut impl Sink) {
        while self.reading >= MAX_WAITING || self.reading_bytes >= MAX_WAITING_BYTES {
            let reading = self.reading;
            self.wait_until(|pipeline| pipeline.reading < reading, sink).await;
        }
        let mut place = self.spare.pop().unwrap_or_else(|| Box::pin(None));
        let read = (self.begin)(self.store.clone(), loads(&command), wanted(&command));
        place.set(Some(read));
        match poll_fn(|context| Poll::Ready(poll_place(&mut place, context))).await {
            Poll::Ready(loaded) => {
                let reply = self.finish_read(&command, loaded);
                self.watch.lap(command.spec, &command.args);
                self.spare.push(place);
                self.answer(reply, sink);
            }
            Poll::Pending => {
                let since = self.watch.begun();
                self.watch.restart();
                let bytes = self.value_bytes_in_memory(&command);
                self.reading += 1;
                self.reading_bytes += bytes.unwrap_or(UNKNOWN_BYTES);
                self.known_bytes += bytes.unwrap_or(0);
                self.waiting.push_back(Slot::Reading { command, read: place, since, bytes });
            }
        }
    }

    /// The length of the value of the first key of a read, if memory tells it.
    fn value_bytes_in_memory(&self, command: &Command) -> Option<u64> {
        match wanted(command) {
            Wanted::Entries => self.store.value_bytes_in_memory(loads(command).first()?),
            Wanted::Keys => Some(0),
        }
    }

    fn finish_read(&mut self, command: &Command, loaded: Result<Loaded>) -> Reply {
        let reply = match loaded {
            Ok(mut loaded) => {
                self.token.merge(&loaded.token);
                let recordings = &self.origin.context.recordings;
                recordings.tell_reads(self.store, || loads(command), &loaded.entries);
                let (reply, lookups) = apply_read(self.store, command, &mut loaded.entries);
                self.lookups.add(lookups);
                reply
            }
            Err(error) => Reply::Error(error),
        };
        self.replied_bytes += reply.value_bytes();
        self.origin.context.note_reply(self.store, command.spec, &reply);
        command.filter_reply(reply)
    }

    async fn change(&mut self, command: Command, sink: &mut impl Sink) {
        let mut token = CommitToken::default();
        let reply = {
            let context = &self.origin.context;
            let mut work = pin!(run_single(self.store, &command, context, &mut token));
            match poll_once(work.as_mut()).await {
                Poll::Ready(reply) => reply,
                Poll::Pending => {
                    // Poll the earlier reads first: they may wait at the same gate.
                    poll_fn(|context| {
                        if planted::bug(Bug::ChangeOvertakesReads)
                            && let Poll::Ready(reply) = work.as_mut().poll(context)
                        {
                            return Poll::Ready(reply);
                        }
                        self.poll_waiting(sink, context);
                        work.as_mut().poll(context)
                    })
                    .await
                }
            }
        };
        self.watch.lap(command.spec, &command.args);
        self.token.merge(&token);
        self.replied_bytes += reply.value_bytes();
        self.origin.context.note_reply(self.store, command.spec, &reply);
        self.answer(command.filter_reply(reply), sink);
    }

    /// Waits until every reply has been passed to the sink, and counts the lookups.
    pub async fn drain(&mut self, sink: &mut impl Sink) {
        if !self.waiting.is_empty() {
            self.wait_until(|pipeline| pipeline.waiting.is_empty(), sink).await;
        }
        self.origin.context.counters.count_lookups(std::mem::take(&mut self.lookups));
    }

    async fn wait_until(&mut self, done: impl Fn(&Self) -> bool, sink: &mut impl Sink) {
        poll_fn(|context| {
            self.poll_waiting(sink, context);
            if done(self) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Polls the waiting reads, oldest first, and passes on the replies at the head of the queue.
    fn poll_waiting(&mut self, sink: &mut impl Sink, context: &mut task::Context<'_>) {
        for index in 0..self.waiting.len() {
            let Some(Slot::Reading { read, .. }) = self.waiting.get_mut(index) else { continue };
            let Poll::Ready(loaded) = poll_place(read, context) else { continue };
            let Some(slot) = self.waiting.get_mut(index) else { continue };
            let done = std::mem::replace(slot, Slot::Done(Reply::None));
            let Slot::Reading { command, read, since, bytes } = done else { continue };
            self.reading -= 1;
            self.reading_bytes -= bytes.unwrap_or(UNKNOWN_BYTES);
            self.known_bytes -= bytes.unwrap_or(0);
            self.spare.push(read);
            let reply = self.finish_read(&command, loaded);
            self.watch.end(command.spec, &command.args, since);
            if let Some(slot) = self.waiting.get_mut(index) {
                *slot = Slot::Done(reply);
            }
        }
        while let Some(Slot::Done(_)) = self.waiting.front() {
            if let Some(Slot::Done(reply)) = self.waiting.pop_front() {
                sink.accept(reply);
            }
        }
    }
}

/// Polls a read; drops its future when it is complete.
fn poll_place<F: Future>(place: &mut Place<F>, context: &mut task::Context<'_>) -> Poll<F::Output> {
    let Some(read) = place.as_mut().as_pin_mut() else { return Poll::Pending };
    let polled = read.poll(context);
    if polled.is_ready() {
        place.set(None);
    }
    polled
}
