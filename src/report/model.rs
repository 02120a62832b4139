//! The judged result, as plain data. Every renderer reads this and nothing else; all wording that
//! is not layout is already in it.
#![forbid(unsafe_code)]

use crate::config::Level;
pub use crate::evidence::Category;
use crate::evidence::{Frame, Stack};
use crate::ids::{Nanos, TaskId, WorkerIndex};
pub use crate::verdict::context::Context;
use std::fmt;

/// What was found, and what was looked at. Its `Display` is the text report, without colours.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// What fails, worst first.
    pub findings: Vec<Finding>,
    /// What is only worth a line.
    pub notes: Vec<Finding>,
    /// What would be in the two lists above, but is in the list of known findings.
    pub known: Vec<Finding>,
    /// Known findings that were looked for and are not there any more, one text each.
    pub gone: Vec<String>,
    /// What allowances silenced, worst first: one entry each.
    pub allowed: Vec<Allowed>,
    /// What was looked at.
    pub summary: Summary,
}

impl Report {
    /// Whether nothing fails. Notes do not count.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// What fails, worst first.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// What is only worth a line.
    pub fn notes(&self) -> &[Finding] {
        &self.notes
    }

    /// For the end of a test: the report is the message of its failure.
    ///
    /// ```
    /// let report = stallhound::Report::default();
    /// report.assert_clean();
    /// ```
    ///
    /// # Panics
    ///
    /// With the text report, at the caller's line, unless [`Report::is_clean`].
    #[track_caller]
    pub fn assert_clean(&self) {
        assert!(self.is_clean(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::report::text::render(self, &crate::report::text::Style::plain()))
    }
}

/// The head line's numbers.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Tests with at least one finding.
    pub guilty_tests: u64,
    /// Tests seen; 0 where tests cannot be told apart.
    pub tests: u64,
    /// Findings that tests of their own scope failed with before: they are not in this report.
    pub told: u64,
    /// Calls that were looked at inside of polls, counted or not.
    pub calls_in_polls: u64,
    /// Calls and holds that would have been said, excused by [`crate::allow_blocking`] or by an
    /// allowance.
    pub allowed: u64,
    /// Records that found no room: not 0 means that the report is incomplete.
    pub lost: u64,
    /// Calls and holds of which it cannot be told whose they are, and which are neither findings
    /// nor excused: the program has no symbols.
    pub unjudged: u64,
    /// Whether libc calls were seen.
    pub interception: bool,
    /// Whether threads could be sampled.
    pub sampling: bool,
    /// Whether the time spent waiting for a processor was known.
    pub schedstat: bool,
    /// E.g. `zero-config`.
    pub precision: &'static str,
}

/// What one allowance silenced: one that is built in, or one of [`crate::allowance!`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Allowed {
    /// Its reason.
    pub reason: &'static str,
    /// File and line of the macro; `None`: built in.
    pub place: Option<(&'static str, u32)>,
    /// Calls and holds.
    pub count: u64,
    /// All of them together, wall time.
    pub total: Nanos,
    /// What they would have been, in the order of [`Category::ALL`].
    pub categories: Vec<Category>,
}

/// A line of source.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Place {
    /// Relative to the workspace where possible.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// Counted from 1.
    pub column: Option<u32>,
    /// The text of that line, if the file could be read.
    pub source: Option<String>,
}

/// How the time of the longest occurrence was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TimeSplit {
    /// All of it; for busy holds the part on a processor.
    pub wall: Nanos,
    /// On a processor.
    pub on_cpu: Option<Nanos>,
    /// Asleep of its own will.
    pub asleep: Option<Nanos>,
    /// Waiting for a processor, and other lateness of the machine.
    pub waiting: Option<Nanos>,
    /// The poll had not ended yet: all figures are lower bounds.
    pub running: bool,
}

/// One thing that held a worker.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// What it does.
    pub level: Level,
    /// What kind of thing held the worker.
    pub category: Category,
    /// What happened, in one sentence without a full stop.
    pub headline: String,
    /// The libc function, for calls.
    pub call: Option<&'static str>,
    /// What it acted on, as text.
    pub object: Option<String>,
    /// The user's innermost own line.
    pub place: Option<Place>,
    /// The function of that line.
    pub function: Option<String>,
    /// The dependency it went through: `rusqlite 0.37`, with the function called there.
    pub through: Option<Through>,
    /// Of the longest occurrence.
    pub time: TimeSplit,
    /// How often.
    pub count: u64,
    /// All occurrences together.
    pub total: Nanos,
    /// Sleeps: what was asked for, of the longest one.
    pub requested: Option<Nanos>,
    /// Many short calls of one poll: how many.
    pub calls_in_poll: Option<u64>,
    /// The task of the longest occurrence.
    pub task: Option<TaskId>,
    /// Its worker, where this tokio can tell (since 1.54).
    pub worker: Option<WorkerIndex>,
    /// Workers of the runtime; 0 if not known.
    pub workers: u32,
    /// Runtime, numbered in order of appearance, from 1.
    pub runtime: Option<u64>,
    /// Root future, task, …: how the context is named.
    pub context: Context,
    /// Whether some of its occurrences were in another one.
    pub(crate) mixed: bool,
    /// Tests in which it happened, in alphabetical order.
    pub tests: Vec<String>,
    /// `4 workers ÷ 103 ms: at most 38 such requests a second`.
    pub cost: Option<String>,
    /// What to write instead.
    pub help: String,
    /// Why it is only a note, for notes.
    pub reason: Option<String>,
    /// The stack of the longest occurrence; of holds, the heaviest one.
    pub stack: Stack,
    /// For busy holds: share of samples (percent) below the place, and how many samples.
    pub share: Option<(u32, u32)>,
    /// Other calls from the same line, e.g. `fsync 4 times, 1.2 ms`.
    pub also: Vec<String>,
    /// How sure the watchdog is that it was one poll; calls are always certain.
    pub certain: bool,
    /// What was called at the line, by kind. Its own category comes first.
    pub kinds: Vec<Kind>,
    /// The functions by which it is known again, innermost first: those of this workspace, or,
    /// where there are none, the dependency's. Package, modules, type and function, as the source
    /// has them: without closures, generic arguments, lines or folders, and so the same in every
    /// build. Empty where there is no such name.
    pub path: Vec<String>,
    /// What is to be written so that it is allowed. Of test code its source line, where that is one
    /// line; of other code an [`allowance!`](macro@crate::allowance), which goes beside the tests.
    pub allow: Option<String>,
    /// Its line for the list of known findings (`stallhound.known`).
    pub known_line: Option<String>,
}

/// The calls of one category at a finding's line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kind {
    /// The category.
    pub category: Category,
    /// The libc functions, in alphabetical order; none for holds.
    pub calls: Vec<&'static str>,
}

/// [`Finding::reason`] of what would fail if the settings did not say `level = warn`.
pub const BY_LEVEL: &str = "level is warn";

/// By what a finding is known again on other days, other machines and in other builds: its
/// category and the function it is in. The category stands for the family of calls as well: a
/// finer one would not hold, since which call of a family has to wait is chance (a read that
/// finds its data is no wait).
///
/// ```
/// use stallhound::evidence::Category;
/// use stallhound::report::model::Fingerprint;
///
/// let known = Fingerprint::of(Category::Sleep, "app::refresh");
/// assert_eq!(known.to_string(), "484198a7fdf38b26");
/// assert_ne!(known, Fingerprint::of(Category::Net, "app::refresh"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Of a category in a function, whose name is spelled as in [`Finding::path`].
    pub fn of(category: Category, function: &str) -> Fingerprint {
        // FNV-1a: it must be the same for ever, and need not withstand anybody.
        let bytes = category.word().bytes().chain([0]).chain(function.bytes());
        Fingerprint(bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        }))
    }
}

impl fmt::Display for Fingerprint {
    /// Sixteen hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The dependency between the user's line and the call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Through {
    /// Its name.
    pub package: String,
    /// Its version, major and minor.
    pub version: String,
    /// The function of it that the user's line called.
    pub function: String,
}

impl Finding {
    /// A finding of which nothing is known but its kind, for tests of what reads reports.
    #[cfg(test)]
    pub(crate) fn blank(category: Category) -> Finding {
        Finding {
            level: Level::Deny,
            category,
            headline: String::new(),
            call: None,
            object: None,
            place: None,
            function: None,
            through: None,
            time: TimeSplit::default(),
            count: 1,
            total: Nanos::ZERO,
            requested: None,
            calls_in_poll: None,
            task: None,
            worker: None,
            workers: 0,
            runtime: None,
            context: Context::Task,
            mixed: false,
            tests: Vec::new(),
            cost: None,
            help: String::new(),
            reason: None,
            stack: Stack::default(),
            share: None,
            also: Vec::new(),
            certain: true,
            kinds: Vec::new(),
            path: Vec::new(),
            allow: None,
            known_line: None,
        }
    }

    /// It is a note only because the settings say `level = warn`.
    pub fn is_spared(&self) -> bool {
        self.reason.as_deref() == Some(BY_LEVEL)
    }

    /// By what it is known again; `None` where nothing in the stack has a name to go by.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.path.first().map(|function| Fingerprint::of(self.category, function))
    }

    /// The frame the finding is pinned on, if any frame is the user's own.
    pub fn user_frame(&self) -> Option<&Frame> {
        self.stack
            .frames
            .iter()
            .find(|f| matches!(f.origin, crate::evidence::Origin::Workspace { .. }))
    }
}
