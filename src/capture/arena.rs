//! Where the signal handler puts what it copies.

use crate::ids::{CpuNanos, Nanos, ScopeId};
use crate::slots::record::RawFacts;
use core::sync::atomic::{AtomicU32, Ordering};

/// Bytes of stack that are copied. The usual stack of a task is 7 to 13 KiB deep.
pub const STACK: usize = 64 * 1024;

const EMPTY: u32 = 0;
const FULL: u32 = 1;

/// One sample. The watchdog owns it, except between `Slot::request_sample` and the handler's
/// [`Buffer::fill`], when the handler does.
pub struct Buffer {
    state: AtomicU32,
    pub sample: Sample,
}

/// What a handler saw.
#[repr(C)]
pub struct Sample {
    pub at: Nanos,
    pub cpu: CpuNanos,
    pub facts: RawFacts,
    /// Budget left before the mark was taken; `None`: unlimited.
    pub left: Option<u8>,
    /// Units taken as a mark.
    pub taken: u8,
    /// Units of budget taken on this thread so far, these included.
    pub taken_in_all: u32,
    /// Units to take, set by the watchdog.
    pub take: u8,
    pub beat: u32,
    pub scope: ScopeId,
    /// Of a wrapped future: see `Slot::poll`.
    pub poll: u32,
    pub ip: u64,
    pub sp: u64,
    pub bp: u64,
    pub stack_len: usize,
    /// The copy ends before the thread's stack does.
    pub cut: bool,
    pub stack: [u8; STACK],
}

impl Buffer {
    /// A new buffer, on the heap; its stack part is not touched before it is used.
    pub fn new() -> Box<Buffer> {
        let layout = std::alloc::Layout::new::<Buffer>();
        // SAFETY: the layout is not of size 0, and a zeroed `Buffer` is valid: numbers, arrays of
        // numbers, `false`, and `None` of `Option<u8>` (tag 0).
        unsafe {
            let memory = std::alloc::alloc_zeroed(layout) as *mut Buffer;
            if memory.is_null() {
                std::alloc::handle_alloc_error(layout);
            }
            Box::from_raw(memory)
        }
    }

    /// Watchdog: makes it ready for a request.
    pub fn reset(&mut self, take: u8) {
        self.sample.take = take;
        self.state.store(EMPTY, Ordering::Relaxed);
    }

    /// Handler: says that it is filled.
    pub fn fill(&self) {
        // Release: pairs with `is_full`.
        self.state.store(FULL, Ordering::Release);
    }

    /// Watchdog: whether the handler is done with it.
    pub fn is_full(&self) -> bool {
        // Acquire: pairs with `fill`.
        self.state.load(Ordering::Acquire) == FULL
    }
}
