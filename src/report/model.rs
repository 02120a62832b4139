//! The judged result, as plain data. Every renderer reads this and nothing else; all wording that
//! is not layout is already in it.
#![forbid(unsafe_code)]

use crate::config::Level;
use crate::evidence::{Category, Frame, Stack};
use crate::ids::{Nanos, TaskId, WorkerIndex};
pub use crate::verdict::context::Context;
use std::fmt;

/// What was found, and what was looked at.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// What fails, worst first.
    pub findings: Vec<Finding>,
    /// What is only worth a line.
    pub notes: Vec<Finding>,
    pub summary: Summary,
}

impl Report {
    /// Whether nothing fails. Notes do not count.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
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
    pub calls_in_polls: u64,
    pub allowed: u64,
    pub lost: u64,
    pub interception: bool,
    pub sampling: bool,
    pub schedstat: bool,
    /// E.g. `zero-config`.
    pub precision: &'static str,
}

/// A line of source.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Place {
    /// Relative to the workspace where possible.
    pub file: String,
    pub line: u32,
    pub column: Option<u32>,
    /// The text of that line, if the file could be read.
    pub source: Option<String>,
}

/// How the time of the longest occurrence was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TimeSplit {
    pub wall: Nanos,
    pub on_cpu: Option<Nanos>,
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
    pub level: Level,
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
    pub time: TimeSplit,
    pub count: u64,
    pub total: Nanos,
    /// Sleeps: what was asked for, of the longest one.
    pub requested: Option<Nanos>,
    /// Many short calls of one poll: how many.
    pub calls_in_poll: Option<u64>,
    pub task: Option<TaskId>,
    pub worker: Option<WorkerIndex>,
    /// Workers of the runtime; 0 if not known.
    pub workers: u32,
    /// Runtime, numbered in order of appearance, from 1.
    pub runtime: Option<u64>,
    /// Root future, task, …: how the context is named.
    pub context: Context,
    pub tests: Vec<String>,
    /// `4 workers ÷ 103 ms: at most 38 such requests a second`.
    pub cost: Option<String>,
    /// What to write instead.
    pub help: String,
    /// Why it is only a note, for notes.
    pub reason: Option<String>,
    pub stack: Stack,
    /// For busy holds: share of samples (percent) below the place, and how many samples.
    pub share: Option<(u32, u32)>,
    /// Other calls from the same line, e.g. `fsync 4 times, 1.2 ms`.
    pub also: Vec<String>,
    /// How sure the watchdog is that it was one poll; calls are always certain.
    pub certain: bool,
}

/// The dependency between the user's line and the call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Through {
    pub package: String,
    pub version: String,
    pub function: String,
}

impl Finding {
    /// The frame the finding is pinned on, if any frame is the user's own.
    pub fn user_frame(&self) -> Option<&Frame> {
        self.stack
            .frames
            .iter()
            .find(|f| matches!(f.origin, crate::evidence::Origin::Workspace { .. }))
    }
}
