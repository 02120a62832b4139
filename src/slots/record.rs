//! What an interposed function writes: a fixed-size struct of raw facts.

use super::label::Label;
use crate::ids::{CpuNanos, KernelTid, Nanos, ScopeId, ThreadNo};

/// Frames kept of a stack.
pub const DEPTH: usize = 128;
/// Bytes kept of a path, a host name or two socket addresses.
pub const OBJECT: usize = 224;
/// Bytes kept of one socket address (a unix path may be cut).
pub const ADDRESS: usize = OBJECT / 2;

/// An index into the table of intercepted calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct CallId(pub u16);

/// What tokio said, in numbers: 0 means "none".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RawFacts {
    pub constrained: bool,
    pub task: u64,
    /// Index + 1.
    pub worker: u32,
    pub worker_known: bool,
    /// 0 unknown, 1 current-thread, 2 multi-thread.
    pub flavor: u8,
    pub runtime: u64,
    pub workers: u32,
}

impl RawFacts {
    /// Outside of any runtime, or not known.
    pub const NONE: RawFacts = RawFacts {
        constrained: false,
        task: 0,
        worker: 0,
        worker_known: false,
        flavor: 0,
        runtime: 0,
        workers: 0,
    };
}

/// How to read `Record::object`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ObjectKind {
    None,
    /// `number` is a descriptor, `bytes` its path.
    Descriptor,
    /// As `Descriptor`, of a pipe or an event descriptor.
    Pipe,
    /// As `Descriptor`, of a terminal or a standard stream.
    Standard,
    /// `bytes` is a path.
    Path,
    /// As `Path`, of a FIFO.
    Fifo,
    /// `number` is a descriptor, `bytes` the local address and, from `ADDRESS` on, the peer's.
    Stream,
    /// As `Stream`, of a datagram socket.
    Datagram,
    /// `bytes` is a host name.
    Host,
    /// `number` is a process id.
    Pid,
    /// `number` is a futex' address.
    Futex,
}

/// What a call acts on, before it is spelled out.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    pub kind: ObjectKind,
    pub number: i64,
    pub len: [u16; 2],
    pub bytes: [u8; OBJECT],
}

impl Object {
    pub const NONE: Object =
        Object { kind: ObjectKind::None, number: 0, len: [0; 2], bytes: [0; OBJECT] };
}

/// A stack: return addresses, innermost first.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    pub len: u16,
    pub truncated: bool,
    pub ips: [usize; DEPTH],
}

impl Addresses {
    pub const EMPTY: Addresses = Addresses { len: 0, truncated: false, ips: [0; DEPTH] };

    pub fn push(&mut self, ip: usize) -> bool {
        if (self.len as usize) < DEPTH {
            self.ips[self.len as usize] = ip;
            self.len += 1;
            true
        } else {
            self.truncated = true;
            false
        }
    }

    pub fn as_slice(&self) -> &[usize] {
        &self.ips[..(self.len as usize).min(DEPTH)]
    }
}

/// One finished call, or the sum of a poll's short calls.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub call: CallId,
    pub thread: ThreadNo,
    pub tid: KernelTid,
    pub scope: ScopeId,
    pub label: Label,
    pub at: Nanos,
    pub wall: Nanos,
    pub cpu: CpuNanos,
    /// Sleeps: what was asked for.
    pub requested: Nanos,
    /// Measured by the thread itself (sums): time waited for a processor.
    pub waited: Nanos,
    /// Judged by its time: a lock wait, a file call, a sum.
    pub timed: bool,
    /// Sums: how many calls of one poll. 0: a single call.
    pub summed: u32,
    /// Sums: certainly one poll.
    pub certain: bool,
    pub facts: RawFacts,
    pub object: Object,
    pub stack: Addresses,
}

impl Record {
    pub const EMPTY: Record = Record {
        call: CallId(0),
        thread: ThreadNo(0),
        tid: KernelTid(0),
        scope: ScopeId(0),
        label: Label::NONE,
        at: Nanos::ZERO,
        wall: Nanos::ZERO,
        cpu: CpuNanos::ZERO,
        requested: Nanos::ZERO,
        waited: Nanos::ZERO,
        timed: false,
        summed: 0,
        certain: false,
        facts: RawFacts::NONE,
        object: Object::NONE,
        stack: Addresses::EMPTY,
    };
}
