//! Installing the sampling signal.

use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The signal that asks a thread for a sample: by default it is ignored, and few programs use it.
pub const SAMPLE: i32 = libc::SIGURG;

/// A handler in the three-argument form.
pub type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

static PREVIOUS: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static PREVIOUS_FLAGS: AtomicUsize = AtomicUsize::new(0);
static INSTALLED: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Installs `handler` for [`SAMPLE`]. `SA_RESTART` so that most system calls go on; **not**
/// `SA_ONSTACK`: std's alternate stack is too small for anything. Returns whether it is in force.
pub fn install(handler: Handler) -> bool {
    if INSTALLED.load(Ordering::Acquire) == handler as *mut () {
        return true;
    }
    // SAFETY: both structures are locals, fully initialised; the handler is async-signal-safe
    // (`capture::handler`).
    unsafe {
        let mut new: libc::sigaction = core::mem::zeroed();
        new.sa_sigaction = handler as *const () as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&mut new.sa_mask);
        let mut old: libc::sigaction = core::mem::zeroed();
        if libc::sigaction(SAMPLE, &new, &mut old) != 0 {
            return false;
        }
        if old.sa_sigaction != handler as *const () as usize {
            PREVIOUS.store(old.sa_sigaction, Ordering::Release);
            PREVIOUS_FLAGS.store(old.sa_flags as usize, Ordering::Release);
        }
    }
    INSTALLED.store(handler as *mut (), Ordering::Release);
    true
}

/// Whether [`install`]'s handler is still the one: a program that takes the signal for itself
/// afterwards must not get our samples.
pub fn in_force() -> bool {
    // SAFETY: `now` is a local; nothing is changed.
    unsafe {
        let mut now: libc::sigaction = core::mem::zeroed();
        libc::sigaction(SAMPLE, core::ptr::null(), &mut now) == 0
            && now.sa_sigaction == INSTALLED.load(Ordering::Acquire) as usize
    }
}

/// Hands a signal that was not ours to whoever was there before. Async-signal-safe as far as that
/// handler is.
pub fn chain(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let previous = PREVIOUS.load(Ordering::Acquire);
    if previous == libc::SIG_DFL || previous == libc::SIG_IGN {
        return; // SIGURG is ignored by default
    }
    let flags = PREVIOUS_FLAGS.load(Ordering::Acquire) as i32;
    // SAFETY: the kernel gave us this address as the handler of that form.
    unsafe {
        if flags & libc::SA_SIGINFO != 0 {
            let f: Handler = core::mem::transmute::<usize, Handler>(previous);
            f(signal, info, context);
        } else {
            let f: extern "C" fn(i32) = core::mem::transmute::<usize, extern "C" fn(i32)>(previous);
            f(signal);
        }
    }
}

/// Blocks every signal on the calling thread and returns the old mask.
pub fn block_all() -> libc::sigset_t {
    // SAFETY: locals, initialised by the calls.
    unsafe {
        let mut all: libc::sigset_t = core::mem::zeroed();
        let mut old: libc::sigset_t = core::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        old
    }
}

/// Restores a mask that [`block_all`] returned.
pub fn restore(mask: &libc::sigset_t) {
    // SAFETY: `mask` is valid.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, core::ptr::null_mut()) };
}
