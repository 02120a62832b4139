//! Whether the watchdog sleeps, and the word it sleeps on.

use core::sync::atomic::{AtomicU32, Ordering};

/// 0: awake. 1: asleep until somebody rouses it. The watchdog waits on this word.
pub static WORD: AtomicU32 = AtomicU32::new(0);

/// Watchdog: says that it is about to sleep. SeqCst: ordered before the last look at the beats.
pub fn doze() {
    WORD.store(1, Ordering::SeqCst);
}

/// Anybody: `true` if the watchdog slept, and the caller must wake it (a futex wake of [`WORD`]).
#[inline]
pub fn rouse() -> bool {
    // Relaxed: the caller's fence (`Slot::unpark`) orders it behind its beat.
    WORD.load(Ordering::Relaxed) != 0 && WORD.swap(0, Ordering::AcqRel) != 0
}
