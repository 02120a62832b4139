//! Watching by hand: settings as calls, a runtime that is watched, a report that is handed out.
#![forbid(unsafe_code)]

use crate::config::{Level, Wishes};
use crate::detector::{self, Covers, OnThread, Open, Request};
use crate::evidence::Category;
use crate::report::model::Report;
use crate::watch::{Root, Watch};
use std::future::Future;
use std::time::Duration;

/// Watches one runtime, or one future, by hand. It begins with [`Detector::builder`].
///
/// ```
/// use std::time::Duration;
///
/// # fn main() -> std::io::Result<()> {
/// let runtime = stallhound::Detector::builder()
///     .threshold(Duration::from_millis(5))
///     .allow(stallhound::Category::File)
///     .build_runtime(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all())?;
/// let answer = runtime.block_on(async {
///     let task = tokio::spawn(async { 42 });
///     task.await.expect("a task that does not panic")
/// });
/// assert_eq!(answer, 42);
/// runtime.finish().assert_clean();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Detector(());

impl Detector {
    /// Settings to begin with: those of the test or process around it, else the defaults.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

/// Settings for [`Builder::build_runtime`] or [`Builder::watch`]. What is not set is as around it:
/// in the guarded test on whose thread it is used, in the process that
/// [`watch_all!`](crate::watch_all) armed, else the default. `STALLHOUND` has the last word, as
/// everywhere.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Builder {
    wishes: Wishes,
    require: bool,
}

impl Builder {
    /// A hold asleep is a finding from this long on. 10 ms unless set.
    ///
    /// # Panics
    ///
    /// If it is zero, which would fail every poll.
    #[track_caller]
    pub fn threshold(mut self, threshold: Duration) -> Builder {
        assert!(!threshold.is_zero(), "a limit of zero would fail every poll");
        self.wishes.threshold = Some(threshold);
        self
    }

    /// A hold on a processor is a finding from this long on. 50 ms unless set, four times that in
    /// a build with debug assertions.
    ///
    /// # Panics
    ///
    /// If it is zero, which would fail every poll.
    #[track_caller]
    pub fn busy_threshold(mut self, threshold: Duration) -> Builder {
        assert!(!threshold.is_zero(), "a limit of zero would fail every poll");
        self.wishes.busy_threshold = Some(threshold);
        self
    }

    /// The highest level of whatever is found: with [`Level::Warn`] everything is a note, which is
    /// said at the end of the run too; with [`Level::Allow`] there is no report.
    pub fn level(mut self, level: Level) -> Builder {
        self.wishes.level = Some(level);
        self
    }

    /// Says nothing of this category.
    pub fn allow(mut self, category: Category) -> Builder {
        self.wishes.levels.set(category, Level::Allow);
        self
    }

    /// What is found of this category is a note.
    pub fn warn(mut self, category: Category) -> Builder {
        self.wishes.levels.set(category, Level::Warn);
        self
    }

    /// What is found of this category is a finding, whatever [`Builder::level`] says.
    pub fn deny(mut self, category: Category) -> Builder {
        self.wishes.levels.set(category, Level::Deny);
        self
    }

    /// Whether [`Builder::build_runtime`] and [`Builder::watch`] fail where the detector cannot work.
    pub fn require(mut self, require: bool) -> Builder {
        self.require = require;
        self
    }

    /// Builds a runtime that is watched from here to [`Watched::finish`].
    ///
    /// The runtime is what `runtime` describes and nothing else: none of its settings is changed
    /// and no hook is set.
    ///
    /// # Errors
    ///
    /// As [`tokio::runtime::Builder::build`]; with [`Builder::require`] also of kind
    /// [`Unsupported`](std::io::ErrorKind::Unsupported), saying what does not work here.
    pub fn build_runtime(self, runtime: &mut tokio::runtime::Builder) -> std::io::Result<Watched> {
        let open =
            detector::open(&Request::by_hand(self.wishes, self.require), Covers::Nothing(None));
        if let Some(why) = detector::broken().filter(|_| self.require) {
            return Err(std::io::Error::new(std::io::ErrorKind::Unsupported, why));
        }
        let runtime = {
            // Its workers are born here, and inherit the scope.
            let _on_thread = open.as_ref().and_then(Open::enter_thread);
            runtime.build()?
        };
        Ok(Watched { runtime: Some(runtime), open })
    }

    /// Watches one future with these settings: see [`watch`](fn@crate::watch).
    ///
    /// # Panics
    ///
    /// The future does in its first poll, with [`Builder::require`] where nothing can be watched;
    /// the message says why.
    pub fn watch<F: Future>(self, future: F) -> Watch<F> {
        Watch::new(self.wishes, self.require, future)
    }
}

/// A runtime that is watched: see [`Builder::build_runtime`].
///
/// Its workers, and the threads that they make, are watched with the settings of the builder; so is
/// a thread inside of [`Watched::block_on`]. Findings go into its own report and no other.
#[derive(Debug)]
#[must_use = "the report is in `finish`"]
pub struct Watched {
    /// Taken out when it ends.
    runtime: Option<tokio::runtime::Runtime>,
    open: Option<Open>,
}

impl Watched {
    fn runtime(&self) -> &tokio::runtime::Runtime {
        match &self.runtime {
            Some(runtime) => runtime,
            // Only `finish` and `drop` take it, and they have it for themselves.
            None => unreachable!("the runtime is there until `finish`"),
        }
    }

    fn enter(&self) -> Option<OnThread> {
        self.open.as_ref().and_then(Open::enter_thread)
    }

    /// The runtime's handle, to spawn on it or to hand on.
    ///
    /// A thread that calls [`Handle::block_on`](tokio::runtime::Handle::block_on) of it runs its
    /// future as a root on a thread of its own, which may block.
    pub fn handle(&self) -> &tokio::runtime::Handle {
        self.runtime().handle()
    }

    /// Runs a future to its end on this runtime, as
    /// [`Runtime::block_on`](tokio::runtime::Runtime::block_on) does.
    ///
    /// On a current-thread runtime this drives the tasks, and the future itself is judged too: by
    /// whose code blocks, as the root future of a `#[tokio::test]` is.
    ///
    /// # Panics
    ///
    /// As `future` does, and inside of another runtime.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _on_thread = self.enter();
        self.runtime().block_on(Root::new(self.open.as_ref(), future))
    }

    /// Shuts the runtime down, as dropping it does, and judges everything that happened in it.
    ///
    /// # Panics
    ///
    /// Inside of a runtime, as dropping a runtime there does.
    pub fn finish(mut self) -> Report {
        self.end();
        self.open.take().map_or_else(Report::default, Open::hand_out)
    }

    fn end(&mut self) {
        let _on_thread = self.enter();
        drop(self.runtime.take());
    }
}

impl Drop for Watched {
    /// Without [`Watched::finish`] its findings are reported at the end of the process, which they
    /// fail.
    fn drop(&mut self) {
        self.end();
    }
}
