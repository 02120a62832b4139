//! The allowances: code below which nothing counts, or nothing may fail. As data, in one place.
//!
//! Those of this list hold in every program. Any crate adds its own with
//! [`allowance!`](macro@crate::allowance), which are gathered by `inventory`.
#![forbid(unsafe_code)]

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
                panic!("not a category");
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
    pub(super) const fn built_in(
        reason: &'static str,
        below: &'static [&'static str],
    ) -> Allowance {
        Allowance { place: None, ..Allowance::at("", 0) }.because(reason).below(below)
    }

    /// For the macro, which has looked at everything that it hands over here. Of nothing yet.
    pub const fn at(file: &'static str, line: u32) -> Allowance {
        Allowance {
            below: &[],
            categories: None,
            root_only: false,
            itself: false,
            grant: Grant::Nothing,
            reason: "",
            place: Some((file, line)),
        }
    }

    /// See [`Allowance::below`].
    pub const fn below(mut self, paths: &'static [&'static str]) -> Allowance {
        self.below = paths;
        self
    }

    /// See [`Allowance::reason`].
    pub const fn because(mut self, reason: &'static str) -> Allowance {
        self.reason = reason;
        self
    }

    /// Only these categories.
    pub const fn only(mut self, words: &[&str]) -> Allowance {
        self.categories = Some(Categories::named(words));
        self
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
    // Not reading from the standard input: that waits for somebody to type.
    Allowance::built_in(
        "printing",
        &[
            "std::io::stdio::_print",
            "std::io::stdio::_eprint",
            "std::io::stdio::print_to*",
            "std::io::stdio::attempt_print*",
            "std::io::stdio::write*",
            "std::io::stdio::flush",
            "std::io::stdio::Stdout::lock",
            "std::io::stdio::Stderr::lock",
        ],
    )
    .itself(),
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
    // Hundreds of small files, once a client is built.
    Allowance::built_in("loading root certificates", &["rustls_native_certs"]).only(&["file"]),
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
    use super::super::paths;
    use super::*;

    #[test]
    fn sets_of_categories() {
        let set = Categories::named(&["file", "io-wait"]);
        let has: Vec<_> = Category::ALL.into_iter().filter(|c| set.has(*c)).collect();
        assert_eq!(has, [Category::IoWait, Category::File]);
        let rule = Allowance::at("f.rs", 1);
        assert!(Category::ALL.into_iter().all(|c| rule.covers(c)));
        let some = rule.only(&["sync"]);
        assert!(some.covers(Category::Sync) && !some.covers(Category::Join));
        assert!(Category::ALL.len() <= 32);
    }

    #[test]
    fn built_in_ones_are_whole() {
        for rule in BUILT_IN {
            assert!(rule.place.is_none() && !rule.reason.is_empty() && !rule.below.is_empty());
            for path in rule.below {
                assert!(paths::covers(path, &paths::parts(path.trim_end_matches('*'))), "{path}");
            }
        }
        assert!(all().count() >= BUILT_IN.len());
    }
}
