//! Destinations of replies.

use crate::error::CommandError;
use crate::resp::output::Output;
use crate::resp::reply::{Protocol, Reply};

/// Receives replies in order.
pub(crate) trait Sink {
    fn accept(&mut self, reply: Reply);
}

impl Sink for Vec<Reply> {
    fn accept(&mut self, reply: Reply) {
        self.push(reply);
    }
}
/// Encodes replies in the protocol version that is in effect at their position in the stream.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    pub output: Output,
    protocol: Protocol,
    answers: usize,
}

impl Sink for Encoder {
    fn accept(&mut self, reply: Reply) {
        self.answers += usize::from(reply != Reply::None);
        self.protocol = self.output.reply(&reply, self.protocol);
    }
}

impl Encoder {
    /// Begins a batch; unsent bytes of the previous batch are kept aside.
    pub fn begin(&mut self) -> Option<Output> {
        self.answers = 0;
        (!self.output.is_empty()).then(|| std::mem::take(&mut self.output))
    }

    pub fn join(&mut self, unsent: Option<Output>) {
        if let Some(mut unsent) = unsent {
            unsent.append(&mut self.output);
            self.output = unsent;
        }
    }

    /// Replaces every reply of the batch by an error, because the batch is not durable.
    pub fn withdraw(&mut self, error: &CommandError) {
        self.output.clear();
        (0..self.answers).for_each(|_| self.output.error(error));
    }
}
