//! Asking tokio about the calling thread: which task, which worker, and above all whether a poll
//! is running that must not block (its cooperative budget is limited).
//!
//! Calls: `tokio::task::try_id`, `tokio::runtime::worker_index` where it exists,
//! `tokio::runtime::Handle::try_current`, `tokio::task::coop::{has_budget_remaining,
//! poll_proceed}`: thread-local look-ups without allocation once the thread has touched tokio
//! ([`touch`]). [`task`], [`worker`] and [`remaining`] may be called in a signal handler; those
//! that take a handle may not.

use crate::slots::record::RawFacts;
use core::hash::{Hash, Hasher};
use core::task::{Context, Poll, Waker};
use tokio::task::coop;

/// Registers tokio's thread-local for the calling thread (its first use allocates once).
pub fn touch() {
    let _ = tokio::task::try_id();
    let _ = coop::has_budget_remaining();
    let _ = tokio::runtime::Handle::try_current();
}

/// Takes the number out of tokio's opaque ids, which are hashable but not convertible.
struct Number(u64);

impl Hasher for Number {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for (i, b) in bytes.iter().take(8).enumerate() {
            self.0 |= (*b as u64) << (8 * i);
        }
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}

fn number(id: impl Hash) -> u64 {
    let mut number = Number(0);
    id.hash(&mut number);
    number.0
}

/// The task that runs on this thread. Also the id under which a parked worker was launched.
#[inline]
pub fn task() -> Option<u64> {
    tokio::task::try_id().map(number)
}

/// The worker's index, where this tokio can tell (since 1.54). The outer `None`: it cannot.
#[inline]
pub fn worker() -> Option<Option<usize>> {
    newer::ask()
}

/// Newer tokio's functions, where there are any.
///
/// A name that a block imports by glob hides the same name outside of the block; where tokio has
/// no such name, ours outside is found. Methods of the type likewise hide a trait's.
mod newer {
    use tokio::runtime::Handle;

    pub struct Missing;
    pub trait Answer {
        fn known(self) -> Option<Option<usize>>;
    }
    impl Answer for Missing {
        fn known(self) -> Option<Option<usize>> {
            None
        }
    }
    impl Answer for Option<usize> {
        fn known(self) -> Option<Option<usize>> {
            Some(self)
        }
    }

    #[allow(dead_code)]
    fn worker_index() -> Missing {
        Missing
    }

    #[inline]
    pub fn ask() -> Option<Option<usize>> {
        #[allow(unused_imports)]
        use tokio::runtime::*;
        worker_index().known()
    }

    #[derive(Hash)]
    pub struct NoId;
    #[allow(dead_code)]
    pub trait WithoutId {
        fn id(&self) -> NoId {
            NoId
        }
    }
    impl WithoutId for Handle {}

    /// `Handle::id` exists since 1.49; 0 before.
    pub fn runtime_number(handle: &Handle) -> u64 {
        super::number(handle.id())
    }
}

/// Whether and where the calling thread is inside of a runtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Glance {
    /// Not at all, or where nothing that blocks does harm.
    Outside,
    /// Under this task id.
    Task(u64),
    /// On a thread that runs a scheduler, but not in a task.
    NoTask,
}

/// The cheap look (4 ns) that most calls end with.
///
/// A root future of a multi-thread runtime may block: where tokio tells, its thread is outside,
/// and so is one that only entered a handle. Asking for the handle instead takes and drops a
/// reference count.
#[inline]
pub fn glance() -> Glance {
    if let Some(id) = task() {
        return Glance::Task(id);
    }
    let inside = match worker() {
        Some(index) => index.is_some(),
        None => tokio::runtime::Handle::try_current().is_ok(),
    };
    if inside {
        Glance::NoTask
    } else {
        Glance::Outside
    }
}

/// A poll starts with this much budget.
pub const FULL: u8 = 128;

/// The budget that is left, without changing it; `None`: it is not limited.
///
/// The first guard remembers the budget and, being dropped, restores it; in between every further
/// guard takes one unit, until none is left or more were taken than there can be. The branch that
/// fails is never taken: it would defer a waker.
pub fn remaining() -> Option<u8> {
    if !coop::has_budget_remaining() {
        return Some(0);
    }
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(_restore) = coop::poll_proceed(&mut cx) else { return Some(0) };
    let mut taken = 1u8;
    while coop::has_budget_remaining() {
        if taken > FULL {
            return None;
        }
        match coop::poll_proceed(&mut cx) {
            Poll::Ready(unit) => unit.made_progress(),
            Poll::Pending => break,
        }
        taken += 1;
    }
    Some(taken)
}

/// Whether this thread's own scheduler is parking, told by tokio's count of parks and unparks: then
/// no poll runs on it. `false` also where this tokio cannot tell. For first looks only: counting the
/// budget takes 40 µs in a build without optimisation, and a test makes a runtime. Not for handlers.
///
/// Inside of another runtime's `enter` guard the answer is about that one's worker of this index.
pub fn parking() -> bool {
    let Some(Some(index)) = worker() else { return false };
    let Ok(handle) = tokio::runtime::Handle::try_current() else { return false };
    let metrics = handle.metrics();
    index < metrics.num_workers() && metrics.worker_park_unpark_count(index) % 2 == 1
}

/// Takes `units` of the budget for good, never below half of a full one. Returns how many.
pub fn take(left: u8, units: u8) -> u8 {
    if left < FULL / 2 + units {
        return 0;
    }
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..units {
        if let Poll::Ready(unit) = coop::poll_proceed(&mut cx) {
            unit.made_progress();
        }
    }
    units
}

/// Facts that may be asked for in a signal handler: budget, task and worker.
pub fn facts_in_handler() -> (RawFacts, Option<u8>) {
    let left = remaining();
    (facts(left.is_some()), left)
}

/// The facts of a scheduler that is [`parking`].
pub fn facts_in_park() -> RawFacts {
    facts(false)
}

fn facts(constrained: bool) -> RawFacts {
    let worker = worker();
    RawFacts {
        constrained,
        task: task().unwrap_or(0),
        worker: worker.flatten().map_or(0, |w| w as u32 + 1),
        worker_known: worker.is_some(),
        ..RawFacts::default()
    }
}

/// Flavor, number and size of the runtime this thread is inside of. Not for handlers: takes and
/// drops a handle.
pub fn add_runtime(facts: &mut RawFacts) {
    if let Ok(handle) = tokio::runtime::Handle::try_current() {
        facts.flavor = match handle.runtime_flavor() {
            tokio::runtime::RuntimeFlavor::CurrentThread => 1,
            tokio::runtime::RuntimeFlavor::MultiThread => 2,
            _ => 0,
        };
        facts.runtime = newer::runtime_number(&handle);
        facts.workers = handle.metrics().num_workers() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> RawFacts {
        let (mut facts, _) = facts_in_handler();
        add_runtime(&mut facts);
        facts
    }

    fn current() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn outside_of_a_runtime_nothing_is_limited() {
        touch();
        assert_eq!(remaining(), None);
        assert_eq!(glance(), Glance::Outside);
        let facts = facts();
        assert_eq!((facts.constrained, facts.task, facts.runtime), (false, 0, 0));
    }

    #[test]
    fn reading_the_budget_restores_it() {
        current().block_on(async {
            for _ in 0..3 {
                assert_eq!(remaining(), Some(FULL));
            }
            for n in 1..=40u8 {
                tokio::task::consume_budget().await;
                assert_eq!(remaining(), Some(FULL - n));
            }
            let left = remaining().unwrap();
            assert_eq!(take(left, 3), 3);
            assert_eq!(remaining(), Some(left - 3));
            while remaining().unwrap() > FULL / 2 {
                tokio::task::consume_budget().await;
            }
            assert_eq!(take(remaining().unwrap(), 1), 0, "never below half");
            while remaining() != Some(0) && remaining() != Some(1) {
                tokio::task::consume_budget().await;
            }
            assert_eq!(remaining(), Some(1));
        });
    }

    #[test]
    fn a_poll_is_not_parking() {
        assert!(!parking());
        current().block_on(async { assert!(!parking()) });
        let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        rt.block_on(async {
            assert!(!parking());
            assert!(!tokio::spawn(async { parking() }).await.unwrap());
        });
    }

    /// A timer wakes from inside of the park of whichever worker drives it.
    #[test]
    fn a_scheduler_that_waits_is() {
        use std::future::Future;
        use std::sync::{mpsc, Arc, Mutex};
        use std::time::Duration;
        struct Asks(Mutex<mpsc::Sender<bool>>);
        impl std::task::Wake for Asks {
            fn wake(self: Arc<Self>) {
                let _ = self.0.lock().unwrap().send(parking());
            }
        }
        let multi =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
        let current = tokio::runtime::Builder::new_current_thread().enable_time().build();
        for rt in [multi.unwrap(), current.unwrap()] {
            let (tell, told) = mpsc::channel();
            let waker = Waker::from(Arc::new(Asks(Mutex::new(tell))));
            let asked = rt.block_on(async {
                let mut early = Box::pin(tokio::time::sleep(Duration::from_millis(1)));
                assert!(early.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
                loop {
                    tokio::time::sleep(Duration::from_millis(3)).await;
                    if let Ok(parking) = told.try_recv() {
                        break parking;
                    }
                }
            });
            // Where tokio cannot name the worker, the answer is the careful one.
            assert_eq!(asked, newer::ask().is_some());
        }
    }

    #[test]
    fn ids_are_tokios_own() {
        let rt = current();
        rt.block_on(async {
            assert_eq!(glance(), Glance::NoTask);
            let handle = tokio::spawn(async { (glance(), tokio::task::id().to_string()) });
            let (glance, text) = handle.await.unwrap();
            assert_eq!(glance, Glance::Task(text.parse().unwrap()));
            let facts = facts();
            assert_eq!((facts.flavor, facts.workers), (1, 1));
            assert!(facts.constrained);
        });
    }
}
