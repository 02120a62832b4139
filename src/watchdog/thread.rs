//! The watchdog's thread: looks at every tick while anything runs, and sleeps while every worker
//! is parked.
#![forbid(unsafe_code)]

use super::cadence::{self, Cadence};
use super::watch::{Announcement, Watch};
use crate::ids::Nanos;
use crate::slots::alarm;
use crate::sys::{clock, signal, thread};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

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
    pub fn lock(&self) -> std::sync::MutexGuard<'_, Watch> {
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

/// Starts the thread and waits until `prepare` has run on it: what it learns is needed by the
/// first thread that the program makes. `turn` runs before each of its looks; `announce` says what
/// must be said while the program runs.
///
/// # Errors
///
/// As the operating system refuses another thread.
pub fn start(
    shared: Arc<Shared>,
    prepare: fn(),
    turn: fn(),
    announce: fn(Vec<Announcement>),
) -> std::io::Result<()> {
    // The new thread inherits the mask: it must not take part in the program's signals.
    let mask = signal::block_all();
    let begun = clock::now();
    let theirs = shared.clone();
    let result = std::thread::Builder::new()
        .name("stallhound".into())
        .stack_size(2 << 20)
        .spawn(move || {
            prepare();
            theirs.ready.store(1, Ordering::Release);
            thread::wake(&theirs.ready);
            run(&theirs, turn, announce);
        })
        .map(drop);
    signal::restore(&mask);
    result?;
    while shared.ready.load(Ordering::Acquire) == 0 && clock::now() - begun < PATIENCE {
        thread::wait(&shared.ready, 0, Some(Nanos::from_millis(50)));
    }
    Ok(())
}

fn run(shared: &Shared, turn: fn(), announce: fn(Vec<Announcement>)) {
    let mut cadence = Cadence::new(cadence::tick(shared.lock().floors.busy), clock::now());
    let pause = AtomicU32::new(0);
    let mut quiet = 0u32;
    while !shared.stop.load(Ordering::Acquire) {
        turn();
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
        if !said.is_empty() {
            announce(said);
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
