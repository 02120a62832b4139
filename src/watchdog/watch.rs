//! All threads under the watchdog's eyes, and what came of it.
#![forbid(unsafe_code)]

use super::cadence::Look;
use super::collect::{self, Collected, Names};
use super::excuse::{Closed, For, Wait};
use super::track::{self, Hold, Relation, Seen};
use crate::capture::arena::Buffer;
use crate::capture::unwind::Unwinder;
use crate::evidence::{CallEvidence, HoldEvidence, RawStack, Who};
use crate::ids::{CpuNanos, KernelTid, Nanos, ScopeId, ThreadNo};
use crate::slots::record::{RawFacts, Record};
use crate::slots::slot::{flag, Inside, Slot};
use crate::slots::{queue, table};
use crate::sys::{clock, schedstat, signal, thread};
use core::sync::atomic::Ordering;

/// A poll or call that has not come back for a long time.
pub struct Announcement {
    pub who: Who,
    pub held: Nanos,
    pub stack: Option<RawStack>,
    /// The call it is inside of.
    pub call: Option<&'static str>,
}

/// From this long on a poll that has not ended is announced, and again as it doubles.
const ANNOUNCE: Nanos = Nanos::from_millis(1000);
/// Samples that were no poll make the next one wait twice as long, up to so many doublings: a
/// thread of the blocking pool may compute for minutes, and may run a poll afterwards.
const STRIKES: u32 = 6;
/// A thread that was never seen inside of a runtime is left alone after so many, until it parks.
const STRANGER: u32 = 3;

struct Track {
    no: ThreadNo,
    beat: u32,
    /// When this beat was first seen.
    since: Nanos,
    /// CPU time at the last look, and at the last sample.
    cpu: CpuNanos,
    sampled_cpu: CpuNanos,
    hold: Option<Hold>,
    buffer: Option<Box<Buffer>>,
    /// The sample under way is of a thread that sleeps.
    asleep_sample: bool,
    strikes: u32,
    stat: Option<schedstat::SchedStat>,
    still: u32,
    still_since: Nanos,
    /// The sleep has been looked into.
    still_known: bool,
    /// In this system call; what the signal for the sample did to the statistics is not settled.
    asleep_in: Option<i64>,
    after_sample: bool,
    announced: Nanos,
    last_call: Nanos,
}

impl Track {
    fn new(no: ThreadNo) -> Track {
        Track {
            no,
            beat: u32::MAX,
            since: Nanos::ZERO,
            cpu: CpuNanos::ZERO,
            sampled_cpu: CpuNanos::ZERO,
            hold: None,
            buffer: None,
            asleep_sample: false,
            strikes: 0,
            stat: None,
            still: 0,
            still_since: Nanos::ZERO,
            still_known: false,
            asleep_in: None,
            after_sample: false,
            announced: Nanos::ZERO,
            last_call: Nanos::ZERO,
        }
    }
}

/// The limits the watchdog itself must know.
#[derive(Clone, Copy, Debug)]
pub struct Floors {
    /// The shortest busy limit in force: shorter holds than half of it are not kept.
    pub busy: Nanos,
    /// The shortest limit on sleeps.
    pub asleep: Nanos,
}

/// The watchdog's memory.
pub struct Watch {
    tracks: Vec<Track>,
    waits: Vec<Wait>,
    closed: Closed,
    unwinder: Unwinder,
    spare: Vec<Box<Buffer>>,
    pub collected: Collected,
    pub floors: Floors,
    record: Box<Record>,
    random: u64,
    announcements: Vec<Announcement>,
    /// A traced process is stopped and continued by its tracer: nothing timed counts.
    traced: bool,
    /// The program took the sampling signal for itself.
    pub taken: bool,
    pub polls_sampled: u64,
    /// The whole process is watched, not only scopes.
    pub whole: bool,
}

impl Watch {
    pub fn new(names: Names, floors: Floors) -> Watch {
        Watch {
            tracks: Vec::new(),
            waits: Vec::new(),
            closed: Closed::default(),
            unwinder: Unwinder::default(),
            spare: Vec::new(),
            collected: Collected::new(names),
            floors,
            record: Box::new(Record::EMPTY),
            random: clock::now().0 | 1,
            announcements: Vec::new(),
            traced: false,
            taken: false,
            polls_sampled: 0,
            whole: false,
        }
    }

    /// Looks whether a tracer is there from the start.
    pub fn look_for_tracer(&mut self) {
        self.traced = schedstat::traced();
    }

    /// Whether a sample can be unwound: more than the frame it was taken in.
    pub fn try_unwind(&mut self, buffer: &Buffer) -> bool {
        self.unwinder.innermost(&buffer.sample, 3).0.len() > 1
    }

    /// Takes all finished records out of the queue.
    pub fn drain(&mut self) {
        while queue::pop(&mut self.record) {
            let r = &self.record;
            let excused = match (r.timed, r.summed) {
                (true, 0) => self.excuse(r.thread, r.at, r.wall),
                _ => Nanos::ZERO,
            };
            self.collected.add(&self.record, excused);
        }
    }

    /// What does not count of a call that is judged by its time. A long one that the watchdog
    /// never saw proves nothing.
    fn excuse(&self, thread: ThreadNo, since: Nanos, wall: Nanos) -> Nanos {
        if let Some(wait) = self.waits.iter().find(|w| w.is(thread, since)) {
            return wait.excused(wall);
        }
        match self.closed.excused(thread, since) {
            Some(excused) => excused.min(wall),
            None => wall,
        }
    }

    /// One look at every thread. Returns whether anything is going on.
    pub fn tick(&mut self, look: Look, tick: Nanos) -> bool {
        self.drain();
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        if look.stalled.0 > 0 {
            for wait in &mut self.waits {
                wait.stall(look.stalled);
            }
        }
        let slots = table::used();
        while self.tracks.len() < slots.len() {
            self.tracks.push(Track::new(ThreadNo(0)));
        }
        let mut active = false;
        for (i, slot) in slots.iter().enumerate() {
            active |= self.look_at(i, slot, look, tick);
        }
        self.settle_waits(slots, look.now);
        active
    }

    /// Ends the waits that are over.
    fn settle_waits(&mut self, slots: &[Slot], now: Nanos) {
        let closed = &mut self.closed;
        self.waits.retain(|wait| {
            let on = slots.iter().any(|s| {
                let (inside, since) = s.inside();
                s.tid().is_some() && is_timed(inside) && wait.is(s.no(), since)
            });
            if !on {
                closed.add(wait, now);
            }
            on
        });
    }

    /// One look at one thread. Returns whether it must be looked at again soon.
    fn look_at(&mut self, i: usize, slot: &Slot, look: Look, tick: Nanos) -> bool {
        let now = look.now;
        let Some(tid) = slot.tid() else {
            self.forget(i);
            return false;
        };
        if slot.no() != self.tracks[i].no {
            self.forget(i);
            self.tracks[i] = Track::new(slot.no());
        }
        if slot.has(flag::OURS | flag::DYING) {
            return false;
        }
        self.harvest(i, slot, tid, now);
        let beat = slot.beat();
        if beat != self.tracks[i].beat {
            self.close(i, tid, false);
            let t = &mut self.tracks[i];
            t.beat = beat;
            t.since = now;
            t.strikes = 0;
            t.still = 0;
            t.still_known = false;
            t.stat = None;
            t.announced = Nanos::ZERO;
            if beat % 2 == 0 {
                t.cpu = clock::cpu_of(tid).unwrap_or_default();
                t.sampled_cpu = t.cpu;
            }
            return beat % 2 == 0;
        }
        if beat % 2 == 1 {
            return false;
        }
        let (inside, since) = slot.inside();
        if inside != Inside::Nothing {
            self.look_inside(i, slot, tid, (inside, since), look, tick);
            return true;
        }
        self.look_running(i, slot, tid, look, tick)
    }

    fn forget(&mut self, i: usize) {
        if self.tracks[i].no != ThreadNo(0) {
            self.close(i, KernelTid(0), false);
            // A thread that is gone answers no request any more, but its slot may have another.
            if let Some(mut buffer) = self.tracks[i].buffer.take() {
                let at: *mut Buffer = &mut *buffer;
                let back = table::used()[i].withdraw_sample(at as *mut ());
                if back || buffer.is_full() {
                    self.spare.push(buffer);
                } else {
                    // The next thread of this slot is answering it: it stays where it is.
                    std::mem::forget(buffer);
                }
            }
            self.tracks[i] = Track::new(ThreadNo(0));
        }
    }

    /// A thread inside of an intercepted call.
    fn look_inside(
        &mut self,
        i: usize,
        slot: &Slot,
        tid: KernelTid,
        (inside, since): (Inside, Nanos),
        look: Look,
        tick: Nanos,
    ) {
        let held = look.now.saturating_sub(since);
        let t = &mut self.tracks[i];
        if let Some(hold) = &mut t.hold {
            hold.in_calls += tick;
        }
        t.still = 0;
        t.stat = None;
        if t.last_call != since {
            t.last_call = since;
            t.announced = Nanos::ZERO;
        }
        if is_timed(inside) && held >= tick && !self.waits.iter().any(|w| w.is(slot.no(), since)) {
            let whom = match inside {
                Inside::Wait => For::Holder,
                Inside::Other => For::Anybody,
                _ => For::Nobody,
            };
            self.waits.push(Wait::notice(slot.no(), tid, since, look.now, whom));
        }
        let allowed = slot.allow.load(Ordering::Relaxed) != 0;
        if allowed || held < ANNOUNCE || held < Nanos(t.announced.0 * 2) {
            return;
        }
        match inside {
            Inside::Call => {
                t.announced = held;
                if let Some(p) = table::pending(slot).read() {
                    let who = collect::who(slot.scope(), slot.no(), tid, slot.label(), &p.facts);
                    self.announcements.push(Announcement {
                        who,
                        held,
                        stack: Some(collect::raw_stack(&p.stack)),
                        call: self.collected.name(p.call),
                    });
                }
            }
            // A lock without a time-out goes on after a signal: its stack can be had.
            // So does one who reads from a pipe, or waits for a file lock.
            Inside::Wait | Inside::Other
                if t.buffer.is_none() && goes_on(inside, schedstat::in_kernel(tid)) =>
            {
                t.asleep_sample = true;
                self.request(i, slot, tid, 0);
            }
            _ => {}
        }
    }

    /// A thread that neither parks nor is inside of a call.
    fn look_running(
        &mut self,
        i: usize,
        slot: &Slot,
        tid: KernelTid,
        look: Look,
        tick: Nanos,
    ) -> bool {
        let now = look.now;
        let Some(cpu) = clock::cpu_of(tid) else { return false };
        if slot.allow.load(Ordering::Relaxed) != 0 {
            self.close(i, tid, false);
            self.tracks[i].cpu = cpu;
            self.tracks[i].sampled_cpu = cpu;
            return true;
        }
        let in_runtime = slot.has(flag::RUNTIME);
        let t = &mut self.tracks[i];
        let progress = cpu - t.cpu;
        t.cpu = cpu;
        if let Some(hold) = &mut t.hold {
            hold.stalled += look.stalled;
            let held = hold.wall();
            if held >= ANNOUNCE && held >= Nanos(t.announced.0 * 2) && hold.is_proven() {
                t.announced = held;
                self.announcements.push(Announcement {
                    who: collect::who(hold.scope, slot.no(), tid, hold.label, &hold.first.facts),
                    held,
                    stack: hold.stack().cloned(),
                    call: None,
                });
            }
        }
        if t.buffer.is_some() {
            return true; // a sample is under way
        }
        // The handler of a sleeper's sample was a moment on a processor, and no more.
        if progress.0 == 0 || t.after_sample {
            t.after_sample &= progress.0 == 0;
            return self.look_asleep(i, slot, tid, now, tick);
        }
        if t.hold.as_ref().is_some_and(|h| h.syscall.is_some()) {
            self.close(i, tid, false);
        }
        let t = &mut self.tracks[i];
        t.still = 0;
        t.still_known = false;
        t.stat = None;
        if !in_runtime && t.strikes >= STRANGER {
            return false;
        }
        // Enough of its own CPU time since it last parked, and since the last sample.
        let gap = match &t.hold {
            Some(hold) => hold.gap(tick).0,
            None => (tick.0 * 2) << t.strikes,
        };
        if now.saturating_sub(t.since).0 >= tick.0 * 2
            && (cpu - t.sampled_cpu).0 + tick.0 / 4 >= gap
        {
            let random = self.random.rotate_left(i as u32);
            let units = t.hold.as_ref().map_or(1 + (random & 3) as u8, |h| h.units(random));
            t.sampled_cpu = cpu;
            t.asleep_sample = false;
            self.request(i, slot, tid, units);
        }
        true
    }

    /// A thread that made no progress on a processor since the last look.
    fn look_asleep(
        &mut self,
        i: usize,
        slot: &Slot,
        tid: KernelTid,
        now: Nanos,
        tick: Nanos,
    ) -> bool {
        let t = &mut self.tracks[i];
        if !slot.has(flag::RUNTIME) && t.strikes >= STRANGER {
            return false; // not a worker as far as anybody knows
        }
        let stat = schedstat::of(tid);
        if stat.is_none() || stat != t.stat {
            if t.still_known && t.hold.is_some() && stat.is_some() && t.still == 0 {
                t.stat = stat; // what the sample did has settled
                t.still = 1;
                return true;
            }
            if t.hold.as_ref().is_some_and(|h| h.syscall.is_some()) {
                self.close(i, tid, false); // another sleep
            }
            let t = &mut self.tracks[i];
            t.stat = stat;
            t.still = 0;
            t.still_known = false;
            t.still_since = now;
            return true;
        }
        if t.still_known && t.hold.is_none() {
            return false; // its sleep is nobody's poll
        }
        t.still += 1;
        let asleep = now - t.still_since;
        if let (Some(hold), true) = (&mut t.hold, t.still_known) {
            if hold.syscall.is_some() {
                hold.asleep = Nanos(hold.asleep.0.max((now - hold.first.at).0));
                hold.last.at = now;
            }
            return true;
        }
        if t.still >= 2 && asleep.0 + 2 * tick.0 >= self.floors.asleep.0 && !t.still_known {
            let doing = schedstat::in_kernel(tid);
            t.asleep_in = match doing {
                Some(schedstat::InKernel::Call { number, .. }) => Some(number),
                _ => None,
            };
            if restarts(doing) {
                t.asleep_sample = true;
                self.request(i, slot, tid, 0);
            } else {
                t.still_known = true;
            }
        }
        true
    }

    fn request(&mut self, i: usize, slot: &Slot, tid: KernelTid, units: u8) {
        if !signal::in_force() {
            self.taken = true;
            return;
        }
        let mut buffer = self.spare.pop().unwrap_or_else(Buffer::new);
        buffer.reset(units);
        let at: *mut Buffer = &mut *buffer;
        if slot.request_sample(at as *mut ()) {
            self.tracks[i].buffer = Some(buffer);
            // A sleeper was looked into before. A runner may have entered a call meanwhile, or be
            // asleep in one that was not intercepted.
            let may = self.tracks[i].asleep_sample || slot.may_signal() && may_interrupt(tid);
            if !(may && thread::signal(tid, signal::SAMPLE)) && slot.withdraw_sample(at as *mut ())
            {
                self.spare.extend(self.tracks[i].buffer.take());
            }
        } else {
            self.spare.push(buffer);
        }
    }

    /// Takes in the sample that was asked for, if it is there.
    fn harvest(&mut self, i: usize, slot: &Slot, tid: KernelTid, now: Nanos) {
        if !self.tracks[i].buffer.as_ref().is_some_and(|b| b.is_full()) {
            return;
        }
        let Some(buffer) = self.tracks[i].buffer.take() else { return };
        let sample = &buffer.sample;
        let (runtime, flavor, workers) = slot.runtime();
        let seen = Seen {
            at: sample.at,
            cpu: sample.cpu,
            beat: sample.beat,
            scope: sample.scope,
            poll: sample.poll,
            facts: RawFacts { runtime, flavor, workers, ..sample.facts },
            left: sample.left,
            taken: sample.taken,
            taken_in_all: sample.taken_in_all,
        };
        self.polls_sampled += 1;
        if self.tracks[i].asleep_sample {
            self.harvest_asleep(i, slot, tid, seen, &buffer, now);
            self.spare.push(buffer);
            return;
        }
        let before = self.tracks[i].hold.as_ref().map(|h| h.last);
        match track::relation(before.as_ref(), &seen) {
            Relation::NotAPoll => {
                self.close(i, tid, false);
                self.tracks[i].strikes = (self.tracks[i].strikes + 1).min(STRIKES);
            }
            Relation::New => {
                self.close(i, tid, false);
                self.tracks[i].strikes = 0;
                let (addresses, cut) = self.unwinder.addresses(sample);
                let waited = schedstat::of(tid).map_or(Nanos::ZERO, |s| s.waited);
                let stack = track::raw(addresses, cut);
                self.tracks[i].hold = Some(Hold::begin(slot.label(), seen, stack, waited));
            }
            same => {
                let (addresses, cut) = self.unwinder.addresses(sample);
                if let Some(hold) = &mut self.tracks[i].hold {
                    hold.extend(seen, track::raw(addresses, cut), same);
                }
            }
        }
        self.spare.push(buffer);
    }

    fn harvest_asleep(
        &mut self,
        i: usize,
        slot: &Slot,
        tid: KernelTid,
        seen: Seen,
        buffer: &Buffer,
        now: Nanos,
    ) {
        let (addresses, cut) = self.unwinder.addresses(&buffer.sample);
        let stack = track::raw(addresses, cut);
        let (inside, since) = slot.inside();
        if matches!(inside, Inside::Wait | Inside::Other) {
            let held = now.saturating_sub(since);
            self.tracks[i].announced = held;
            if seen.facts.constrained {
                self.announcements.push(Announcement {
                    who: collect::who(seen.scope, slot.no(), tid, slot.label(), &seen.facts),
                    held,
                    stack: Some(stack),
                    call: name_of(schedstat::in_kernel(tid)),
                });
            }
            return;
        }
        let t = &mut self.tracks[i];
        t.still_known = true;
        t.after_sample = true;
        t.still = 0;
        t.stat = schedstat::of(tid);
        t.cpu = clock::cpu_of(tid).unwrap_or(t.cpu);
        if !seen.facts.constrained || t.asleep_in.is_none() {
            t.strikes = (t.strikes + 1).min(STRIKES);
            return;
        }
        let begun = t.still_since;
        self.close(i, tid, false);
        let t = &mut self.tracks[i];
        let waited = t.stat.map_or(Nanos::ZERO, |s| s.waited);
        let asleep = seen.at.saturating_sub(begun);
        let first = Seen { at: begun, ..seen };
        let mut hold = Hold::begin(slot.label(), first, stack, waited);
        hold.syscall = t.asleep_in;
        hold.asleep = asleep;
        hold.last.at = seen.at;
        t.hold = Some(hold);
    }

    /// Ends a thread's hold and keeps it, if it is long enough for anybody.
    fn close(&mut self, i: usize, tid: KernelTid, running: bool) {
        let Some(hold) = self.tracks[i].hold.take() else { return };
        if let Some(evidence) = self.judgeable(i, &hold, self.tracks[i].no, tid, running) {
            self.collected.add_hold(evidence);
        }
    }

    fn judgeable(
        &self,
        i: usize,
        hold: &Hold,
        no: ThreadNo,
        tid: KernelTid,
        running: bool,
    ) -> Option<HoldEvidence> {
        let long = hold.cpu().0 * 2 >= self.floors.busy.0 || hold.asleep >= self.floors.asleep;
        if !long || self.traced || !self.is_watched(hold.scope) {
            return None;
        }
        let waited = schedstat::of(tid).map_or(hold.waited_before, |s| s.waited);
        let mut evidence = hold.evidence(no, tid, waited, self.floors.busy, running);
        // The handler cannot ask for the runtime; the thread did when it parked.
        if let Some(slot) = table::used().get(i).filter(|s| s.no() == no) {
            collect::add_runtime(&mut evidence.who.facts, slot.runtime());
        }
        Some(evidence)
    }

    /// What has not ended yet: holds, and calls that did not return.
    pub fn unfinished(&self, scope: ScopeId) -> (Vec<CallEvidence>, Vec<HoldEvidence>) {
        let now = clock::now();
        let mut calls = Vec::new();
        let mut holds = Vec::new();
        for (i, (slot, track)) in table::used().iter().zip(&self.tracks).enumerate() {
            let Some(tid) = slot.tid() else { continue };
            if slot.no() != track.no || table::own_is(slot) {
                continue;
            }
            if let Some(hold) = track.hold.as_ref().filter(|hold| hold.scope == scope) {
                holds.extend(self.judgeable(i, hold, track.no, tid, true));
            }
            let (inside, since) = slot.inside();
            if inside == Inside::Call && slot.scope() == scope {
                if let Some(p) = table::pending(slot).read() {
                    let mut record = Record::EMPTY;
                    record.call = p.call;
                    record.thread = slot.no();
                    record.tid = tid;
                    record.scope = scope;
                    record.label = slot.label();
                    record.at = since;
                    record.wall = now.saturating_sub(since);
                    record.facts = p.facts;
                    record.object = p.object;
                    record.stack = p.stack;
                    calls.extend(self.collected.single(&record));
                }
            }
        }
        for call in &mut calls {
            call.running = true;
        }
        (calls, holds)
    }

    /// What is to be said now.
    pub fn announcements(&mut self) -> Vec<Announcement> {
        let mut announcements = std::mem::take(&mut self.announcements);
        announcements.retain(|a| self.is_watched(a.who.scope));
        announcements
    }

    /// Whether anybody wants to know of what happens in a scope.
    fn is_watched(&self, scope: ScopeId) -> bool {
        self.whole || scope != ScopeId::PROCESS
    }

    /// Closes the holds of threads that returned to their scheduler, without waiting for a tick.
    pub fn settle(&mut self) {
        self.drain();
        let slots = table::used();
        for (i, slot) in slots.iter().enumerate().take(self.tracks.len()) {
            let gone = slot.tid().is_none() || slot.no() != self.tracks[i].no;
            if gone {
                self.forget(i);
            } else if slot.beat() != self.tracks[i].beat || table::own_is(slot) {
                // Parked since, or it is us: no poll runs here.
                self.close(i, slot.tid().unwrap_or(KernelTid(0)), false);
            }
        }
    }
}

/// Whether a call of this kind counts by its length.
fn is_timed(inside: Inside) -> bool {
    matches!(inside, Inside::Wait | Inside::Timed | Inside::Other)
}

/// Whether the intercepted call goes on after a signal. Reading from what is certainly no socket
/// starts again: nothing was read yet.
fn goes_on(inside: Inside, doing: Option<schedstat::InKernel>) -> bool {
    restarts(doing)
        || matches!(doing, Some(schedstat::InKernel::Call { number: libc::SYS_read, .. })
            if inside == Inside::Other)
}

/// The system call that a thread is in, as people know it.
fn name_of(doing: Option<schedstat::InKernel>) -> Option<&'static str> {
    let Some(schedstat::InKernel::Call { number, .. }) = doing else { return None };
    Some(match number {
        libc::SYS_futex => "futex",
        libc::SYS_read => "read",
        libc::SYS_open | libc::SYS_openat => "open",
        libc::SYS_flock => "flock",
        libc::SYS_fcntl => "fcntl",
        _ => return None,
    })
}

/// Whether a signal does no harm to whatever the thread does now.
fn may_interrupt(tid: KernelTid) -> bool {
    let doing = schedstat::in_kernel(tid);
    !matches!(doing, Some(schedstat::InKernel::Call { .. })) || restarts(doing)
}

/// Whether the thread sleeps in a system call that a signal handler with `SA_RESTART` does not
/// change for the program. Reads with a time-out on their socket, polls, naps, timed futexes and
/// large writes are not among them.
fn restarts(doing: Option<schedstat::InKernel>) -> bool {
    let Some(schedstat::InKernel::Call { number, args }) = doing else { return false };
    match number {
        libc::SYS_futex => {
            let command = args[1] as i32 & 0x7f;
            args[3] == 0
                && matches!(
                    command,
                    libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_LOCK_PI
                )
        }
        libc::SYS_wait4 | libc::SYS_waitid | libc::SYS_flock => true,
        libc::SYS_fsync | libc::SYS_fdatasync => true,
        libc::SYS_openat | libc::SYS_open => true,
        libc::SYS_fcntl => matches!(args[1] as i32, libc::F_SETLKW | libc::F_OFD_SETLKW),
        _ => false,
    }
}
