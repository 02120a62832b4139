//! The constructor: runs before the program's own ones, so that everything is in place when the
//! first thread is made.
//!
//! Calls: `dlsym`, `dlerror`, `on_exit`, `pthread_atfork`, `pthread_key_create`.

use super::{births, reentry, table};
use crate::ids::Nanos;
use crate::slots::slot::flag;
use crate::slots::{alarm, table as slots};
use crate::sys::{clock, signal, thread};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};

type Main = extern "C" fn(libc::c_int, *const *const libc::c_char, *const *const libc::c_char);

// 00001: before every constructor without a number; the exit handler registered here runs after
// everybody else's, coverage profiles and C streams included only because `exit` goes on.
#[used]
#[link_section = ".init_array.00001"]
static CONSTRUCTOR: Main = construct;

static PID: AtomicI32 = AtomicI32::new(0);
static GATE: AtomicUsize = AtomicUsize::new(0);

/// Given the code the program chose, says with which one to end.
pub type Gate = fn(i32) -> i32;

/// Installs the exit gate of the armed process.
pub fn install_gate(gate: Gate) {
    PID.store(thread::pid(), Ordering::Relaxed);
    GATE.store(gate as usize, Ordering::Release);
}

/// The code with which the process shall end; runs the gate, once, in the process that was armed.
pub fn gate(code: i32) -> i32 {
    if PID.load(Ordering::Relaxed) != thread::pid() {
        return code;
    }
    match GATE.swap(0, Ordering::AcqRel) {
        0 => code,
        gate => {
            // SAFETY: stored by `install_gate`, a function of this type.
            let gate = unsafe { core::mem::transmute::<usize, Gate>(gate) };
            gate(code)
        }
    }
}

/// Whether this is a child of the armed process (by `fork` or anything like it).
pub fn in_child() -> bool {
    let armed = PID.load(Ordering::Relaxed);
    armed != 0 && armed != thread::pid()
}

/// What `_exit` asks of the watchdog: 0 nothing, 1 to run the gate, 2 it has run.
static ASKED: AtomicU32 = AtomicU32::new(0);
static CODE: AtomicI32 = AtomicI32::new(0);
/// Somebody answers to [`ASKED`].
static SERVED: AtomicU32 = AtomicU32::new(0);
/// So long `_exit` waits for the report: whoever it interrupted may hold a lock for good.
const PATIENCE: Nanos = Nanos(10_000_000_000);

/// The gate for `_exit`, which a signal handler may call, on whatever stack and under whatever
/// locks: the watchdog runs it. Calls nothing but `slots` and bare system calls itself.
pub fn gate_elsewhere(code: i32) -> i32 {
    if in_child() || GATE.load(Ordering::Acquire) == 0 {
        return code;
    }
    let ours = slots::own().is_some_and(|slot| slot.has(flag::OURS));
    if ours || SERVED.load(Ordering::Acquire) == 0 {
        return gate(code);
    }
    // No sample from here on: it would find no room on a handler's small stack.
    signal::block_all();
    CODE.store(code, Ordering::Relaxed);
    // Release: the code is visible with it. Whoever comes second waits for the same answer.
    let _ = ASKED.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire);
    if alarm::rouse() {
        thread::wake(&alarm::WORD);
    }
    let until = clock::now().0.saturating_add(PATIENCE.0);
    while ASKED.load(Ordering::Acquire) != 2 {
        let left = until.saturating_sub(clock::now().0);
        if left == 0 {
            return code;
        }
        thread::wait(&ASKED, 1, Some(Nanos(left)));
    }
    CODE.load(Ordering::Relaxed)
}

/// The watchdog, at each of its turns: runs the gate if `_exit` asked for it.
pub fn serve() {
    SERVED.store(1, Ordering::Release);
    if ASKED.load(Ordering::Acquire) == 1 {
        CODE.store(gate(CODE.load(Ordering::Relaxed)), Ordering::Relaxed);
        ASKED.store(2, Ordering::Release);
        thread::wake(&ASKED);
    }
}

unsafe extern "C" {
    fn on_exit(
        f: extern "C" fn(libc::c_int, *mut libc::c_void),
        arg: *mut libc::c_void,
    ) -> libc::c_int;
}

extern "C" fn at_exit(status: libc::c_int, _: *mut libc::c_void) {
    let code = gate(status);
    if code != status {
        // SAFETY: C's `exit`, called again from a handler, goes on with the handlers that are
        // left, with the new code (glibc documents it beside its recursive exit lock). std's own
        // `exit` refuses re-entry, `_exit` would skip the rest.
        unsafe { libc::exit(code) };
    }
}

extern "C" fn construct(
    _argc: libc::c_int,
    argv: *const *const libc::c_char,
    _envp: *const *const libc::c_char,
) {
    table::resolve_all();
    births::register_main(argv as usize);
    // SAFETY: functions of the right types that live for ever.
    unsafe {
        on_exit(at_exit, core::ptr::null_mut());
        libc::pthread_atfork(None, None, Some(in_fork_child));
    }
}

unsafe extern "C" fn in_fork_child() {
    reentry::disarm();
    births::turn_off();
}
