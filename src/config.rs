//! Levels, limits and where they come from: the defaults, then the line in the code, then the
//! environment, each over the one before.
#![forbid(unsafe_code)]

use crate::error::SettingError;
use crate::evidence::Category;
use crate::ids::Nanos;
use std::time::Duration;

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
    /// Denied from this long on; zero: always (`None`: never denied).
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
    /// Where a category has a level of its own.
    pub levels: Levels,
}

/// Levels of single categories: `allow(file)`, `warn(sync)`, `deny(sleep)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Levels([Option<Level>; Category::ALL.len()]);

impl Levels {
    /// Gives a category a level of its own; the last word counts.
    pub const fn set(&mut self, category: Category, level: Level) {
        self.0[category as usize] = Some(level);
    }

    /// The level that was given to a category.
    pub const fn get(&self, category: Category) -> Option<Level> {
        self.0[category as usize]
    }

    /// These levels, and where one has none, the other's.
    pub fn over(self, below: Levels) -> Levels {
        let mut levels = below;
        for category in Category::ALL {
            if let Some(level) = self.get(category) {
                levels.set(category, level);
            }
        }
        levels
    }
}

/// What a line in the code asks for; what it leaves out is as it was before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wishes {
    /// [`Limits::threshold`].
    pub threshold: Option<Duration>,
    /// [`Limits::busy_threshold`].
    pub busy_threshold: Option<Duration>,
    /// [`Limits::cap`]: `Deny`, `Warn`, or `Allow` for `off`.
    pub level: Option<Level>,
    /// [`Limits::levels`].
    pub levels: Levels,
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
            levels: Levels([None; Category::ALL.len()]),
        }
    }

    /// These limits, changed as a line in the code asks and as the environment allows.
    ///
    /// `off` and `allow(…)` hold whatever the environment says: they are the project's own word
    /// on what is no fault.
    pub fn with(mut self, wishes: &Wishes, switch: Switch) -> Limits {
        if let Some(threshold) = wishes.threshold {
            self.threshold = threshold.into();
        }
        if let Some(busy) = wishes.busy_threshold {
            self.busy_threshold = busy.into();
        }
        if let Some(level) = wishes.level {
            self.cap = level;
        }
        self.levels = wishes.levels.over(self.levels);
        let forced = match switch {
            Switch::Warn => Level::Warn,
            Switch::Deny => Level::Deny,
            Switch::Bless => {
                // Blessed is what fails once `level = warn` is gone. `warn(…)` is to stay.
                if self.cap == Level::Warn {
                    self.cap = Level::Deny;
                }
                return self;
            }
            Switch::Unset | Switch::Off | Switch::Invalid => return self,
        };
        let force = |level: &mut Level| {
            if *level != Level::Allow {
                *level = forced;
            }
        };
        force(&mut self.cap);
        self.levels.0.iter_mut().flatten().for_each(force);
        self
    }

    /// The highest level that a finding of this category may have.
    pub fn ceiling(&self, category: Category) -> Level {
        match self.cap {
            Level::Allow => Level::Allow,
            cap => self.levels.get(category).unwrap_or(cap),
        }
    }

    /// The rule of a category under these limits. Where a category is only noted by itself,
    /// `deny(category)` makes it fail from there on.
    pub fn rule(&self, category: Category) -> Rule {
        let mut rule = self.own_rule(category);
        if rule.deny_over.is_none() && self.levels.get(category) == Some(Level::Deny) {
            rule.deny_over = rule.warn_over;
        }
        rule
    }

    fn own_rule(&self, category: Category) -> Rule {
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
            Category::FileLock => Rule { warn_over: None, deny_over: Some(self.threshold) },
            Category::Pipe => Rule { warn_over: None, deny_over: Some(ms(100)) },
            // Whoever runs the tests reads what they print.
            Category::Stdio => Rule { warn_over: Some(ms(100)), deny_over: None },
            // Beside four burners a core 8 of 60 starts took over 10 ms.
            Category::Spawn => Rule { warn_over: Some(ms(100)), deny_over: None },
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
    /// `bless`: what is found becomes known, and fails nothing.
    Bless,
    /// Not a value it knows: said once, and then as the code says.
    Invalid,
}

/// Reads the value of `STALLHOUND`.
///
/// # Errors
///
/// Anything but `off`, `warn`, `deny`, `bless` or an empty value.
pub fn parse_switch(value: Option<&str>) -> Result<Switch, SettingError> {
    match value.map(str::trim) {
        None | Some("") => Ok(Switch::Unset),
        Some("off") => Ok(Switch::Off),
        Some("warn") => Ok(Switch::Warn),
        Some("deny") => Ok(Switch::Deny),
        Some("bless") => Ok(Switch::Bless),
        Some(other) => Err(SettingError {
            place: "environment variable STALLHOUND".into(),
            problem: format!("{other:?} is not a value it knows"),
            remedy: "set it to `off`, `warn`, `deny` or `bless`, or unset it".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(of: &[(Category, Level)]) -> Levels {
        let mut levels = Levels::default();
        of.iter().for_each(|(category, level)| levels.set(*category, *level));
        levels
    }

    #[test]
    fn what_a_line_leaves_out_is_as_it_was() {
        let base = Limits::default_for(false);
        assert_eq!(base.with(&Wishes::default(), Switch::Unset), base);
        let outer = Wishes {
            threshold: Some(Duration::from_millis(5)),
            level: Some(Level::Warn),
            levels: levels(&[(Category::File, Level::Allow), (Category::Sync, Level::Warn)]),
            ..Wishes::default()
        };
        let inner = Wishes {
            busy_threshold: Some(Duration::from_millis(7)),
            levels: levels(&[(Category::Sync, Level::Deny)]),
            ..Wishes::default()
        };
        let both = base.with(&outer, Switch::Unset).with(&inner, Switch::Unset);
        assert_eq!(both.threshold, Nanos::from_millis(5));
        assert_eq!(both.busy_threshold, Nanos::from_millis(7));
        assert_eq!(both.ceiling(Category::File), Level::Allow);
        assert_eq!(both.ceiling(Category::Sync), Level::Deny);
        assert_eq!(both.ceiling(Category::Sleep), Level::Warn);
    }

    #[test]
    fn the_environment_moves_all_but_what_is_allowed() {
        let wishes = Wishes {
            level: Some(Level::Warn),
            levels: levels(&[
                (Category::File, Level::Allow),
                (Category::Sync, Level::Warn),
                (Category::Disk, Level::Deny),
            ]),
            ..Wishes::default()
        };
        let base = Limits::default_for(false);
        for (switch, sync, disk, sleep) in [
            (Switch::Unset, Level::Warn, Level::Deny, Level::Warn),
            (Switch::Invalid, Level::Warn, Level::Deny, Level::Warn),
            (Switch::Warn, Level::Warn, Level::Warn, Level::Warn),
            (Switch::Deny, Level::Deny, Level::Deny, Level::Deny),
        ] {
            let limits = base.with(&wishes, switch);
            assert_eq!(limits.ceiling(Category::File), Level::Allow, "{switch:?}");
            assert_eq!(limits.ceiling(Category::Sync), sync, "{switch:?}");
            assert_eq!(limits.ceiling(Category::Disk), disk, "{switch:?}");
            assert_eq!(limits.ceiling(Category::Sleep), sleep, "{switch:?}");
        }
        let off = Wishes { level: Some(Level::Allow), ..wishes };
        let limits = base.with(&off, Switch::Deny);
        assert!(Category::ALL.iter().all(|c| limits.ceiling(*c) == Level::Allow));
    }

    #[test]
    fn every_category_has_a_place_for_its_level() {
        for category in Category::ALL {
            let levels = levels(&[(category, Level::Warn)]);
            let set = Category::ALL.iter().filter(|c| levels.get(**c).is_some()).count();
            assert_eq!((set, levels.get(category)), (1, Some(Level::Warn)));
        }
    }
}
