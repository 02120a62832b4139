//! One thread's slot.

use super::label::{self, Label};
use crate::ids::{KernelTid, Nanos, ScopeId, ThreadNo};
use core::sync::atomic::{
    fence, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

/// What a thread is inside of, as far as the watchdog must know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Inside {
    /// Nothing that was intercepted.
    Nothing = 0,
    /// An intercepted call, inside of a poll, whose stack is in [`super::table::pending`].
    Call = 1,
    /// A lock, condition variable or channel, inside of a poll.
    Wait = 2,
    /// A call that is only timed (files, datagrams); whether a poll runs was not asked.
    Timed = 3,
    /// As `Timed`, of a call that waits for somebody else: a pipe, a terminal, a file lock.
    Other = 4,
}

impl Inside {
    fn from(raw: u32) -> Inside {
        match raw {
            1 => Inside::Call,
            2 => Inside::Wait,
            3 => Inside::Timed,
            4 => Inside::Other,
            _ => Inside::Nothing,
        }
    }
}

pub mod flag {
    /// tokio's thread-local was touched: look-ups allocate nothing.
    pub const TOUCHED: u32 = 1;
    /// The thread's start routine returned: no look-ups any more.
    pub const DYING: u32 = 2;
    /// One of our own threads.
    pub const OURS: u32 = 4;
    /// The main thread made it.
    pub const BORN_OF_MAIN: u32 = 8;
    /// The main thread itself.
    pub const MAIN: u32 = 16;
    /// Was seen inside of a runtime.
    pub const RUNTIME: u32 = 32;
    /// Made an epoll descriptor: most likely built a runtime, and will drive it.
    pub const BUILDER: u32 = 64;
    /// May have built a runtime, or was made by a thread that may have.
    pub const ASK: u32 = 128;
    /// Certainly has not, nor has any thread it descends from.
    pub const UNASKED: u32 = 256;
}

/// Short calls of one poll, added up until they matter.
#[derive(Debug)]
pub struct Sum {
    pub task: AtomicU64,
    pub beat: AtomicU32,
    pub calls: AtomicU32,
    pub time: AtomicU64,
    /// Part of `time` since the poll's identity was last checked.
    pub unchecked: AtomicU64,
    /// The budget left at the last check, + 1; 0: not checked yet.
    pub mark: AtomicU32,
    /// What `Slot::taken` was then.
    pub taken: AtomicU32,
    pub certain: AtomicU32,
    pub at: AtomicU64,
    /// Run-queue wait of the thread at the first check.
    pub waited: AtomicU64,
    /// Time at which the next record of this sum is due.
    pub due: AtomicU64,
}

impl Sum {
    const fn new() -> Sum {
        Sum {
            task: AtomicU64::new(0),
            beat: AtomicU32::new(0),
            calls: AtomicU32::new(0),
            time: AtomicU64::new(0),
            unchecked: AtomicU64::new(0),
            mark: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            certain: AtomicU32::new(0),
            at: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            due: AtomicU64::new(0),
        }
    }
}

/// What was started last on a thread: a process or a thread.
#[derive(Debug)]
pub struct Start {
    /// Its pid or `pthread_t`; 0: nothing, or it was waited for.
    pub what: AtomicU64,
    pub task: AtomicU64,
    pub beat: AtomicU32,
    /// The budget that was left.
    pub left: AtomicU32,
    /// What `Slot::taken` was then.
    pub taken: AtomicU32,
}

impl Start {
    const fn new() -> Start {
        Start {
            what: AtomicU64::new(0),
            task: AtomicU64::new(0),
            beat: AtomicU32::new(0),
            left: AtomicU32::new(0),
            taken: AtomicU32::new(0),
        }
    }
}

/// Kinds of short calls that are added up, by index into [`Slot::sums`].
pub const SUM_KINDS: usize = 7;

/// One thread. All fields but the last two are written by the thread itself.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Slot {
    tid: AtomicI32,
    no: AtomicU64,
    scope: AtomicU32,
    /// The scope of the wrapped future that is being polled; 0: none is.
    polled: AtomicU32,
    /// How often a poll of a wrapped future began or ended.
    polls: AtomicU32,
    label: AtomicU32,
    flags: AtomicU32,
    /// Odd: parked. Grows by two with each turn of the scheduler that we see.
    beat: AtomicU32,
    inside: AtomicU32,
    since: AtomicU64,
    /// How often it woke somebody through a futex.
    wakes: AtomicU32,
    /// The id under which tokio launched this worker, once learnt.
    launch: AtomicU64,
    /// Units of budget taken on this thread, by whomever of us.
    taken: AtomicU32,
    /// The runtime it was last seen inside of: its number,
    runtime: AtomicU64,
    /// and its flavor (top byte) and number of workers.
    workers: AtomicU32,
    /// Depth of `allow_blocking`.
    pub allow: AtomicU32,
    /// Stack pointer of the outermost watched call, 0 if none. Owner only.
    pub depth: AtomicUsize,
    start_routine: AtomicUsize,
    /// Its `pthread_t`.
    handle: AtomicUsize,
    stack_low: AtomicUsize,
    stack_high: AtomicUsize,
    pub sums: [Sum; SUM_KINDS],
    /// The process,
    pub child: Start,
    /// and the thread that it started last.
    pub joinable: Start,
    /// Set by the watchdog: where the handler shall put its sample. Null: none is wanted.
    sample: AtomicPtr<()>,
}

impl Slot {
    pub(super) const fn new() -> Slot {
        Slot {
            tid: AtomicI32::new(0),
            no: AtomicU64::new(0),
            scope: AtomicU32::new(0),
            polled: AtomicU32::new(0),
            polls: AtomicU32::new(0),
            label: AtomicU32::new(0),
            flags: AtomicU32::new(0),
            beat: AtomicU32::new(0),
            inside: AtomicU32::new(0),
            since: AtomicU64::new(0),
            wakes: AtomicU32::new(0),
            launch: AtomicU64::new(0),
            taken: AtomicU32::new(0),
            runtime: AtomicU64::new(0),
            workers: AtomicU32::new(0),
            allow: AtomicU32::new(0),
            depth: AtomicUsize::new(0),
            start_routine: AtomicUsize::new(0),
            handle: AtomicUsize::new(0),
            stack_low: AtomicUsize::new(0),
            stack_high: AtomicUsize::new(0),
            sums: [const { Sum::new() }; SUM_KINDS],
            child: Start::new(),
            joinable: Start::new(),
            sample: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Takes a free slot for a new thread. `false`: somebody else has it.
    pub(super) fn claim(&self) -> bool {
        // -1 marks "being filled". Acquire: sees the last owner's release of it.
        self.tid.compare_exchange(0, -1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Fills a claimed slot and publishes it.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn publish(
        &self,
        no: ThreadNo,
        tid: KernelTid,
        scope: ScopeId,
        label: Label,
        flags: u32,
        start_routine: usize,
        handle: usize,
        stack: (usize, usize),
    ) {
        self.no.store(no.0, Ordering::Relaxed);
        self.scope.store(scope.0, Ordering::Relaxed);
        self.polled.store(0, Ordering::Relaxed);
        self.label.store(label.0, Ordering::Relaxed);
        self.flags.store(flags, Ordering::Relaxed);
        self.beat.store(0, Ordering::Relaxed);
        self.inside.store(0, Ordering::Relaxed);
        self.wakes.store(0, Ordering::Relaxed);
        self.launch.store(0, Ordering::Relaxed);
        self.runtime.store(0, Ordering::Relaxed);
        self.workers.store(0, Ordering::Relaxed);
        self.allow.store(0, Ordering::Relaxed);
        self.depth.store(0, Ordering::Relaxed);
        self.start_routine.store(start_routine, Ordering::Relaxed);
        self.handle.store(handle, Ordering::Relaxed);
        self.stack_low.store(stack.0, Ordering::Relaxed);
        self.stack_high.store(stack.1, Ordering::Relaxed);
        for sum in &self.sums {
            sum.calls.store(0, Ordering::Relaxed);
            sum.time.store(0, Ordering::Relaxed);
            sum.task.store(0, Ordering::Relaxed);
        }
        self.child.what.store(0, Ordering::Relaxed);
        self.joinable.what.store(0, Ordering::Relaxed);
        // A request that the thread before did not answer is the watchdog's to withdraw.
        // Release: whoever sees the tid sees the rest.
        self.tid.store(tid.0, Ordering::Release);
    }

    /// Gives the slot back at the end of its thread.
    pub(super) fn free(&self) {
        // Release: our last writes are before the next owner's first ones.
        self.tid.store(0, Ordering::Release);
    }

    /// The thread in this slot, if there is one.
    pub fn tid(&self) -> Option<KernelTid> {
        // Acquire: pairs with `publish`.
        let tid = self.tid.load(Ordering::Acquire);
        (tid > 0).then_some(KernelTid(tid))
    }

    pub fn no(&self) -> ThreadNo {
        ThreadNo(self.no.load(Ordering::Relaxed))
    }

    /// Whose limits apply to what this thread does now: those of the wrapped future that it
    /// polls, else its own scope's, else its test's.
    #[inline]
    pub fn scope(&self) -> ScopeId {
        let polled = self.polled.load(Ordering::Relaxed);
        if polled != 0 {
            return ScopeId(polled);
        }
        match self.own_scope() {
            ScopeId::PROCESS => label::scope(self.label()),
            own => own,
        }
    }

    /// The scope of the thread itself, which threads that it makes inherit.
    #[inline]
    pub fn own_scope(&self) -> ScopeId {
        ScopeId(self.scope.load(Ordering::Relaxed))
    }

    /// Owner only: a poll of a wrapped future begins. Returns what [`Slot::leave_poll`] needs.
    #[inline]
    pub fn enter_poll(&self, scope: ScopeId) -> ScopeId {
        self.leave_poll(scope)
    }

    /// Owner only: it ends, and what was polled before goes on.
    #[inline]
    pub fn leave_poll(&self, before: ScopeId) -> ScopeId {
        let was = self.polled.load(Ordering::Relaxed);
        self.polled.store(before.0, Ordering::Relaxed);
        self.polls.store(self.polls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        ScopeId(was)
    }

    /// A number that stays the same as long as one and the same poll of a wrapped future runs;
    /// 0: none does.
    pub fn poll(&self) -> u32 {
        match self.polled.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.polls.load(Ordering::Relaxed) | 1 << 31,
        }
    }

    /// Owner only. Returns the scope before.
    pub fn enter_scope(&self, scope: ScopeId) -> ScopeId {
        ScopeId(self.scope.swap(scope.0, Ordering::Relaxed))
    }

    pub fn label(&self) -> Label {
        Label(self.label.load(Ordering::Relaxed))
    }

    /// Owner only.
    pub fn set_label(&self, label: Label) {
        self.label.store(label.0, Ordering::Release);
    }

    #[inline(always)]
    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    pub fn has(&self, flag: u32) -> bool {
        self.flags() & flag != 0
    }

    /// Owner only.
    pub fn raise(&self, flag: u32) {
        let flags = self.flags.load(Ordering::Relaxed) | flag;
        let innocent = flags & (flag::ASK | flag::BUILDER | flag::RUNTIME) == 0;
        let flags = if innocent { flags } else { flags & !flag::UNASKED };
        self.flags.store(flags, Ordering::Relaxed);
    }

    /// Owner only.
    pub fn lower(&self, flag: u32) {
        let flags = self.flags.load(Ordering::Relaxed);
        self.flags.store(flags & !flag, Ordering::Relaxed);
    }

    /// Owner only: the thread is inside of a runtime.
    #[inline(always)]
    pub fn seen_in_runtime(&self) {
        if !self.has(flag::RUNTIME) {
            self.raise(flag::RUNTIME);
        }
    }

    /// Its `pthread_t`, as a number.
    pub fn handle(&self) -> usize {
        self.handle.load(Ordering::Relaxed)
    }

    pub fn start_routine(&self) -> usize {
        self.start_routine.load(Ordering::Relaxed)
    }

    /// Lowest and highest address of the thread's own stack.
    pub fn stack(&self) -> (usize, usize) {
        (self.stack_low.load(Ordering::Relaxed), self.stack_high.load(Ordering::Relaxed))
    }

    pub fn beat(&self) -> u32 {
        // Acquire: what the thread did before its last park is visible with it.
        self.beat.load(Ordering::Acquire)
    }

    /// Owner only: goes to sleep outside of any poll.
    #[inline]
    pub fn park(&self) {
        let beat = self.beat.load(Ordering::Relaxed);
        self.beat.store(beat.wrapping_add(1) | 1, Ordering::Release);
    }

    /// Owner only: is back from [`Slot::park`]. The caller must look whether the watchdog sleeps.
    #[inline]
    pub fn unpark(&self) {
        let beat = self.beat.load(Ordering::Relaxed);
        // Release + fence: the watchdog, before it goes to sleep, either sees this beat or we see
        // that it sleeps.
        self.beat.store((beat | 1).wrapping_add(1), Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Owner only: a turn of the scheduler without sleeping.
    #[inline]
    pub fn turn(&self) {
        let beat = self.beat.load(Ordering::Relaxed);
        self.beat.store(beat.wrapping_add(2) & !1, Ordering::Release);
    }

    /// Owner only.
    #[inline]
    pub fn enter(&self, inside: Inside, now: Nanos) {
        self.since.store(now.0, Ordering::Relaxed);
        // Release: the time and the pending stack are visible with it.
        self.inside.store(inside as u32, Ordering::Release);
        // A sample that was asked for before would interrupt this call. The fence pairs with
        // `may_signal`: either we see the request here, or the watchdog sees that we are inside.
        fence(Ordering::SeqCst);
        if !self.sample.load(Ordering::Relaxed).is_null() {
            self.let_sample_pass();
        }
    }

    /// Waits for the signal of a request that is under way; after a while (the thread blocks the
    /// signal, or the watchdog has no processor) takes the request back.
    #[cold]
    #[inline(never)]
    fn let_sample_pass(&self) {
        for _ in 0..20_000 {
            if self.sample.load(Ordering::Acquire).is_null() {
                return;
            }
            core::hint::spin_loop();
        }
        self.sample.store(core::ptr::null_mut(), Ordering::Release);
    }

    /// Watchdog only, between a request and its signal: whether the thread may be interrupted.
    pub fn may_signal(&self) -> bool {
        fence(Ordering::SeqCst);
        self.inside.load(Ordering::Relaxed) == Inside::Nothing as u32
    }

    /// Owner only.
    #[inline]
    pub fn leave(&self) {
        self.inside.store(Inside::Nothing as u32, Ordering::Release);
    }

    pub fn inside(&self) -> (Inside, Nanos) {
        let inside = Inside::from(self.inside.load(Ordering::Acquire));
        (inside, Nanos(self.since.load(Ordering::Relaxed)))
    }

    pub fn wakes(&self) -> u32 {
        self.wakes.load(Ordering::Relaxed)
    }

    /// Owner only.
    #[inline]
    pub fn woke(&self) {
        let n = self.wakes.load(Ordering::Relaxed);
        self.wakes.store(n.wrapping_add(1), Ordering::Relaxed);
    }

    /// Number, flavor and workers of the runtime it was last seen inside of; 0: not known.
    pub fn runtime(&self) -> (u64, u8, u32) {
        let workers = self.workers.load(Ordering::Relaxed);
        (self.runtime.load(Ordering::Relaxed), (workers >> 24) as u8, workers & 0xff_ffff)
    }

    /// Owner only.
    pub fn set_runtime(&self, number: u64, flavor: u8, workers: u32) {
        self.runtime.store(number, Ordering::Relaxed);
        let word = (flavor as u32) << 24 | workers.min(0xff_ffff);
        self.workers.store(word, Ordering::Relaxed);
    }

    /// Units of budget that were taken on this thread so far.
    pub fn taken(&self) -> u32 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Owner (its signal handler included) only.
    pub fn took(&self, units: u8) {
        // An atomic addition: the handler may interrupt the thread in the middle of its own.
        self.taken.fetch_add(units as u32, Ordering::Relaxed);
    }

    pub fn launch(&self) -> u64 {
        self.launch.load(Ordering::Relaxed)
    }

    /// Owner only.
    pub fn set_launch(&self, id: u64) {
        self.launch.store(id, Ordering::Relaxed);
    }

    /// Watchdog only: asks for a sample into `buffer`. `false`: one is under way.
    pub fn request_sample(&self, buffer: *mut ()) -> bool {
        // Release: the buffer's reset is before the handler's writes. Acquire on failure is not
        // needed: the buffer is not touched then.
        self.sample
            .compare_exchange(core::ptr::null_mut(), buffer, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Handler only: takes the request.
    pub fn take_sample_request(&self) -> *mut () {
        // Acquire: pairs with `request_sample`.
        self.sample.swap(core::ptr::null_mut(), Ordering::Acquire)
    }

    /// Watchdog only: takes a request back that was not answered. `true`: it was not answered,
    /// and will not be.
    pub fn withdraw_sample(&self, buffer: *mut ()) -> bool {
        self.sample
            .compare_exchange(buffer, core::ptr::null_mut(), Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }
}
