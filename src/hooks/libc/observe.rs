//! What happens around a call that may block.
//!
//! Calls: `hooks::tokio`, `sys`, `capture::own` through the pointer the front end installed,
//! `slots`. `real` is libc's own function; no local around it has a destructor.

use super::descriptors;
use super::look::{Judge, Look, SUM_NAP};
use super::{births, reentry, sums};
use crate::hooks::tokio::{self, Glance};
use crate::ids::{CpuNanos, Nanos};
use crate::slots::record::{
    Addresses, CallId, Object, ObjectKind, RawFacts, Record, ADDRESS, OBJECT,
};
use crate::slots::slot::{flag, Inside, Slot, Sum};
use crate::slots::{alarm, queue, table};
use crate::sys::{clock, descriptor, raw, schedstat, thread};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Calls looked at inside of polls.
static SEEN: AtomicU64 = AtomicU64::new(0);
/// Calls inside of `allow_blocking`.
static ALLOWED: AtomicU64 = AtomicU64::new(0);
static TRACER: AtomicUsize = AtomicUsize::new(0);

/// A timed call shorter than this is only added up.
const LONG: u64 = 10_000_000;
/// A lock wait shorter than this is not worth a record.
const LONG_WAIT: u64 = 10_000_000;
/// A sleeping worker that is not certain to be in its scheduler is looked at only after this.
const LONG_PARK: u64 = 100_000_000;

/// (calls looked at inside of polls, calls excused by `allow_blocking`).
pub fn counters() -> (u64, u64) {
    (SEEN.load(Ordering::Relaxed), ALLOWED.load(Ordering::Relaxed))
}

/// Installs the function that takes the calling thread's stack.
pub fn install_tracer(tracer: fn(&mut Addresses)) {
    TRACER.store(tracer as usize, Ordering::Release);
}

#[inline(always)]
fn trace(out: &mut Addresses) {
    let tracer = TRACER.load(Ordering::Acquire);
    out.len = 0;
    out.truncated = false;
    if tracer != 0 {
        // SAFETY: stored by `install_tracer`, a function of this type.
        let f = unsafe { core::mem::transmute::<usize, fn(&mut Addresses)>(tracer) };
        f(out);
    }
}

/// The calling thread's stack, for others in this module's neighbourhood.
pub fn trace_into(out: &mut Addresses) {
    trace(out);
}

/// Lets the watchdog know that there is something to watch.
#[inline(always)]
pub fn rouse() {
    if alarm::rouse() {
        thread::wake(&alarm::WORD);
    }
}

/// The facts of this moment, if a poll that must not block may be running; the stack decides
/// what is left open (`verdict::context`).
fn poll_facts(slot: &'static Slot, seen: Glance) -> Option<RawFacts> {
    let (mut facts, _) = tokio::facts_in_handler();
    match seen {
        Glance::Outside => return None,
        // `spawn_blocking` and `block_in_place` have a task, but no worker. So has a task that is
        // dropped while its current-thread runtime shuts down, on the thread that drove it.
        Glance::Task(_)
            if !facts.constrained
                && facts.worker_known
                && facts.worker == 0
                && !slot.has(flag::BUILDER) =>
        {
            return None
        }
        Glance::Task(_) => {}
        Glance::NoTask if !facts.constrained => return None,
        // A root future that is not driven by this thread's own scheduler.
        Glance::NoTask if facts.worker_known && facts.worker == 0 => return None,
        Glance::NoTask => {}
    }
    tokio::add_runtime(&mut facts);
    if seen == Glance::NoTask && facts.flavor == 2 {
        return None; // the root future of a multi-thread runtime may block
    }
    Some(facts)
}

/// Spells out what a call acts on.
fn spell(look: &Look, object: &mut Object) {
    object.kind = look.kind;
    object.number = look.number;
    object.len = [0, 0];
    match look.kind {
        ObjectKind::Descriptor | ObjectKind::Pipe | ObjectKind::Standard => {
            object.len[0] = descriptor::path(look.number as i32, &mut object.bytes) as u16;
        }
        ObjectKind::Stream | ObjectKind::Datagram => {
            let (local, peer) = object.bytes.split_at_mut(ADDRESS);
            object.len[0] = descriptor::address(look.number as i32, false, local) as u16;
            object.len[1] = descriptor::address(look.number as i32, true, peer) as u16;
        }
        ObjectKind::Path | ObjectKind::Fifo | ObjectKind::Host => {
            let mut n = 0;
            while n < OBJECT {
                // SAFETY: a null-terminated text of the caller's; no byte before was the end.
                let b = unsafe { *look.text.add(n) } as u8;
                if b == 0 {
                    break;
                }
                object.bytes[n] = b;
                n += 1;
            }
            object.len[0] = n as u16;
            // SAFETY: as above.
            if look.kind == ObjectKind::Path && unsafe { descriptor::is_fifo(look.text) } {
                object.kind = ObjectKind::Fifo;
            }
        }
        ObjectKind::None | ObjectKind::Pid | ObjectKind::Futex => {}
    }
}

/// Whether and where this thread is inside of a runtime. One copy of it: it stands in all the
/// exported functions.
#[inline(never)]
pub fn glance() -> Glance {
    tokio::glance()
}

/// Watches one call. `ready` answers it if it needs not wait.
///
/// # Safety
///
/// - `real` and `ready` are sound to call here, as the caller of the interposed function vouched.
#[inline(always)]
pub unsafe fn call<R: Copy>(
    slot: &'static Slot,
    seen: Glance,
    id: CallId,
    mut look: Look,
    real: impl FnOnce() -> R,
    ready: impl FnOnce() -> Option<R>,
    failed: impl FnOnce(&R) -> bool,
) -> R {
    if seen == Glance::Outside {
        return real();
    }
    slot.seen_in_runtime();
    if let Judge::Ask(used) = look.judge {
        let errno = raw::errno();
        look = super::look::ask(look.number as i32, used);
        raw::set_errno(errno);
    }
    if slot.allow.load(Ordering::Relaxed) != 0 {
        ALLOWED.fetch_add(1, Ordering::Relaxed);
        return real();
    }
    match look.judge {
        Judge::Pass | Judge::Ask(_) => real(),
        Judge::Always => always(slot, id, &look, seen, real, ready, failed),
        Judge::Timed(which) => timed(slot, id, &look, seen, which, real, failed),
        Judge::Nap => {
            let result = real();
            let errno = raw::errno();
            sums::add(slot, SUM_NAP, id, &look, seen, look.requested);
            raw::set_errno(errno);
            result
        }
    }
}

/// A call that is recorded whenever it is made inside of a poll.
#[inline(never)]
fn always<R: Copy>(
    slot: &'static Slot,
    id: CallId,
    look: &Look,
    seen: Glance,
    real: impl FnOnce() -> R,
    ready: impl FnOnce() -> Option<R>,
    failed: impl FnOnce(&R) -> bool,
) -> R {
    let errno = raw::errno();
    reentry::enter();
    let facts = poll_facts(slot, seen);
    // The cache of descriptor modes is a hint: the truth is asked before anything is recorded.
    let nonblocking = facts.is_some()
        && look.kind == ObjectKind::Stream
        && descriptors::ask(look.number as i32).is_none_or(|m| m.nonblocking);
    let facts = match facts {
        Some(facts) if !nonblocking => facts,
        _ => {
            raw::set_errno(errno);
            let result = real();
            reentry::leave();
            return result;
        }
    };
    SEEN.fetch_add(1, Ordering::Relaxed);
    raw::set_errno(errno);
    if let Some(result) = ready() {
        reentry::leave();
        return result;
    }
    let cell = table::pending(slot);
    let at = clock::now();
    cell.write(|p| {
        p.call = id;
        p.at = at;
        p.facts = facts;
        spell(look, &mut p.object);
        trace(&mut p.stack);
    });
    let cpu = clock::own_cpu();
    let at = clock::now();
    slot.enter(Inside::Call, at);
    rouse();
    raw::set_errno(errno);
    let result = real();
    let errno = raw::errno();
    let end = clock::now();
    slot.leave();
    if !failed(&result) || (end - at).0 >= 1_000_000 {
        let p = cell.own();
        let mut record = Record::EMPTY;
        fill(&mut record, slot, id, at, end - at);
        record.cpu = clock::own_cpu().saturating_sub(cpu);
        record.requested = Nanos(look.requested);
        record.facts = p.facts;
        record.object = p.object;
        record.stack = p.stack;
        queue::push(&record);
    }
    reentry::leave();
    raw::set_errno(errno);
    result
}

fn fill(record: &mut Record, slot: &'static Slot, id: CallId, at: Nanos, wall: Nanos) {
    record.call = id;
    record.thread = slot.no();
    record.tid = slot.tid().unwrap_or(thread::own_tid());
    record.scope = slot.scope();
    record.label = births::label(slot);
    record.at = at;
    record.wall = wall;
}

/// A call that counts only by its length.
#[inline(always)]
fn timed<R: Copy>(
    slot: &'static Slot,
    id: CallId,
    look: &Look,
    seen: Glance,
    which: usize,
    real: impl FnOnce() -> R,
    failed: impl FnOnce(&R) -> bool,
) -> R {
    let at = clock::now();
    let inside = super::look::inside(which);
    slot.enter(inside, at);
    if inside == Inside::Other {
        rouse();
    }
    let result = real();
    let errno = raw::errno();
    slot.leave();
    let wall = clock::now() - at;
    ended(slot, id, look, seen, which, at, wall, failed(&result));
    raw::set_errno(errno);
    result
}

/// A timed call is over. errno is not kept.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn ended(
    slot: &'static Slot,
    id: CallId,
    look: &Look,
    seen: Glance,
    which: usize,
    at: Nanos,
    wall: Nanos,
    failed: bool,
) {
    if wall.0 >= LONG {
        long(slot, id, look, seen, at, wall);
    } else if !failed || wall.0 > 100_000 {
        sums::add(slot, which, id, look, seen, wall.0);
    }
}

/// A timed call or a wait that took long: recorded if a poll runs.
#[cold]
#[inline(never)]
fn long(slot: &'static Slot, id: CallId, look: &Look, seen: Glance, at: Nanos, wall: Nanos) {
    reentry::enter();
    if let Some(facts) = poll_facts(slot, seen) {
        SEEN.fetch_add(1, Ordering::Relaxed);
        let mut record = Record::EMPTY;
        fill(&mut record, slot, id, at, wall);
        record.timed = true;
        record.facts = facts;
        spell(look, &mut record.object);
        trace(&mut record.stack);
        queue::push(&record);
    }
    reentry::leave();
}

/// Writes what the short calls of one poll add up to.
pub fn report_sum(slot: &'static Slot, id: CallId, look: &Look, seen: Glance, sum: &Sum) {
    let Some(facts) = poll_facts(slot, seen) else { return };
    SEEN.fetch_add(1, Ordering::Relaxed);
    let mut record = Record::EMPTY;
    fill(
        &mut record,
        slot,
        id,
        Nanos(sum.at.load(Ordering::Relaxed)),
        Nanos(sum.time.load(Ordering::Relaxed)),
    );
    record.cpu = CpuNanos::ZERO;
    record.requested = Nanos(look.requested);
    record.summed = sum.calls.load(Ordering::Relaxed);
    record.certain = sum.certain.load(Ordering::Relaxed) != 0;
    let before = sum.waited.load(Ordering::Relaxed);
    record.waited = match schedstat::of(thread::own_tid()) {
        Some(s) => Nanos(s.waited.0.saturating_sub(before)),
        None => Nanos::ZERO,
    };
    record.facts = facts;
    spell(look, &mut record.object);
    trace(&mut record.stack);
    queue::push(&record);
}

/// What a sleeping thread waits in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sleep {
    /// Its scheduler, a blocking pool, or no runtime at all.
    Park,
    /// A lock or channel inside of a poll.
    Poll,
    /// A worker, without a limited budget: most likely its scheduler.
    Unlimited,
}

/// Waiting on a futex: a lock, a condition variable, a channel, or a worker's park.
///
/// # Safety
///
/// - `real` is sound to call here.
#[inline(always)]
pub unsafe fn wait<R: Copy>(
    slot: &'static Slot,
    id: CallId,
    address: usize,
    real: impl FnOnce() -> R,
) -> R {
    let errno = raw::errno();
    let seen = tokio::glance();
    let sleep = match seen {
        Glance::Outside => Sleep::Park,
        Glance::Task(task) if task == slot.launch() => Sleep::Park,
        _ => asleep_in(slot, seen),
    };
    raw::set_errno(errno);
    if sleep == Sleep::Park {
        slot.park();
        let result = real();
        let errno = raw::errno();
        slot.unpark();
        rouse();
        raw::set_errno(errno);
        return result;
    }
    let at = clock::now();
    if sleep == Sleep::Poll {
        slot.enter(Inside::Wait, at);
        rouse();
    } else {
        slot.park();
    }
    raw::set_errno(errno);
    let result = real();
    let errno = raw::errno();
    let wall = clock::now() - at;
    let limit = if sleep == Sleep::Poll {
        slot.leave();
        LONG_WAIT
    } else {
        slot.unpark();
        rouse();
        LONG_PARK
    };
    if wall.0 >= limit {
        let look = Look {
            judge: Judge::Always,
            kind: ObjectKind::Futex,
            number: address as i64,
            ..super::look::PASS
        };
        if slot.allow.load(Ordering::Relaxed) == 0 {
            long(slot, id, &look, seen, at, wall);
        } else {
            ALLOWED.fetch_add(1, Ordering::Relaxed);
        }
    }
    raw::set_errno(errno);
    result
}

/// Remembers which runtime this thread is inside of: a signal handler cannot ask.
fn remember_runtime(slot: &'static Slot) {
    let mut facts = RawFacts::default();
    tokio::add_runtime(&mut facts);
    slot.set_runtime(facts.runtime, facts.flavor, facts.workers);
}

/// The facts; at a thread's or a driver's first wait tokio's own counts may spare the budget's.
fn facts_at_first(first: bool) -> RawFacts {
    if first && tokio::parking() {
        tokio::facts_in_park()
    } else {
        tokio::facts_in_handler().0
    }
}

#[inline(never)]
fn asleep_in(slot: &'static Slot, seen: Glance) -> Sleep {
    if !slot.has(flag::RUNTIME) {
        slot.seen_in_runtime();
        // A test whose runtime has no driver takes its name here.
        births::label(slot);
    }
    reentry::enter();
    let facts = facts_at_first(slot.launch() == 0);
    let sleep = match (facts.constrained, seen) {
        (true, Glance::NoTask) => match poll_facts(slot, seen) {
            Some(_) => Sleep::Poll,
            None => Sleep::Park,
        },
        (true, _) => Sleep::Poll,
        (false, Glance::Task(task)) if !facts.worker_known || facts.worker != 0 => {
            // The first sleep of a worker is in its scheduler: this is the id it was launched
            // under, and no task's.
            if slot.launch() == 0 && facts.worker_known {
                slot.set_launch(task);
                remember_runtime(slot);
            }
            Sleep::Unlimited
        }
        _ => Sleep::Park,
    };
    reentry::leave();
    sleep
}

/// Waiting on an epoll descriptor: the runtime's driver, or somebody else's.
///
/// # Safety
///
/// - `real` and `ready` are sound to call here.
#[inline(always)]
pub unsafe fn epoll<R: Copy>(
    slot: &'static Slot,
    id: CallId,
    fd: i32,
    may_wait: bool,
    real: impl FnOnce() -> R,
    ready: impl FnOnce() -> Option<R>,
    failed: impl FnOnce(&R) -> bool,
) -> R {
    if !descriptors::is_driver(fd) && !learn(slot, fd) {
        let look = super::look::readiness(may_wait);
        // SAFETY: passed on.
        return unsafe { call(slot, tokio::glance(), id, look, real, ready, failed) };
    }
    if !slot.has(flag::RUNTIME) || slot.runtime().1 == 0 {
        slot.seen_in_runtime();
        let errno = raw::errno();
        remember_runtime(slot);
        raw::set_errno(errno);
    }
    if !may_wait {
        slot.turn();
        return real();
    }
    slot.park();
    let result = real();
    let errno = raw::errno();
    slot.unpark();
    rouse();
    raw::set_errno(errno);
    result
}

/// Whether a scheduler waits here: inside of a runtime, and no poll is running.
#[cold]
#[inline(never)]
fn learn(slot: &'static Slot, fd: i32) -> bool {
    let seen = tokio::glance();
    if seen == Glance::Outside {
        return false;
    }
    let facts = facts_at_first(true);
    let pool = matches!(seen, Glance::Task(_)) && facts.worker_known && facts.worker == 0;
    if facts.constrained || pool {
        return false;
    }
    descriptors::learn_driver(fd);
    remember_runtime(slot);
    true
}
