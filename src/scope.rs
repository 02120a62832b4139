//! Marks inside of the program under test.
#![forbid(unsafe_code)]

use crate::slots::table;
use std::sync::atomic::Ordering;

/// Runs `f`, which may block: calls in it, and what holds the worker meanwhile, are no findings.
///
/// The reason is for the next reader of the code. Calls excused this way are counted in the
/// report's first line. The allowance is the calling thread's: it ends when `f` returns or panics,
/// and does not follow work that `f` hands to other threads.
///
/// ```
/// let config = stallhound::allow_blocking("read once, before the server answers", || {
///     std::fs::read_to_string("/etc/hostname")
/// });
/// # let _ = config;
/// ```
///
/// # Panics
///
/// As `f` does.
pub fn allow_blocking<R>(reason: &'static str, f: impl FnOnce() -> R) -> R {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            if let Some(slot) = table::own() {
                let depth = slot.allow.load(Ordering::Relaxed);
                slot.allow.store(depth.saturating_sub(1), Ordering::Relaxed);
            }
        }
    }
    let _ = reason;
    let Some(slot) = table::own() else { return f() };
    // Relaxed: a slot's owner is the only writer; the watchdog may see it a look late.
    slot.allow.store(slot.allow.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    let _restore = Restore;
    f()
}
