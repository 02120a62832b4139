//! What this poll has started itself: waiting for that is a finding even if it has ended by now.
//! Without this, `Command::new("true").status()` in a task would be one only in those runs in
//! which the child is slower than the parent.
//!
//! The same poll is told as in `sums`, by tokio's budget: a number of units chosen at random is
//! taken at the start, and the wait must find exactly what was left. If the poll used some of it
//! meanwhile, it counts as another one, and what has ended is no finding, as ever.
//!
//! Calls: `hooks::tokio::{remaining, take}`, `sys::clock`.

use super::reentry;
use crate::hooks::tokio::{self, Glance};
use crate::slots::slot::{Slot, Start};
use crate::slots::table;
use crate::sys::{clock, raw};
use core::sync::atomic::Ordering::Relaxed;

/// A process was started on this thread. errno is kept.
pub fn child(slot: &'static Slot, pid: libc::pid_t) {
    if pid > 0 {
        note(slot, &slot.child, pid as u64);
    }
}

/// A thread was started on this thread.
pub fn thread(slot: &'static Slot, handle: libc::pthread_t) {
    note(slot, &slot.joinable, handle as usize as u64);
}

fn note(slot: &'static Slot, start: &Start, what: u64) {
    let errno = raw::errno();
    if let seen @ (Glance::Task(_) | Glance::NoTask) = tokio::glance() {
        reentry::enter();
        start.what.store(0, Relaxed);
        if let Some(left) = tokio::remaining() {
            // Eight and more, since a poll that uses the same few units as this one is common.
            let units = 8 + (clock::now().0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as u8;
            let taken = tokio::take(left, units);
            if taken != 0 {
                slot.took(taken);
                start.task.store(task(seen), Relaxed);
                start.beat.store(slot.beat(), Relaxed);
                start.left.store((left - taken) as u32, Relaxed);
                start.taken.store(slot.taken(), Relaxed);
                start.what.store(what, Relaxed);
            }
        }
        reentry::leave();
    }
    raw::set_errno(errno);
}

/// Whether the running poll has started this child; −1 and 0 mean any of them.
pub fn is_own_child(pid: libc::pid_t) -> bool {
    table::own().is_some_and(|slot| {
        let last = slot.child.what.load(Relaxed);
        last != 0 && (pid <= 0 || pid as u64 == last) && in_this_poll(slot, &slot.child)
    })
}

/// Whether the running poll has started this thread.
pub fn is_own_thread(handle: libc::pthread_t) -> bool {
    table::own().is_some_and(|slot| {
        let last = slot.joinable.what.load(Relaxed);
        last == handle as usize as u64 && in_this_poll(slot, &slot.joinable)
    })
}

#[cold]
fn in_this_poll(slot: &'static Slot, start: &Start) -> bool {
    start.what.store(0, Relaxed);
    if start.task.load(Relaxed) != task(tokio::glance()) || start.beat.load(Relaxed) != slot.beat()
    {
        return false;
    }
    // Units that others of us took meanwhile are not the poll's.
    let by_us = slot.taken().wrapping_sub(start.taken.load(Relaxed));
    tokio::remaining().is_some_and(|left| left as u32 + by_us == start.left.load(Relaxed))
}

fn task(seen: Glance) -> u64 {
    match seen {
        Glance::Task(id) => id,
        _ => 0,
    }
}
