//! The calling thread's own stack, while it is inside of an interposed call.
//!
//! Calls: `backtrace::trace_unsynchronized`, i.e. libgcc's unwinder, which on glibc ≥ 2.35 finds
//! its tables without a lock and allocates nothing.

use crate::slots::record::Addresses;

/// Fills `out` with the return addresses of the calling thread, innermost first.
#[inline(never)]
pub fn stack(out: &mut Addresses) {
    out.len = 0;
    out.truncated = false;
    // SAFETY: not synchronised with others that use the `backtrace` crate: tracing shares nothing
    // between threads (only symbolication does, and that is not done here).
    unsafe {
        backtrace::trace_unsynchronized(|frame| {
            let ip = frame.ip() as usize;
            ip != 0 && out.push(ip)
        });
    }
}
