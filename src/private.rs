//! What the macros' expansions name. Not public interface: it may change in any version.
#![forbid(unsafe_code)]

use crate::config::{Level, Levels, Wishes};
use crate::detector::{self, Covers, InPoll, OnThread, Open, Request};
use crate::evidence::Category;
use crate::report::model::Report;
use crate::watch::Body;
use std::future::Future;
use std::time::Duration;

pub use crate::__settings as settings;
pub use crate::verdict::rules::Allowance;
pub use inventory::submit;
pub use stallhound_macros::{configure, declare, guard};

/// The settings of one `watch_all!` line or one attribute, and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub crate_name: &'static str,
    pub manifest_dir: &'static str,
    /// The crate is an integration test or a bench (cargo sets `CARGO_TARGET_TMPDIR` only there).
    pub test_target: bool,
    pub debug_assertions: bool,
    /// The binary, where the crate is one (cargo sets `CARGO_BIN_NAME` only there): its unit tests
    /// are not those of a library of the same name.
    pub bin_name: Option<&'static str>,
    /// `file!()` and `line!()` of the arming line.
    pub file: &'static str,
    pub line: u32,
    pub threshold: Option<Duration>,
    pub busy_threshold: Option<Duration>,
    /// `Some(true)`: warn, nothing fails. `Some(false)`: deny.
    pub warn: Option<bool>,
    /// Nothing is watched.
    pub off: bool,
    /// Categories by their words: `allow(…)`, `warn(…)`, `deny(…)`.
    pub allowed: &'static [&'static str],
    pub noted: &'static [&'static str],
    pub denied: &'static [&'static str],
    /// Fail if the detector cannot work here.
    pub require: bool,
    /// The test has `#[should_panic]`: findings go to the exit code, not to a panic.
    pub should_panic: bool,
}

impl Settings {
    pub const fn new(
        crate_name: &'static str,
        manifest_dir: &'static str,
        test_target: bool,
        debug_assertions: bool,
        file: &'static str,
        line: u32,
    ) -> Settings {
        Settings {
            crate_name,
            manifest_dir,
            test_target,
            debug_assertions,
            bin_name: None,
            file,
            line,
            threshold: None,
            busy_threshold: None,
            warn: None,
            off: false,
            allowed: &[],
            noted: &[],
            denied: &[],
            require: false,
            should_panic: false,
        }
    }
    pub const fn bin_name(mut self, name: Option<&'static str>) -> Settings {
        self.bin_name = name;
        self
    }
    pub const fn threshold_nanos(mut self, nanos: u64) -> Settings {
        self.threshold = Some(Duration::from_nanos(nanos));
        self
    }
    pub const fn busy_threshold_nanos(mut self, nanos: u64) -> Settings {
        self.busy_threshold = Some(Duration::from_nanos(nanos));
        self
    }
    pub const fn warn(mut self, warn: bool) -> Settings {
        self.warn = Some(warn);
        self
    }
    pub const fn require(mut self, require: bool) -> Settings {
        self.require = require;
        self
    }
    pub const fn off(mut self) -> Settings {
        self.off = true;
        self
    }
    pub const fn allow(mut self, categories: &'static [&'static str]) -> Settings {
        self.allowed = categories;
        self
    }
    pub const fn note(mut self, categories: &'static [&'static str]) -> Settings {
        self.noted = categories;
        self
    }
    pub const fn deny(mut self, categories: &'static [&'static str]) -> Settings {
        self.denied = categories;
        self
    }
    pub const fn should_panic_if(mut self, it_should: bool) -> Settings {
        self.should_panic |= it_should;
        self
    }

    /// What the line asks for, without where it stands.
    pub(crate) fn wishes(&self) -> Wishes {
        let mut levels = Levels::default();
        for (words, level) in
            [(self.allowed, Level::Allow), (self.noted, Level::Warn), (self.denied, Level::Deny)]
        {
            for word in words {
                if let Some(category) = Category::ALL.into_iter().find(|c| c.word() == *word) {
                    levels.set(category, level);
                }
            }
        }
        let level = self.warn.map(|warn| if warn { Level::Warn } else { Level::Deny });
        Wishes {
            threshold: self.threshold,
            busy_threshold: self.busy_threshold,
            level: if self.off { Some(Level::Allow) } else { level },
            levels,
        }
    }
}

/// Arms the process. Called before `main`, once for each `watch_all!` line.
pub fn arm(settings: &'static Settings) {
    detector::arm_process(settings);
}

/// Opens the guarded part of a sync test, whose name is given in full.
pub fn begin(settings: &'static Settings, test: &'static str) -> Guard {
    let scope = Scope::open(settings, test);
    Guard { thread: scope.open.as_ref().and_then(Open::enter_thread), scope }
}

/// Guards the body of an async test, whose name is given in full. It returns the scope, which is
/// to be finished, and what the body returned.
pub fn body<T, F: Future<Output = T>>(
    settings: &'static Settings,
    test: &'static str,
    future: F,
) -> Body<F, impl FnOnce() -> Scope> {
    Body::new(move || Scope::open(settings, test), future)
}

/// A sync test while it runs, with its thread and whatever threads that one makes.
#[must_use]
pub struct Guard {
    // Dropped first.
    thread: Option<OnThread>,
    scope: Scope,
}

impl Guard {
    /// As [`Scope::finish`].
    pub fn finish(self) -> Option<Failure> {
        drop(self.thread);
        self.scope.finish()
    }
}

/// A test while it runs.
#[must_use]
pub struct Scope {
    open: Option<Open>,
    settings: &'static Settings,
}

impl Scope {
    fn open(settings: &'static Settings, test: &'static str) -> Scope {
        Scope { open: detector::open(&Request::of(settings), Covers::Test(test)), settings }
    }

    /// Of an async test: a poll of its body begins.
    pub(crate) fn enter_poll(&self) -> Option<InPoll> {
        self.open.as_ref().and_then(Open::enter_poll)
    }

    /// Ends the test and judges it. What is returned is to be thrown, once what the test returned
    /// was said: see [`Outcome`].
    #[must_use]
    pub fn finish(mut self) -> Option<Failure> {
        let Some(open) = self.open.take() else { return self.missing() };
        detector::unwatched(|| self.judge(open))
    }

    /// What fails a test that requires to be watched.
    fn missing(&self) -> Option<Failure> {
        let why = detector::broken().filter(|_| self.settings.require)?;
        Some(Failure(format!("stallhound is required here, but: {why}")))
    }

    fn judge(&self, open: Open) -> Option<Failure> {
        let report = open.close();
        if self.settings.should_panic {
            if report.is_clean() {
                detector::keep(report);
            } else {
                detector::defer(report);
            }
            return None;
        }
        let missing = self.missing();
        if missing.is_some() {
            return missing;
        }
        if report.is_clean() {
            // The harness shows nobody what a passing test prints.
            detector::keep(report);
            return None;
        }
        let text = crate::report::text::render(&report, &detector::style());
        Some(Failure(text.trim_end().to_owned()))
    }
}

/// Why a test fails.
#[must_use]
pub struct Failure(String);

impl Failure {
    /// Fails it.
    ///
    /// # Panics
    ///
    /// Always.
    #[track_caller]
    pub fn fail(self) -> ! {
        panic!("{}", self.0)
    }
}

/// What a test returned, before it fails because of its findings: an error of its own comes first.
pub struct Outcome<T>(pub T);

impl<T: std::process::Termination> Outcome<T> {
    /// Says an error as the harness would.
    pub fn say(self) {
        let _ = self.0.report();
    }
}

/// For functions that are no tests: it stands behind the method of the same name.
pub trait AnyOutcome {
    fn say(self);
}

impl<T> AnyOutcome for Outcome<T> {
    fn say(self) {}
}

impl Drop for Scope {
    /// The test panicked: its own message comes first, ours is added.
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
        detector::unwatched(|| {
            let report = open.close();
            if report.is_clean() {
                return detector::keep(report);
            }
            if self.settings.should_panic || !std::thread::panicking() {
                // The panic makes this test pass; or there is none, since whoever ran the body gave
                // it up before its end.
                detector::defer(report);
            } else {
                eprint!("{}", crate::report::text::render(&report, &detector::style()));
            }
        });
    }
}

/// For this project's own tests: a scope whose report is handed out.
pub struct Recording {
    thread: Option<OnThread>,
    open: Option<Open>,
}

/// Opens a [`Recording`] on the calling thread.
pub fn begin_recording(settings: &'static Settings, name: &str) -> Recording {
    let open = detector::open(&Request::of(settings), Covers::Nothing(Some(name)));
    Recording { thread: open.as_ref().and_then(Open::enter_thread), open }
}

impl Recording {
    /// Ends it and judges what happened in it.
    pub fn finish(self) -> Report {
        drop(self.thread);
        self.open.map_or_else(Report::default, Open::close)
    }

    /// The same, judged twice: as ever, and with no allowance in force.
    pub fn finish_twice(self) -> (Report, Report) {
        drop(self.thread);
        self.open.map(Open::close_twice).unwrap_or_default()
    }
}

/// For this project's own tests: what the process scope saw so far.
pub fn snapshot() -> Report {
    detector::snapshot()
}

/// For this project's own tests and benches: how often the watchdog woke up so far.
pub fn watchdog_wakeups() -> u64 {
    detector::wakeups()
}
