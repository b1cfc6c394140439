//! Polling a future once, to go on without it where it must wait.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Polls once with the task's own waker; never waits itself.
pub(crate) async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}
