//! Threads: who am I, wake and wait, signal.

use super::raw::syscall;
use crate::ids::{KernelTid, Nanos};
use core::sync::atomic::AtomicU32;

/// The calling thread.
pub fn own_tid() -> KernelTid {
    // SAFETY: takes no arguments, cannot fail.
    KernelTid(unsafe { syscall(libc::SYS_gettid, []) } as i32)
}

/// This process. Not cached: a fork child must see its own.
pub fn pid() -> i32 {
    // SAFETY: takes no arguments, cannot fail.
    unsafe { syscall(libc::SYS_getpid, []) as i32 }
}

/// Sends `signal` to one thread of this process. `false`: the thread is gone, or it is forbidden.
pub fn signal(tid: KernelTid, signal: i32) -> bool {
    // SAFETY: no pointers.
    let rc =
        unsafe { syscall(libc::SYS_tgkill, [pid() as usize, tid.0 as usize, signal as usize]) };
    rc == 0
}

/// Sleeps until `word` is no longer `expected`, somebody wakes it, or the time is over.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Nanos>) {
    let ts = timeout.map(|n| libc::timespec {
        tv_sec: (n.0 / 1_000_000_000) as i64,
        tv_nsec: (n.0 % 1_000_000_000) as i64,
    });
    let ts = ts.as_ref().map_or(core::ptr::null(), |t| t as *const libc::timespec);
    let op = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: `word` outlives the call, `ts` is null or a local that does.
    unsafe {
        syscall(
            libc::SYS_futex,
            [word.as_ptr() as usize, op as usize, expected as usize, ts as usize],
        )
    };
}

/// Wakes whoever waits on `word`.
pub fn wake(word: &AtomicU32) {
    let op = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: waking reads no memory of ours.
    unsafe { syscall(libc::SYS_futex, [word.as_ptr() as usize, op as usize, i32::MAX as usize]) };
}
