//! One thread over time: which poll runs, since when, and what it does.
//!
//! A worker that never parks may run one long poll or a thousand short ones. They are told apart
//! by the soft mark (`docs/architecture.md`, "Which poll"): the signal handler reads the poll's
//! budget and takes one to four units of it; the next sample that finds exactly what was left
//! looks at the same poll.
#![forbid(unsafe_code)]

use crate::evidence::{HoldEvidence, Identity, RawStack, Sample};
use crate::ids::{CodeAddress, CpuNanos, KernelTid, Nanos, ScopeId, ThreadNo};
use crate::slots::label::Label;
use crate::slots::record::RawFacts;
use std::collections::HashMap;

/// Samples in a row that must find the same poll before it may fail a test.
pub const PROOF: u32 = 5;
/// A poll that used up to so many units between two samples is probably the same.
const USED: u8 = 16;
/// So many samples carry a mark each; after that every doubling does.
const MARKED: u32 = 6;

/// What one sample said, without its stack copy.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub at: Nanos,
    pub cpu: CpuNanos,
    pub beat: u32,
    pub scope: ScopeId,
    /// Of a wrapped future, the same number as long as the same poll runs; 0: of none.
    pub poll: u32,
    pub facts: RawFacts,
    /// Budget left before the mark; `None`: unlimited.
    pub left: Option<u8>,
    pub taken: u8,
    /// Units taken on that thread so far, these included: others of us take some too.
    pub taken_in_all: u32,
}

/// How a sample relates to the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    NotAPoll,
    Same,
    ProbablySame,
    New,
}

/// Compares a sample with the one before: pure.
pub fn relation(before: Option<&Seen>, now: &Seen) -> Relation {
    let Some(left) = now.left else { return Relation::NotAPoll };
    let Some(before) = before else { return Relation::New };
    let Some(was) = before.left else { return Relation::New };
    let by_others = now
        .taken_in_all
        .wrapping_sub(now.taken as u32)
        .wrapping_sub(before.taken_in_all)
        .min(u8::MAX as u32) as u8;
    let marked = was.saturating_sub(before.taken).saturating_sub(by_others);
    if now.facts.task != before.facts.task
        || now.beat != before.beat
        || now.scope != before.scope
        || now.poll != before.poll
    {
        return Relation::New;
    }
    if left == marked {
        Relation::Same
    } else if left < marked && marked - left <= USED {
        // Only the poll itself uses its budget: where its ends are known, there is no doubt.
        if now.poll != 0 {
            Relation::Same
        } else {
            Relation::ProbablySame
        }
    } else {
        Relation::New
    }
}

/// One poll that goes on.
pub struct Hold {
    pub scope: ScopeId,
    pub label: Label,
    pub first: Seen,
    pub last: Seen,
    /// Samples in a row that were certainly the same poll, up to the last one.
    run: u32,
    run_begun: Seen,
    /// The longest such run that is a proof: its CPU and wall time.
    proven: Option<(CpuNanos, Nanos)>,
    /// Some link was only probable.
    doubtful: bool,
    pub samples: u32,
    stacks: HashMap<RawStack, u32>,
    /// Run-queue wait at the first sample.
    pub waited_before: Nanos,
    pub in_calls: Nanos,
    pub stalled: Nanos,
    /// Asleep outside of any call: proven by unchanged run statistics.
    pub asleep: Nanos,
    pub syscall: Option<i64>,
}

impl Hold {
    pub fn begin(label: Label, seen: Seen, stack: RawStack, waited_before: Nanos) -> Hold {
        Hold {
            scope: seen.scope,
            label,
            first: seen,
            last: seen,
            run: 1,
            run_begun: seen,
            proven: None,
            doubtful: false,
            samples: 1,
            stacks: HashMap::from([(stack, 1)]),
            waited_before,
            in_calls: Nanos::ZERO,
            stalled: Nanos::ZERO,
            asleep: Nanos::ZERO,
            syscall: None,
        }
    }

    /// Adds a sample of the same poll.
    pub fn extend(&mut self, seen: Seen, stack: RawStack, relation: Relation) {
        if relation == Relation::Same {
            self.run += 1;
        } else {
            self.doubtful = true;
            self.run = 1;
            self.run_begun = seen;
        }
        self.last = seen;
        self.samples += 1;
        *self.stacks.entry(stack).or_insert(0) += 1;
        if self.run >= PROOF {
            let cpu = self.last.cpu - self.run_begun.cpu;
            let wall = self.last.at - self.run_begun.at;
            if self.proven.is_none_or(|(c, _)| cpu > c) {
                self.proven = Some((cpu, wall));
            }
        }
    }

    /// Units that the next sample shall take.
    pub fn units(&self, random: u64) -> u8 {
        if self.samples < MARKED || self.samples.is_power_of_two() {
            1 + (random & 3) as u8
        } else {
            0
        }
    }

    /// CPU time between two samples: a tick, growing with the hold. Not with its wall time: on a busy
    /// machine that would leave a large part of the CPU time behind the last sample.
    pub fn gap(&self, tick: Nanos) -> CpuNanos {
        CpuNanos(tick.0.max(self.cpu().0 / 20))
    }

    /// Whether the hold is certainly one poll.
    pub fn is_proven(&self) -> bool {
        self.proven.is_some() || self.asleep.0 > 0
    }

    pub fn wall(&self) -> Nanos {
        self.last.at - self.first.at
    }

    pub fn cpu(&self) -> CpuNanos {
        self.last.cpu - self.first.cpu
    }

    /// The stack seen most often.
    pub fn stack(&self) -> Option<&RawStack> {
        self.stacks.iter().max_by_key(|(_, n)| **n).map(|(s, _)| s)
    }

    /// The part of the hold in which the machine kept the thread from running. Its run statistics
    /// are read when the hold is closed, which may be long after its last sample, and a stall is
    /// most often the same time once more: it is the longer of the two, and no more than the hold
    /// has left beside what it spent on a processor.
    fn excused(&self, waited_now: Nanos, cpu: CpuNanos, wall: Nanos) -> Nanos {
        let waited = waited_now.saturating_sub(self.waited_before);
        let left = wall.saturating_sub(Nanos(cpu.0));
        Nanos(waited.0.max(self.stalled.0).min(left.0))
    }

    /// What is known of it, as evidence. With a probable link in it, the longest run without one
    /// speaks alone if that is proof enough for `busy_limit`.
    pub fn evidence(
        &self,
        thread: ThreadNo,
        tid: KernelTid,
        waited_now: Nanos,
        busy_limit: Nanos,
        running: bool,
    ) -> HoldEvidence {
        let whole = (self.cpu(), self.wall());
        let (identity, (cpu, wall)) = match (self.proven, self.doubtful) {
            (Some(_), false) => (Identity::Same, whole),
            (Some(proven), true) if proven.0 .0 >= busy_limit.0 => (Identity::Same, proven),
            _ if self.asleep.0 > 0 => (Identity::Same, whole),
            _ => (Identity::Probably, whole),
        };
        // Time on a processor inside of intercepted calls is those calls' own; what is left of
        // the wall time is the most that can have been spent elsewhere.
        let cpu = CpuNanos(cpu.0.min(wall.saturating_sub(self.in_calls).0));
        HoldEvidence {
            who: super::collect::who(self.scope, thread, tid, self.label, &self.first.facts),
            identity,
            at: self.first.at,
            count: 1,
            total: wall + self.asleep,
            max: Nanos(wall.0.max(self.asleep.0)),
            cpu,
            asleep: self.asleep,
            excused: self.excused(waited_now, cpu, wall),
            in_calls: self.in_calls,
            samples: self
                .stacks
                .iter()
                .map(|(stack, weight)| Sample { stack: stack.clone(), weight: *weight })
                .collect(),
            syscall: self.syscall,
            running,
        }
    }
}

/// Turns a copied stack's addresses into a raw stack.
pub fn raw(addresses: Vec<CodeAddress>, truncated: bool) -> RawStack {
    RawStack { addresses, truncated }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(at: u64, left: Option<u8>, taken: u8) -> Seen {
        let facts = RawFacts { constrained: left.is_some(), task: 7, ..RawFacts::default() };
        Seen {
            at: Nanos::from_millis(at),
            cpu: CpuNanos::from_millis(at),
            beat: 2,
            scope: ScopeId(0),
            poll: 0,
            facts,
            left,
            taken,
            taken_in_all: taken as u32,
        }
    }

    #[test]
    fn waiting_for_a_processor_makes_no_sample_rarer() {
        let tick = Nanos::from_millis(4);
        let begin = || {
            let stack = raw(Vec::new(), false);
            (Hold::begin(Label::NONE, seen(0, Some(100), 3), stack.clone(), Nanos::ZERO), stack)
        };
        let (mut quiet, stack) = begin();
        quiet.extend(seen(200, Some(97), 0), stack, Relation::Same);
        let (mut preempted, stack) = begin();
        let late = Seen { at: Nanos::from_millis(2000), ..seen(200, Some(97), 0) };
        preempted.extend(late, stack, Relation::Same);
        assert_eq!(quiet.gap(tick), CpuNanos::from_millis(10));
        assert_eq!(preempted.gap(tick), CpuNanos::from_millis(10));
        assert_eq!(begin().0.gap(tick), CpuNanos::from_millis(4));
    }

    #[test]
    fn relations() {
        let before = seen(0, Some(100), 3);
        let is = |now: Seen| {
            let all = before.taken_in_all + now.taken as u32;
            relation(Some(&before), &Seen { taken_in_all: all, ..now })
        };
        assert_eq!(is(seen(4, Some(97), 0)), Relation::Same);
        assert_eq!(is(seen(4, Some(96), 0)), Relation::ProbablySame);
        assert_eq!(is(seen(4, Some(81), 0)), Relation::ProbablySame);
        assert_eq!(is(seen(4, Some(80), 0)), Relation::New);
        assert_eq!(is(seen(4, Some(98), 0)), Relation::New);
        assert_eq!(is(seen(4, Some(128), 0)), Relation::New);
        assert_eq!(is(seen(4, None, 0)), Relation::NotAPoll);
        assert_eq!(is(Seen { beat: 4, ..seen(4, Some(97), 0) }), Relation::New);
        assert_eq!(is(Seen { scope: ScopeId(1), ..seen(4, Some(97), 0) }), Relation::New);
        assert_eq!(is(Seen { poll: 1, ..seen(4, Some(97), 0) }), Relation::New);
        let wrapped = Seen { poll: 5, ..before };
        let later = |left| Seen { poll: 5, taken_in_all: 3, ..seen(4, Some(left), 0) };
        assert_eq!(relation(Some(&wrapped), &later(81)), Relation::Same, "its ends are known");
        assert_eq!(relation(Some(&wrapped), &later(80)), Relation::New);
        let other = RawFacts { task: 8, ..before.facts };
        assert_eq!(is(Seen { facts: other, ..seen(4, Some(97), 0) }), Relation::New);
        assert_eq!(relation(None, &before), Relation::New);
        let others = Seen { taken_in_all: before.taken_in_all + 2, ..seen(4, Some(95), 0) };
        assert_eq!(relation(Some(&before), &others), Relation::Same, "two units taken by sums");
    }

    fn hold(links: &[Relation]) -> HoldEvidence {
        let stack = RawStack::default();
        let mut hold = Hold::begin(Label::NONE, seen(0, Some(128), 1), stack, Nanos(0));
        for (i, link) in links.iter().enumerate() {
            hold.extend(seen(4 * (i as u64 + 1), Some(100), 0), RawStack::default(), *link);
        }
        hold.evidence(ThreadNo(1), KernelTid(1), Nanos(0), Nanos::from_millis(20), false)
    }

    #[test]
    fn five_in_a_row_prove_it() {
        use Relation::*;
        assert_eq!(hold(&[Same; 3]).identity, Identity::Probably);
        assert_eq!(hold(&[Same; 4]).identity, Identity::Same);
        assert_eq!(hold(&[Same; 4]).cpu, CpuNanos::from_millis(16));
    }

    #[test]
    fn what_is_excused_lies_within_the_hold() {
        let waiting = |waited_now: u64, stalled: u64| {
            let begun = Seen { cpu: CpuNanos::from_millis(0), ..seen(0, Some(128), 1) };
            let stack = RawStack::default();
            let mut hold = Hold::begin(Label::NONE, begun, stack, Nanos::from_millis(7));
            for n in 1..=5 {
                let next = Seen { cpu: CpuNanos::from_millis(10 * n), ..seen(12 * n, Some(9), 0) };
                hold.extend(next, RawStack::default(), Relation::Same);
            }
            hold.stalled = Nanos::from_millis(stalled);
            let now = Nanos::from_millis(waited_now);
            let e = hold.evidence(ThreadNo(1), KernelTid(1), now, Nanos::from_millis(20), false);
            assert_eq!((e.max, e.cpu), (Nanos::from_millis(60), CpuNanos::from_millis(50)));
            e.excused
        };
        assert_eq!(waiting(7, 0), Nanos::ZERO);
        assert_eq!(waiting(12, 0), Nanos::from_millis(5));
        assert_eq!(waiting(12, 8), Nanos::from_millis(8), "the same time, seen twice");
        assert_eq!(waiting(5000, 0), Nanos::from_millis(10), "most of it after the hold");
        assert_eq!(waiting(12, 5000), Nanos::from_millis(10));
    }

    #[test]
    fn a_probable_link_leaves_only_the_run_that_proves_itself() {
        use Relation::*;
        let short = [Same, Same, Same, Same, ProbablySame, Same, Same, Same];
        let e = hold(&short);
        assert_eq!(e.identity, Identity::Probably, "16 ms proven, limit 20");
        assert_eq!(e.cpu, CpuNanos::from_millis(32));
        let long = [ProbablySame, Same, Same, Same, Same, Same, Same, ProbablySame];
        let e = hold(&long);
        assert_eq!((e.identity, e.cpu), (Identity::Same, CpuNanos::from_millis(24)));
    }
}
