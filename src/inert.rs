//! Stands for the detector where nothing can be watched: everything compiles, and what is missing
//! is said once. `build.rs` decides, and knows why.
#![forbid(unsafe_code)]

use crate::__private::Settings;
use crate::config::{self, Level, Switch, Wishes};
use crate::report::model::Report;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

/// Why, as a user reads it.
const WHY: &str = concat!(
    "nothing is watched: this needs Linux on x86-64 with glibc, linked dynamically; ",
    env!("STALLHOUND_WHY_NOT")
);

/// The exit code of a program that requires what is not there: libtest's own for failed tests.
const FAILED: i32 = 101;

/// What a front end asks for; only whether it asks for anything.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    off: bool,
}

impl Request {
    /// As a macro's line in the code says.
    pub fn of(settings: &Settings) -> Request {
        Request::by_hand(settings.wishes(), false)
    }

    /// Of a function of ours.
    pub fn by_hand(wishes: Wishes, _require: bool) -> Request {
        Request { off: wishes.level == Some(Level::Allow) }
    }
}

/// Whose doings a scope would be about.
pub enum Covers<'a> {
    /// A test's.
    Test(&'a str),
    /// Nobody's, under this name.
    Nothing(Option<&'a str>),
}

/// A scope. There is none.
#[derive(Debug)]
pub enum Open {}

/// A thread that belongs to a scope. There is none.
pub enum OnThread {}

/// A poll that belongs to a scope. There is none.
pub enum InPoll {}

impl Open {
    /// Never called.
    pub fn enter_thread(&self) -> Option<OnThread> {
        match *self {}
    }

    /// Never called.
    pub fn enter_poll(&self) -> Option<InPoll> {
        match *self {}
    }

    /// Never called.
    pub fn close(self) -> Report {
        match self {}
    }

    /// Never called.
    pub fn hand_out(self) -> Report {
        match self {}
    }

    /// Never called.
    pub fn close_twice(self) -> (Report, Report) {
        match self {}
    }
}

/// Says what is missing, and opens nothing.
pub fn open(request: &Request, _covers: Covers<'_>) -> Option<Open> {
    if !request.off {
        say_once();
    }
    None
}

/// What one `watch_all!` line does. Where that line requires to be obeyed the process ends, before
/// any test ran.
pub fn arm_process(settings: &'static Settings) {
    if is_off() {
        return;
    }
    if settings.require && !listing() {
        say(&format!(
            "stallhound: {}:{}: failing because of `require`: {WHY}\n",
            settings.file, settings.line
        ));
        std::process::exit(FAILED);
    }
    say_once();
}

fn say_once() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !is_off() && !listing() && !SAID.swap(true, Ordering::Relaxed) {
        say(&format!("stallhound: {WHY}\n"));
    }
}

/// `STALLHOUND=off`. A wrong value is said once.
fn is_off() -> bool {
    static OFF: OnceLock<bool> = OnceLock::new();
    *OFF.get_or_init(|| {
        let value = std::env::var_os("STALLHOUND").map(|v| v.to_string_lossy().into_owned());
        match config::parse_switch(value.as_deref()) {
            Ok(switch) => switch == Switch::Off,
            Err(error) => {
                if !listing() {
                    say(&format!("stallhound: {error}\n"));
                }
                false
            }
        }
    })
}

fn listing() -> bool {
    std::env::args_os().skip(1).any(|a| a == "--list")
}

fn say(text: &str) {
    // Nobody to tell if there is no such stream.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Why arming must fail whoever requires it.
pub fn broken() -> Option<String> {
    (!is_off()).then(|| WHY.to_owned())
}

/// Runs it.
pub fn unwatched<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Forgets a report, which is empty.
pub fn defer(_report: Report) {}

/// Forgets a report, which is empty.
pub fn keep(_report: Report) {}

/// What was seen so far: nothing.
pub fn snapshot() -> Report {
    Report::default()
}

/// How often the watchdog woke up so far. There is none.
pub fn wakeups() -> u64 {
    0
}

/// How reports look on this process' standard error stream.
pub fn style() -> crate::report::text::Style {
    crate::report::text::Style::detect(std::io::stderr().is_terminal(), &|name| {
        std::env::var_os(name).map(|v| v.to_string_lossy().into_owned())
    })
}
