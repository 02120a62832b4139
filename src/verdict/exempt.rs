//! Whether a stack is excused: by one of the allowances (`rules`), or because a wait is the
//! runtime's or the allocator's own.
//!
//! Only the frames between the call and its poll are looked at.
#![forbid(unsafe_code)]

use super::context::{inside_poll, Context};
use super::paths::{covers, parts};
use super::rules::{self, Allowance, Grant};
use crate::evidence::{Category, Frame, Origin, Stack};

/// The allowance that covers a stack, if one does. Silence goes before a note.
pub fn allowance(
    category: Category,
    context: Context,
    stack: &Stack,
) -> Option<&'static Allowance> {
    first_of(rules::all, category, context, stack)
}

fn first_of<I: Iterator<Item = &'static Allowance>>(
    rules: impl Fn() -> I,
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
    let own = frames.iter().position(|f| matches!(f.origin, Origin::Workspace { .. }));
    let paths: Vec<Vec<&str>> = frames.iter().map(|f| parts(&f.function)).collect();
    let matching = |grant: Grant| {
        rules().find(|a| {
            let frames = if a.itself { &paths[..own.unwrap_or(end)] } else { &paths[..] };
            a.grant == grant
                && a.covers(category)
                && (!a.root_only || context == Context::RootLoop)
                && frames.iter().any(|f| a.below.iter().any(|pattern| covers(pattern, f)))
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
            let s = stack(&["open64", symbol, "app::f", POLL]);
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

    fn dependency(symbol: &str) -> Frame {
        let name = symbol.split("::").next().unwrap_or_default().into();
        frame(symbol, Origin::Dependency { name, version: "1.0".into() })
    }

    fn own(symbol: &str) -> Frame {
        frame(symbol, Origin::Workspace { test_code: true })
    }

    const SERIAL: &str = "serial_test::serial_code_lock::local_async_serial_core";

    #[test]
    fn test_serialising_locks_only_in_root_futures() {
        let s = Stack {
            frames: vec![frame("futex", Origin::Std), dependency(SERIAL), own("app::f")],
            truncated: false,
        };
        assert!(allowance(Category::Sync, Context::RootLoop, &s).is_some());
        assert!(allowance(Category::Sync, Context::Task, &s).is_none());
    }

    #[test]
    fn the_body_of_a_serialised_test_is_not_the_lock() {
        // An async test is polled from inside of the function that holds its lock.
        let s = Stack {
            frames: vec![frame("nanosleep", Origin::Std), own("app::f"), dependency(SERIAL)],
            truncated: false,
        };
        assert_eq!(allowance(Category::Sleep, Context::RootLoop, &s), None);
        let printed = Stack {
            frames: vec![
                frame("nanosleep", Origin::Std),
                own("<app::Value as core::fmt::Display>::fmt"),
                frame("std::io::stdio::_print", Origin::Std),
                own("app::f"),
            ],
            truncated: false,
        };
        assert_eq!(allowance(Category::Sleep, Context::Task, &printed), None);
    }

    #[test]
    fn registered_ones_hold_for_their_categories() {
        static RULES: [Allowance; 3] = [
            Allowance::built_in("noted", &["store::lease"]).only(&["file"]).note(),
            Allowance::built_in("silent", &["store::lease::Lease::take"])
                .only(&["file", "io-wait"]),
            Allowance::built_in("in roots", &["store::warm*"]).root_future(),
        ];
        let judged = |category, context, symbol: &str| {
            let s = Stack {
                frames: vec![frame("open64", Origin::Std), dependency(symbol), own("app::f")],
                truncated: false,
            };
            first_of(|| RULES.iter(), category, context, &s).map(|a| a.reason)
        };
        use Category::{File, IoWait, Net};
        use Context::{RootLoop, Task};
        let take = "<store::lease::Lease<u8>>::take";
        assert_eq!(judged(File, Task, take), Some("silent"), "silence goes first");
        assert_eq!(judged(IoWait, Task, take), Some("silent"));
        assert_eq!(judged(Net, Task, take), None);
        assert_eq!(judged(File, Task, "store::lease::give"), Some("noted"));
        assert_eq!(judged(IoWait, Task, "store::lease::give"), None);
        assert_eq!(judged(Net, RootLoop, "store::warm_up"), Some("in roots"));
        assert_eq!(judged(Net, Task, "store::warm_up"), None);
        assert_eq!(judged(File, Task, "storehouse::lease::take"), None);
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
