//! How much of a wait was the machine's fault.
//!
//! Whoever waits for a lock waits for its holder, and the holder may be runnable and without a
//! processor. Each holder of a contended lock must wake somebody through a futex when it lets go:
//! the run-queue waits of all threads that did so meanwhile, and of the waiting thread itself, are
//! subtracted, as are stalls of the whole machine and the time before the wait was noticed.
#![forbid(unsafe_code)]

use crate::ids::{KernelTid, Nanos, ThreadNo};
use crate::slots::table;
use crate::sys::schedstat;

struct Other {
    index: usize,
    no: ThreadNo,
    tid: KernelTid,
    wakes: u32,
    waited: Nanos,
}

/// A wait or a timed call that goes on for longer than a tick.
pub struct Wait {
    thread: ThreadNo,
    since: Nanos,
    noticed: Nanos,
    own: KernelTid,
    own_waited: Nanos,
    others: Vec<Other>,
    stalled: Nanos,
}

impl Wait {
    /// Notes where everybody stands. `others`: the wait is for another thread.
    pub fn notice(
        thread: ThreadNo,
        own: KernelTid,
        since: Nanos,
        now: Nanos,
        others: bool,
    ) -> Wait {
        let others = if others { snapshot(own) } else { Vec::new() };
        let own_waited = schedstat::of(own).map_or(Nanos::ZERO, |s| s.waited);
        Wait { thread, since, noticed: now, own, own_waited, others, stalled: Nanos::ZERO }
    }

    /// Whether this is the wait of that thread that began then.
    pub fn is(&self, thread: ThreadNo, since: Nanos) -> bool {
        self.thread == thread && self.since == since
    }

    pub fn stall(&mut self, stalled: Nanos) {
        self.stalled += stalled;
    }

    /// The time of the wait that does not count, up to now.
    pub fn excused(&self) -> Nanos {
        let slots = table::used();
        let others = self
            .others
            .iter()
            .filter(|o| slots.get(o.index).is_none_or(|s| s.no() != o.no || s.wakes() != o.wakes))
            .filter_map(|o| Some(schedstat::of(o.tid)?.waited.saturating_sub(o.waited)))
            .fold(Nanos::ZERO, |a, b| a + b);
        let own = schedstat::of(self.own)
            .map_or(Nanos::ZERO, |s| s.waited.saturating_sub(self.own_waited));
        self.noticed.saturating_sub(self.since) + others + own + self.stalled
    }
}

fn snapshot(own: KernelTid) -> Vec<Other> {
    table::used()
        .iter()
        .enumerate()
        .filter_map(|(index, slot)| {
            let tid = slot.tid()?;
            if tid == own {
                return None;
            }
            let waited = schedstat::of(tid)?.waited;
            Some(Other { index, no: slot.no(), tid, wakes: slot.wakes(), waited })
        })
        .collect()
}

/// Waits that are over, with their excuses, until their records arrive.
#[derive(Default)]
pub struct Closed {
    recent: std::collections::VecDeque<(ThreadNo, Nanos, Nanos)>,
}

impl Closed {
    const KEPT: usize = 256;

    pub fn add(&mut self, wait: &Wait) {
        if self.recent.len() == Self::KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back((wait.thread, wait.since, wait.excused()));
    }

    pub fn excused(&self, thread: ThreadNo, since: Nanos) -> Option<Nanos> {
        self.recent.iter().find(|w| w.0 == thread && w.1 == since).map(|w| w.2)
    }
}
