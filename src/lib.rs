//! stallhound (crate page to come)

mod capture;
pub mod config;
mod detector;
pub mod error;
pub mod evidence;
mod hooks;
pub mod ids;
pub mod report;
mod slots;
mod symbolize;
mod sys;
mod verdict;
mod watchdog;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod macros;
mod scope;
pub use scope::allow_blocking;

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
/// [`watch_all!`] (`threshold`, `busy_threshold`, `level`, `require`), and
///
/// - `stallhound = path`, where this package is renamed or re-exported: `stallhound = hound`.
///
/// It expands to tokio's own attribute, so the user's package needs tokio with its feature
/// `macros`, and tokio decides what the values of its arguments may be. The whole test is watched,
/// from the building of its runtime to its shutdown. It needs no [`watch_all!`] beside it; its
/// limits go before those of a [`watch_all!`] in the same binary.
///
/// # Panics
///
/// The test panics at its end, with its findings and no others. Under `#[should_panic]` it does
/// not, since the panic would make it pass: there the findings fail the process.
pub use stallhound_macros::test;
