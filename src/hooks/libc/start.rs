//! The constructor: runs before the program's own ones, so that everything is in place when the
//! first thread is made.
//!
//! Calls: `dlsym`, `on_exit`, `pthread_atfork`, `pthread_key_create`.

use super::{births, reentry, table};
use crate::sys::thread;
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

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
