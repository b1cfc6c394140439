//! SIGTERM and SIGINT: the first asks the server to stop, the second stops it.

use std::future::Future;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Completes at the first SIGTERM or SIGINT. From then on a further one ends the process at once with
/// exit code 1.
///
/// # Errors
/// If the operating system refuses the handlers. Must be called inside a tokio runtime.
pub fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        let name = either(&mut terminate, &mut interrupt).await;
        tracing::info!(signal = name, "stopping; a second signal stops at once");
        tokio::spawn(async move {
            either(&mut terminate, &mut interrupt).await;
            tracing::warn!("stopped at once");
            std::process::exit(1);
        });
    })
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}
