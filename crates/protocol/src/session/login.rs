//! Login with a password.

use crate::acl::{Reason, placeholder};
use crate::error::{CommandError, Result};
use crate::session::Session;
use bytes::Bytes;
use softflash_store::Store;
use std::sync::Arc;
use std::time::Duration;

/// Delay of the reply to a wrong password.
const DELAY_AFTER_FAILURE: Duration = Duration::from_millis(500);
/// Maximum number of retries when a user is changed while its password is checked.
const MAX_LOOKS: u32 = 3;
/// Logged in place of an unknown user name, because people type passwords into the name field.
const UNKNOWN_USER: &str = "(unknown)";

impl Session {
    /// Logs the client in if the password is right; replies to wrong passwords are delayed and
    /// limited in number.
    pub(crate) async fn log_in(
        &mut self,
        store: &Store,
        name: &[u8],
        password: &Bytes,
        command: &'static str,
    ) -> Result<()> {
        let context = Arc::clone(&self.context);
        for _ in 0..MAX_LOOKS {
            let generation = context.acl.generation();
            let user = context.acl.user(name);
            let is_right = match &user {
                Some(user) if user.is_open() => true,
                user => {
                    let (user, password) = (user.clone(), password.clone());
                    self.slowly(move || match user {
                        Some(user) => user.accepts(&password),
                        None => {
                            // For the duration of the check.
                            placeholder().verify(&password);
                            false
                        }
                    })
                    .await?
                }
            };
            let is_as_before = context.acl.user(name) == user;
            if is_right && is_as_before {
                self.identity.authenticate(user, generation);
                self.publish_user();
                return Ok(());
            }
            if is_as_before {
                break;
            }
        }
        let user = context.acl.user(name);
        let name = user.as_ref().map_or(UNKNOWN_USER, |user| user.name());
        let command = command.as_bytes();
        self.note_denial(store, Reason::Authentication, command, name, self.moment());
        let must_close = self.identity.count_failure();
        let runtime = store.runtime();
        runtime.sleep_until(runtime.now() + DELAY_AFTER_FAILURE).await;
        if must_close {
            self.close();
        }
        Err(CommandError::WRONG_PASSWORD)
    }
}
