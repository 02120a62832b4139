//! The decision table.
//!
//! | what | where | judged |
//! |---|---|---|
//! | anything | below the panic hook, printing, thread start, … ([`super::rules`]) | silent |
//! | anything | multi-thread root, `block_in_place`, blocking pool, scheduler | silent |
//! | sleep of 1 ms or more, net on a stream, io-wait, dns, process, join, disk | task | deny |
//! | shorter sleeps | task | deny over 10 ms asked for in one poll |
//! | datagrams | task | deny over 10 ms |
//! | sync | task | by one wait, never by a sum: warn from 10 ms, deny from 100 ms |
//! | file | task | by one call or the sum of a poll: warn over 10 ms, deny over 100 ms |
//! | file-lock | task | by waits of one poll: deny over `threshold` |
//! | pipe | task | by one call or the sum of a poll: deny over 100 ms |
//! | pipe, reading what a child prints until it ends | task | process: deny over `threshold` |
//! | net, std's word from the child that it just made | task | as spawn |
//! | stdio, spawn | task | by one call or the sum of a poll: warn over 100 ms |
//! | spawn | below `tokio::process` | silent |
//! | busy | task | by CPU time: warn over half of `busy_threshold`, deny over it |
//! | raw | task | by time asleep: deny over `threshold`; lock-like: as sync |
//! | any of these | root future of a current-thread runtime, library code | as in a task |
//! | any of these | the same, test code or no code of the workspace | at most warn |
//! | sync, file-lock | root future: a lock that serialises tests, most likely | at most warn |
//! | sync, raw | the allocator's or the runtime's own lock | silent |
//! | any of these | shutdown, one-time initialisation, identity only probable | at most warn |
//! | preempted: neither CPU time nor time asleep over its limit | anywhere | silent |
//!
//! "Over" means: wall time minus what is excused (waiting for a processor, the other side's too,
//! stalls of the machine).
#![forbid(unsafe_code)]

use super::context::{context, Context};
use super::exempt;
use super::rules::{Allowance, Grant};
use crate::config::{Level, Limits, Rule};
use crate::evidence::{
    CallEvidence, Category, Frame, HoldEvidence, Identity, Object, Origin, Stack,
};
use crate::ids::Nanos;

/// The outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub level: Level,
    pub category: Category,
    pub context: Context,
    /// Why the level is lower than the category's.
    pub reason: Option<String>,
    /// What was held against the limit.
    pub measured: Nanos,
    /// What silences it; without it, it would have been noted at least.
    pub allowed_by: Option<&'static Allowance>,
    /// It is long enough to be said, and it is not known whose it is: the program has no symbols.
    pub nameless: bool,
}

/// The system call that locks sleep in (x86-64).
const FUTEX: i64 = 202;

/// Sleeps below this are judged by the sum asked for in one poll.
const NAP: Nanos = Nanos::from_millis(1);

/// Judges calls from one stack.
pub fn classify_call(call: &CallEvidence, stack: &Stack, limits: &Limits) -> Judgement {
    let category = category_of(call, stack);
    let context = context(&call.who.facts, stack);
    let measured = call.max.saturating_sub(call.excused);
    let datagram = matches!(call.object, Object::Socket { datagram: true, .. });
    let over = |limit: Nanos| Rule { warn_over: None, deny_over: Some(limit) };
    let (rule, measured) = match category {
        Category::Sleep => match (call.summed, call.requested) {
            (Some(sum), _) => (over(limits.threshold), sum.time),
            (None, Some(asked)) if asked < NAP => (over(limits.threshold), asked),
            _ => (limits.rule(category), measured),
        },
        Category::Net if datagram => (over(limits.threshold), measured),
        // Whether the child had ended already is not known; that it took long is.
        Category::Process if call.category == Category::Pipe => (over(limits.threshold), measured),
        _ => (limits.rule(category), measured),
    };
    let level = by_length(rule, measured);
    let certain = call.summed.is_none_or(|s| s.certain);
    finish(level, category, context, measured, certain, stack, limits)
}

/// Judges a hold, by its heaviest stack.
pub fn classify_hold(hold: &HoldEvidence, hot: &Stack, limits: &Limits) -> Judgement {
    let context = context(&hold.who.facts, hot);
    let busy = Nanos(hold.cpu.0);
    let busy_level = by_length(limits.rule(Category::Busy), busy);
    let lock_like = hold.syscall == Some(FUTEX) || looks_like_a_lock(hot);
    let raw_rule = match lock_like {
        true => limits.rule(Category::Sync),
        false => limits.rule(Category::Raw),
    };
    let asleep = hold.asleep.saturating_sub(hold.excused);
    let category = if lock_like { Category::Sync } else { Category::Raw };
    let raw_level = by_length(raw_rule, asleep);
    // What is allowed here must not hide the other kind.
    let weight = |level, category| severity(level).min(severity(limits.ceiling(category)));
    let (as_raw, as_busy) = (weight(raw_level, category), weight(busy_level, Category::Busy));
    let (level, category, measured) = if as_raw > as_busy || (as_raw == as_busy && asleep > busy) {
        (raw_level, category, asleep)
    } else {
        (busy_level, Category::Busy, busy)
    };
    let certain = hold.identity == Identity::Same;
    finish(level, category, context, measured, certain, hot, limits)
}

fn severity(level: Level) -> u8 {
    match level {
        Level::Deny => 2,
        Level::Warn => 1,
        Level::Allow => 0,
    }
}

fn by_length(rule: Rule, measured: Nanos) -> Level {
    match (rule.deny_over, rule.warn_over) {
        (Some(Nanos::ZERO), _) => Level::Deny,
        (Some(deny), _) if measured > deny => Level::Deny,
        (_, Some(warn)) if measured > warn => Level::Warn,
        _ => Level::Allow,
    }
}

/// Waiting on a child's pipes is waiting for the child. Where std forks, it then reads from a socket
/// of its own whether the child found its program: that is part of starting it.
fn category_of(call: &CallEvidence, stack: &Stack) -> Category {
    let near = |functions: &[&str]| {
        stack.frames.iter().take(12).any(|f| {
            let symbol = f.symbol.trim_start_matches('<');
            let of_std = symbol.starts_with("std::process::")
                || symbol.starts_with("std::sys::") && symbol.contains("::process::");
            let last = symbol.rsplit("::").next().unwrap_or_default();
            of_std && (functions.is_empty() || functions.contains(&last))
        })
    };
    match call.category {
        Category::IoWait if near(&[]) => Category::Process,
        Category::Net | Category::Pipe if near(&["spawn"]) => Category::Spawn,
        Category::Pipe if near(&["wait_with_output", "read2", "output"]) => Category::Process,
        category => category,
    }
}

fn looks_like_a_lock(stack: &Stack) -> bool {
    let words = [
        "mutex",
        "rwlock",
        "condvar",
        "park",
        "lock_contended",
        "lock_slow",
        "pthread_cond",
        "sem_wait",
    ];
    stack.frames.iter().take(6).any(|f| {
        let symbol = f.symbol.to_ascii_lowercase();
        words.iter().any(|w| symbol.contains(w))
    })
}

/// Everything that lowers a level.
fn finish(
    mut level: Level,
    category: Category,
    context: Context,
    measured: Nanos,
    certain: bool,
    stack: &Stack,
    limits: &Limits,
) -> Judgement {
    let by_itself = severity(level).min(severity(limits.ceiling(category)));
    let mut reason = None;
    let mut lower = |to: Level, why: &str| {
        let lowers = severity(to) < severity(level);
        if lowers {
            level = to;
            reason = Some(why.to_owned());
        }
        lowers
    };
    let whereabouts = match context {
        Context::Task => None,
        Context::RootLoop => match innermost_own(stack) {
            Some(false) => None,
            Some(true) => Some((Level::Warn, "test code in the root future")),
            None => Some((Level::Warn, "no code of this workspace, in the root future")),
        },
        Context::Shutdown => Some((Level::Warn, "a task dropped while its runtime shuts down")),
        Context::RootMultiThread
        | Context::BlockInPlace
        | Context::BlockingPool
        | Context::Scheduler => Some((Level::Allow, "may block")),
    };
    if let Some((to, why)) = whereabouts {
        lower(to, why);
    }
    if context == Context::RootLoop && matches!(category, Category::Sync | Category::FileLock) {
        // Tests that must not overlap take a lock like this, whoever's code takes it.
        lower(Level::Warn, "a lock in the root future");
    }
    if matches!(category, Category::Sync | Category::Raw) && exempt::is_allocators_wait(stack) {
        lower(Level::Allow, "the allocator's own lock");
    }
    if matches!(category, Category::Sync | Category::Raw) && exempt::is_tokios_own_wait(stack) {
        lower(Level::Allow, "the runtime's own lock");
    }
    if category == Category::Spawn && exempt::is_tokios_own_spawn(stack) {
        lower(Level::Allow, "tokio starts children in the poll");
    }
    let mut allowed_by = None;
    if let Some(allowance) =
        limits.allowances.then(|| exempt::allowance(category, context, stack)).flatten()
    {
        let to = match allowance.grant {
            Grant::Nothing => Level::Allow,
            Grant::Note => Level::Warn,
        };
        if lower(to, allowance.reason) && to == Level::Allow {
            allowed_by = Some(allowance);
        }
    }
    // These two are known without any name.
    let known = matches!(context, Context::Scheduler | Context::RootMultiThread);
    let nameless = !known && allowed_by.is_none() && is_nameless(stack);
    if !certain {
        lower(Level::Warn, "probably one poll, not certainly");
    }
    match limits.ceiling(category) {
        Level::Deny => false,
        Level::Warn => lower(Level::Warn, "level is warn"),
        Level::Allow => lower(Level::Allow, "allowed here"),
    };
    let nameless = nameless && severity(level) < by_itself;
    Judgement { level, category, context, reason, measured, allowed_by, nameless }
}

/// Whether nothing of the program itself has a name in this stack: only system libraries have.
fn is_nameless(stack: &Stack) -> bool {
    let address = |f: &Frame| f.function.starts_with("0x");
    let none = |f: &Frame| address(f) || f.origin == Origin::Foreign && f.file.is_none();
    stack.frames.iter().any(address) && stack.frames.iter().all(none)
}

/// Whether the innermost frame of the workspace's own code is test code; `None`: there is none.
fn innermost_own(stack: &Stack) -> Option<bool> {
    stack.frames.iter().find_map(|f| match f.origin {
        Origin::Workspace { test_code } => Some(test_code),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Flavor, Frame, PollSum, RawStack, TokioFacts, Who};
    use crate::ids::{CpuNanos, KernelTid, ScopeId, TaskId, ThreadNo, WorkerIndex};

    const POLL: &str = "tokio::runtime::scheduler::multi_thread::worker::Context::run_task";
    const ROOT: &str = "tokio::runtime::scheduler::current_thread::CoreGuard::block_on";
    const PLACE: &str = "tokio::runtime::scheduler::multi_thread::worker::block_in_place";

    fn frame(symbol: &str, origin: Origin) -> Frame {
        Frame {
            function: symbol.into(),
            symbol: symbol.into(),
            file: None,
            line: None,
            column: None,
            inlined: false,
            origin,
        }
    }

    fn stack(test_code: bool, marker: &str) -> Stack {
        let tokio = Origin::Tokio { version: "1".into() };
        Stack {
            frames: vec![frame("app::f", Origin::Workspace { test_code }), frame(marker, tokio)],
            truncated: false,
        }
    }

    fn who(task: bool) -> Who {
        Who {
            scope: ScopeId::PROCESS,
            thread: ThreadNo(1),
            tid: KernelTid(1),
            facts: TokioFacts {
                constrained: true,
                task: task.then_some(TaskId(1)),
                worker: Some(WorkerIndex(0)),
                worker_known: true,
                flavor: Flavor::Unknown,
                runtime: None,
                workers: 1,
            },
            test: None,
        }
    }

    fn call(category: Category, ms: u64) -> CallEvidence {
        CallEvidence {
            category,
            function: "f",
            who: who(true),
            object: Object::None,
            stack: RawStack::default(),
            at: Nanos(0),
            count: 1,
            total: Nanos::from_millis(ms),
            max: Nanos::from_millis(ms),
            cpu: None,
            excused: Nanos::ZERO,
            requested: None,
            summed: None,
            running: false,
        }
    }

    fn hold(cpu: u64, asleep: u64) -> HoldEvidence {
        HoldEvidence {
            who: who(true),
            identity: Identity::Same,
            at: Nanos(0),
            count: 1,
            total: Nanos::from_millis(cpu + asleep),
            max: Nanos::from_millis(cpu + asleep),
            cpu: CpuNanos::from_millis(cpu),
            asleep: Nanos::from_millis(asleep),
            excused: Nanos::ZERO,
            in_calls: Nanos::ZERO,
            samples: vec![],
            syscall: None,
            running: false,
        }
    }

    const LIMITS: Limits = Limits::default_for(false);

    fn level(c: &CallEvidence, s: &Stack) -> Level {
        classify_call(c, s, &LIMITS).level
    }

    #[test]
    fn what_has_no_name_is_counted_where_that_decides() {
        let of = |functions: &[&str]| Stack {
            frames: functions.iter().map(|f| frame(f, Origin::Foreign)).collect(),
            truncated: false,
        };
        let stripped = of(&["clock_nanosleep", "0x1234 in app", "0x5678 in app"]);
        let limits = Limits::default_for(false);
        let judged = |task: bool, worker: bool, stack: &Stack, limits: &Limits| {
            let mut call = call(Category::Sleep, 30);
            call.who.facts.task = task.then_some(TaskId(1));
            call.who.facts.worker = worker.then_some(WorkerIndex(0));
            call.who.facts.worker_known = true;
            let judgement = classify_call(&call, stack, limits);
            (judgement.level, judgement.nameless)
        };
        assert_eq!(judged(true, true, &stripped, &limits), (Level::Deny, false), "told by tokio");
        assert_eq!(judged(false, true, &stripped, &limits), (Level::Warn, true));
        assert_eq!(judged(true, false, &stripped, &limits), (Level::Allow, true));
        assert_eq!(judged(false, false, &stripped, &limits), (Level::Allow, false), "may block");
        let named = of(&["clock_nanosleep", "app::f", "0x5678 in libc.so.6"]);
        let mut named = named;
        named.frames[1].origin = Origin::Workspace { test_code: true };
        assert_eq!(judged(false, true, &named, &limits), (Level::Warn, false));
        let mut silent = limits;
        silent.levels.set(Category::Sleep, Level::Allow);
        assert_eq!(judged(false, true, &stripped, &silent), (Level::Allow, false));
    }

    #[test]
    fn always_means_whatever_it_took() {
        use Category::*;
        for category in [Sleep, Net, IoWait, Dns, Process, Join, Disk] {
            let task = stack(false, POLL);
            assert_eq!(level(&call(category, 0), &task), Level::Deny, "{category:?}");
            let excused = CallEvidence { excused: Nanos::from_millis(9), ..call(category, 9) };
            assert_eq!(level(&excused, &task), Level::Deny, "{category:?}");
        }
    }

    #[test]
    fn limits_are_exclusive() {
        let task = stack(false, POLL);
        for (category, warn, deny) in [(Category::Sync, 10, 100), (Category::File, 10, 100)] {
            for (ms, expected) in [
                (warn, Level::Allow),
                (warn + 1, Level::Warn),
                (deny, Level::Warn),
                (deny + 1, Level::Deny),
            ] {
                assert_eq!(level(&call(category, ms), &task), expected, "{category:?} {ms}");
            }
        }
        for (category, limit, over) in [
            (Category::FileLock, 10, Level::Deny),
            (Category::Pipe, 100, Level::Deny),
            (Category::Stdio, 100, Level::Warn),
            (Category::Spawn, 100, Level::Warn),
        ] {
            assert_eq!(level(&call(category, limit), &task), Level::Allow, "{category:?}");
            assert_eq!(level(&call(category, limit + 1), &task), over, "{category:?}");
            assert_eq!(level(&call(category, 60_000), &task), over, "{category:?}");
        }
        for (cpu, expected) in
            [(25, Level::Allow), (26, Level::Warn), (50, Level::Warn), (51, Level::Deny)]
        {
            assert_eq!(classify_hold(&hold(cpu, 0), &task, &LIMITS).level, expected, "busy {cpu}");
        }
        for (asleep, expected) in [(10, Level::Allow), (11, Level::Deny)] {
            let j = classify_hold(&hold(0, asleep), &task, &LIMITS);
            assert_eq!((j.level, j.category), (expected, Category::Raw));
        }
    }

    #[test]
    fn asleep_on_a_futex_is_a_lock() {
        let task = stack(false, POLL);
        for (ms, expected) in [(10, Level::Allow), (50, Level::Warn), (101, Level::Deny)] {
            let h = HoldEvidence { syscall: Some(FUTEX), ..hold(0, ms) };
            let j = classify_hold(&h, &task, &LIMITS);
            assert_eq!(j.level, expected, "{ms}");
            assert!(j.category == Category::Sync || j.level == Level::Allow);
        }
    }

    #[test]
    fn the_machines_time_never_counts() {
        let task = stack(false, POLL);
        let late = CallEvidence { excused: Nanos::from_millis(195), ..call(Category::Sync, 200) };
        assert_eq!(level(&late, &task), Level::Allow);
        let mut preempted = hold(3, 0);
        preempted.max = Nanos::from_millis(216);
        preempted.excused = Nanos::from_millis(213);
        assert_eq!(classify_hold(&preempted, &task, &LIMITS).level, Level::Allow);
    }

    #[test]
    fn naps_and_datagrams_count_by_their_sum() {
        let task = stack(false, POLL);
        let nap = |ms: u64, certain| CallEvidence {
            requested: Some(Nanos::from_micros(500)),
            summed: Some(PollSum { calls: 40, time: Nanos::from_millis(ms), certain }),
            ..call(Category::Sleep, ms)
        };
        assert_eq!(level(&nap(10, true), &task), Level::Allow);
        assert_eq!(level(&nap(11, true), &task), Level::Deny);
        assert_eq!(level(&nap(11, false), &task), Level::Warn);
        let one = CallEvidence { requested: Some(Nanos(5000)), ..call(Category::Sleep, 12) };
        assert_eq!(level(&one, &task), Level::Allow, "5 µs asked for, 12 ms taken");
        let datagram = |ms| CallEvidence {
            object: Object::Socket { fd: 3, local: None, peer: None, datagram: true },
            ..call(Category::Net, ms)
        };
        assert_eq!(level(&datagram(9), &task), Level::Allow);
        assert_eq!(level(&datagram(11), &task), Level::Deny);
    }

    #[test]
    fn root_futures_are_judged_by_whose_code_blocks() {
        let c = call(Category::Sleep, 50);
        let root = CallEvidence { who: who(false), ..c.clone() };
        assert_eq!(level(&root, &stack(false, ROOT)), Level::Deny);
        let j = classify_call(&root, &stack(true, ROOT), &LIMITS);
        assert_eq!((j.level, j.context), (Level::Warn, Context::RootLoop));
        assert!(j.reason.unwrap().contains("test code"));
        assert_eq!(level(&c, &stack(true, POLL)), Level::Deny, "test code in a task");
    }

    #[test]
    fn levels_of_single_categories() {
        let task = stack(false, POLL);
        let with = |category, level, cap| {
            let mut limits = Limits { cap, ..LIMITS };
            limits.levels.set(category, level);
            limits
        };
        let nap = call(Category::Sleep, 50);
        let judged = |limits: &Limits| classify_call(&nap, &task, limits);
        let noted = judged(&with(Category::Sleep, Level::Warn, Level::Deny));
        assert_eq!((noted.level, noted.reason.as_deref()), (Level::Warn, Some("level is warn")));
        let limits = with(Category::Sleep, Level::Allow, Level::Deny);
        assert_eq!(judged(&limits).level, Level::Allow);
        let limits = with(Category::Sleep, Level::Deny, Level::Warn);
        assert_eq!(judged(&limits).level, Level::Deny, "above the level of all");
        let limits = with(Category::Net, Level::Allow, Level::Deny);
        assert_eq!(judged(&limits).level, Level::Deny, "another category's");
        assert_eq!(judged(&with(Category::Sleep, Level::Deny, Level::Allow)).level, Level::Allow);
        // One kind that is allowed does not hide the other, although it took longer.
        let both = hold(60, 200);
        let limits = with(Category::Raw, Level::Allow, Level::Deny);
        let j = classify_hold(&both, &task, &limits);
        assert_eq!((j.level, j.category), (Level::Deny, Category::Busy));
        let limits = with(Category::Busy, Level::Allow, Level::Deny);
        let j = classify_hold(&both, &task, &limits);
        assert_eq!((j.level, j.category), (Level::Deny, Category::Raw));
    }

    #[test]
    fn waiting_for_a_childs_pipes_is_waiting_for_the_child() {
        let mut s = stack(false, POLL);
        s.frames.insert(0, frame("std::sys::process::unix::common::cstr", Origin::Std));
        let j = classify_call(&call(Category::IoWait, 1), &s, &LIMITS);
        assert_eq!(j.category, Category::Process);
    }

    fn below(symbol: &str) -> Stack {
        let mut s = stack(false, POLL);
        s.frames.insert(0, frame(symbol, Origin::Std));
        s
    }

    #[test]
    fn a_childs_pipes_are_judged_as_what_they_are_for() {
        let judged = |ms, symbol: &str| {
            let of = if symbol.ends_with("::spawn") { Category::Net } else { Category::Pipe };
            let j = classify_call(&call(of, ms), &below(symbol), &LIMITS);
            (j.category, j.level)
        };
        for output in ["<std::process::Child>::wait_with_output", "std::process::wait_with_output"]
        {
            assert_eq!(judged(11, output), (Category::Process, Level::Deny));
            assert_eq!(judged(10, output), (Category::Process, Level::Allow));
        }
        for spawn in
            ["<std::sys::process::unix::unix::Command>::spawn", "std::process::Command::spawn"]
        {
            assert_eq!(judged(60, spawn), (Category::Spawn, Level::Allow));
            assert_eq!(judged(5000, spawn), (Category::Spawn, Level::Warn));
        }
        let own = "<std::process::ChildStdout as std::io::Read>::read";
        assert_eq!(judged(60, own), (Category::Pipe, Level::Allow));
        assert_eq!(judged(101, own), (Category::Pipe, Level::Deny));
    }

    #[test]
    fn tokio_starts_children_in_the_poll() {
        let long = call(Category::Spawn, 5000);
        assert_eq!(level(&long, &below("std::process::Command::spawn")), Level::Warn);
        let mut s = below("std::process::Command::spawn");
        let tokio = Origin::Tokio { version: "1".into() };
        s.frames.insert(1, frame("<tokio::process::Command>::spawn", tokio));
        assert_eq!(level(&long, &s), Level::Allow);
        let other = call(Category::Disk, 1);
        assert_eq!(level(&other, &s), Level::Deny, "nothing else is excused there");
    }

    /// The level as the table states it, written a second time, the other way round: from the
    /// rows that silence to those that fail.
    fn naive(
        category: Category,
        ms: u64,
        marker: &str,
        test_code: bool,
        certain: bool,
        cap: Level,
    ) -> Level {
        let mut level = match category {
            Category::Sync | Category::File if ms > 100 => Level::Deny,
            Category::Sync | Category::File if ms > 10 => Level::Warn,
            Category::Sync | Category::File => Level::Allow,
            Category::FileLock if ms <= 10 => Level::Allow,
            Category::Pipe | Category::Stdio | Category::Spawn if ms <= 100 => Level::Allow,
            Category::Stdio | Category::Spawn => Level::Warn,
            _ => Level::Deny,
        };
        if marker == PLACE {
            return Level::Allow;
        }
        let locked_root = marker == ROOT && matches!(category, Category::Sync | Category::FileLock);
        let softened =
            (marker == ROOT && test_code) || locked_root || !certain || cap == Level::Warn;
        if softened && level == Level::Deny {
            level = Level::Warn;
        }
        level
    }

    #[test]
    fn the_table_holds_for_all_inputs() {
        use Category::*;
        let mut looked_at = 0;
        let all = Category::ALL.into_iter().filter(|c| !matches!(c, Busy | Raw));
        for category in all {
            for ms in [0, 1, 9, 10, 11, 50, 99, 100, 101, 5000] {
                for marker in [POLL, ROOT, PLACE] {
                    for test_code in [false, true] {
                        for certain in [false, true] {
                            for cap in [Level::Deny, Level::Warn] {
                                let time = Nanos::from_millis(ms);
                                let c = CallEvidence {
                                    summed: (!certain).then_some(PollSum {
                                        calls: 2,
                                        time: Nanos::from_millis(5000),
                                        certain,
                                    }),
                                    max: time,
                                    ..call(category, ms)
                                };
                                let limits = Limits { cap, ..LIMITS };
                                let got = classify_call(&c, &stack(test_code, marker), &limits);
                                let want = naive(category, ms, marker, test_code, certain, cap);
                                assert_eq!(
                                    got.level, want,
                                    "{category:?} {ms} {marker} {test_code} {certain} {cap:?}"
                                );
                                looked_at += 1;
                            }
                        }
                    }
                }
            }
        }
        assert_eq!(looked_at, 13 * 10 * 3 * 2 * 2 * 2);
    }
}
