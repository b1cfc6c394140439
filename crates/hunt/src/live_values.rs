//! Compares the live values that the ledgers of value blocks list with the keys that exist. A live
//! value that is not listed would be lost; dead ones that are listed fill the flash.

use crate::scenario::Scenario;
use crate::session::scan_all;
use crate::session_failure::SessionFailure;
use softflash_store::Store;
use softflash_store::on_flash::stored_len;
use std::time::Duration;

/// Attempts to find no value that is being moved, which counts twice, and the pause between them.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);
/// The longest fragment by default, and a share of a block that is a whole fragment in any case.
const LONGEST_FRAGMENT: u64 = 1 << 20;
const WHOLE_SHARE: u64 = 8;

/// Bytes of dead values that count as live. A start may list some: versions that a short value or a
/// deletion on flash has superseded. A session adds none.
#[derive(Debug, Clone, Copy)]
pub struct DeadValues(u64);

impl DeadValues {
    /// The dead values now; `None` where the ledger need not be exact: with expiry, or with
    /// fragments of a value in several patches.
    ///
    /// # Errors
    /// A live value is not listed; errors of the store.
    pub async fn of(
        store: &Store,
        scenario: &Scenario,
    ) -> Result<Option<DeadValues>, SessionFailure> {
        let threshold = scenario.store.value_threshold;
        let expire = scenario.resp.as_ref().is_some_and(|resp| resp.expiry > 0.0);
        if threshold == 0 || scenario.store.parity > 0 || expire || scenario.may_lose() {
            return Ok(None);
        }
        let units = store.units().await?;
        let payload = units.first().map_or(0, |unit| unit.superblock_payload_bytes);
        let fragment = match scenario.store.fragment_bytes {
            0 => LONGEST_FRAGMENT,
            bytes => bytes,
        };
        let longest = fragment.min(payload / WHOLE_SHARE);
        let found = scan_all(store).await?;
        let lengths = || found.values().map(|(value, _)| value.len() as u64);
        if scenario.clients.value_bytes > longest || lengths().any(|length| length > longest) {
            return Ok(None);
        }
        let separated = found.iter().filter(|(_, (value, _))| value.len() as u64 >= threshold);
        let alive: u64 =
            separated.map(|(key, (value, _))| stored_len(key.len(), value.len()) as u64).sum();
        let listed = store.stats().await?.value_bytes_live;
        let dead = listed.checked_sub(alive).ok_or_else(|| {
            SessionFailure::Wrong(format!(
                "{listed} bytes of values are listed as live, {alive} are"
            ))
        })?;
        Ok(Some(DeadValues(dead)))
    }

    /// After a session without clients: the session has added no dead values.
    ///
    /// # Errors
    /// There are more than before.
    pub async fn have_not_grown(
        self,
        store: &Store,
        scenario: &Scenario,
    ) -> Result<(), SessionFailure> {
        let (runtime, mut last) = (store.runtime(), 0);
        for _ in 0..ATTEMPTS {
            match DeadValues::of(store, scenario).await? {
                Some(DeadValues(now)) if now > self.0 => last = now,
                _ => return Ok(()),
            }
            runtime.sleep_until(runtime.now() + PAUSE).await;
        }
        let before = self.0;
        Err(SessionFailure::Wrong(format!(
            "{last} bytes of dead values are listed as live, {before} before the session"
        )))
    }
}
