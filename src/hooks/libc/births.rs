//! Threads, from `pthread_create` to their end, and the tests they belong to.
//!
//! Calls: `slots`, `sys::thread`, `hooks::tokio::touch` (on the new thread, before its start
//! routine), `pthread_setspecific`, `std::thread::current` on threads that std started.

use super::{observe, started};
use crate::hooks::tokio;
use crate::ids::ScopeId;
use crate::slots::label::{self, Label};
use crate::slots::record::Addresses;
use crate::slots::slot::{flag, Slot};
use crate::slots::{alarm, table};
use crate::sys::thread;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// A thread's start routine.
pub type Start = extern "C-unwind" fn(*mut libc::c_void) -> *mut libc::c_void;

/// What a creator hands to its thread.
#[derive(Clone, Copy)]
struct Passage {
    start: usize,
    arg: usize,
    scope: ScopeId,
    label: Label,
    flags: u32,
    stack_size: usize,
    guard_size: usize,
}

struct Berth {
    state: AtomicU32,
    passage: UnsafeCell<Passage>,
}

// SAFETY: `passage` belongs to whoever moved `state` from FREE, and goes to the new thread with
// the pointer to the berth; `pthread_create` orders the two.
unsafe impl Sync for Berth {}

const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Threads on their way at one time. Further ones are not watched.
const BERTHS: usize = 256;

static BERTH: [Berth; BERTHS] = [const {
    Berth {
        state: AtomicU32::new(FREE),
        passage: UnsafeCell::new(Passage {
            start: 0,
            arg: 0,
            scope: ScopeId(0),
            label: Label::NONE,
            flags: 0,
            stack_size: 0,
            guard_size: 0,
        }),
    }
}; BERTHS];
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// pthread key whose destructor frees the slot, + 1.
static KEY: AtomicU32 = AtomicU32::new(0);
/// The start routine of std's threads, once one was seen to start.
static STD_START: AtomicUsize = AtomicUsize::new(0);
/// Stack of the first test thread: tells whether the harness is libtest.
static FIRST_TEST: FirstTest = FirstTest(UnsafeCell::new(Addresses::EMPTY), AtomicU32::new(0));
/// 1: whoever builds a runtime is seen to (see [`prove_seeding`]).
static SEEDING: AtomicU32 = AtomicU32::new(0);
/// Off: no thread is registered at all.
static OFF: AtomicU32 = AtomicU32::new(0);

struct FirstTest(UnsafeCell<Addresses>, AtomicU32);
// SAFETY: written once, by whoever moves the state from 0 to 1, read after it is 2.
unsafe impl Sync for FirstTest {}

/// `STALLHOUND=off`: threads are not registered.
pub fn turn_off() {
    OFF.store(1, Ordering::Relaxed);
}

extern "C" fn at_end(_: *mut libc::c_void) {
    table::unregister();
}

/// Constructor only: makes the key and registers the main thread.
pub fn register_main(stack_high: usize) {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: a local, and a destructor that touches only our own static memory.
    if unsafe { libc::pthread_key_create(&mut key, Some(at_end)) } == 0 {
        KEY.store(key + 1, Ordering::Relaxed);
    }
    tokio::touch();
    let low = stack_high.saturating_sub(8 << 20);
    table::register(
        thread::own_tid(),
        ScopeId::PROCESS,
        Label::NONE,
        flag::TOUCHED | flag::MAIN,
        0,
        handle(),
        (low, stack_high),
    );
}

/// Our own thread: remembers its start routine as std's, and proves what else is relied upon.
pub fn learn_std_start() {
    if let Some(slot) = table::own() {
        STD_START.store(slot.start_routine(), Ordering::Relaxed);
        slot.raise(flag::OURS);
        prove_seeding(slot);
    }
}

/// The calling thread is one of ours: not to be watched, and never a test's.
pub fn is_ours() {
    if let Some(slot) = table::own() {
        slot.raise(flag::OURS);
    }
}

/// `pthread_create`: registers the new thread at its birth.
///
/// # Safety
///
/// - As `pthread_create`; `real` is libc's own.
pub unsafe fn create(
    thread: *mut libc::pthread_t,
    attr: *const libc::pthread_attr_t,
    start: Start,
    arg: *mut libc::c_void,
    real: unsafe extern "C-unwind" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        Start,
        *mut libc::c_void,
    ) -> libc::c_int,
) -> libc::c_int {
    let berth = (OFF.load(Ordering::Relaxed) == 0 && KEY.load(Ordering::Relaxed) != 0)
        .then(find_berth)
        .flatten();
    let Some(berth) = berth else {
        // SAFETY: the caller's own call.
        return unsafe { real(thread, attr, start, arg) };
    };
    let (scope, label, mut flags) = match table::own() {
        Some(slot) => {
            let born_of_main = if slot.has(flag::MAIN) { flag::BORN_OF_MAIN } else { 0 };
            let label = label(slot);
            (slot.own_scope(), label, born_of_main | descent(slot))
        }
        None => (ScopeId::PROCESS, Label::NONE, 0),
    };
    if label != Label::NONE {
        flags &= !flag::BORN_OF_MAIN;
    }
    let (stack_size, guard_size) = stack_of(attr);
    let passage = Passage {
        start: start as usize,
        arg: arg as usize,
        scope,
        label,
        flags,
        stack_size,
        guard_size,
    };
    let before = table::ends();
    // SAFETY: the berth is ours since `find_berth`, and the new thread's once it starts.
    let rc = unsafe {
        *berth.passage.get() = passage;
        real(thread, attr, trampoline, berth as *const Berth as *mut libc::c_void)
    };
    if rc == 0 {
        // SAFETY: filled by a successful `pthread_create`.
        let handle = unsafe { *thread };
        table::recycled(handle as usize, before);
        if let Some(slot) = table::own() {
            started::thread(slot, handle);
        }
    } else {
        berth.state.store(FREE, Ordering::Release);
    }
    rc
}

/// Sizes of the stack and its guard that a thread with these attributes gets.
fn stack_of(attr: *const libc::pthread_attr_t) -> (usize, usize) {
    let (mut stack, mut guard) = (0usize, 0usize);
    // SAFETY: a valid attribute object, as the caller's own call demands, or a local one, which
    // stands for the defaults.
    unsafe {
        if attr.is_null() {
            let mut plain: libc::pthread_attr_t = core::mem::zeroed();
            if libc::pthread_attr_init(&mut plain) == 0 {
                libc::pthread_attr_getstacksize(&plain, &mut stack);
                libc::pthread_attr_getguardsize(&plain, &mut guard);
                libc::pthread_attr_destroy(&mut plain);
            }
        } else {
            libc::pthread_attr_getstacksize(attr, &mut stack);
            libc::pthread_attr_getguardsize(attr, &mut guard);
        }
    }
    (stack, guard)
}

/// The calling thread's stack: never more than is certainly its own, since the sampling handler
/// copies from it. glibc places the thread's descriptor at the upper end of the stack's memory.
fn bounds(high: usize, stack_size: usize, guard_size: usize) -> (usize, usize) {
    const ROUNDED: usize = 2 * 4096;
    // SAFETY: takes no arguments.
    let top = unsafe { libc::pthread_self() } as usize;
    let low = top.saturating_sub(stack_size).saturating_add(guard_size + ROUNDED);
    if stack_size != 0 && (low..top).contains(&high) {
        (low, high)
    } else {
        (high, high)
    }
}

/// The calling thread is about to end without returning from its start routine.
pub fn ending() {
    if let Some(slot) = table::own() {
        slot.raise(flag::DYING);
        table::ended(slot.handle());
    }
}

fn handle() -> usize {
    // SAFETY: takes no arguments.
    unsafe { libc::pthread_self() as usize }
}

/// Whether a thread may ever be inside of a runtime, for one that this thread makes.
///
/// A runtime is entered by the thread that built it, by threads that descend from that one, and
/// by whoever is handed the runtime or its handle. Building one takes a seed from std's
/// `RandomState`, and so the thread's first one takes random bytes from libc ([`random_bytes`]):
/// a thread that never did, and descends from none that did, is inside of a runtime only if it
/// was handed one, and is found when it first parks in it.
fn descent(slot: &Slot) -> u32 {
    if slot.has(flag::ASK | flag::BUILDER | flag::RUNTIME) {
        flag::ASK
    } else if SEEDING.load(Ordering::Relaxed) != 0 {
        flag::UNASKED
    } else {
        0
    }
}

/// The calling thread is armed: from now on it, too, is told apart.
pub fn settle() {
    if let Some(slot) = table::own() {
        if descent(slot) == flag::UNASKED {
            slot.raise(flag::UNASKED);
        }
    }
}

/// `getrandom`: see [`descent`].
pub fn random_bytes() {
    if let Some(slot) = table::own() {
        if !slot.has(flag::ASK) {
            slot.raise(flag::ASK);
        }
    }
}

/// On a new thread: looks whether std's random state takes its bytes through us.
/// Otherwise every thread is asked about.
fn prove_seeding(slot: &Slot) {
    // It may be inherited.
    slot.lower(flag::ASK);
    let _ = std::collections::hash_map::RandomState::new();
    SEEDING.store(slot.has(flag::ASK) as u32, Ordering::Relaxed);
}

fn find_berth() -> Option<&'static Berth> {
    let from = NEXT.fetch_add(1, Ordering::Relaxed);
    (0..BERTHS).map(|i| &BERTH[(from + i) % BERTHS]).find(|b| {
        // Acquire: pairs with the release that freed it.
        b.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    })
}

extern "C-unwind" fn trampoline(berth: *mut libc::c_void) -> *mut libc::c_void {
    let anchor = 0usize;
    let high = &anchor as *const usize as usize;
    // SAFETY: `create` passed the address of a static berth, filled for this thread.
    let passage = unsafe {
        let berth = &*(berth as *const Berth);
        let passage = *berth.passage.get();
        berth.state.store(FREE, Ordering::Release);
        passage
    };
    tokio::touch();
    let slot = table::register(
        thread::own_tid(),
        passage.scope,
        passage.label,
        passage.flags | flag::TOUCHED,
        passage.start,
        handle(),
        bounds(high, passage.stack_size, passage.guard_size),
    );
    if slot.is_some() {
        let key = KEY.load(Ordering::Relaxed);
        if key != 0 {
            // SAFETY: a key made by `register_main`; any non-null value makes it call back.
            unsafe { libc::pthread_setspecific(key - 1, core::ptr::dangling()) };
        }
        if alarm::rouse() {
            thread::wake(&alarm::WORD);
        }
    }
    // SAFETY: the start routine that the caller of `pthread_create` passed, with its argument.
    let result = unsafe {
        let start = core::mem::transmute::<usize, Start>(passage.start);
        start(passage.arg as *mut libc::c_void)
    };
    if let Some(slot) = slot {
        // Thread-local destructors run from here on: tokio's and std's look-ups are over.
        slot.raise(flag::DYING);
        table::ended(slot.handle());
    }
    result
}

/// The label of a thread. A thread that the main thread made is a test's (if the harness is
/// libtest) and takes its own name; all others have their creator's. Owner only.
pub fn label(slot: &'static Slot) -> Label {
    let known = slot.label();
    let std_start = STD_START.load(Ordering::Relaxed);
    if known != Label::NONE
        || !slot.has(flag::BORN_OF_MAIN)
        || slot.has(flag::DYING | flag::OURS)
        || std_start == 0
        || slot.start_routine() != std_start
    {
        return known;
    }
    // On a thread that std started this is a look-up and a reference count.
    let current = std::thread::current();
    let label = current.name().map_or(Label::NONE, label::intern);
    slot.set_label(label);
    if label != Label::NONE
        && FIRST_TEST.1.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    {
        // SAFETY: the state moved from 0 to 1 once, here.
        observe::trace_into(unsafe { &mut *FIRST_TEST.0.get() });
        FIRST_TEST.1.store(2, Ordering::Release);
    }
    label
}

/// The stack of the first test thread, as it was when its label was taken.
pub fn first_test_stack() -> Option<&'static Addresses> {
    // SAFETY: written before the state became 2, never again.
    (FIRST_TEST.1.load(Ordering::Acquire) == 2).then(|| unsafe { &*FIRST_TEST.0.get() })
}

/// The calling thread takes part in its test from now on, whatever made it. Owner only.
pub fn set_label(name: &str) -> Option<Label> {
    let slot = table::own()?;
    let before = slot.label();
    slot.set_label(label::intern(name));
    Some(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a new thread's slot says after `work`, its descent forgotten before.
    fn flags_after(work: impl FnOnce() + Send + 'static) -> u32 {
        let thread = std::thread::spawn(move || {
            let slot = table::own().expect("a slot");
            slot.lower(flag::ASK);
            slot.raise(flag::UNASKED);
            work();
            slot.flags() & (flag::ASK | flag::UNASKED)
        });
        thread.join().unwrap()
    }

    #[test]
    fn whoever_builds_a_runtime_is_seen_to() {
        let build = |mut builder: ::tokio::runtime::Builder| drop(builder.build().unwrap());
        // Without drivers: nothing else of it reaches libc.
        let current = move || build(::tokio::runtime::Builder::new_current_thread());
        assert_eq!(flags_after(current), flag::ASK);
        let multi = || {
            let mut builder = ::tokio::runtime::Builder::new_multi_thread();
            drop(builder.worker_threads(1).build().unwrap());
        };
        assert_eq!(flags_after(multi), flag::ASK);
        assert_eq!(flags_after(|| drop(std::fs::metadata("/"))), flag::UNASKED);
    }

    #[test]
    fn threads_inherit_what_their_maker_may_have_built() {
        let child = || {
            let flags = || table::own().unwrap().flags() & (flag::ASK | flag::UNASKED);
            std::thread::spawn(flags).join().unwrap()
        };
        let of_builder = std::thread::spawn(move || {
            drop(::tokio::runtime::Builder::new_current_thread().build().unwrap());
            child()
        });
        assert_eq!(of_builder.join().unwrap(), flag::ASK);
        let proven = std::thread::spawn(move || {
            prove_seeding(table::own().unwrap());
            assert_eq!(SEEDING.load(Ordering::Relaxed), 1, "std's seeds come through us");
            table::own().unwrap().lower(flag::ASK);
            child()
        });
        assert_eq!(proven.join().unwrap(), flag::UNASKED);
    }

    #[test]
    fn a_thread_whose_code_is_over_needs_not_be_waited_for() {
        use std::os::unix::thread::JoinHandleExt;
        let (tx, rx) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || rx.recv().unwrap());
        let handle = thread.as_pthread_t() as usize;
        assert!(!table::has_ended(handle));
        tx.send(()).unwrap();
        let begun = std::time::Instant::now();
        while !table::has_ended(handle) && begun.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        assert!(table::has_ended(handle));
        thread.join().unwrap();
    }
}
