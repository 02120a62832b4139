//! Levels, limits and where they come from: the defaults, then the line in the code, then the
//! environment, each over the one before.
#![forbid(unsafe_code)]

use crate::error::SettingError;
use crate::evidence::Category;
use crate::ids::Nanos;

/// What a finding of some kind does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Level {
    /// Fails the test.
    Deny,
    /// One line in the report; fails nothing.
    Warn,
    /// Says nothing.
    Allow,
}

/// From when on a category counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Rule {
    /// Noted from this long on (`None`: never only noted).
    pub warn_over: Option<Nanos>,
    /// Denied from this long on; zero: always.
    pub deny_over: Option<Nanos>,
}

/// The limits in force for one process or one guarded test.
///
/// Figures and their reasons: `docs/architecture.md`, "Limits".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// `threshold`: a hold asleep, and time-judged calls without limits of their own. 10 ms.
    pub threshold: Nanos,
    /// `busy_threshold`: a hold on a processor. 50 ms, × 4 in a debug build of the user's crate.
    pub busy_threshold: Nanos,
    /// Highest level that any finding may have (`STALLHOUND=warn`, `level = warn`).
    pub cap: Level,
    /// Whether allowances hold. `false` only in this project's own tests, which show by it what an
    /// allowance is for.
    pub allowances: bool,
}

impl Limits {
    /// [`Limits::threshold`] unless the code says otherwise.
    pub const DEFAULT_THRESHOLD: Nanos = Nanos::from_millis(10);
    /// [`Limits::busy_threshold`] unless the code says otherwise, in an optimised build.
    pub const DEFAULT_BUSY_THRESHOLD: Nanos = Nanos::from_millis(50);
    /// Unoptimised code does the same work in several times the time.
    pub const DEBUG_FACTOR: u64 = 4;

    /// The defaults, for a crate that was compiled with or without debug assertions.
    pub const fn default_for(debug_assertions: bool) -> Limits {
        let factor = if debug_assertions { Self::DEBUG_FACTOR } else { 1 };
        Limits {
            threshold: Self::DEFAULT_THRESHOLD,
            busy_threshold: Nanos(Self::DEFAULT_BUSY_THRESHOLD.0 * factor),
            cap: Level::Deny,
            allowances: true,
        }
    }

    /// The rule of a category under these limits.
    pub fn rule(&self, category: Category) -> Rule {
        let ms = Nanos::from_millis;
        let always = Rule { warn_over: None, deny_over: Some(Nanos::ZERO) };
        match category {
            Category::Sleep
            | Category::Net
            | Category::IoWait
            | Category::Dns
            | Category::Process
            | Category::Join
            | Category::Disk => always,
            // The longest honest lock wait in a task of 19 foreign suites was 4.9 ms; under load
            // waits of 23 ms were seen.
            Category::Sync => Rule { warn_over: Some(ms(10)), deny_over: Some(ms(100)) },
            Category::File => Rule { warn_over: Some(ms(10)), deny_over: Some(ms(100)) },
            Category::Busy => Rule {
                warn_over: Some(Nanos(self.busy_threshold.0 / 2)),
                deny_over: Some(self.busy_threshold),
            },
            Category::Raw => Rule { warn_over: None, deny_over: Some(self.threshold) },
        }
    }
}

/// The value of the environment variable `STALLHOUND`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switch {
    /// Not set: as the code says.
    Unset,
    /// `off`: inert.
    Off,
    /// `warn`: notes everything, fails nothing.
    Warn,
    /// `deny`: fails even where the code says `level = "warn"`.
    Deny,
    /// Not a value it knows: said once, and then as the code says.
    Invalid,
}

/// Reads the value of `STALLHOUND`.
///
/// # Errors
///
/// Anything but `off`, `warn`, `deny` or an empty value.
pub fn parse_switch(value: Option<&str>) -> Result<Switch, SettingError> {
    match value.map(str::trim) {
        None | Some("") => Ok(Switch::Unset),
        Some("off") => Ok(Switch::Off),
        Some("warn") => Ok(Switch::Warn),
        Some("deny") => Ok(Switch::Deny),
        Some(other) => Err(SettingError {
            place: "environment variable STALLHOUND".into(),
            problem: format!("{other:?} is not a value it knows"),
            remedy: "set it to `off`, `warn` or `deny`, or unset it".into(),
        }),
    }
}
