//! Where a call or hold happened, as far as tokio is concerned.
//!
//! | budget | task | innermost marker in the stack | context |
//! |---|---|---|---|
//! | limited | any | a task's poll (worker, current-thread scheduler, `LocalSet`) | [`Context::Task`] |
//! | limited | any | `block_on` of a current-thread scheduler | [`Context::RootLoop`] |
//! | limited | any | `block_on` that parks the thread | [`Context::RootMultiThread`] |
//! | limited | any | `block_in_place` | [`Context::BlockInPlace`] |
//! | limited | any | the blocking pool | [`Context::BlockingPool`] |
//! | limited | none | none; current-thread, or the thread is a worker | [`Context::RootLoop`] |
//! | limited | some | none; the thread is a worker, and the stack is whole | [`Context::Task`] |
//! | limited | any | none, and none of the above | [`Context::BlockingPool`]: in doubt it may |
//! | not | any | a task's poll | [`Context::Task`]: `task::unconstrained` |
//! | any | any | shutdown | [`Context::Shutdown`] |
//! | not | any | any other | [`Context::Scheduler`]: not a poll |
//!
//! Innermost means nearest to the call: a task of a runtime inside of `block_in_place` is a task.
//! The markers are functions that tokio cannot inline away: they are called through a vtable or
//! are too large, and stand in release builds without debug information too.
#![forbid(unsafe_code)]

use crate::evidence::{Flavor, Frame, Stack, TokioFacts};

/// See the table above.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Context {
    /// A task: must not block.
    Task,
    /// The root future of a current-thread runtime: judged by whose code blocks.
    RootLoop,
    /// The root future of a multi-thread runtime, or of any `block_on` that owns its thread.
    RootMultiThread,
    /// Inside of `block_in_place`.
    BlockInPlace,
    /// A thread of the blocking pool, or not known.
    BlockingPool,
    /// Tasks dropped while their runtime shuts down.
    Shutdown,
    /// The runtime itself: parking, stealing, waking.
    Scheduler,
}

impl Context {
    /// How reports name it.
    pub fn words(self) -> &'static str {
        match self {
            Context::Task => "a task",
            Context::RootLoop => "the root future",
            Context::RootMultiThread => "a root future on its own thread",
            Context::BlockInPlace => "block_in_place",
            Context::BlockingPool => "the blocking pool",
            Context::Shutdown => "a task dropped at runtime shutdown",
            Context::Scheduler => "the scheduler",
        }
    }
}

/// Functions of tokio by which a stack tells where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Marker {
    Poll,
    RootLoop,
    RootParked,
    BlockInPlace,
    Pool,
    Shutdown,
}

/// Modules of tokio (after `tokio::`), functions in them, and what they say. Types between the two
/// are left out: with line tables only, names do not have them.
const MARKERS: &[(&str, &str, Marker)] = &[
    ("scheduler::multi_thread::worker", "run_task", Marker::Poll),
    ("scheduler::multi_thread_alt::worker", "run_task", Marker::Poll),
    ("scheduler::current_thread", "run_task", Marker::Poll),
    ("task::local", "tick", Marker::Poll),
    ("scheduler::current_thread", "block_on", Marker::RootLoop),
    ("runtime::park", "block_on", Marker::RootParked),
    ("runtime::context::blocking", "block_on", Marker::RootParked),
    ("", "block_in_place", Marker::BlockInPlace),
    ("runtime::blocking::task", "poll", Marker::Pool),
    ("runtime::blocking::pool", "run", Marker::Pool),
    ("", "close_and_shutdown_all", Marker::Shutdown),
    ("runtime::task::harness", "shutdown", Marker::Shutdown),
    ("runtime::task::raw", "shutdown", Marker::Shutdown),
    ("scheduler::current_thread", "shutdown", Marker::Shutdown),
    ("scheduler::current_thread", "shutdown2", Marker::Shutdown),
];

/// A frame's path without angle brackets, if it is tokio's.
fn of_tokio(frame: &Frame) -> Option<String> {
    let name = frame.function.as_str();
    let own = name.starts_with("tokio::") || name.starts_with("<tokio::");
    own.then(|| name.trim_start_matches('<').to_owned())
}

fn marker(frame: &Frame) -> Option<Marker> {
    let path = of_tokio(frame)?;
    let function = path.rsplit("::").next()?;
    MARKERS
        .iter()
        .find(|(module, name, _)| function == *name && path.contains(module))
        .map(|(_, _, marker)| *marker)
}

/// Symbols of a task's machinery. Inside of a scheduler they say that one of its tasks runs, where
/// tokio's version or the optimiser left no other trace.
const TASK: &[&str] =
    &["runtime::task::harness::", "runtime::task::raw::", "runtime::task::core::"];

/// The innermost marker and its place.
fn innermost(stack: &Stack) -> Option<(usize, Marker)> {
    let mut in_task = false;
    for (at, frame) in stack.frames.iter().enumerate() {
        match marker(frame) {
            Some(Marker::RootLoop) if in_task => return Some((at, Marker::Poll)),
            Some(marker) => return Some((at, marker)),
            None => {}
        }
        in_task |= of_tokio(frame).is_some_and(|path| TASK.iter().any(|t| path.contains(t)));
    }
    None
}

/// The number of frames between the call and the poll it was made in: everything up to the
/// innermost marker. All of them if there is none.
pub fn inside_poll(stack: &Stack) -> usize {
    innermost(stack).map_or(stack.frames.len(), |(at, _)| at)
}

/// Decides the context.
pub fn context(facts: &TokioFacts, stack: &Stack) -> Context {
    let innermost = innermost(stack).map(|(_, marker)| marker);
    if !facts.constrained {
        return match innermost {
            Some(Marker::Poll) => Context::Task,
            Some(Marker::Shutdown) => Context::Shutdown,
            Some(Marker::BlockInPlace) => Context::BlockInPlace,
            Some(Marker::Pool) if facts.worker.is_none() => Context::BlockingPool,
            Some(Marker::RootParked) => Context::RootMultiThread,
            _ => Context::Scheduler,
        };
    }
    match innermost {
        Some(Marker::Poll) => Context::Task,
        Some(Marker::RootLoop) => Context::RootLoop,
        Some(Marker::RootParked) => Context::RootMultiThread,
        Some(Marker::BlockInPlace) => Context::BlockInPlace,
        Some(Marker::Pool) => Context::BlockingPool,
        Some(Marker::Shutdown) => Context::Shutdown,
        None => without_marker(facts, stack.truncated),
    }
}

fn without_marker(facts: &TokioFacts, truncated: bool) -> Context {
    match (facts.task, facts.worker) {
        // `block_in_place` may hide in the part of the stack that is missing.
        (Some(_), Some(_)) if !truncated => Context::Task,
        (Some(_), _) => Context::BlockingPool,
        (None, Some(_)) => Context::RootLoop,
        (None, None) if !facts.worker_known && facts.flavor == Flavor::CurrentThread => {
            Context::RootLoop
        }
        (None, None) => Context::RootMultiThread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Origin;
    use crate::ids::{TaskId, WorkerIndex};

    fn stack(symbols: &[&str]) -> Stack {
        let frame = |s: &&str| Frame {
            function: (*s).into(),
            symbol: (*s).into(),
            file: None,
            line: None,
            column: None,
            inlined: false,
            origin: Origin::Foreign,
        };
        Stack { frames: symbols.iter().map(frame).collect(), truncated: false }
    }

    fn facts(constrained: bool, task: bool, worker: bool) -> TokioFacts {
        TokioFacts {
            constrained,
            task: task.then_some(TaskId(1)),
            worker: worker.then_some(WorkerIndex(0)),
            worker_known: true,
            flavor: Flavor::Unknown,
            runtime: None,
            workers: 0,
        }
    }

    const MT: &str = "tokio::runtime::scheduler::multi_thread::worker::Context::run_task";
    const CT: &str = "tokio::runtime::scheduler::current_thread::Context::run_task";
    const LOCAL: &str = "tokio::task::local::LocalSet::tick";
    const ROOT: &str = "tokio::runtime::scheduler::current_thread::CoreGuard::block_on";
    const PARKED: &str = "tokio::runtime::park::CachedParkThread::block_on";
    const PLACE: &str = "tokio::runtime::scheduler::multi_thread::worker::block_in_place";
    const POOL: &str = "tokio::runtime::blocking::pool::Inner::run";
    const BLOCKING: &str =
        "<tokio::runtime::blocking::task::BlockingTask<T> as core::future::future::Future>::poll";
    const DROP: &str = "tokio::runtime::task::list::OwnedTasks<S>::close_and_shutdown_all";

    #[test]
    fn every_row_of_the_table() {
        use Context::*;
        // Facts as tokio ≥ 1.54 gives them; older ones lack the worker, and must agree.
        for (row, constrained, task, worker, symbols, expected) in [
            ("task, multi-thread", true, true, true, &["app::f", MT, POOL][..], Task),
            ("task, current-thread", true, true, true, &["app::f", CT, ROOT], Task),
            (
                "LocalSet under a current-thread root",
                true,
                true,
                true,
                &["app::f", LOCAL, ROOT],
                Task,
            ),
            (
                "LocalSet under a multi-thread root",
                true,
                true,
                false,
                &["app::f", LOCAL, PARKED],
                Task,
            ),
            ("root, current-thread", true, false, true, &["app::f", ROOT], RootLoop),
            ("root, multi-thread", true, false, false, &["app::f", PARKED], RootMultiThread),
            ("block_in_place", false, true, false, &["app::f", PLACE, MT, POOL], BlockInPlace),
            (
                "block_on in block_in_place",
                true,
                true,
                true,
                &["app::f", PARKED, PLACE, MT, POOL],
                RootMultiThread,
            ),
            (
                "block_on in block_in_place, inlined",
                true,
                true,
                true,
                &["app::f", PLACE, MT, POOL],
                BlockInPlace,
            ),
            ("spawn_blocking", false, true, false, &["app::f", BLOCKING, POOL], BlockingPool),
            (
                "block_on in spawn_blocking",
                true,
                true,
                false,
                &["app::f", PARKED, BLOCKING, POOL],
                RootMultiThread,
            ),
            ("parked worker", false, true, true, &["tokio::runtime::park::park", POOL], Scheduler),
            ("dropped at shutdown", false, true, true, &["app::drop", DROP, ROOT], Shutdown),
            ("unconstrained in a task", false, true, true, &["app::f", MT, POOL], Task),
            (
                "a task of a runtime in block_in_place",
                true,
                true,
                true,
                &["app::f", CT, ROOT, PLACE, MT],
                Task,
            ),
            (
                "a runtime in spawn_blocking, its root",
                true,
                false,
                true,
                &["app::f", ROOT, BLOCKING, POOL],
                RootLoop,
            ),
            (
                "task, current-thread, tokio 1.47",
                true,
                true,
                true,
                &["app::f", "tokio::runtime::task::harness::Harness<T,S>::poll", ROOT][..],
                Task,
            ),
            (
                "a runtime in spawn_blocking, its task",
                true,
                true,
                true,
                &["app::f", CT, ROOT, BLOCKING, POOL],
                Task,
            ),
        ] {
            let newer = facts(constrained, task, worker);
            assert_eq!(context(&newer, &stack(symbols)), expected, "{row}");
            let older = TokioFacts { worker: None, worker_known: false, ..newer };
            let on_older = context(&older, &stack(symbols));
            assert!(
                on_older == expected || row == "parked worker",
                "{row}, older tokio: {on_older:?}"
            );
        }
    }

    #[test]
    fn in_doubt_it_may_block() {
        let cut = Stack { truncated: true, ..stack(&["app::f"]) };
        assert_eq!(context(&facts(true, true, true), &cut), Context::BlockingPool);
        assert_eq!(context(&facts(true, true, true), &stack(&["app::f"])), Context::Task);
        assert_eq!(context(&facts(true, true, false), &stack(&["app::f"])), Context::BlockingPool);
        assert_eq!(context(&facts(true, false, true), &stack(&[])), Context::RootLoop);
        assert_eq!(context(&facts(true, false, false), &stack(&[])), Context::RootMultiThread);
    }

    #[test]
    fn only_tokios_own_functions_are_markers() {
        let one = |name: &str| marker(&stack(&[name]).frames[0]);
        assert_eq!(one("app::tokio::task::local::LocalSet::tick"), None);
        assert_eq!(one("tokio::task::local::LocalSet::tick"), Some(Marker::Poll));
        // As line tables only have it, and as newer mangling has it.
        assert_eq!(
            one("tokio::runtime::scheduler::multi_thread::worker::run_task"),
            Some(Marker::Poll)
        );
        assert_eq!(one("<tokio::runtime::blocking::pool::Inner>::run"), Some(Marker::Pool));
        assert_eq!(inside_poll(&stack(&["a::b", "a::c", MT, POOL])), 2);
        assert_eq!(inside_poll(&stack(&["a::b"])), 1);
    }
}
