//! The allowances: code below which nothing counts, or nothing may fail. As data, in one place.
//!
//! Those of this list hold in every program. Any crate adds its own with
//! [`allowance!`](macro@crate::allowance), which are gathered by `inventory`.
#![forbid(unsafe_code)]

use super::paths;
use crate::evidence::Category;

/// What an allowance grants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grant {
    /// Silent.
    Nothing,
    /// At most a note.
    Note,
}

/// One allowance. Built in constant expressions, so that what is wrong with one does not compile.
#[derive(Debug)]
pub struct Allowance {
    /// Functions (`paths`): what they do, and what is done below them, is excused.
    pub below: &'static [&'static str],
    /// Only these; `None`: all.
    pub categories: Option<Categories>,
    /// Only in a root future.
    pub root_only: bool,
    /// Only what that code does itself, or what other packages do for it: no function of the
    /// workspace may stand between it and the call. For code that runs the user's.
    pub itself: bool,
    /// Silence, or a note.
    pub grant: Grant,
    /// Stands in the report.
    pub reason: &'static str,
    /// File and line of the macro; `None`: built in.
    pub place: Option<(&'static str, u32)>,
}

impl PartialEq for Allowance {
    /// The same one, not one that says the same.
    fn eq(&self, other: &Allowance) -> bool {
        std::ptr::eq(self, other)
    }
}

/// A set of categories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Categories(u32);

impl Categories {
    /// By their words. Evaluated at compile time, where an unknown one is an error.
    pub const fn named(words: &[&str]) -> Categories {
        let mut set = 0;
        let mut w = 0;
        while w < words.len() {
            let mut found = false;
            let mut c = 0;
            while c < Category::ALL.len() {
                if same(words[w], Category::ALL[c].word()) {
                    set |= 1 << Category::ALL[c] as u32;
                    found = true;
                }
                c += 1;
            }
            if !found {
                panic!("allowance!: no category has that name; they are the words in brackets in reports, such as `file` or `io-wait`, or `all`");
            }
            w += 1;
        }
        Categories(set)
    }

    /// Whether it is one of them.
    pub const fn has(self, category: Category) -> bool {
        self.0 & (1 << category as u32) != 0
    }
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

impl Allowance {
    const fn built_in(reason: &'static str, below: &'static [&'static str]) -> Allowance {
        Allowance {
            below: checked(below),
            categories: None,
            root_only: false,
            itself: false,
            grant: Grant::Nothing,
            reason,
            place: None,
        }
    }

    /// For the macro.
    pub const fn registered(
        file: &'static str,
        line: u32,
        reason: &'static str,
        below: &'static [&'static str],
    ) -> Allowance {
        if reason.is_empty() {
            panic!("allowance!: `reason` is empty: say why this code may block");
        }
        Allowance { place: Some((file, line)), ..Allowance::built_in(reason, below) }
    }

    /// Only these categories; `all` by itself is all of them.
    pub const fn only(mut self, words: &[&str]) -> Allowance {
        if !(words.len() == 1 && same(words[0], "all")) {
            self.categories = Some(Categories::named(words));
        }
        self
    }

    /// For the macro: `root_future` is the only word there is.
    pub const fn within(self, place: &str) -> Allowance {
        if !same(place, "root_future") {
            panic!("allowance!: `only` takes `root_future`");
        }
        self.root_future()
    }

    /// See [`Allowance::root_only`].
    pub const fn root_future(mut self) -> Allowance {
        self.root_only = true;
        self
    }

    /// See [`Allowance::itself`].
    pub const fn itself(mut self) -> Allowance {
        self.itself = true;
        self
    }

    /// Grants a note, no silence.
    pub const fn note(mut self) -> Allowance {
        self.grant = Grant::Note;
        self
    }

    /// Whether it is for this category.
    pub fn covers(&self, category: Category) -> bool {
        self.categories.is_none_or(|set| set.has(category))
    }
}

/// Each path, looked at while compiling.
const fn checked(below: &'static [&'static str]) -> &'static [&'static str] {
    if below.is_empty() {
        panic!("allowance!: no path is given");
    }
    let mut at = 0;
    while at < below.len() {
        if let Some(problem) = paths::problem(below[at]) {
            panic!("{}", problem);
        }
        at += 1;
    }
    below
}

inventory::collect!(Allowance);

/// All allowances, the built-in ones first.
pub fn all() -> impl Iterator<Item = &'static Allowance> {
    BUILT_IN.iter().chain(inventory::iter::<Allowance>)
}

/// The built-in allowances. `fixtures/guests` has a test for each, against the crate it is for.
pub static BUILT_IN: &[Allowance] = &[
    Allowance::built_in(
        "a panic is being reported",
        &[
            "std::panicking::panic_with_hook",
            "std::panicking::rust_panic_with_hook",
            "std::panicking::default_hook",
            "std::panicking::begin_panic*",
            "std::panicking::panic_handler",
            "__rustc::rust_begin_unwind",
        ],
    ),
    Allowance::built_in("printing", &["std::io::stdio"]).itself(),
    Allowance::built_in(
        "looking up the number of processors",
        &[
            "std::thread::available_parallelism",
            "std::thread::functions::available_parallelism",
            "std::sys::thread::unix::cgroups",
            "std::sys::thread::unix::available_parallelism",
            "num_cpus",
            "dashmap::default_shard_amount",
        ],
    ),
    Allowance::built_in(
        "starting a thread",
        &[
            "std::thread::Builder::spawn_unchecked*",
            "std::thread::builder::spawn_unchecked*",
            "std::thread::lifecycle::spawn_unchecked*",
            "std::sys::thread::unix::Thread::new",
            "std::sys::pal::unix::thread::Thread::new",
        ],
    )
    .itself(),
    Allowance::built_in(
        "seeding a random generator",
        &["getrandom", "std::sys::random", "std::hash::random::RandomState::new"],
    ),
    Allowance::built_in(
        "loading the time zone",
        &[
            "chrono::offset::local",
            "iana_time_zone",
            "time::sys::local_offset_at",
            "jiff::tz",
            "tz::timezone",
        ],
    ),
    Allowance::built_in(
        "insta looks up its workspace once",
        &["insta::env::get_cargo_workspace*", "insta::env::get_tool_config"],
    ),
    // The body of a serialised async test is polled from inside of these functions.
    Allowance::built_in("a lock that serialises tests", &["serial_test"]).root_future().itself(),
    // On a current-thread runtime it waits for a thread of its own.
    Allowance::built_in("a container is removed", &["testcontainers::core::async_drop"])
        .root_future(),
    Allowance::built_in(
        "a one-time initialisation",
        &[
            "std::sync::once",
            "std::sync::poison::once",
            "std::sys::sync::once",
            "std::sync::once_lock",
            "std::sync::lazy_lock",
            "once_cell",
            "lazy_static",
        ],
    )
    .note(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_categories() {
        let set = Categories::named(&["file", "io-wait"]);
        let has: Vec<_> = Category::ALL.into_iter().filter(|c| set.has(*c)).collect();
        assert_eq!(has, [Category::IoWait, Category::File]);
        let rule = Allowance::registered("f.rs", 1, "why", &["a::b"]);
        assert!(Category::ALL.into_iter().all(|c| rule.covers(c)));
        let some = rule.only(&["sync"]);
        assert!(some.covers(Category::Sync) && !some.covers(Category::Join));
        let rule = Allowance::registered("f.rs", 1, "why", &["a::b"]).only(&["all"]);
        assert!(rule.covers(Category::Busy));
        assert!(Category::ALL.len() <= 32);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let said = |f: fn() -> Allowance| {
            let panic = std::panic::catch_unwind(f).expect_err("must be refused");
            panic.downcast_ref::<&str>().map_or_else(
                || panic.downcast_ref::<String>().cloned().unwrap_or_default(),
                |s| s.to_string(),
            )
        };
        let wrong = said(|| Allowance::registered("f.rs", 1, "why", &["a::b", "a::"]));
        assert!(wrong.contains("empty part"), "{wrong}");
        let wrong = said(|| Allowance::registered("f.rs", 1, "", &["a::b"]));
        assert!(wrong.contains("`reason` is empty"), "{wrong}");
        let wrong = said(|| Allowance::registered("f.rs", 1, "why", &[]));
        assert!(wrong.contains("no path"), "{wrong}");
        let wrong = said(|| Allowance::registered("f.rs", 1, "why", &["a"]).only(&["files"]));
        assert!(wrong.contains("no category"), "{wrong}");
    }

    #[test]
    fn built_in_ones_say_where_they_are_from_by_saying_nothing() {
        assert!(BUILT_IN.iter().all(|a| a.place.is_none() && !a.reason.is_empty()));
        assert!(all().count() >= BUILT_IN.len());
    }
}
