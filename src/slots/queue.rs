//! A bounded queue of [`Record`]s: many writers that never wait, one reader at a time.
//!
//! Each cell carries a sequence number (D. Vyukov's bounded queue): equal to the ticket when the
//! cell is free, ticket + 1 when it is full, ticket + `CELLS` when it is free for the next round.

use super::record::Record;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Records that fit between two looks of the watchdog.
pub const CELLS: usize = 1024;

struct Cell {
    /// Stored minus the cell's index, so that zeroed memory is the initial state.
    sequence: AtomicUsize,
    record: UnsafeCell<Record>,
}

struct Ring([Cell; CELLS]);
// SAFETY: a cell's record is touched only by the thread that holds its ticket, handed over by the
// release store and acquire load of `sequence`.
unsafe impl Sync for Ring {}

static RING: Ring = Ring(
    [const { Cell { sequence: AtomicUsize::new(0), record: UnsafeCell::new(Record::EMPTY) } };
        CELLS],
);
static HEAD: AtomicUsize = AtomicUsize::new(0);
static TAIL: AtomicUsize = AtomicUsize::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);

/// Copies a record in. `false`, and counted, if there is no room.
pub fn push(record: &Record) -> bool {
    let mut head = HEAD.load(Ordering::Relaxed);
    loop {
        let cell = &RING.0[head % CELLS];
        // Acquire: the reader's last look at the record happened before we overwrite it.
        let sequence = cell.sequence.load(Ordering::Acquire).wrapping_add(head % CELLS);
        if sequence == head {
            // Relaxed: the ticket alone decides; the record is published by `sequence`.
            match HEAD.compare_exchange_weak(
                head,
                head.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    // SAFETY: the ticket `head` is ours alone until `sequence` moves on.
                    unsafe { *cell.record.get() = *record };
                    // Release: publishes the record.
                    cell.sequence
                        .store(head.wrapping_add(1).wrapping_sub(head % CELLS), Ordering::Release);
                    return true;
                }
                Err(now) => head = now,
            }
        } else if sequence.wrapping_sub(head) as isize > 0 {
            head = HEAD.load(Ordering::Relaxed);
        } else {
            LOST.fetch_add(1, Ordering::Relaxed);
            return false;
        }
    }
}

/// Takes the oldest record out, into `out`.
pub fn pop(out: &mut Record) -> bool {
    let mut tail = TAIL.load(Ordering::Relaxed);
    loop {
        let cell = &RING.0[tail % CELLS];
        // Acquire: pairs with the release in `push`.
        let sequence = cell.sequence.load(Ordering::Acquire).wrapping_add(tail % CELLS);
        let wanted = tail.wrapping_add(1);
        if sequence == wanted {
            match TAIL.compare_exchange_weak(tail, wanted, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    // SAFETY: the ticket `tail` is ours alone until `sequence` moves on.
                    *out = unsafe { *cell.record.get() };
                    // Release: the cell is free only after our copy.
                    cell.sequence.store(
                        tail.wrapping_add(CELLS).wrapping_sub(tail % CELLS),
                        Ordering::Release,
                    );
                    return true;
                }
                Err(now) => tail = now,
            }
        } else if sequence.wrapping_sub(wanted) as isize > 0 {
            tail = TAIL.load(Ordering::Relaxed);
        } else {
            return false;
        }
    }
}

/// Records that found no room so far.
pub fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ThreadNo;

    // One test: the queue is one per process.
    #[test]
    fn every_record_arrives_once_or_is_counted() {
        let mut out = Record::EMPTY;
        while pop(&mut out) {}
        let lost_before = lost();
        let mut record = Record::EMPTY;
        for i in 0..CELLS as u64 {
            record.thread = ThreadNo(i);
            assert!(push(&record));
        }
        assert!(!push(&record), "no room for one more");
        assert_eq!(lost() - lost_before, 1);
        for i in 0..CELLS as u64 {
            assert!(pop(&mut out));
            assert_eq!(out.thread, ThreadNo(i));
        }
        assert!(!pop(&mut out));

        const EACH: u64 = 20_000;
        let lost_before = lost();
        let writers: Vec<_> = (0..4u64)
            .map(|w| {
                std::thread::spawn(move || {
                    let mut record = Record::EMPTY;
                    for i in 0..EACH {
                        record.thread = ThreadNo(w * EACH + i);
                        push(&record);
                    }
                })
            })
            .collect();
        let mut seen = vec![0u32; (4 * EACH) as usize];
        loop {
            let done = writers.iter().all(|w| w.is_finished());
            let mut any = false;
            while pop(&mut out) {
                any = true;
                seen[out.thread.0 as usize] += 1;
            }
            if done && !any {
                break;
            }
        }
        let arrived = seen.iter().filter(|n| **n == 1).count() as u64;
        assert!(seen.iter().all(|n| *n <= 1), "none twice");
        assert_eq!(arrived + (lost() - lost_before), 4 * EACH);
    }
}
