//! Jobs that would delay the other clients of a thread.

use crate::error::{CommandError, Result};
use crate::session::Session;
use crate::shared::lock::lock;
use std::sync::{Arc, Mutex};

impl Session {
    /// Runs a slow job on another thread.
    pub(crate) async fn slowly<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let result = Arc::new(Mutex::new(None));
        let place = Arc::clone(&result);
        let job = Box::new(move || *lock(&place) = Some(work()));
        (self.context.services.elsewhere)(&self.client.address, job).await;
        let done = lock(&result).take();
        done.ok_or(CommandError::Known("ERR the server could not do this now, try again"))
    }
}
