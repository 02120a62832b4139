//! Short calls of one poll, added up: 350 writes of 0.2 ms hold a worker as well as one of 70 ms.
//!
//! Where one poll ends and the next begins is told by tokio's budget: every millisecond of added
//! time the budget is read and a few units are taken at random. If the next check finds exactly
//! what was left, it is the same poll; a little less (the poll used some) is probably the same; any
//! other number is a new poll, and the sum starts over.
//!
//! Calls: `hooks::tokio::{remaining, take}`, `sys::{clock, schedstat}`, `observe::report`.

use super::look::{Look, SUM_LOCK, SUM_NAP};
use super::observe;
use crate::hooks::tokio::{self, Glance};
use crate::ids::Nanos;
use crate::slots::record::CallId;
use crate::slots::slot::{Slot, Sum};
use crate::sys::{clock, schedstat};
use core::sync::atomic::Ordering::Relaxed;

/// Added time between two checks of the poll's identity.
const CHECK: u64 = 1_000_000;
/// The first record of a sum is written here.
const FIRST_DUE: u64 = 10_000_000;
/// A file lock that came sooner was free: only waiting for one is added up.
const FREE: u64 = 50_000;
/// A poll that used up to so many units between two checks is probably the same.
const USED: u32 = 16;

fn restart(sum: &Sum, task: u64, beat: u32, at: Nanos) {
    sum.task.store(task, Relaxed);
    sum.beat.store(beat, Relaxed);
    sum.calls.store(0, Relaxed);
    sum.time.store(0, Relaxed);
    sum.unchecked.store(0, Relaxed);
    sum.mark.store(0, Relaxed);
    sum.certain.store(1, Relaxed);
    sum.at.store(at.0, Relaxed);
    sum.due.store(FIRST_DUE, Relaxed);
}

/// Adds one call that took (or, for naps, asked for) `time`.
#[inline]
pub fn add(slot: &'static Slot, which: usize, call: CallId, look: &Look, seen: Glance, time: u64) {
    if which == SUM_LOCK && time < FREE {
        return;
    }
    let sum = &slot.sums[which];
    let task = match seen {
        Glance::Task(id) => id,
        _ => 0,
    };
    let beat = slot.beat();
    if sum.calls.load(Relaxed) == 0
        || sum.task.load(Relaxed) != task
        || sum.beat.load(Relaxed) != beat
    {
        restart(sum, task, beat, Nanos(0));
    }
    sum.calls.store(sum.calls.load(Relaxed).wrapping_add(1), Relaxed);
    sum.time.store(sum.time.load(Relaxed).saturating_add(time), Relaxed);
    let unchecked = sum.unchecked.load(Relaxed).saturating_add(time);
    sum.unchecked.store(unchecked, Relaxed);
    if unchecked >= CHECK {
        check(slot, which, call, look, seen, task, beat, time);
    }
}

#[cold]
#[allow(clippy::too_many_arguments)]
fn check(
    slot: &'static Slot,
    which: usize,
    call: CallId,
    look: &Look,
    seen: Glance,
    task: u64,
    beat: u32,
    time: u64,
) {
    super::reentry::enter();
    let sum = &slot.sums[which];
    sum.unchecked.store(0, Relaxed);
    let now = clock::now();
    let Some(left) = tokio::remaining() else {
        // Not a poll that must not block.
        restart(sum, task, beat, now);
        super::reentry::leave();
        return;
    };
    // Units that the watchdog's samples took meanwhile are not the poll's.
    let by_us = slot.taken();
    let mark = sum.mark.load(Relaxed);
    let mark =
        if mark == 0 { 0 } else { mark.wrapping_sub(by_us.wrapping_sub(sum.taken.load(Relaxed))) };
    let found = left as u32 + 1;
    if mark == 0 {
        sum.at.store(now.0.saturating_sub(sum.time.load(Relaxed)), Relaxed);
        let waited = schedstat::of(crate::sys::thread::own_tid()).map_or(0, |s| s.waited.0);
        sum.waited.store(waited, Relaxed);
        if which != SUM_NAP {
            // How long this thread waited for a processor is known only from here on.
            sum.time.store(0, Relaxed);
            sum.calls.store(1, Relaxed);
        }
    } else if found < mark && mark - found <= USED {
        sum.certain.store(0, Relaxed);
    } else if found != mark {
        restart(sum, task, beat, now);
        sum.calls.store(1, Relaxed);
        sum.time.store(time, Relaxed);
    }
    let units = 1 + ((now.0 >> 4) & 3) as u8;
    let taken = tokio::take(left, units);
    slot.took(taken);
    sum.taken.store(by_us.wrapping_add(taken as u32), Relaxed);
    sum.mark.store(found - taken as u32, Relaxed);
    let total = sum.time.load(Relaxed);
    let due = sum.due.load(Relaxed);
    if total >= due {
        sum.due.store(total + total / 4, Relaxed);
        observe::report_sum(slot, call, look, seen, sum);
    }
    super::reentry::leave();
}
