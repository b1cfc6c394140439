//! Polls a future once, so that the caller can continue if it is pending.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Polls once with the task's own waker; never waits.
pub(crate) async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}
