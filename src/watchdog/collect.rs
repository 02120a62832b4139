//! Records become evidence: named, spelled out, and added up by stack.
#![forbid(unsafe_code)]

use crate::evidence::{
    CallEvidence, Category, Flavor, HoldEvidence, Object, PollSum, RawStack, TokioFacts, Who,
};
use crate::ids::{
    CodeAddress, KernelTid, Nanos, RuntimeId, ScopeId, TaskId, ThreadNo, WorkerIndex,
};
use crate::slots::label::{self, Label};
use crate::slots::record::{
    Addresses, CallId, Object as RawObject, ObjectKind, RawFacts, Record, ADDRESS,
};
use std::collections::hash_map::{DefaultHasher, HashMap};
use std::hash::BuildHasherDefault;

/// What the table of calls says of one: its name and category, `None` for what is never judged.
pub type Names = fn(CallId) -> (&'static str, Option<Category>);

/// What decides whether two calls are the same finding's.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    scope: ScopeId,
    label: Label,
    call: CallId,
    constrained: bool,
    in_task: bool,
    worker: Option<bool>,
    /// Of the runtime: what is said of it must not go by which call took a moment longer.
    workers: u32,
    addresses: Vec<CodeAddress>,
}

/// One poll's sum.
#[derive(PartialEq, Eq, Hash)]
struct SumKey(ThreadNo, Nanos, Category);

/// A map that takes no seed of the thread that makes it: the thread's first seed tells that it may
/// have built a runtime (`hooks::libc::births`).
type Map<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// Evidence so far.
pub struct Collected {
    names: Names,
    calls: Map<Key, CallEvidence>,
    sums: Map<SumKey, CallEvidence>,
    holds: Vec<HoldEvidence>,
    /// Holds beyond what is kept.
    pub lost: u64,
}

/// Distinct holds that are kept.
const HOLDS: usize = 4096;
/// Distinct stacks of calls that are kept.
const CALLS: usize = 16384;

impl Collected {
    pub fn new(names: Names) -> Collected {
        Collected { names, calls: Map::default(), sums: Map::default(), holds: Vec::new(), lost: 0 }
    }

    /// The name of a call.
    pub fn name(&self, call: CallId) -> Option<&'static str> {
        Some((self.names)(call).0)
    }

    /// One record as evidence; `None` for what is never judged.
    pub fn single(&self, record: &Record) -> Option<CallEvidence> {
        let (function, Some(category)) = (self.names)(record.call) else { return None };
        Some(CallEvidence {
            category: category_of(category, record.object.kind),
            function: if record.object.kind == ObjectKind::Futex { "futex" } else { function },
            who: who(record.scope, record.thread, record.tid, record.label, &record.facts),
            object: spell(&record.object),
            stack: raw_stack(&record.stack),
            at: record.at,
            count: 1,
            total: record.wall,
            max: record.wall,
            cpu: (record.cpu.0 != 0).then_some(record.cpu),
            excused: Nanos::ZERO,
            requested: (record.requested.0 != 0).then_some(record.requested),
            summed: None,
            running: false,
        })
    }

    /// Adds one record; `excused` is the part of its time that does not count.
    pub fn add(&mut self, record: &Record, excused: Nanos) {
        let Some(mut evidence) = self.single(record) else { return };
        evidence.excused = excused;
        let category = evidence.category;
        if record.summed > 0 {
            let sum = CallEvidence {
                summed: Some(PollSum {
                    calls: record.summed as u64,
                    time: record.wall,
                    certain: record.certain,
                }),
                count: record.summed as u64,
                excused: record.waited.min(record.wall),
                ..evidence
            };
            // Later records of the same poll say all that earlier ones said.
            self.sums.insert(SumKey(record.thread, record.at, category), sum);
            return;
        }
        let key = Key {
            scope: record.scope,
            label: record.label,
            call: record.call,
            constrained: record.facts.constrained,
            in_task: record.facts.task != 0,
            worker: record.facts.worker_known.then_some(record.facts.worker != 0),
            workers: record.facts.workers,
            addresses: evidence.stack.addresses.clone(),
        };
        if let Some(known) = self.calls.get_mut(&key) {
            let (count, total, at) = (known.count + 1, known.total + evidence.max, known.at);
            let longer = evidence.max.saturating_sub(evidence.excused)
                > known.max.saturating_sub(known.excused);
            if longer {
                *known = evidence;
                known.at = at;
            }
            known.count = count;
            known.total = total;
        } else if self.calls.len() < CALLS {
            self.calls.insert(key, evidence);
        } else {
            self.lost += 1;
        }
    }

    /// Adds one hold.
    pub fn add_hold(&mut self, hold: HoldEvidence) {
        if self.holds.len() < HOLDS {
            self.holds.push(hold);
        } else {
            self.lost += 1;
        }
    }

    /// All evidence of one scope; it is taken out.
    pub fn take(&mut self, scope: ScopeId) -> (Vec<CallEvidence>, Vec<HoldEvidence>) {
        let mut calls = Vec::new();
        self.calls.retain(|_, c| keep_or_take(c.who.scope == scope, c, &mut calls));
        self.sums.retain(|_, c| keep_or_take(c.who.scope == scope, c, &mut calls));
        calls.sort_by_key(|c| c.at);
        let mut holds = Vec::new();
        self.holds.retain(|h| keep_or_take(h.who.scope == scope, h, &mut holds));
        (calls, holds)
    }

    /// A copy of the evidence of one scope.
    pub fn copy(&self, scope: ScopeId) -> (Vec<CallEvidence>, Vec<HoldEvidence>) {
        let mut calls: Vec<_> = self
            .calls
            .values()
            .chain(self.sums.values())
            .filter(|c| c.who.scope == scope)
            .cloned()
            .collect();
        calls.sort_by_key(|c| c.at);
        (calls, self.holds.iter().filter(|h| h.who.scope == scope).cloned().collect())
    }
}

fn keep_or_take<T: Clone>(taken: bool, value: &T, out: &mut Vec<T>) -> bool {
    if taken {
        out.push(value.clone());
    }
    !taken
}

/// `read` and `write` are in the table once, whatever they act on.
fn category_of(listed: Category, object: ObjectKind) -> Category {
    match (listed, object) {
        (Category::File, ObjectKind::Stream | ObjectKind::Datagram) => Category::Net,
        (Category::File, ObjectKind::Pipe | ObjectKind::Fifo) => Category::Pipe,
        (Category::File, ObjectKind::Standard) => Category::Stdio,
        _ => listed,
    }
}

/// A stack taken on the thread itself: return addresses only.
pub fn raw_stack(stack: &Addresses) -> RawStack {
    RawStack {
        addresses: stack.as_slice().iter().map(|ip| CodeAddress::Return(*ip)).collect(),
        truncated: stack.truncated,
    }
}

/// Names of who did it.
pub fn who(scope: ScopeId, thread: ThreadNo, tid: KernelTid, label: Label, f: &RawFacts) -> Who {
    Who {
        scope,
        thread,
        tid,
        facts: TokioFacts {
            constrained: f.constrained,
            task: (f.task != 0).then_some(TaskId(f.task)),
            worker: (f.worker != 0).then(|| WorkerIndex(f.worker - 1)),
            worker_known: f.worker_known,
            flavor: flavor_of(f.flavor),
            runtime: (f.runtime != 0).then_some(RuntimeId(f.runtime)),
            workers: f.workers,
        },
        test: label::name(label).map(str::to_owned),
    }
}

/// Adds what is known of the runtime, where the facts themselves do not say.
pub fn add_runtime(facts: &mut TokioFacts, (runtime, flavor, workers): (u64, u8, u32)) {
    if facts.runtime.is_none() && runtime != 0 {
        facts.runtime = Some(RuntimeId(runtime));
    }
    if facts.flavor == Flavor::Unknown {
        facts.flavor = flavor_of(flavor);
    }
    if facts.workers == 0 {
        facts.workers = workers;
    }
}

fn flavor_of(number: u8) -> Flavor {
    match number {
        1 => Flavor::CurrentThread,
        2 => Flavor::MultiThread,
        _ => Flavor::Unknown,
    }
}

/// Spells out what a call acted on.
pub fn spell(object: &RawObject) -> Object {
    let text = |from: usize, len: u16| {
        let end = (from + len as usize).min(object.bytes.len());
        String::from_utf8_lossy(&object.bytes[from..end]).into_owned()
    };
    match object.kind {
        ObjectKind::None => Object::None,
        ObjectKind::Descriptor | ObjectKind::Pipe | ObjectKind::Standard => Object::Fd {
            fd: object.number as i32,
            path: (object.len[0] > 0).then(|| text(0, object.len[0])),
        },
        ObjectKind::Path | ObjectKind::Fifo => Object::Path(text(0, object.len[0])),
        ObjectKind::Host => Object::Host(text(0, object.len[0])),
        ObjectKind::Pid => Object::Pid(object.number as i32),
        ObjectKind::Futex => Object::Futex(object.number as usize),
        ObjectKind::Stream | ObjectKind::Datagram => Object::Socket {
            fd: object.number as i32,
            local: address(&object.bytes[..object.len[0] as usize]),
            peer: address(&object.bytes[ADDRESS..ADDRESS + object.len[1] as usize]),
            datagram: object.kind == ObjectKind::Datagram,
        },
    }
}

/// A raw socket address as text; `None` if it is empty or of a family that has no text.
fn address(raw: &[u8]) -> Option<String> {
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
    let family = u16::from_ne_bytes(raw.get(..2)?.try_into().ok()?) as i32;
    let port = || Some(u16::from_be_bytes(raw.get(2..4)?.try_into().ok()?));
    match family {
        libc::AF_INET => {
            let ip: [u8; 4] = raw.get(4..8)?.try_into().ok()?;
            Some(SocketAddr::from((Ipv4Addr::from(ip), port()?)).to_string())
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = raw.get(8..24)?.try_into().ok()?;
            Some(SocketAddr::from((Ipv6Addr::from(ip), port()?)).to_string())
        }
        libc::AF_UNIX => {
            let path = raw.get(2..).filter(|p| !p.is_empty())?;
            let (mark, path) = match path[0] {
                0 => ("@", &path[1..]),
                _ => ("", path),
            };
            let end = path.iter().position(|b| *b == 0).unwrap_or(path.len());
            (end > 0).then(|| format!("{mark}{}", String::from_utf8_lossy(&path[..end])))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_spelled_out() {
        let v4 = [2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(address(&v4).as_deref(), Some("127.0.0.1:8080"));
        let mut v6 = [0u8; 28];
        v6[0] = 10;
        v6[3] = 80;
        v6[23] = 1;
        assert_eq!(address(&v6).as_deref(), Some("[::1]:80"));
        assert_eq!(address(b"\x01\x00/run/x.sock\x00").as_deref(), Some("/run/x.sock"));
        assert_eq!(address(b"\x01\x00\x00hidden").as_deref(), Some("@hidden"));
        assert_eq!(address(b"\x01\x00"), None, "an unnamed unix socket");
        assert_eq!(address(b""), None);
    }

    fn names(_: CallId) -> (&'static str, Option<Category>) {
        ("read", Some(Category::File))
    }

    #[test]
    fn same_stack_adds_up_and_the_longest_speaks() {
        let mut c = Collected::new(names);
        let mut r = Record::EMPTY;
        r.stack.push(0x10);
        for (ms, fd) in [(3, 7), (9, 8), (5, 9)] {
            r.wall = Nanos::from_millis(ms);
            r.object.kind = ObjectKind::Descriptor;
            r.object.number = fd;
            c.add(&r, Nanos::ZERO);
        }
        r.stack.push(0x20);
        c.add(&r, Nanos::ZERO);
        let (calls, _) = c.take(ScopeId::PROCESS);
        assert_eq!(calls.len(), 2);
        let three = calls.iter().find(|c| c.count == 3).unwrap();
        assert_eq!(three.total, Nanos::from_millis(17));
        assert_eq!(three.max, Nanos::from_millis(9));
        assert_eq!(three.object, Object::Fd { fd: 8, path: None });
        assert!(c.take(ScopeId::PROCESS).0.is_empty());
    }

    #[test]
    fn a_later_sum_of_the_same_poll_replaces_the_earlier_one() {
        let mut c = Collected::new(names);
        let mut r = Record::EMPTY;
        for (n, at) in [(10, 1), (20, 1), (5, 2)] {
            r.summed = n;
            r.at = Nanos(at);
            r.wall = Nanos::from_millis(n as u64);
            c.add(&r, Nanos::ZERO);
        }
        let (calls, _) = c.take(ScopeId::PROCESS);
        let sums: Vec<_> = calls.iter().map(|c| c.summed.unwrap().calls).collect();
        assert_eq!(sums, [20, 5]);
    }

    #[test]
    fn what_is_read_decides_the_category() {
        for (kind, category) in [
            (ObjectKind::Descriptor, Category::File),
            (ObjectKind::Path, Category::File),
            (ObjectKind::Stream, Category::Net),
            (ObjectKind::Datagram, Category::Net),
            (ObjectKind::Pipe, Category::Pipe),
            (ObjectKind::Fifo, Category::Pipe),
            (ObjectKind::Standard, Category::Stdio),
        ] {
            let mut c = Collected::new(names);
            let mut r = Record::EMPTY;
            r.object.kind = kind;
            c.add(&r, Nanos::ZERO);
            assert_eq!(c.take(ScopeId::PROCESS).0[0].category, category, "{kind:?}");
        }
    }
}
