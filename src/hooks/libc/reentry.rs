//! Whether a call is to be watched at all, and the guard that keeps our own work out.
//!
//! Calls: nothing.

use crate::ids::ScopeId;
use crate::slots::slot::{flag, Inside, Slot};
use crate::slots::table;
use core::sync::atomic::{AtomicU32, Ordering};

/// Bit 31: the whole process is watched. Below: how many scopes are open.
static ARMED: AtomicU32 = AtomicU32::new(0);
const WHOLE: u32 = 1 << 31;

/// Watches every thread, from now on.
pub fn arm_process() {
    ARMED.fetch_or(WHOLE, Ordering::Release);
}

/// Watches threads that are in a scope, as long as any scope is open.
pub fn open_scope() {
    ARMED.fetch_add(1, Ordering::Release);
}

/// Ends what `open_scope` began.
pub fn close_scope() {
    ARMED.fetch_sub(1, Ordering::Release);
}

/// Watches nothing any more (a fork child; the end of the process).
pub fn disarm() {
    ARMED.store(0, Ordering::Release);
}

#[inline(always)]
fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack)) };
    sp
}

/// Whether this is our own work's call. The slot has the stack pointer of the outermost watched
/// call. A call further up the thread's own stack than that one is not nested in it: somebody
/// jumped over it unseen, and it counts as over. A call on another stack is a signal handler's,
/// and nested.
#[inline(always)]
fn nested(slot: &Slot) -> bool {
    // Relaxed: the thread's own.
    let depth = slot.depth.load(Ordering::Relaxed);
    depth != 0 && {
        let here = stack_pointer();
        here < depth || here > slot.stack().1
    }
}

/// `longjmp` and its kin: the calls it may jump over are over.
pub fn jumped() {
    let Some(slot) = table::own() else { return };
    // Our own work on this thread is not jumped over.
    if slot.depth.load(Ordering::Relaxed) != usize::MAX {
        slot.depth.store(0, Ordering::Relaxed);
    }
    if slot.inside().0 != Inside::Nothing {
        slot.leave();
    }
    if slot.beat() % 2 == 1 {
        slot.unpark();
    }
}

/// Whether a call of this thread may have to be watched at all. Most calls outside of polls end
/// here, in a handful of instructions without a jump: after a system call every jump is a slow
/// one on processors that forget their branches in the kernel.
///
/// `hot`: a call that is made often and takes little, for which a thread without a runtime is not
/// even asked about (`births::descent`).
#[inline(always)]
pub fn concerned(hot: bool) -> bool {
    const USUAL: u32 = flag::TOUCHED | flag::DYING | flag::OURS;
    let of_interest = if hot { USUAL | flag::UNASKED } else { USUAL };
    ARMED.load(Ordering::Relaxed) != 0
        && table::own().is_some_and(|slot| slot.flags() & of_interest == flag::TOUCHED)
}

/// The calling thread's slot, if its calls are watched here and now.
#[inline(always)]
pub fn watched() -> Option<&'static Slot> {
    let armed = ARMED.load(Ordering::Relaxed);
    if armed == 0 {
        return None;
    }
    let slot = table::own()?;
    let quiet = slot.flags() & (flag::TOUCHED | flag::DYING | flag::OURS) != flag::TOUCHED;
    if quiet || (armed & WHOLE == 0 && slot.scope() == ScopeId::PROCESS) || nested(slot) {
        return None;
    }
    Some(slot)
}

/// From here to [`leave`], calls of this thread are not watched.
#[inline(always)]
pub fn enter() {
    set(stack_pointer());
}

#[inline(always)]
pub fn leave() {
    set(0);
}

/// A thread without a slot is not watched at all.
#[inline(always)]
fn set(depth: usize) {
    if let Some(slot) = table::own() {
        slot.depth.store(depth, Ordering::Relaxed);
    }
}

/// Runs our own work on a user's thread with its calls unwatched, and its time: it may run inside
/// of a poll. Not for interposed functions: it has a destructor.
pub fn unwatched<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(usize, u32);
    impl Drop for Restore {
        fn drop(&mut self) {
            set(self.0);
            if let Some(slot) = table::own() {
                slot.allow.store(self.1, Ordering::Relaxed);
            }
        }
    }
    let Some(slot) = table::own() else { return f() };
    // Relaxed: the thread's own; the watchdog may see it a look late.
    let allow = slot.allow.load(Ordering::Relaxed);
    let _restore = Restore(slot.depth.load(Ordering::Relaxed), allow);
    set(usize::MAX);
    slot.allow.store(allow + 1, Ordering::Relaxed);
    f()
}
