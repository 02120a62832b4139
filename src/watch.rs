//! Futures whose polls are watched.
#![forbid(unsafe_code)]

use crate::__private::Scope;
use crate::config::Wishes;
use crate::detector::{self, Covers, Open, Request};
use crate::report::model::Report;
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Watches one future: its polls are judged, and it returns what it returns with a [`Report`].
///
/// The report is about this future alone: what its own polls did, on whichever worker. Tasks that
/// it spawns, and threads, are not its polls; they belong to whom they belong without it. To watch
/// a whole test, use [`test`](macro@crate::test), [`watch`](macro@crate::watch) or
/// [`watch_all!`](crate::watch_all); to watch a runtime, [`Detector`](crate::Detector).
///
/// Nothing fails by itself: what becomes of the report is the caller's business. The settings are
/// those of the test or process around it, else the defaults;
/// [`Builder::watch`](crate::Builder::watch) takes others. Findings go into this report
/// and no other; notes that would be findings if the level were not `warn` are also said at the end
/// of the run. If the future is dropped before its end, its findings are reported at the end of
/// the process, which they fail.
///
/// The beginning and the end of each poll are known, so that a poll which mixes work with tokio
/// operations that are ready at once is told for certain from many short ones.
///
/// ```
/// # #[stallhound::test]
/// # async fn answers() {
/// let (answer, report) = stallhound::watch(async {
///     tokio::task::yield_now().await;
///     42
/// })
/// .await;
/// assert_eq!(answer, 42);
/// report.assert_clean();
/// # }
/// ```
///
/// # Panics
///
/// As `future` does.
pub fn watch<F: Future>(future: F) -> Watch<F> {
    Watch::new(Wishes::default(), false, future)
}

pin_project! {
    /// The future of [`watch`]. It does nothing unless polled.
    #[must_use = "futures do nothing unless polled"]
    pub struct Watch<F> {
        wishes: Wishes,
        require: bool,
        // Opened by the first poll, on whose thread the settings around it are known. The outer
        // one: whether there was a first poll.
        open: Option<Option<Open>>,
        #[pin]
        future: F,
    }
}

impl<F> Watch<F> {
    pub(crate) fn new(wishes: Wishes, require: bool, future: F) -> Watch<F> {
        Watch { wishes, require, open: None, future }
    }
}

impl<F> std::fmt::Debug for Watch<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl<F: Future> Future for Watch<F> {
    type Output = (F::Output, Report);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (wishes, require) = (*this.wishes, *this.require);
        let open = this.open.get_or_insert_with(|| {
            let open = detector::open(&Request::by_hand(wishes, require), Covers::Nothing(None));
            if let Some(why) = detector::broken().filter(|_| require && open.is_none()) {
                panic!("stallhound is required here, but: {why}");
            }
            open
        });
        let polled = {
            let _in_poll = open.as_ref().and_then(Open::enter_poll);
            this.future.poll(cx)
        };
        polled.map(|output| (output, open.take().map_or_else(Report::default, Open::hand_out)))
    }
}

pin_project! {
    /// The body of an async test, in a scope from its first poll on. Returns the scope too.
    pub struct Body<F, B> {
        // What opens the scope, then the open scope.
        begin: Option<B>,
        scope: Option<Scope>,
        #[pin]
        future: F,
    }
}

impl<F, B> Body<F, B> {
    pub(crate) fn new(begin: B, future: F) -> Body<F, B> {
        Body { begin: Some(begin), scope: None, future }
    }
}

impl<F: Future, B: FnOnce() -> Scope> Future for Body<F, B> {
    type Output = (Scope, F::Output);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Some(begin) = this.begin.take() {
            *this.scope = Some(begin());
        }
        let polled = {
            let _in_poll = this.scope.as_ref().and_then(Scope::enter_poll);
            this.future.poll(cx)
        };
        polled.map(|output| (this.scope.take().expect("polled again after its end"), output))
    }
}

pin_project! {
    /// A root future of a watched runtime: its polls are known.
    pub struct Root<'a, F> {
        open: Option<&'a Open>,
        #[pin]
        future: F,
    }
}

impl<'a, F> Root<'a, F> {
    pub(crate) fn new(open: Option<&'a Open>, future: F) -> Root<'a, F> {
        Root { open, future }
    }
}

impl<F: Future> Future for Root<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _in_poll = this.open.and_then(Open::enter_poll);
        this.future.poll(cx)
    }
}
