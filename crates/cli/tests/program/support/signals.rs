//! Signals to programs under test.

use std::process::Child;

/// Sends a signal to a program that has not been waited for.
pub fn send(child: &Child, signal: libc::c_int) {
    let pid = i32::try_from(child.id()).expect("a process id fits");
    // SAFETY: `kill` has no memory effects; the process is our child and has not been waited for.
    #[expect(unsafe_code, reason = "the standard library sends no other signal than SIGKILL")]
    let sent = unsafe { libc::kill(pid, signal) };
    assert_eq!(sent, 0, "signal {signal} can be sent");
}
