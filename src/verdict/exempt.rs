//! Code below which nothing counts, or nothing may fail.
//!
//! Each rule looks at the frames between the call and the poll: code that runs once a process, that
//! belongs to the platform, or that only happens while a task dies.
#![forbid(unsafe_code)]

use super::context::{inside_poll, Context};
use crate::evidence::{Category, Frame, Origin, Stack};

/// What a rule grants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grant {
    /// Silent.
    Nothing,
    /// At most a note.
    Note,
}

/// One allowance.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Beginnings of paths, `<` and `&` at the front left aside; `*` at the front: anywhere.
    pub functions: &'static [&'static str],
    /// Only for this category.
    pub category: Option<Category>,
    /// Only in a root future.
    pub root_only: bool,
    pub grant: Grant,
    pub reason: &'static str,
}

const ALL: Allowance = Allowance {
    functions: &[],
    category: None,
    root_only: false,
    grant: Grant::Nothing,
    reason: "",
};

/// The built-in allowances.
pub const ALLOWANCES: &[Allowance] = &[
    Allowance {
        functions: &[
            "std::panicking::panic_with_hook",
            "std::panicking::rust_panic_with_hook",
            "std::panicking::default_hook",
            "std::panicking::begin_panic",
            "std::panicking::panic_handler",
            "__rustc::rust_begin_unwind",
        ],
        reason: "a panic is being reported",
        ..ALL
    },
    // Not reading: see `prints`.
    Allowance { functions: PRINTING, reason: "printing", ..ALL },
    Allowance {
        functions: &[
            "std::thread::available_parallelism",
            "std::sys::thread::unix::cgroups",
            "num_cpus::",
            "dashmap::default_shard_amount",
        ],
        reason: "looking up the number of processors",
        ..ALL
    },
    Allowance {
        functions: &[
            "std::thread::Builder::spawn_unchecked",
            "std::sys::thread::unix::Thread::new",
            "std::sys::thread::unix::new",
            "std::sys::pal::unix::thread::Thread::new",
            "std::thread::lifecycle::spawn_unchecked",
        ],
        reason: "starting a thread",
        ..ALL
    },
    Allowance {
        functions: &["getrandom::", "std::sys::random", "std::hash::random::RandomState::new"],
        reason: "seeding a random generator",
        ..ALL
    },
    Allowance {
        functions: &[
            "chrono::offset::local",
            "iana_time_zone::",
            "time::sys::local_offset_at",
            "jiff::tz::",
        ],
        reason: "loading the time zone",
        ..ALL
    },
    Allowance {
        functions: &["insta::env::get_cargo_workspace", "insta::env::get_tool_config"],
        reason: "insta looks up its workspace once",
        ..ALL
    },
    Allowance {
        functions: &["serial_test::"],
        root_only: true,
        reason: "a lock that serialises tests",
        ..ALL
    },
    Allowance {
        functions: &[
            "std::sync::once::Once",
            "std::sync::poison::once::Once",
            "std::sys::sync::once::",
            "std::sync::once_lock::OnceLock",
            "std::sync::lazy_lock::LazyLock",
            "once_cell::",
            "lazy_static::",
        ],
        grant: Grant::Note,
        reason: "a one-time initialisation",
        ..ALL
    },
];

const PRINTING: &[&str] = &["std::io::stdio::", "std::io::stdio"];

/// Whether a frame of std's standard streams prints: the other thing to do there is to wait for
/// somebody to type.
fn prints(frame: &Frame) -> bool {
    let last = frame.function.rsplit("::").next().unwrap_or_default();
    let reads = ["read", "fill_buf", "lines", "next"].iter().any(|f| last.starts_with(f));
    !reads && !frame.function.contains("Stdin")
}

/// Whether a frame's function begins with one of the paths.
fn is_below(frame: &Frame, functions: &[&str]) -> bool {
    let name = frame.function.trim_start_matches(['<', '&']);
    functions.iter().any(|f| name.starts_with(f))
        // v0 names put the type in angle brackets: `<std::thread::Builder>::spawn_unchecked_`.
        || name.contains('>') && {
            let flat: String = name.chars().filter(|c| !matches!(c, '<' | '>')).collect();
            functions.iter().any(|f| flat.starts_with(f))
        }
}

/// The allowance that covers a stack, if one does. Silence goes before a note.
pub fn allowance(
    category: Category,
    context: Context,
    stack: &Stack,
) -> Option<&'static Allowance> {
    // What every thread has at its outer end (std's thread start) excuses nobody.
    let machinery = |f: &Frame| {
        matches!(f.origin, Origin::Std | Origin::Foreign | Origin::Stallhound | Origin::Harness)
    };
    let inside = &stack.frames[..inside_poll(stack)];
    let end = inside.iter().rposition(|f| !machinery(f)).map_or(0, |last| last + 1);
    let frames = &inside[..end];
    let matching = |grant: Grant| {
        ALLOWANCES.iter().find(|a| {
            a.grant == grant
                && a.category.is_none_or(|c| c == category)
                && (!a.root_only || context == Context::RootLoop)
                && frames
                    .iter()
                    .any(|f| is_below(f, a.functions) && (a.functions != PRINTING || prints(f)))
        })
    };
    matching(Grant::Nothing).or_else(|| matching(Grant::Note))
}

/// Whether a lock or wait is tokio's own: the first frame that is not the lock's implementation
/// is tokio's, and not one of the functions whose purpose is to block.
pub fn is_tokios_own_wait(stack: &Stack) -> bool {
    let first = stack.frames.iter().find(|f| {
        let lock = ["parking_lot", "lock_api", "parking_lot_core", "crossbeam_utils"];
        match &f.origin {
            Origin::Std | Origin::Stallhound | Origin::Foreign => false,
            Origin::Dependency { name, .. } => !lock.contains(&name.as_str()),
            _ => !f.symbol.contains("loom::std"),
        }
    });
    first.is_some_and(|f| {
        matches!(f.origin, Origin::Tokio { .. })
            && ![
                "blocking_lock",
                "blocking_recv",
                "blocking_send",
                "blocking_read",
                "blocking_write",
                "block_on",
            ]
            .iter()
            .any(|b| f.symbol.contains(b))
    })
}

/// Whether a child is started by tokio's own `Command`: it does that in the poll, and there is no
/// other way to have it.
pub fn is_tokios_own_spawn(stack: &Stack) -> bool {
    stack.frames.iter().any(|f| {
        matches!(f.origin, Origin::Tokio { .. })
            && f.function.trim_start_matches('<').starts_with("tokio::process::")
    })
}

/// Whether a wait is the allocator's: the first frame outside of C is the way into it.
pub fn is_allocators_wait(stack: &Stack) -> bool {
    let first =
        stack.frames.iter().find(|f| !matches!(f.origin, Origin::Foreign | Origin::Stallhound));
    first.is_some_and(|f| {
        let name = f.function.trim_start_matches(['<', '&']);
        ["alloc::alloc::", "alloc::raw_vec::", "std::alloc::", "__rust_", "__rdl_", "__rustc::__r"]
            .iter()
            .any(|way| name.starts_with(way))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(symbol: &str, origin: Origin) -> Frame {
        Frame {
            function: symbol.into(),
            symbol: symbol.into(),
            file: None,
            line: None,
            column: None,
            inlined: false,
            origin,
        }
    }

    fn stack(symbols: &[&str]) -> Stack {
        let origin = |s: &str| match s.starts_with("std") || s.starts_with('<') || s == "open64" {
            true => Origin::Std,
            false => Origin::Workspace { test_code: false },
        };
        Stack { frames: symbols.iter().map(|s| frame(s, origin(s))).collect(), truncated: false }
    }

    fn grant(symbols: &[&str]) -> Option<Grant> {
        allowance(Category::File, Context::Task, &stack(symbols)).map(|a| a.grant)
    }

    const POLL: &str = "tokio::runtime::scheduler::multi_thread::worker::Context::run_task";

    #[test]
    fn platform_code_is_silent_and_first_use_is_a_note() {
        assert_eq!(
            grant(&["open64", "std::panicking::default_hook", "app::f", POLL]),
            Some(Grant::Nothing)
        );
        assert_eq!(
            grant(&["open64", "std::panicking::panic_with_hook", "app::f"]),
            Some(Grant::Nothing)
        );
        assert_eq!(grant(&["open64", "std::panicking::catch_unwind::do_call", "app::f"]), None);
        assert_eq!(
            grant(&["open64", "<std::thread::Builder>::spawn_unchecked_", "app::f"]),
            Some(Grant::Nothing)
        );
        assert_eq!(
            grant(&["open64", "std::sync::once_lock::OnceLock<T>::initialize", "app::f"]),
            Some(Grant::Note)
        );
        assert_eq!(
            grant(&["open64", "<std::sys::sync::once::futex::Once>::call", "app::f"]),
            Some(Grant::Note)
        );
        assert_eq!(grant(&["open64", "app::once_cell", "app::f"]), None);
        // Every thread begins like this.
        let bottom = "<std::sys::thread::unix::Thread>::new::thread_start";
        assert_eq!(
            grant(&["open64", "app::f", "std::thread::lifecycle::spawn_unchecked", bottom]),
            None
        );
        let both = [
            "open64",
            "std::thread::available_parallelism",
            "std::sys::sync::once::futex::Once::call",
            "app::f",
        ];
        assert_eq!(grant(&both), Some(Grant::Nothing));
    }

    #[test]
    fn printing_is_silent_and_reading_is_not() {
        let judged = |symbol: &str| {
            let s = stack(&["read", symbol, "app::f", POLL]);
            allowance(Category::Stdio, Context::Task, &s).map(|a| a.grant)
        };
        for prints in [
            "std::io::stdio::_print",
            "<std::io::stdio::StdoutLock as std::io::Write>::write_all",
            "<&std::io::stdio::Stderr as std::io::Write>::write_fmt",
            "std::io::stdio::write",
        ] {
            assert_eq!(judged(prints), Some(Grant::Nothing), "{prints}");
        }
        for reads in [
            "<std::io::stdio::Stdin>::read_line",
            "<std::io::stdio::StdinLock as std::io::BufRead>::fill_buf",
            "std::io::stdio::read_line",
        ] {
            assert_eq!(judged(reads), None, "{reads}");
        }
    }

    #[test]
    fn only_what_lies_inside_of_the_poll_counts() {
        assert_eq!(
            grant(&["open64", "app::f", POLL, "std::sys::sync::once::futex::Once::call"]),
            None
        );
    }

    #[test]
    fn test_serialising_locks_only_in_root_futures() {
        let s = stack(&["futex", "serial_test::code_lock", "app::f"]);
        assert!(allowance(Category::Sync, Context::RootLoop, &s).is_some());
        assert!(allowance(Category::Sync, Context::Task, &s).is_none());
    }

    #[test]
    fn tokios_inner_locks_are_not_the_users() {
        let tokio = || Origin::Tokio { version: "1.54.1".into() };
        let with = |owner: Frame| Stack {
            frames: vec![
                frame("syscall", Origin::Stallhound),
                frame("std::sys::sync::mutex::futex::Mutex::lock_contended", Origin::Std),
                owner,
                frame("app::f", Origin::Workspace { test_code: false }),
            ],
            truncated: false,
        };
        assert!(is_tokios_own_wait(&with(frame("tokio::sync::notify::Notify::notify", tokio()))));
        assert!(!is_tokios_own_wait(&with(frame(
            "tokio::sync::mutex::Mutex<T>::blocking_lock",
            tokio()
        ))));
        assert!(!is_tokios_own_wait(&with(frame(
            "app::g",
            Origin::Workspace { test_code: false }
        ))));
        let lot = Origin::Dependency { name: "parking_lot".into(), version: "0.12".into() };
        assert!(!is_tokios_own_wait(&with(frame("parking_lot::raw_mutex::lock_slow", lot))));
    }

    #[test]
    fn the_allocators_locks_are_nobodys() {
        let with = |inner: Frame| Stack {
            frames: vec![
                frame("libc.so.6", Origin::Foreign),
                inner,
                frame("app::f", Origin::Workspace { test_code: false }),
            ],
            truncated: false,
        };
        assert!(is_allocators_wait(&with(frame("__rdl_alloc", Origin::Std))));
        assert!(is_allocators_wait(&with(frame("alloc::alloc::alloc", Origin::Std))));
        assert!(!is_allocators_wait(&with(frame("std::thread::sleep", Origin::Std))));
        assert!(!is_allocators_wait(&with(frame(
            "app::g",
            Origin::Workspace { test_code: false }
        ))));
    }
}
