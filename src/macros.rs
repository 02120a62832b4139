//! `watch_all!`, and the settings every front end of the macros starts from.
//!
//! They are `macro_rules` because lints and editions go by the crate a token comes from, and
//! because `$crate` finds us under any name.
#![forbid(unsafe_code)]

/// Watches every tokio runtime of this program, and fails it if a task held a worker.
///
/// Write it once, in the root of a test binary: a file in `tests/`, a file in `benches/`, or
/// the library itself under `#[cfg(test)]`. The tests stay as they are, `#[tokio::test]` included.
///
/// ```
/// stallhound::watch_all!();
/// # fn main() {}
/// ```
///
/// All arguments are optional, and each may be given once:
///
/// | argument | value | says |
/// |---|---|---|
/// | `threshold` | a duration | a hold asleep fails from this long on; 10 ms |
/// | `busy_threshold` | a duration | a hold on a processor fails from this long on; 50 ms, four times that in a build with debug assertions |
/// | `level` | `warn` or `deny`, bare or in quotes | `warn`: everything is said, nothing fails |
/// | `allow(…)` | categories | nothing is said of these |
/// | `warn(…)` | categories | these are said, and fail nothing |
/// | `deny(…)` | categories | these fail, also beside `level = warn` |
/// | `require` | `true` or `false` | `true`: fails where the detector cannot work |
///
/// A duration stands in quotes: `"5ms"`, `"1.5s"`, with one of the units `ns`, `us`, `µs`, `ms`,
/// `s`, `min`.
///
/// ```
/// stallhound::watch_all!(threshold = "5ms", busy_threshold = "0.1s", level = warn, require = true);
/// # fn main() {}
/// ```
///
/// Categories are the words in brackets in reports ([`Category::word`](crate::Category::word)).
/// Fail nothing yet but thread sleeps, and say nothing of files:
///
/// ```
/// stallhound::watch_all!(level = warn, deny(sleep), allow(file));
/// # fn main() {}
/// ```
///
/// # Limits
///
/// It needs Linux on x86-64 with glibc, linked dynamically. Elsewhere it compiles, says so in one
/// line, and watches nothing; with `require = true` it ends the program with code 101 instead, before
/// any test runs.
#[macro_export]
macro_rules! watch_all {
    ($($arguments:tt)*) => {
        const _: () = {
            static SETTINGS: $crate::__private::Settings =
                $crate::__private::configure! { ($crate::__private::settings!()) $($arguments)* };
            extern "C" fn arm() {
                $crate::__private::arm(&SETTINGS)
            }
            // Run before `main`. Where that cannot be had the arguments are checked all the same.
            #[used]
            #[cfg_attr(
                any(target_os = "linux", target_os = "android", target_os = "freebsd"),
                link_section = ".init_array"
            )]
            #[cfg_attr(target_vendor = "apple", link_section = "__DATA,__mod_init_func")]
            #[cfg_attr(windows, link_section = ".CRT$XCU")]
            static ARM: extern "C" fn() = arm;
        };
    };
}

/// Registers code that may block: in every test of every program that this crate is linked into.
///
/// For a test-support module whose set-up blocks, and for a library whose functions do for a good
/// reason: it registers them for its users behind a feature of its own, since this crate is no
/// dependency for programs that are not tests. Where a single place may block, [`allow_blocking`](crate::allow_blocking) around it
/// says so more precisely.
///
/// ```
/// stallhound::allowance! {
///     below = ["my_store::lease::Lease::take", "my_store::warm_up*"],
///     allow(file, io-wait),
///     reason = "once a process, before the first request",
/// }
/// # fn main() {}
/// ```
///
/// The parts stand in any order:
///
/// | part | says |
/// |---|---|
/// | `below` | one path or several in `[…]`: what these functions do, and everything below them, is meant |
/// | `allow(…)` | categories that are silent there, or `all` |
/// | `warn(…)` | the same, in place of `allow`: they are at most noted there |
/// | `only(root_future)` | only in the future that a test gives to its runtime, not in tasks; may be left out |
/// | `reason` | stands in the report, beside how often the allowance was needed |
///
/// A path begins with the package as code names it, and goes through modules to a function, or stops
/// anywhere on the way there: `my_store` is all of that package. Generic arguments, closures and
/// traits are left out. A type (`Lease`) may be left out too, and where it stands it is not asked of
/// a build whose names have no types, unless the path ends with it. `*` at the end stands for the
/// rest of a name. Only frames between the blocking call and its poll count.
///
/// What is wrong with a path or a category does not compile.
///
/// ```compile_fail
/// stallhound::allowance! { below = "my_store::", allow(file), reason = "a path with an empty part" }
/// # fn main() {}
/// ```
///
/// # Limits
///
/// A function that the optimiser inlined has a name only where debug information gives it one. In
/// builds without any, name a function that is too large for that, or `#[inline(never)]`.
///
/// Categories are the words in brackets in reports ([`Category::word`](crate::evidence::Category::word)).
#[macro_export]
macro_rules! allowance {
    ($($parts:tt)*) => {
        $crate::__private::submit! {
            $crate::__private::declare! {
                ($crate::__private::Allowance::at(::core::file!(), ::core::line!())) $($parts)*
            }
        }
    };
}

/// Where the outermost macro call stands, and in what kind of crate. Everything in it is evaluated
/// in the crate that is being compiled: the user's.
#[doc(hidden)]
#[macro_export]
macro_rules! __settings {
    () => {
        $crate::__private::Settings::new(
            ::core::env!("CARGO_CRATE_NAME"),
            ::core::env!("CARGO_MANIFEST_DIR"),
            ::core::option_env!("CARGO_TARGET_TMPDIR").is_some(),
            ::core::cfg!(debug_assertions),
            ::core::file!(),
            ::core::line!(),
        )
        .bin_name(::core::option_env!("CARGO_BIN_NAME"))
    };
}
