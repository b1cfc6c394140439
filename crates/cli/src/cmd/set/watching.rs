//! Long work on units of a set, with a progress bar and an end on a signal.

use futures_util::future::{Either, select};
use softflash_console::{CliError, interrupt};
use softflash_runtime::RuntimeHandle;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The time between two positions of the progress bar, and between looks for a signal.
const INTERVAL: Duration = Duration::from_millis(100);

/// Does the work, and shows how far it is, until it is done or a signal arrives. The table of sets
/// has not changed then.
pub async fn watched<T>(
    path: &Path,
    work: impl Future<Output = T>,
    show: impl Fn(),
    runtime: &RuntimeHandle,
) -> Result<T, CliError> {
    let interrupted = interrupt::flag(None)?;
    let mut work = pin!(work);
    loop {
        let tick = pin!(runtime.sleep_until(runtime.now() + INTERVAL));
        match select(work.as_mut(), tick).await {
            Either::Left((done, _)) => return Ok(done),
            Either::Right(_) if interrupted.load(Ordering::Relaxed) => {
                return Err(CliError::Failed(format!(
                    "{}: interrupted; all sets have their units and data as before, and the command \
                     can be repeated",
                    path.display()
                )));
            }
            Either::Right(_) => show(),
        }
    }
}
