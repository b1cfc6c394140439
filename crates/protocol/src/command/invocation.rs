//! A command with its arguments.

use crate::command::{Flags, Keys, Spec};
use crate::resp::reply::Reply;
use crate::resp::request::Args;
use bytes::Bytes;
use smallvec::SmallVec;
use softflash_base::ShardId;
use softflash_store::layout::StoreLayout;

/// Keys of a command.
pub(crate) type KeyList = SmallVec<[Bytes; 1]>;

/// A command that is ready to run on any thread.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    pub spec: &'static Spec,
    pub args: Args,
    /// The client has switched off the reply.
    pub silent: bool,
}

/// The shards of a command's keys.
pub(crate) enum Scope {
    One(ShardId),
    Several(SmallVec<[ShardId; 4]>),
}

impl Command {
    /// Whether it reads keys and changes nothing.
    pub fn is_read(&self) -> bool {
        self.spec.flags.has(Flags::READONLY)
    }

    /// Its keys, in order.
    pub fn keys(&self) -> KeyList {
        // Common commands have one key at a fixed position.
        match self.spec.keys {
            Keys::Range { first, last: 1, .. } => {
                self.args.get(first).cloned().into_iter().collect()
            }
            keys => keys.of(&self.args).cloned().collect(),
        }
    }

    /// The shards of its keys; all shards for a command on all keys.
    pub fn scope(&self, layout: &StoreLayout) -> Scope {
        if self.spec.keys == Keys::All {
            return Scope::Several((0..layout.shards).map(ShardId).collect());
        }
        if layout.shards == 1 {
            return Scope::One(ShardId(0));
        }
        let mut shards = SmallVec::new();
        for key in self.spec.keys_of(&self.args) {
            let shard = layout.shard_of(key);
            if !shards.contains(&shard) {
                shards.push(shard);
            }
        }
        match shards.as_slice() {
            [] => Scope::One(ShardId(0)),
            [one] => Scope::One(*one),
            _ => Scope::Several(shards),
        }
    }

    /// The reply, unless the client has switched it off.
    pub fn filter_reply(&self, reply: Reply) -> Reply {
        if self.silent { suppressed(reply) } else { reply }
    }
}

/// A reply that is not sent; a switch of the protocol version still takes effect, and so do those of
/// CLIENT REPLY in a transaction.
pub(crate) fn suppressed(reply: Reply) -> Reply {
    match reply {
        Reply::Unannounced(_) => reply,
        Reply::Switch(protocol, _) => Reply::Switch(protocol, Box::new(Reply::None)),
        _ => Reply::None,
    }
}
