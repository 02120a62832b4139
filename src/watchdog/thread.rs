//! The watchdog's thread: looks at every tick while anything runs, and sleeps while every worker
//! is parked.
#![forbid(unsafe_code)]

use super::cadence::{self, Cadence};
use super::watch::{Announcement, Watch};
use crate::ids::Nanos;
use crate::slots::alarm;
use crate::sys::{clock, signal, thread};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// What the watchdog's thread and the front ends share.
pub struct Shared {
    pub watch: Mutex<Watch>,
    stop: AtomicBool,
    /// 1 once the thread has prepared itself.
    ready: AtomicU32,
    /// Looks so far: a front end can wait until one more has been.
    looks: AtomicU32,
    wakeups: AtomicU64,
}

impl Shared {
    pub fn new(watch: Watch) -> Shared {
        Shared {
            watch: Mutex::new(watch),
            stop: AtomicBool::new(false),
            ready: AtomicU32::new(0),
            looks: AtomicU32::new(0),
            wakeups: AtomicU64::new(0),
        }
    }

    /// The memory, whatever happened to a thread that held it.
    pub fn lock(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// How often the watchdog woke up.
    pub fn wakeups(&self) -> u64 {
        self.wakeups.load(Ordering::Relaxed)
    }

    /// Ends the watchdog's looks for good.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// Looks without anything going on, before the watchdog goes to sleep.
const QUIET: u32 = 16;

/// The longest that a start waits for the new thread.
const PATIENCE: Nanos = Nanos::from_millis(2000);

/// What the watchdog does beside looking.
#[derive(Clone, Copy)]
pub struct Duties {
    /// First on its thread, before [`start`] returns: what it learns is needed by the first thread
    /// that the program makes.
    pub prepare: fn(),
    /// Before each look.
    pub turn: fn(),
    /// Says what must be said while the program runs.
    pub announce: fn(Vec<Announcement>),
    /// First on each other thread of ours.
    pub enlist: fn(),
}

/// Starts the thread and waits until it has prepared itself.
///
/// # Errors
///
/// As the operating system refuses another thread.
pub fn start(shared: Arc<Shared>, duties: Duties) -> std::io::Result<()> {
    // The new thread inherits the mask: it must not take part in the program's signals.
    let mask = signal::block_all();
    let begun = clock::now();
    let theirs = shared.clone();
    let result = std::thread::Builder::new()
        .name("stallhound".into())
        .stack_size(2 << 20)
        .spawn(move || {
            (duties.prepare)();
            theirs.ready.store(1, Ordering::Release);
            thread::wake(&theirs.ready);
            run(&theirs, duties);
        })
        .map(drop);
    signal::restore(&mask);
    result?;
    while shared.ready.load(Ordering::Acquire) == 0 && clock::now() - begun < PATIENCE {
        thread::wait(&shared.ready, 0, Some(Nanos::from_millis(50)));
    }
    Ok(())
}

/// Says announcements on a thread of its own, one after the other: names cost a second in a build
/// without optimisation, and all that time nobody would look at the poll that they are about.
#[derive(Default)]
struct Announcer {
    unsaid: Arc<Mutex<Vec<Announcement>>>,
    thread: Option<JoinHandle<()>>,
}

impl Announcer {
    fn unsaid(&self) -> MutexGuard<'_, Vec<Announcement>> {
        self.unsaid.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns whether anything is left to be said that nobody is saying yet.
    fn say(&mut self, more: Vec<Announcement>, duties: Duties) -> bool {
        let waiting = {
            let mut unsaid = self.unsaid();
            unsaid.extend(more);
            !unsaid.is_empty()
        };
        if !waiting {
            return false;
        }
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return true;
        }
        let unsaid = self.unsaid.clone();
        let take = move || {
            std::mem::take(&mut *unsaid.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
        };
        let theirs = take.clone();
        // All signals are blocked here, and so on a thread that is made here.
        self.thread = std::thread::Builder::new()
            .name("stallhound-says".into())
            .stack_size(2 << 20)
            .spawn(move || {
                (duties.enlist)();
                (duties.announce)(theirs());
            })
            .ok();
        if self.thread.is_none() {
            (duties.announce)(take());
        }
        false
    }
}

fn run(shared: &Shared, duties: Duties) {
    let mut announcer = Announcer::default();
    let mut cadence = Cadence::new(cadence::tick(shared.lock().floors.busy), clock::now());
    let pause = AtomicU32::new(0);
    let mut quiet = 0u32;
    while !shared.stop.load(Ordering::Acquire) {
        (duties.turn)();
        let rest = cadence.pause(clock::now());
        if rest.0 > 0 {
            thread::wait(&pause, 0, Some(rest));
        }
        shared.wakeups.fetch_add(1, Ordering::Relaxed);
        let look = cadence.look(clock::now());
        let said = {
            let mut watch = shared.lock();
            cadence.set_tick(cadence::tick(watch.floors.busy));
            let active = watch.tick(look, cadence.tick());
            quiet = if active { 0 } else { quiet + 1 };
            watch.announcements()
        };
        shared.looks.fetch_add(1, Ordering::Release);
        if announcer.say(said, duties) {
            quiet = 0;
        }
        if quiet >= QUIET {
            // Say it first, look once more, then sleep: whoever unparks in between sees that we
            // sleep and wakes us, or we see that it unparked.
            alarm::doze();
            let look = cadence.look(clock::now());
            let active = shared.lock().tick(look, cadence.tick());
            if active {
                alarm::rouse();
            } else {
                while alarm::WORD.load(Ordering::Acquire) != 0
                    && !shared.stop.load(Ordering::Acquire)
                {
                    thread::wait(&alarm::WORD, 1, None);
                }
                shared.wakeups.fetch_add(1, Ordering::Relaxed);
            }
            quiet = 0;
            cadence.resume(clock::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{KernelTid, ScopeId, ThreadNo};
    use crate::slots::label::Label;
    use crate::slots::record::RawFacts;
    use std::sync::atomic::AtomicU64;
    use std::time::{Duration, Instant};

    /// How much has been said, in milliseconds held.
    static SAID: AtomicU64 = AtomicU64::new(0);
    static MAY_SAY: Mutex<()> = Mutex::new(());
    static ENLISTED: AtomicU32 = AtomicU32::new(0);

    fn about(held: u64) -> Vec<Announcement> {
        let (scope, no, tid) = (ScopeId::PROCESS, ThreadNo(1), KernelTid(1));
        let who = super::super::collect::who(scope, no, tid, Label::NONE, &RawFacts::default());
        vec![Announcement { who, held: Nanos::from_millis(held), stack: None, call: None }]
    }

    #[test]
    fn nobody_waits_for_an_announcement_and_none_is_lost() {
        let duties = Duties {
            prepare: || (),
            turn: || (),
            announce: |all| {
                let _may = MAY_SAY.lock().unwrap();
                for one in all {
                    SAID.fetch_add(one.held.0 / 1_000_000, Ordering::SeqCst);
                }
            },
            enlist: || {
                ENLISTED.fetch_add(1, Ordering::SeqCst);
            },
        };
        let mut announcer = Announcer::default();
        assert!(!announcer.say(Vec::new(), duties), "nothing to be said");
        let begun = Instant::now();
        let in_time = || assert!(begun.elapsed() < Duration::from_secs(60), "it is never said");
        let held_up = MAY_SAY.lock().unwrap();
        assert!(!announcer.say(about(1000), duties));
        while !announcer.unsaid().is_empty() {
            in_time();
            std::thread::yield_now();
        }
        assert!(announcer.say(about(2000), duties), "the first one is still being said");
        assert!(announcer.say(Vec::new(), duties));
        assert_eq!(SAID.load(Ordering::SeqCst), 0);
        drop(held_up);
        while announcer.say(Vec::new(), duties) || SAID.load(Ordering::SeqCst) < 3000 {
            in_time();
            std::thread::yield_now();
        }
        assert_eq!(SAID.load(Ordering::SeqCst), 3000);
        assert_eq!(ENLISTED.load(Ordering::SeqCst), 2, "a thread for each");
    }
}
