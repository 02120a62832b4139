//! How much of a wait was the machine's fault.
//!
//! Whoever waits for a lock waits for its holder, and the holder may be runnable and without a
//! processor. Each holder of a contended lock must wake somebody through a futex when it lets go:
//! the run-queue waits of all threads that did so meanwhile, and of the waiting thread itself, are
//! subtracted, as are stalls of the whole machine and the time before the wait was noticed.
//!
//! Who writes to a pipe or gives a file lock back wakes nobody that way. There the run-queue waits
//! of all other threads of this process are subtracted: too much rather than too little.
//!
//! These are totals, of which nobody knows how far they overlap: holders that wait one after the
//! other do not, so they are added up. What comes out is bounded by the wait itself.
#![forbid(unsafe_code)]

use crate::ids::{KernelTid, Nanos, ThreadNo};
use crate::slots::slot::flag;
use crate::slots::table;
use crate::sys::schedstat;

/// For whom a call waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum For {
    /// Nobody of this process: a file, a datagram, a child's start.
    Nobody,
    /// The holder of a lock, who wakes somebody when it lets go.
    Holder,
    /// Whoever is at the other end of a pipe or has the file lock: any thread of this process, if
    /// it is none of another.
    Anybody,
}

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
    whom: For,
    others: Vec<Other>,
    stalled: Nanos,
}

impl Wait {
    /// Notes where everybody stands.
    pub fn notice(thread: ThreadNo, own: KernelTid, since: Nanos, now: Nanos, whom: For) -> Wait {
        let others = if whom == For::Nobody { Vec::new() } else { snapshot(own) };
        let own_waited = schedstat::of(own).map_or(Nanos::ZERO, |s| s.waited);
        Wait { thread, since, noticed: now, own, own_waited, whom, others, stalled: Nanos::ZERO }
    }

    /// Whether this is the wait of that thread that began then.
    pub fn is(&self, thread: ThreadNo, since: Nanos) -> bool {
        self.thread == thread && self.since == since
    }

    pub fn stall(&mut self, stalled: Nanos) {
        self.stalled += stalled;
    }

    /// The time of the wait that does not count, of the `wall` that it lasted until now.
    pub fn excused(&self, wall: Nanos) -> Nanos {
        let slots = table::used();
        let others = self
            .others
            .iter()
            .filter(|o| {
                let woke = |o: &Other| {
                    slots.get(o.index).is_none_or(|s| s.no() != o.no || s.wakes() != o.wakes)
                };
                self.whom == For::Anybody || woke(o)
            })
            .filter_map(|o| Some(schedstat::of(o.tid)?.waited.saturating_sub(o.waited)))
            .fold(Nanos::ZERO, |a, b| a + b);
        let own = schedstat::of(self.own)
            .map_or(Nanos::ZERO, |s| s.waited.saturating_sub(self.own_waited));
        let parts = [self.noticed.saturating_sub(self.since), others, own, self.stalled];
        parts.into_iter().fold(Nanos::ZERO, |a, b| a + b).min(wall)
    }
}

fn snapshot(own: KernelTid) -> Vec<Other> {
    table::used()
        .iter()
        .enumerate()
        .filter_map(|(index, slot)| {
            let tid = slot.tid()?;
            // The watchdog holds nothing that others wait for.
            if tid == own || slot.has(flag::OURS) {
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

    pub fn add(&mut self, wait: &Wait, now: Nanos) {
        if self.recent.len() == Self::KEPT {
            self.recent.pop_front();
        }
        let excused = wait.excused(now.saturating_sub(wait.since));
        self.recent.push_back((wait.thread, wait.since, excused));
    }

    pub fn excused(&self, thread: ThreadNo, since: Nanos) -> Option<Nanos> {
        self.recent.iter().find(|w| w.0 == thread && w.1 == since).map(|w| w.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::thread;

    #[test]
    fn a_wait_excuses_no_more_than_itself() {
        let (began, noticed) = (Nanos::from_millis(100), Nanos::from_millis(104));
        let own = thread::own_tid();
        let mut wait = Wait::notice(ThreadNo(1), own, began, noticed, For::Nobody);
        wait.stall(Nanos::from_millis(5000));
        for wall in [0, 3, 200] {
            let wall = Nanos::from_millis(wall);
            assert_eq!(wait.excused(wall), wall);
        }
        let mut closed = Closed::default();
        closed.add(&wait, Nanos::from_millis(300));
        assert_eq!(closed.excused(ThreadNo(1), began), Some(Nanos::from_millis(200)));
    }
}
