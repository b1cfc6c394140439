//! SIGTERM and SIGINT stop the server; a second Ctrl-C ends it immediately.

use std::future::Future;
use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// Calls `reload` at every SIGHUP while the runtime lives.
///
/// # Errors
/// The operating system refuses the handler. Must be called inside a tokio runtime.
pub fn on_hangup(reload: impl Fn() + Send + 'static) -> io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            reload();
        }
    });
    Ok(())
}

/// Completes at the first SIGTERM or SIGINT. A later SIGINT ends the process immediately with exit
/// code 1, because it is from an impatient user. A later SIGTERM has no effect, because supervisors
/// send it to a process and to its group.
///
/// # Errors
/// The operating system refuses the handlers. Must be called inside a tokio runtime.
pub fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "stopping; Ctrl-C stops immediately");
        tokio::spawn(async move {
            interrupt.recv().await;
            tracing::warn!("stopped immediately");
            std::process::exit(1);
        });
    })
}
