//! The ground's small types: every number that is easy to confuse with another is its own type.
//!
//! A kernel thread id is not a worker index, an instruction pointer is not a return address, and
//! time on the wall is not time on a processor. None of them appears as a bare integer in a
//! signature.
#![forbid(unsafe_code)]

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A thread as the kernel knows it (`gettid`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct KernelTid(pub i32);

/// A thread as we know it: the number of its birth in this process, never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ThreadNo(pub u64);

/// A worker's place in its runtime, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct WorkerIndex(pub u32);

/// A task as tokio numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TaskId(pub u64);

/// A runtime as tokio numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RuntimeId(pub u64);

/// Whose settings apply: 0 is the process (`watch_all!`), others are one guarded test each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ScopeId(pub u32);

impl ScopeId {
    /// The scope of `watch_all!`.
    pub const PROCESS: ScopeId = ScopeId(0);
}

/// An address in code.
///
/// The two kinds are looked up differently: a return address points *behind* its call and belongs
/// to the line of the byte before it, an instruction pointer belongs to its own line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum CodeAddress {
    /// Where a thread stood when it was sampled.
    Instruction(usize),
    /// Where a caller goes on when its callee returns.
    Return(usize),
}

impl CodeAddress {
    /// The address to look up in the symbol tables.
    pub fn lookup(self) -> usize {
        match self {
            CodeAddress::Instruction(ip) => ip,
            CodeAddress::Return(ra) => ra.wrapping_sub(1),
        }
    }
}

macro_rules! nanoseconds {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
        pub struct $name(pub u64);

        impl $name {
            /// Nothing.
            pub const ZERO: $name = $name(0);
            /// So many milliseconds.
            pub const fn from_millis(ms: u64) -> $name { $name(ms * 1_000_000) }
            /// So many microseconds.
            pub const fn from_micros(us: u64) -> $name { $name(us * 1_000) }
            /// The same as std's type.
            pub fn duration(self) -> Duration { Duration::from_nanos(self.0) }
            /// In milliseconds, for people.
            pub fn as_millis_f64(self) -> f64 { self.0 as f64 / 1e6 }
            /// The difference, or nothing where it would be negative.
            pub fn saturating_sub(self, other: $name) -> $name { $name(self.0.saturating_sub(other.0)) }
        }
        impl Add for $name { type Output = $name; fn add(self, o: $name) -> $name { $name(self.0.saturating_add(o.0)) } }
        impl Sub for $name { type Output = $name; fn sub(self, o: $name) -> $name { self.saturating_sub(o) } }
        impl AddAssign for $name { fn add_assign(&mut self, o: $name) { *self = *self + o; } }
        impl From<Duration> for $name {
            fn from(d: Duration) -> $name { $name(d.as_nanos().min(u64::MAX as u128) as u64) }
        }
    };
}

nanoseconds! {
    /// Time on the wall, or a point of `CLOCK_MONOTONIC`.
    Nanos
}
nanoseconds! {
    /// Time a thread spent on a processor.
    CpuNanos
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl fmt::Display for RuntimeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl fmt::Display for WorkerIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
