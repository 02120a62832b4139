//! All slots, the calling thread's own one, and the stacks of calls that have not returned.

use super::label::Label;
use super::record::{Addresses, CallId, Object, RawFacts};
use super::slot::Slot;
use crate::ids::{KernelTid, Nanos, ScopeId, ThreadNo};
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Threads that can be watched at one time. More are not watched, and counted.
pub const SLOTS: usize = 4096;

static TABLE: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];
/// One behind the highest slot ever used: where to stop looking.
static HIGH: AtomicUsize = AtomicUsize::new(0);
/// Where to begin to look for a free one.
static HINT: AtomicUsize = AtomicUsize::new(0);
static BIRTHS: AtomicU64 = AtomicU64::new(1);
static UNWATCHED: AtomicU32 = AtomicU32::new(0);

thread_local! {
    // Const, without Drop: a plain load relative to the thread pointer, nothing is registered.
    static OWN: Cell<Option<&'static Slot>> = const { Cell::new(None) };
}

/// The calling thread's slot. Async-signal-safe.
#[inline(always)]
pub fn own() -> Option<&'static Slot> {
    OWN.get()
}

/// Whether this is the calling thread's slot.
pub fn own_is(slot: &Slot) -> bool {
    own().is_some_and(|own| core::ptr::eq(own, slot))
}

/// Gives the calling thread a slot. `None` if all are taken.
pub fn register(
    tid: KernelTid,
    scope: ScopeId,
    label: Label,
    flags: u32,
    start_routine: usize,
    handle: usize,
    stack: (usize, usize),
) -> Option<&'static Slot> {
    let from = HINT.load(Ordering::Relaxed);
    for i in 0..SLOTS {
        let index = (from + i) % SLOTS;
        let slot = &TABLE[index];
        if slot.claim() {
            // Relaxed: a hint, and a bound that only grows before the slot is published.
            HINT.store((index + 1) % SLOTS, Ordering::Relaxed);
            HIGH.fetch_max(index + 1, Ordering::Relaxed);
            let no = ThreadNo(BIRTHS.fetch_add(1, Ordering::Relaxed));
            slot.publish(no, tid, scope, label, flags, start_routine, handle, stack);
            OWN.set(Some(slot));
            return Some(slot);
        }
    }
    UNWATCHED.fetch_add(1, Ordering::Relaxed);
    None
}

/// Gives the calling thread's slot back.
pub fn unregister() {
    if let Some(slot) = OWN.take() {
        slot.free();
        let index = index_of(slot);
        // Low slots first, so that `HIGH` stays low.
        HINT.fetch_min(index, Ordering::Relaxed);
    }
}

/// Threads whose start routine is over, the latest ones: a thread may be waited for while it runs
/// its last instructions, and when it has no slot any more. A handle picks its row, so that a birth
/// looks at four cells and not at all; a fifth of one row takes the oldest one's place.
///
/// A cell is a handle, shifted by 16, and the low bits of the thread's number in the order of ends.
/// Handles are addresses of 47 bits in steps of 64 (glibc aligns a thread's control block to that).
static ENDED: [[AtomicU64; 4]; 32] = [const { [const { AtomicU64::new(0) }; 4] }; 32];
static ENDS: AtomicU64 = AtomicU64::new(1);

const NUMBER: u32 = 22;

fn row_of(handle: usize) -> &'static [AtomicU64; 4] {
    // Fibonacci hashing of the page; the top five bits.
    &ENDED[((handle as u64 >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59) as usize]
}

fn is_of(cell: u64, handle: usize) -> bool {
    cell >> NUMBER == (handle as u64) >> (NUMBER - 16)
}

/// How long ago this cell's thread ended, in ends; longest for an empty one and for this handle's
/// former owner.
fn age(cell: u64, handle: usize, n: u64) -> u64 {
    if cell == 0 || is_of(cell, handle) {
        return u64::MAX;
    }
    n.wrapping_sub(cell) & ((1 << NUMBER) - 1)
}

/// The thread's own code is over.
pub fn ended(handle: usize) {
    let n = ENDS.fetch_add(1, Ordering::Relaxed);
    let new = (handle as u64) << 16 | n & ((1 << NUMBER) - 1);
    // Again where another thread took the same place meanwhile. Four are enough: one that finds no
    // place is forgotten, and waiting for it is timed like any wait.
    for _ in 0..4 {
        let (mut place, mut oldest) = (&row_of(handle)[0], (0, 0));
        for each in row_of(handle) {
            let cell = each.load(Ordering::Relaxed);
            let age = age(cell, handle, n);
            if age > oldest.0 {
                (place, oldest) = (each, (age, cell));
            }
        }
        // Release: what the thread did is before it.
        if place.compare_exchange(oldest.1, new, Ordering::Release, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// How many threads have ended.
pub fn ends() -> u64 {
    ENDS.load(Ordering::Relaxed)
}

/// A new thread has this handle. Whoever had it before ended when [`ends`] said `before`, or
/// earlier; the new one may have ended as well.
pub fn recycled(handle: usize, before: u64) {
    for place in row_of(handle) {
        let cell = place.load(Ordering::Relaxed);
        let earlier = (cell.wrapping_sub(before) << (64 - NUMBER)) as i64 <= -1;
        if is_of(cell, handle) && earlier {
            let _ = place.compare_exchange(cell, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Whether the code of the thread with this handle is known to be over.
pub fn has_ended(handle: usize) -> bool {
    handle != 0 && row_of(handle).iter().any(|cell| is_of(cell.load(Ordering::Acquire), handle))
}

/// A slot's number in the table.
pub fn index_of(slot: &Slot) -> usize {
    (slot as *const Slot as usize - TABLE.as_ptr() as usize) / core::mem::size_of::<Slot>()
}

/// All slots that were ever used.
pub fn used() -> &'static [Slot] {
    &TABLE[..HIGH.load(Ordering::Relaxed)]
}

/// Threads that found no slot.
pub fn unwatched() -> u32 {
    UNWATCHED.load(Ordering::Relaxed)
}

/// A call that has not returned: who made it and from where.
#[derive(Clone, Copy)]
pub struct Pending {
    pub call: CallId,
    pub at: Nanos,
    pub facts: RawFacts,
    pub object: Object,
    pub stack: Addresses,
}

/// A slot's pending call. Written by the slot's thread while `Slot::inside` is `Nothing`, read by
/// the watchdog while it is `Call`, and checked again afterwards.
pub struct PendingCell {
    version: AtomicU32,
    value: UnsafeCell<Pending>,
}

// SAFETY: see `write` and `read`: a sequence lock with one writer.
unsafe impl Sync for PendingCell {}

static PENDING: [PendingCell; SLOTS] = [const {
    PendingCell {
        version: AtomicU32::new(0),
        value: UnsafeCell::new(Pending {
            call: CallId(0),
            at: Nanos::ZERO,
            facts: RawFacts::NONE,
            object: Object::NONE,
            stack: Addresses::EMPTY,
        }),
    }
}; SLOTS];

/// The pending call of a slot.
pub fn pending(slot: &Slot) -> &'static PendingCell {
    &PENDING[index_of(slot)]
}

impl PendingCell {
    /// Owner only: changes the value.
    pub fn write(&self, f: impl FnOnce(&mut Pending)) {
        // A write that was jumped over left it odd.
        let version = self.version.load(Ordering::Relaxed) | 1;
        // Odd while it changes. Release and the fence order it before the writes.
        self.version.store(version, Ordering::Relaxed);
        core::sync::atomic::fence(Ordering::Release);
        // SAFETY: only the owner writes; a reader that overlaps throws its copy away.
        f(unsafe { &mut *self.value.get() });
        self.version.store(version.wrapping_add(1), Ordering::Release);
    }

    /// Owner only: looks at the value it wrote.
    pub fn own(&self) -> &Pending {
        // SAFETY: only the owner writes, and it is not writing now.
        unsafe { &*self.value.get() }
    }

    /// Anybody: a copy, if it did not change meanwhile.
    pub fn read(&self) -> Option<Pending> {
        let before = self.version.load(Ordering::Acquire);
        if before % 2 == 1 {
            return None;
        }
        // SAFETY: the memory is static and plain; a torn copy is thrown away below. Volatile, so
        // that it is really read here.
        let copy = unsafe { self.value.get().read_volatile() };
        core::sync::atomic::fence(Ordering::Acquire);
        (self.version.load(Ordering::Relaxed) == before).then_some(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recycled_handle_has_not_ended() {
        let (one, other) = (0x7f00_0000_1000, 0x7f00_0000_2000);
        ended(one);
        ended(other);
        let before = ends();
        assert!(has_ended(one) && has_ended(other));
        recycled(one, before);
        assert!(!has_ended(one), "it is a new thread's");
        assert!(has_ended(other));
        ended(one);
        recycled(one, before);
        assert!(has_ended(one), "the new thread has ended before its creator went on");
        assert!(!has_ended(0));
    }

    #[test]
    fn the_oldest_of_a_row_is_forgotten_first() {
        // Beside any real thread's: above user space's addresses.
        let of_a_row: Vec<usize> = (0..)
            .map(|i| 0x8000_0000_0000 + i * 0x1000)
            .filter(|&handle| std::ptr::eq(row_of(handle), &ENDED[7]))
            .take(6)
            .collect();
        for &handle in &of_a_row[..4] {
            ended(handle);
        }
        ended(of_a_row[3]);
        assert!(of_a_row[1..4].iter().all(|&handle| has_ended(handle)), "one place a handle");
        ended(of_a_row[4]);
        ended(of_a_row[5]);
        assert!(of_a_row[2..].iter().all(|&handle| has_ended(handle)));
        assert!(!has_ended(of_a_row[0]) && !has_ended(of_a_row[1]));
    }
}
