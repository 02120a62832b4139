//! What was seen, as plain data: no threads, no atomics, no foreign calls, no judgement.
//!
//! The collector (front end) builds an [`Evidence`]; `symbolize` fills in the frames of its
//! stacks; `verdict` judges it; `report` shows the result.
#![forbid(unsafe_code)]

use crate::ids::{
    CodeAddress, CpuNanos, KernelTid, Nanos, RuntimeId, ScopeId, TaskId, ThreadNo, WorkerIndex,
};

/// What kind of thing held the worker. The names are the words users write and read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Category {
    /// A thread sleep.
    Sleep,
    /// A blocking stream or datagram socket.
    Net,
    /// Waiting for readiness outside the runtime's own driver.
    IoWait,
    /// Name resolution.
    Dns,
    /// Waiting for a child process.
    Process,
    /// Waiting for a thread to end.
    Join,
    /// Flushing to stable storage.
    Disk,
    /// Locks, condition variables, channels, parking.
    Sync,
    /// Regular files and directories.
    File,
    /// Waiting for a lock on a file.
    FileLock,
    /// Pipes, FIFOs and event descriptors in blocking mode.
    Pipe,
    /// Terminals and the process' standard streams.
    Stdio,
    /// Starting a process.
    Spawn,
    /// CPU work (no call).
    Busy,
    /// Asleep in something that is not intercepted.
    Raw,
}

impl Category {
    /// Every category, in the order of the tables.
    pub const ALL: [Category; 15] = [
        Category::Sleep,
        Category::Net,
        Category::IoWait,
        Category::Dns,
        Category::Process,
        Category::Join,
        Category::Disk,
        Category::Sync,
        Category::File,
        Category::FileLock,
        Category::Pipe,
        Category::Stdio,
        Category::Spawn,
        Category::Busy,
        Category::Raw,
    ];

    /// The word of this category in reports and settings.
    pub const fn word(self) -> &'static str {
        match self {
            Category::Sleep => "sleep",
            Category::Net => "net",
            Category::IoWait => "io-wait",
            Category::Dns => "dns",
            Category::Process => "process",
            Category::Join => "join",
            Category::Disk => "disk",
            Category::Sync => "sync",
            Category::File => "file",
            Category::FileLock => "file-lock",
            Category::Pipe => "pipe",
            Category::Stdio => "stdio",
            Category::Spawn => "spawn",
            Category::Busy => "busy",
            Category::Raw => "raw",
        }
    }
}

/// A stack as it was taken: addresses only, innermost first.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct RawStack {
    /// Innermost first.
    pub addresses: Vec<CodeAddress>,
    /// The outermost frames are missing (buffer full, or unwinding gave up).
    pub truncated: bool,
}

/// To whom a frame's code belongs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// A package of this workspace, or a local path dependency: somebody's own code.
    Workspace {
        /// The file belongs to a test target, or the line to a `#[cfg(test)]` module or a
        /// test function.
        test_code: bool,
    },
    /// A package from a registry, a git checkout or a vendor folder.
    Dependency {
        /// The package.
        name: String,
        /// Its version, as far as its folder tells.
        version: String,
    },
    /// The async runtime itself.
    Tokio {
        /// As of [`Origin::Dependency`].
        version: String,
    },
    /// core, alloc, std and their internals.
    Std,
    /// libtest and the code around `main`.
    Harness,
    /// This crate.
    Stallhound,
    /// C code, libc, the vdso, or no information.
    Foreign,
}

/// One frame with its names. Inlined functions have frames of their own.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    /// Readable path, e.g. `my_app::handlers::slow` (hash and `{{closure}}` noise removed).
    pub function: String,
    /// The name as the symbol table has it, demangled; where an inlined frame lacks one, the
    /// short debug name. Judgement looks at this one.
    pub symbol: String,
    /// Path as the debug information spells it, made absolute where possible.
    pub file: Option<String>,
    /// Counted from 1.
    pub line: Option<u32>,
    /// Counted from 1, in bytes.
    pub column: Option<u32>,
    /// Whether this frame was inlined into the next one.
    pub inlined: bool,
    /// Whose code it is.
    pub origin: Origin,
}

/// A stack with names, innermost first.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stack {
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// Outer frames are missing.
    pub truncated: bool,
}

/// Which flavor of runtime a thread was inside of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flavor {
    /// One thread, driven by `block_on`.
    CurrentThread,
    /// A pool of workers.
    MultiThread,
    /// Not inside of a runtime, or not known.
    Unknown,
}

/// What tokio said about the thread at the time. DESIGN 3 and `docs/architecture.md` have the
/// table that turns this into a context.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TokioFacts {
    /// The cooperative budget was limited: a poll that must not block was running.
    pub constrained: bool,
    /// The task's id, also where no task is polled (see the table).
    pub task: Option<TaskId>,
    /// `None`: tokio said "no worker". See `worker_known`.
    pub worker: Option<WorkerIndex>,
    /// Whether this tokio can tell the worker at all (since 1.54).
    pub worker_known: bool,
    /// Of the runtime the thread was inside of.
    pub flavor: Flavor,
    /// Its number, where this tokio can tell (since 1.49).
    pub runtime: Option<RuntimeId>,
    /// Workers of that runtime, 0 if not known.
    pub workers: u32,
}

/// On which thread, in which task, in which test.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Who {
    /// Whose limits apply.
    pub scope: ScopeId,
    /// Our number of the thread.
    pub thread: ThreadNo,
    /// The kernel's.
    pub tid: KernelTid,
    /// What tokio said.
    pub facts: TokioFacts,
    /// The test whose thread gave birth to this one, in full (`module::test`).
    pub test: Option<String>,
}

/// What a call acted on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Object {
    /// Nothing that has a name.
    None,
    /// A file descriptor that names a path (`/proc/self/fd`), or no more than its number.
    Fd {
        /// Its number.
        fd: i32,
        /// What it was opened on.
        path: Option<String>,
    },
    /// A path given by name.
    Path(String),
    /// A socket. Addresses as text, e.g. `127.0.0.1:8080`; unix sockets by path.
    Socket {
        /// Its descriptor.
        fd: i32,
        /// Its own address.
        local: Option<String>,
        /// The other side's.
        peer: Option<String>,
        /// Datagrams, not a stream.
        datagram: bool,
    },
    /// Name resolution of this host (or address).
    Host(String),
    /// A child process; -1: any.
    Pid(i32),
    /// A futex, by address.
    Futex(usize),
}

/// One intercepted call, or several from the same stack added up.
#[derive(Clone, PartialEq, Debug)]
pub struct CallEvidence {
    /// As the table of calls has it; the verdict may know better.
    pub category: Category,
    /// The libc symbol, e.g. `clock_nanosleep`.
    pub function: &'static str,
    /// On which thread, in which task.
    pub who: Who,
    /// Of the longest one.
    pub object: Object,
    /// Of the longest one.
    pub stack: RawStack,
    /// Start of the first one.
    pub at: Nanos,
    /// How many calls.
    pub count: u64,
    /// Added up over all of them, wall time.
    pub total: Nanos,
    /// The longest one, wall time.
    pub max: Nanos,
    /// Of the longest one: time on a processor, where measured.
    pub cpu: Option<CpuNanos>,
    /// Of the longest one: time that is the machine's fault and never counts (waiting for a
    /// processor, own or the other side's, and the watchdog's lateness), where measured.
    pub excused: Nanos,
    /// Sleeps: what was asked for, of the longest one.
    pub requested: Option<Nanos>,
    /// The calls of one poll were added up before they were judged: how many calls the longest
    /// such poll made. `max` is then the sum over that poll.
    pub summed: Option<PollSum>,
    /// The call had not returned when this was written.
    pub running: bool,
}

/// Many short calls of one poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PollSum {
    /// How many.
    pub calls: u64,
    /// Wall time of all (sleeps: requested time).
    pub time: Nanos,
    /// Whether it is certain that it was one and the same poll. If not, it may be noted, never
    /// denied.
    pub certain: bool,
}

/// How sure we are that a hold was one single poll.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Identity {
    /// Proven (soft mark, unchanged sleep, wrapped root).
    Same,
    /// Probably: may be noted, never denied.
    Probably,
}

/// A sampled stack and the share of the hold it stands for.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// Where the thread stood.
    pub stack: RawStack,
    /// Number of samples with this very stack.
    pub weight: u32,
}

/// One poll that kept its worker, seen by the watchdog, or several with the same hot stack.
#[derive(Clone, PartialEq, Debug)]
pub struct HoldEvidence {
    /// On which thread, in which task.
    pub who: Who,
    /// Whether it was certainly one poll.
    pub identity: Identity,
    /// Start of the first one.
    pub at: Nanos,
    /// How many holds.
    pub count: u64,
    /// Added up over all of them, wall time.
    pub total: Nanos,
    /// Wall time of the longest one (a lower bound within two ticks).
    pub max: Nanos,
    /// Of the longest one.
    pub cpu: CpuNanos,
    /// Of the longest one: asleep of its own will outside of any intercepted call.
    pub asleep: Nanos,
    /// Of the longest one: waiting for a processor, plus the watchdog's own lateness.
    pub excused: Nanos,
    /// Of the longest one: inside intercepted calls (those are judged by themselves).
    pub in_calls: Nanos,
    /// Its stacks.
    pub samples: Vec<Sample>,
    /// The system call the thread slept in, if it slept.
    pub syscall: Option<i64>,
    /// The poll had not ended when this was written.
    pub running: bool,
}

/// What works in this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// Our definitions of libc's functions are the ones the program calls.
    pub interception: bool,
    /// Threads can be signalled and answer.
    pub sampling: bool,
    /// `/proc/self/task/*/schedstat` can be read.
    pub schedstat: bool,
}

/// Whether and how tests can be told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Harness {
    /// libtest: a thread per test, named after it.
    Libtest,
    /// Anything else: the process is the test.
    #[default]
    Process,
}

/// Everything one process (or one guarded test) saw.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Evidence {
    /// What works in this process.
    pub capabilities: Capabilities,
    /// Whether tests can be told apart.
    pub harness: Harness,
    /// Intercepted calls.
    pub calls: Vec<CallEvidence>,
    /// Polls that kept their worker.
    pub holds: Vec<HoldEvidence>,
    /// Calls that were looked at inside of polls, counted or not.
    pub calls_in_polls: u64,
    /// Calls excused by `allow_blocking`.
    pub allowed: u64,
    /// Records that found no room: the report is incomplete if not 0.
    pub lost: u64,
    /// Names of tests seen (libtest), for "in 1 of 14 tests".
    pub tests_seen: u64,
    /// When the process was armed, `CLOCK_MONOTONIC`.
    pub armed_at: Nanos,
}
