//! The handler of the sampling signal. It only copies.
//!
//! Calls: `slots` (loads and stores), `sys::clock` (vdso or one system call), the reader that the
//! front end installed (`hooks::tokio::facts_in_handler` and `take`: thread-local look-ups), and
//! `memcpy`. No allocation, no lock, no formatting, no panic; errno is kept; no unwinding.

use super::arena::{Buffer, STACK};
use crate::slots::record::RawFacts;
use crate::slots::{slot::flag, table};
use crate::sys::{clock, raw, signal};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Reads tokio's facts and takes up to `take` units of budget: (facts, left before, taken).
pub type Reader = fn(take: u8) -> (RawFacts, Option<u8>, u8);

static READER: AtomicUsize = AtomicUsize::new(0);

/// Installs the handler. `false`: the signal cannot be had.
pub fn install(reader: Reader) -> bool {
    READER.store(reader as usize, Ordering::Release);
    signal::install(handle)
}

extern "C" fn handle(number: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let errno = raw::errno();
    if !sample(context) {
        signal::chain(number, info, context);
    }
    raw::set_errno(errno);
}

/// `false`: nobody asked this thread for a sample.
fn sample(context: *mut libc::c_void) -> bool {
    let Some(slot) = table::own() else { return false };
    let request = slot.take_sample_request() as *mut Buffer;
    if request.is_null() {
        return false;
    }
    let reader = READER.load(Ordering::Acquire);
    if reader == 0 {
        return true;
    }
    // SAFETY: a non-null request is a buffer that the watchdog leaves alone until it is full; the
    // reader is the function pointer stored by `install`; `context` is the kernel's ucontext.
    unsafe {
        let sample = &mut (*request).sample;
        sample.at = clock::now();
        sample.cpu = clock::own_cpu();
        sample.beat = slot.beat();
        sample.scope = slot.scope();
        sample.poll = slot.poll();
        if slot.has(flag::TOUCHED) && !slot.has(flag::DYING) {
            let read: Reader = core::mem::transmute::<usize, Reader>(reader);
            (sample.facts, sample.left, sample.taken) = read(sample.take);
            slot.took(sample.taken);
            sample.taken_in_all = slot.taken();
        } else {
            sample.facts = RawFacts::NONE;
            sample.left = None;
            sample.taken = 0;
            sample.taken_in_all = slot.taken();
        }
        let registers = &(*(context as *const libc::ucontext_t)).uc_mcontext.gregs;
        sample.ip = registers[libc::REG_RIP as usize] as u64;
        sample.sp = registers[libc::REG_RSP as usize] as u64;
        sample.bp = registers[libc::REG_RBP as usize] as u64;
        let (low, high) = slot.stack();
        let sp = sample.sp as usize;
        sample.stack_len = 0;
        sample.cut = true;
        // On a foreign stack (a coroutine's) only the instruction pointer is worth anything.
        if sp >= low && sp < high {
            let len = high - sp;
            sample.cut = len > STACK;
            sample.stack_len = if len > STACK { STACK } else { len };
            core::ptr::copy_nonoverlapping(
                sp as *const u8,
                sample.stack.as_mut_ptr(),
                sample.stack_len,
            );
        }
        (*request).fill();
    }
    true
}
