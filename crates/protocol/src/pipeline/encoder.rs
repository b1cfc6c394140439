//! Where replies go.

use crate::error::CommandError;
use crate::resp::output::Output;
use crate::resp::reply::{Protocol, Reply};

/// Where replies go, in order.
pub(crate) trait Sink {
    fn accept(&mut self, reply: Reply);
}

impl Sink for Vec<Reply> {
    fn accept(&mut self, reply: Reply) {
        self.push(reply);
    }
}
/// Writes replies in the version of the protocol that holds at their place in the stream.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    pub output: Output,
    protocol: Protocol,
    answers: usize,
    /// Error replies.
    pub errors: u64,
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

    /// Puts an error in the place of every answer of the batch, because none may be believed.
    pub fn withdraw(&mut self, error: &CommandError) {
        self.output.clear();
        (0..self.answers).for_each(|_| self.output.error(error));
    }
}
