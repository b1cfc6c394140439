//! SIGTERM and SIGINT ask the server to stop; a second Ctrl-C does not wait for it.

use std::future::Future;
use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// Calls `reload` at every SIGHUP, for as long as the runtime lives.
///
/// # Errors
/// If the operating system refuses the handler. Must be called inside a tokio runtime.
pub fn on_hangup(reload: impl Fn() + Send + 'static) -> io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            reload();
        }
    });
    Ok(())
}

/// Completes at the first SIGTERM or SIGINT. A SIGINT after that ends the process at once with exit code 1: somebody
/// sits there and has lost patience. A further SIGTERM means nothing new: supervisors send it to a process and to its
/// group.
///
/// # Errors
/// If the operating system refuses the handlers. Must be called inside a tokio runtime.
pub fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "stopping; Ctrl-C stops at once");
        tokio::spawn(async move {
            interrupt.recv().await;
            tracing::warn!("stopped at once");
            std::process::exit(1);
        });
    })
}
