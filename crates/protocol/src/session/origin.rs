//! The origin of commands.

use crate::context::Context;
use crate::shared::clients::Client;
use std::sync::Arc;

/// The client and the context of a command.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub context: Arc<Context>,
    pub client: Arc<Client>,
}
