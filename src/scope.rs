//! Marks inside of the program under test.
#![forbid(unsafe_code)]

#[cfg(stallhound_hooks)]
use crate::slots::table;
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
#[cfg(stallhound_hooks)]
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

/// While it lives, the thread that made it may block.
struct Allowance;

#[cfg(not(stallhound_hooks))]
impl Allowance {
    /// Nothing is watched.
    fn begin() -> Option<Allowance> {
        None
    }
}

#[cfg(stallhound_hooks)]
impl Allowance {
    /// `None`: the thread is not watched at all.
    fn begin() -> Option<Allowance> {
        let slot = table::own()?;
        // Relaxed: a slot's owner is the only writer; the watchdog may see it a look late.
        slot.allow.store(slot.allow.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Some(Allowance)
    }
}

#[cfg(stallhound_hooks)]
impl Drop for Allowance {
    fn drop(&mut self) {
        if let Some(slot) = table::own() {
            let depth = slot.allow.load(Ordering::Relaxed);
            slot.allow.store(depth.saturating_sub(1), Ordering::Relaxed);
        }
    }
}

/// Runs `f`, which may block: calls in it, and what holds the worker meanwhile, are no findings.
///
/// The reason is for the next reader of the code. Calls excused this way are counted in the
/// report's first line. The allowance is the calling thread's: it ends when `f` returns or panics,
/// and does not follow work that `f` hands to other threads. For futures there is
/// [`allow_blocking_async`].
///
/// ```
/// let config = stallhound::allow_blocking("read once, before the server answers", || {
///     std::fs::read_to_string("/etc/hostname")
/// });
/// # let _ = config;
/// ```
///
/// # Panics
///
/// As `f` does, and if the reason is empty.
#[track_caller]
pub fn allow_blocking<R>(reason: &'static str, f: impl FnOnce() -> R) -> R {
    demand(reason);
    let _allowed = Allowance::begin();
    f()
}

/// A future that may block: calls in its polls, and what holds the worker meanwhile, are no
/// findings.
///
/// As [`allow_blocking`], over `.await`: the allowance holds while the future is polled, on
/// whichever worker, and not between its polls, when other tasks run on the same thread. Tasks that
/// the future spawns are not covered; neither is what runs when it is dropped before its end.
///
/// ```
/// # #[stallhound::test]
/// # async fn starts_up() {
/// let host = stallhound::allow_blocking_async("once, before the server answers", async {
///     tokio::task::yield_now().await;
///     std::fs::read_to_string("/etc/hostname")
/// })
/// .await;
/// # let _ = host;
/// # }
/// ```
///
/// # Panics
///
/// As `future` does, and at once if the reason is empty.
#[track_caller]
pub fn allow_blocking_async<F: Future>(reason: &'static str, future: F) -> AllowBlocking<F> {
    demand(reason);
    AllowBlocking { future }
}

/// Refuses an allowance that gives none, at the caller's line.
#[track_caller]
fn demand(reason: &'static str) {
    assert!(!reason.trim().is_empty(), "the reason is empty: say why this may block");
}

pin_project! {
    /// The future of [`allow_blocking_async`]. It does nothing unless polled.
    #[must_use = "futures do nothing unless polled"]
    #[derive(Debug)]
    pub struct AllowBlocking<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for AllowBlocking<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _allowed = Allowance::begin();
        self.project().future.poll(cx)
    }
}
