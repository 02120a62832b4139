//! Clocks. `clock_gettime` of a thread's own clocks is answered by the vdso or one system call,
//! and is async-signal-safe.

use crate::ids::{CpuNanos, KernelTid, Nanos};

fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is valid for writing; an unknown clock is an error code, not undefined.
    let rc = unsafe { libc::clock_gettime(clock, &mut ts) };
    (rc == 0)
        .then(|| (ts.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(ts.tv_nsec as u64))
}

/// Now, on `CLOCK_MONOTONIC`.
#[inline]
pub fn now() -> Nanos {
    Nanos(read(libc::CLOCK_MONOTONIC).unwrap_or(0))
}

/// What this thread spent on processors so far.
#[inline]
pub fn own_cpu() -> CpuNanos {
    CpuNanos(read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0))
}

/// What another thread of this process spent on processors so far; `None` once it is gone.
///
/// The clock id is made as the kernel documents it for per-thread CPU clocks
/// (`(~tid << 3) | PERTHREAD | SCHED`); unlike run-queue statistics it does not lag.
pub fn cpu_of(tid: KernelTid) -> Option<CpuNanos> {
    let saved = super::raw::errno();
    let id = (!tid.0 << 3) | 6;
    let value = read(id).map(CpuNanos);
    super::raw::set_errno(saved);
    value
}
