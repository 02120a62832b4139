//! Makes `cargo test` fail when a task holds its tokio worker, and says which line did it.
//!
//! One line in a test binary watches every tokio runtime in it; the tests stay as they are:
//!
//! ```
//! stallhound::watch_all!();
//! # fn main() {}
//! ```
//!
//! While they run it looks in two ways. It defines libc's functions that can put a thread to sleep,
//! and so sees every blocking *call* inside a poll, however short. And it samples threads that stay
//! away from their scheduler, and so sees every long *hold*, whatever the reason, CPU work above
//! all. Whether a thread may block is asked of tokio: its cooperative budget is limited exactly
//! while a poll runs that must not block. Time spent waiting for a processor never counts.
//!
//! In turn it
//!
//! 1. writes what a call did into a queue, without allocation or lock;
//! 2. samples what keeps a worker, by a signal whose handler only copies;
//! 3. gathers both, on a thread of its own that sleeps while every worker is parked;
//! 4. when the test or the process is over, looks up names, judges, and reports;
//! 5. fails: [`test`](macro@test) by a panic, [`watch_all!`] by exit code 101.
//!
//! The program runs on undisturbed until then: nothing is thrown at the call that blocked.
//!
//! # Your duties
//!
//! - Keep it a dev-dependency. What links it has its libc calls go through it, watched or not.
//! - Have one copy of it. `links = "stallhound"` in the manifest makes cargo refuse two versions in
//!   one program, because they would define the same symbols.
//! - Do not define the same libc functions in the same program: the linker finds them twice, and
//!   says so.
//! - Leave the signal `SIGURG` to it, or call the handler that you replace. One that was there
//!   before is called for every signal that is not ours.
//! - Keep line tables (`debug = "line-tables-only"`) in profiles whose findings should have lines.
//!
//! # Limits and known misses
//!
//! Linux on x86-64 with glibc, linked dynamically; tokio 1.47 or newer. Elsewhere, in Miri and under a
//! sanitizer everything compiles and nothing is watched. What works is tried when it is armed, and
//! what does not is said once; `require = true` makes it a failure.
//!
//! It does not see system calls that go around libc; sleeps that its signal would cut short and that
//! are none of the calls it defines, which it leaves alone. A poll that mixes CPU work with tokio operations that are ready at once is at most a note, since it
//! cannot be told for certain from many short polls. The whole list is in the repository, in
//! `docs/architecture.md`.
//!
//! # Cost
//!
//! No instruction is added to a poll. A call outside of any runtime pays for a few loads, one inside
//! for a look at tokio's thread-local; a call that blocks pays for its own stack, some microseconds.
//! Symbols are looked up at the end, and only for what is reported. The README has the figures.
//!
//! # Examples
//!
//! One test alone, with a limit of its own:
//!
//! ```
//! #[stallhound::test(threshold = "5ms")]
//! async fn lists_notifications() {
//!     tokio::time::sleep(std::time::Duration::from_millis(20)).await;
//! }
//! ```
//!
//! Code that may block, with the reason:
//!
//! ```
//! let host = stallhound::allow_blocking("read once, before the server answers", || {
//!     std::fs::read_to_string("/etc/hostname")
//! });
//! # let _ = host;
//! ```
//!
//! # Environment
//!
//! | variable | value | |
//! |---|---|---|
//! | `STALLHOUND` | `off` | inert |
//! | | `warn` | everything is said, nothing fails |
//! | | `deny` | fails even where the code says `level = warn` |
//! | | `bless` | writes what is found into `stallhound.known`, beside the manifest; it fails no more |
//! | `STALLHOUND_BACKTRACE` | `full` | every frame of every stack |
//! | `NO_COLOR` | anything | no colours |
//!
//! # Reading a report
//!
//! The [`guide`] goes through a finding line by line, and on to levels, old findings and CI.
//!
//! [`report::model::Report`] is the judged result as plain data, [`evidence::Category`] the word in
//! brackets of each finding, [`config::Limits`] what it was held against. What each category is, why
//! it blocks and what to write instead stands in [`categories`].
#![warn(missing_docs)]
// Where nothing can be watched the front ends are left, and some of the stages behind them.
#![cfg_attr(not(stallhound_hooks), allow(dead_code))]

// The modules stand in the order in which data flows. docs/architecture.md says who may import whom.

// The ground.
pub mod ids;

pub mod error;

pub mod config;

#[cfg(stallhound_hooks)]
mod sys;

// Written by the program's own threads.
#[cfg(stallhound_hooks)]
mod slots;

#[cfg(stallhound_hooks)]
mod hooks;

#[cfg(stallhound_hooks)]
mod capture;

// Read by the watchdog, into plain data.
#[cfg(stallhound_hooks)]
mod watchdog;

pub mod evidence;

// At report time.
#[cfg(stallhound_hooks)]
mod symbolize;

mod verdict;

pub mod report;
#[doc(inline)]
pub use report::pages as categories;

#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

#[cfg(stallhound_hooks)]
mod known;

// The front ends: the only ones that know all stages.
#[cfg(stallhound_hooks)]
mod detector;
#[cfg(not(stallhound_hooks))]
#[path = "inert.rs"]
mod detector;

#[cfg(stallhound_hooks)]
mod bless;

pub use evidence::Category;

pub use config::Level;

pub use report::model::{Finding, Report};

mod watch;
pub use watch::{watch, Watch};

mod builder;
pub use builder::{Builder, Detector, Watched};

mod scope;
pub use scope::{allow_blocking, allow_blocking_async, AllowBlocking};

mod macros;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

/// `#[tokio::test]`, watched: the test fails if one of its tasks held a worker.
///
/// ```
/// #[stallhound::test]
/// async fn lists_notifications() {
///     tokio::task::yield_now().await;
/// }
///
/// #[stallhound::test(flavor = "multi_thread", worker_threads = 2, threshold = "5ms")]
/// async fn refreshes_token() -> Result<(), std::io::Error> {
///     tokio::fs::metadata(".").await?;
///     Ok(())
/// }
/// ```
///
/// It takes every argument of [`tokio::test`](https://docs.rs/tokio/latest/tokio/attr.test.html)
/// (`flavor`, `worker_threads`, `start_paused`, `unhandled_panic`, `name`, `crate`), those of
/// [`watch_all!`] (`threshold`, `busy_threshold`, `level`, `allow(…)`, `warn(…)`, `deny(…)`,
/// `require`), and
///
/// - `off`: this test is not watched, also where [`watch_all!`] watches the others;
/// - `stallhound = path`, where this package is renamed or re-exported: `stallhound = hound`.
///
/// It expands to tokio's own attribute, so the user's package needs tokio with its features
/// `macros` and `rt` (`tokio = { version = "1", features = ["macros", "rt"] }`), and tokio decides what the values of its arguments may be. The whole test is watched,
/// from the building of its runtime to its shutdown. It needs no [`watch_all!`] beside it. Where
/// there is one, what the attribute does not say is as the line says; what a test finds fails that
/// test, and not the process.
///
/// Settings follow the runtime: what runs on it, and on threads that it makes, is judged by the
/// settings of the test that built it, whoever spawned the task. (Tokio does not tell who did.)
///
/// # Panics
///
/// The test panics at its end, with its findings and no others. Under `#[should_panic]` it does
/// not, since the panic would make it pass: there the findings fail the process.
pub use stallhound_macros::test;

/// Watches one test, whatever attribute makes it a test: the test fails if one of its tasks held a
/// worker.
///
/// ```
/// #[tokio::test]
/// #[stallhound::watch]
/// async fn lists_notifications() {
///     tokio::task::yield_now().await;
/// }
///
/// #[tokio::test(flavor = "multi_thread")]
/// #[stallhound::watch(threshold = "5ms", allow(file))]
/// async fn refreshes_token() -> Result<(), std::io::Error> {
///     tokio::fs::metadata(".").await?;
///     Ok(())
/// }
/// ```
///
/// It stands best *below* the other attribute. There it is handed the sync function that the other
/// one made, and its guard covers everything: the runtime from its building to its shutdown, all
/// threads made meanwhile. *Above*, or below an attribute that keeps the function async (as
/// `#[sqlx::test]` does), it wraps the body: from its first poll to its end everything on the
/// test's threads is watched, the tasks it spawned included, but not the shutdown of the runtime.
/// The test's threads are those that carry its name: the one that runs it and all that this one
/// made, the runtime's workers above all, or those made from then on where the harness names no
/// threads.
///
/// It takes the settings of [`watch_all!`] (`threshold`, `busy_threshold`, `level`, `allow(…)`,
/// `warn(…)`, `deny(…)`, `require`), `off` (this test is not watched), and `stallhound = path`
/// where this package is renamed or re-exported. What it does not say is as in [`watch_all!`],
/// where the binary has one.
///
/// `#[ignore]`, `#[should_panic]`, arguments, return values and generated names of cases stay as
/// they are.
///
/// A function that is no test is taken as well, since what `#[sqlx::test]` and its like leave of a
/// test is a plain async function too. It is watched each time it is run, as a test would be: what
/// it finds panics at its end. For code that is no test there is [`watch`](fn@watch).
///
/// # Panics
///
/// As [`test`](macro@test): the test panics at its end, with its findings and no others, but never
/// under `#[should_panic]`, where the findings fail the process.
pub use stallhound_macros::watch;
