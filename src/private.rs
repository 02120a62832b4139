//! What the macros' expansions name. Not public interface: it may change in any version.
#![forbid(unsafe_code)]

use crate::detector;
use crate::report::model::Report;
use std::time::Duration;

pub use crate::__settings as settings;
pub use crate::verdict::rules::Allowance;
pub use inventory::submit;
pub use stallhound_macros::{configure, guard};

/// The settings of one `watch_all!` line or one attribute, and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub crate_name: &'static str,
    pub manifest_dir: &'static str,
    /// The crate is an integration test or a bench (cargo sets `CARGO_TARGET_TMPDIR` only there).
    pub test_target: bool,
    pub debug_assertions: bool,
    /// `file!()` and `line!()` of the arming line.
    pub file: &'static str,
    pub line: u32,
    pub threshold: Option<Duration>,
    pub busy_threshold: Option<Duration>,
    /// `Some(true)`: warn, nothing fails. `Some(false)`: deny.
    pub warn: Option<bool>,
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
            file,
            line,
            threshold: None,
            busy_threshold: None,
            warn: None,
            require: false,
            should_panic: false,
        }
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
    pub const fn should_panic(mut self) -> Settings {
        self.should_panic = true;
        self
    }
}

/// Arms the process. Called before `main`, once for each `watch_all!` line.
pub fn arm(settings: &'static Settings) {
    detector::arm_process(settings);
}

/// Opens the guarded part of a test, whose name is given in full.
pub fn begin(settings: &'static Settings, test: &'static str) -> Scope {
    Scope { open: Some(detector::open(settings, test)), settings }
}

/// A test while it runs.
#[must_use]
pub struct Scope {
    open: Option<detector::Open>,
    settings: &'static Settings,
}

impl Scope {
    /// Ends the test and judges it.
    ///
    /// # Panics
    ///
    /// With the report, if there are findings.
    #[track_caller]
    pub fn finish(mut self) {
        let Some(open) = self.open.take() else { return };
        let report = open.close();
        if self.settings.should_panic {
            if !report.is_clean() {
                detector::defer(report);
            }
            return;
        }
        if let Some(why) = detector::broken().filter(|_| self.settings.require) {
            panic!("stallhound is required here, but: {why}");
        }
        let style = detector::style();
        let text = crate::report::text::render(&report, &style);
        if report.is_clean() {
            // Notes are for whoever looks at the output of a passing test.
            if !text.is_empty() {
                eprint!("{text}");
            }
            return;
        }
        panic!("{}", text.trim_end());
    }
}

impl Drop for Scope {
    /// The test panicked, or left early: its own message comes first, ours is added.
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
        let report = open.close();
        if report.is_clean() {
            return;
        }
        if self.settings.should_panic {
            // The panic makes this test pass.
            detector::defer(report);
        } else {
            eprint!("{}", crate::report::text::render(&report, &detector::style()));
        }
    }
}

/// For this project's own tests: a scope whose report is handed out.
pub struct Recording(detector::Open);

/// Opens a [`Recording`] on the calling thread.
pub fn begin_recording(settings: &'static Settings, name: &str) -> Recording {
    Recording(detector::open(settings, name))
}

impl Recording {
    /// Ends it and judges what happened in it.
    pub fn finish(self) -> Report {
        self.0.close()
    }

    /// The same, judged twice: as ever, and with no allowance in force.
    pub fn finish_twice(self) -> (Report, Report) {
        self.0.close_twice()
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
