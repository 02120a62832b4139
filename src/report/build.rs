//! Evidence to report: judged, grouped by the user's line, worst first.
#![forbid(unsafe_code)]

use super::hints::{self, Event};
use super::model::{Allowed, Finding, Kind, Place, Report, Summary, Through, TimeSplit};
use super::{hot, units};
use crate::config::{Level, Limits};
use crate::evidence::{
    CallEvidence, Category, Evidence, Frame, Harness, HoldEvidence, Object, Origin, RawStack, Stack,
};
use crate::ids::{Nanos, RuntimeId, ScopeId};
use crate::verdict::classify::{self, Judgement};
use crate::verdict::context::Context;
use crate::verdict::rules::Allowance;
use std::collections::{BTreeSet, HashMap};

/// Names, as the report needs them. Implemented by the front end over `symbolize`.
pub trait Names {
    /// The names of a stack.
    fn resolve(&mut self, stack: &RawStack) -> Stack;
    /// The text of a line, if its file can be read.
    fn source_line(&mut self, file: &str, line: u32) -> Option<String>;
    /// A file as people should see it: relative, short.
    fn display_path(&self, file: &str) -> String;
    /// A frame's function as every build names it ([`Finding::path`]).
    fn plain_function(&mut self, frame: &Frame) -> Option<String>;
}

/// Builds the report. `cores` bounds what busy holds can do at once.
pub fn build(
    evidence: &Evidence,
    names: &mut dyn Names,
    limits: &dyn Fn(ScopeId) -> Limits,
    cores: u32,
) -> Report {
    let mut runtimes = Runtimes::default();
    let mut groups: Vec<(ScopeId, Finding)> = Vec::new();
    let mut allowed = Vec::new();
    let mut unjudged = 0;
    for call in &evidence.calls {
        let stack = names.resolve(&call.stack);
        let judgement = classify::classify_call(call, &stack, &limits(call.who.scope));
        unjudged += if judgement.nameless { call.count } else { 0 };
        excuse(&judgement, call.count, call.total, &mut allowed);
        if judgement.level != Level::Allow {
            let finding = of_call(call, stack, judgement, names, &mut runtimes);
            groups.push((call.who.scope, finding));
        }
    }
    for hold in &evidence.holds {
        let (stack, share) = hot::heaviest(hold, names);
        let judgement = classify::classify_hold(hold, &stack, &limits(hold.who.scope));
        unjudged += if judgement.nameless { hold.count } else { 0 };
        excuse(&judgement, hold.count, hold.total, &mut allowed);
        if judgement.level != Level::Allow {
            let finding = of_hold(hold, stack, share, judgement, names, &mut runtimes);
            groups.push((hold.who.scope, finding));
        }
    }
    forget_tests(&mut groups, evidence.harness);
    let mut all = group(groups.into_iter().map(|(_, finding)| finding).collect());
    for finding in &mut all {
        finish(finding, cores);
    }
    all.sort_by_key(|f| std::cmp::Reverse((f.level == Level::Deny, f.time.wall)));
    let (findings, notes): (Vec<_>, Vec<_>) = all.into_iter().partition(|f| f.level == Level::Deny);
    let guilty: BTreeSet<_> = findings.iter().flat_map(|f| &f.tests).collect();
    allowed.sort_by_key(|a: &Allowed| std::cmp::Reverse(a.total));
    let summary = Summary {
        guilty_tests: guilty.len() as u64,
        tests: if evidence.harness == Harness::Libtest { evidence.tests_seen } else { 0 },
        told: 0,
        calls_in_polls: evidence.calls_in_polls,
        allowed: evidence.allowed + allowed.iter().map(|a| a.count).sum::<u64>(),
        lost: evidence.lost,
        unjudged,
        interception: evidence.capabilities.interception,
        sampling: evidence.capabilities.sampling,
        schedstat: evidence.capabilities.schedstat,
        precision: "zero-config",
    };
    Report { findings, notes, known: Vec::new(), gone: Vec::new(), allowed, summary }
}

/// Books what an allowance silenced.
fn excuse(judgement: &Judgement, count: u64, total: Nanos, allowed: &mut Vec<Allowed>) {
    let Some(by) = judgement.allowed_by else { return };
    let same = |a: &&mut Allowed| (a.reason, a.place) == (by.reason, by.place);
    let of = match allowed.iter_mut().find(same) {
        Some(of) => of,
        None => {
            let Allowance { reason, place, .. } = *by;
            allowed.push(Allowed {
                reason,
                place,
                count: 0,
                total: Nanos::ZERO,
                categories: Vec::new(),
            });
            allowed.last_mut().expect("it was just pushed")
        }
    };
    of.count += count;
    of.total += total;
    if let Err(at) = of.categories.binary_search(&judgement.category) {
        of.categories.insert(at, judgement.category);
    }
}

/// Runtimes, numbered in order of appearance.
#[derive(Default)]
struct Runtimes(HashMap<RuntimeId, u64>);

impl Runtimes {
    fn number(&mut self, id: RuntimeId) -> u64 {
        let next = self.0.len() as u64 + 1;
        *self.0.entry(id).or_insert(next)
    }
}

/// The index of the frame that a finding is pinned on: the innermost of somebody's own code.
fn own_frame(stack: &Stack) -> Option<usize> {
    stack.frames.iter().position(|f| matches!(f.origin, Origin::Workspace { .. }))
}

fn place(stack: &Stack, names: &mut dyn Names) -> Option<Place> {
    let frame = &stack.frames[own_frame(stack)?];
    let (file, line) = (frame.file.as_ref()?, frame.line?);
    Some(Place {
        file: names.display_path(file),
        line,
        column: frame.column,
        source: names.source_line(file, line),
    })
}

/// The dependency that the user's line called, on the way to where the thread was held.
fn through(stack: &Stack) -> Option<Through> {
    let own = own_frame(stack)?;
    stack.frames[..own].iter().rev().find_map(|f| match &f.origin {
        Origin::Dependency { name, version } => Some(Through {
            package: name.clone(),
            version: version.splitn(3, '.').take(2).collect::<Vec<_>>().join("."),
            function: f.function.clone(),
        }),
        _ => None,
    })
}

fn object(object: &Object) -> Option<String> {
    Some(match object {
        Object::None | Object::Futex(_) => return None,
        Object::Fd { path: Some(path), .. } => format!("`{path}`"),
        Object::Fd { fd, path: None } => format!("descriptor {fd}"),
        Object::Path(path) => format!("`{path}`"),
        Object::Socket { peer: Some(peer), .. } => format!("peer {peer}"),
        Object::Socket { local: Some(local), .. } => format!("socket at {local}"),
        Object::Socket { fd, .. } => format!("socket {fd}"),
        Object::Host(host) => format!("`{host}`"),
        Object::Pid(-1) => "any child".into(),
        Object::Pid(pid) => format!("process {pid}"),
    })
}

fn of_call(
    call: &CallEvidence,
    stack: Stack,
    judgement: Judgement,
    names: &mut dyn Names,
    runtimes: &mut Runtimes,
) -> Finding {
    let cpu = call.cpu.map(|c| Nanos(c.0));
    let asleep = match (call.category, call.summed) {
        (Category::File | Category::Spawn, _) | (_, Some(_)) => None,
        _ => Some(call.max.saturating_sub(call.excused).saturating_sub(cpu.unwrap_or_default())),
    };
    let mut finding = blank(&stack, judgement, names);
    finding.call = Some(call.function);
    finding.object = object(&call.object);
    finding.time = TimeSplit {
        wall: call.max,
        on_cpu: cpu,
        asleep,
        waiting: (call.excused.0 > 0).then_some(call.excused),
        running: call.running,
    };
    finding.count = call.count;
    finding.total = call.total;
    finding.requested = call.requested;
    finding.calls_in_poll = call.summed.map(|s| s.calls);
    finding.certain = call.summed.is_none_or(|s| s.certain);
    of_whom(&mut finding, &call.who, runtimes);
    finding.stack = stack;
    finding
}

fn of_hold(
    hold: &HoldEvidence,
    stack: Stack,
    share: Option<(u32, u32)>,
    judgement: Judgement,
    names: &mut dyn Names,
    runtimes: &mut Runtimes,
) -> Finding {
    let mut finding = blank(&stack, judgement, names);
    let wall = if finding.category == Category::Busy { Nanos(hold.cpu.0) } else { hold.asleep };
    finding.time = TimeSplit {
        wall,
        on_cpu: Some(Nanos(hold.cpu.0)),
        asleep: Some(hold.asleep),
        waiting: (hold.excused.0 > 0).then_some(hold.excused),
        running: hold.running,
    };
    finding.count = hold.count;
    finding.total = wall;
    finding.share = share;
    finding.certain = hold.identity == crate::evidence::Identity::Same;
    of_whom(&mut finding, &hold.who, runtimes);
    finding.stack = stack;
    finding
}

fn of_whom(finding: &mut Finding, who: &crate::evidence::Who, runtimes: &mut Runtimes) {
    finding.task = who.facts.task;
    finding.worker = who.facts.worker;
    finding.workers = who.facts.workers;
    finding.runtime = who.facts.runtime.map(|id| runtimes.number(id));
    finding.tests = who.test.iter().cloned().collect();
}

/// Where tests cannot be told apart, the name of a thread is no test's; a guarded scope's is.
fn forget_tests(findings: &mut [(ScopeId, Finding)], harness: Harness) {
    for (scope, finding) in findings {
        if harness == Harness::Process && *scope == ScopeId::PROCESS {
            finding.tests.clear();
        }
    }
}

fn blank(stack: &Stack, judgement: Judgement, names: &mut dyn Names) -> Finding {
    Finding {
        level: judgement.level,
        category: judgement.category,
        headline: String::new(),
        call: None,
        object: None,
        place: place(stack, names),
        function: own_frame(stack).map(|i| stack.frames[i].function.clone()),
        through: through(stack),
        time: TimeSplit::default(),
        count: 1,
        total: Nanos::ZERO,
        requested: None,
        calls_in_poll: None,
        task: None,
        worker: None,
        workers: 0,
        runtime: None,
        context: judgement.context,
        mixed: false,
        tests: Vec::new(),
        cost: None,
        help: String::new(),
        reason: judgement.reason,
        stack: Stack::default(),
        share: None,
        also: Vec::new(),
        certain: true,
        kinds: vec![Kind { category: judgement.category, calls: Vec::new() }],
        path: path(stack, names),
        allow: None,
        known_line: None,
    }
}

/// The functions a finding is known by. A dependency's, where no own one is in the stack, is only
/// good if own ones would have been seen: where debug information gave it a line.
fn path(stack: &Stack, names: &mut dyn Names) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    for frame in &stack.frames {
        let Origin::Workspace { test_code } = frame.origin else { continue };
        // That a test called it is said elsewhere; hundreds may.
        if test_code && !path.is_empty() {
            continue;
        }
        match names.plain_function(frame) {
            Some(name) if !path.contains(&name) => path.push(name),
            // Without the innermost one the next would stand for what it did not do.
            None if path.is_empty() => break,
            _ => {}
        }
    }
    if own_frame(stack).is_none() {
        let dependency = stack
            .frames
            .iter()
            .find(|f| matches!(f.origin, Origin::Dependency { .. }) && f.line.is_some());
        path.extend(dependency.and_then(|frame| names.plain_function(frame)));
    }
    path
}

/// Findings at the same line are one: the kind that took the longest speaks, the others are named
/// beside it. CPU work is never hidden behind a call, nor the other way round.
fn group(findings: Vec<Finding>) -> Vec<Finding> {
    #[derive(PartialEq, Eq, Hash)]
    enum At {
        Line(String, u32),
        Stack(Category, Vec<String>),
    }
    let mut groups: Vec<Vec<Finding>> = Vec::new();
    let mut index: HashMap<(At, bool, bool), usize> = HashMap::new();
    for finding in findings {
        let at = match &finding.place {
            Some(p) => At::Line(p.file.clone(), p.line),
            None => {
                let path = finding.stack.frames.iter().map(|f| f.function.clone()).collect();
                At::Stack(finding.category, path)
            }
        };
        let key = (at, finding.level == Level::Deny, finding.category == Category::Busy);
        let next = groups.len();
        let i = *index.entry(key).or_insert(next);
        if i == next {
            groups.push(Vec::new());
        }
        groups[i].push(finding);
    }
    groups.into_iter().map(merge).collect()
}

fn merge(mut members: Vec<Finding>) -> Finding {
    let by_kind = |members: &[Finding], category: Category| -> (u64, Nanos) {
        members
            .iter()
            .filter(|m| m.category == category)
            .fold((0, Nanos::ZERO), |(n, t), m| (n + m.count, t + m.total))
    };
    // The kind that took the longest in all, and of it the longest occurrence. Which of several
    // that asked for the same, or took as many milliseconds, was the longest is chance, and what is
    // said of its runtime must not go by it: then the one of the most workers speaks.
    let length = |m: &Finding| m.requested.unwrap_or(Nanos(m.time.wall.0 / 1_000_000 * 1_000_000));
    let leader = members
        .iter()
        .enumerate()
        .max_by_key(|(_, m)| {
            let total = by_kind(&members, m.category).1;
            (total, length(m), m.workers, std::cmp::Reverse(m.runtime), m.time.wall)
        })
        .map_or(0, |(i, _)| i);
    let kind = members[leader].category;
    let longest = members.iter().filter(|m| m.category == kind && m.calls_in_poll.is_none());
    let longest = longest.map(|m| m.time).max_by_key(|time| time.wall).unwrap_or_default();
    let tests: BTreeSet<String> = members.iter().flat_map(|m| m.tests.clone()).collect();
    let kinds: BTreeSet<Category> = members.iter().map(|m| m.category).collect();
    let category = members[leader].category;
    let (count, total) = by_kind(&members, category);
    let also = kinds
        .iter()
        .copied()
        .filter(|kind| *kind != category)
        .map(|kind| {
            let (n, t) = by_kind(&members, kind);
            let calls: BTreeSet<&str> =
                members.iter().filter(|m| m.category == kind).filter_map(|m| m.call).collect();
            let calls: Vec<&str> = calls.into_iter().collect();
            format!("{} ({}), {}, {}", kind.word(), calls.join(", "), times(n), units::time(t))
        })
        .collect();
    let mut kinds: Vec<Kind> = kinds
        .into_iter()
        .map(|category| {
            let of_kind = members.iter().filter(|m| m.category == category);
            let calls: BTreeSet<&'static str> = of_kind.filter_map(|m| m.call).collect();
            Kind { category, calls: calls.into_iter().collect() }
        })
        .collect();
    kinds.sort_by_key(|kind| kind.category != category);
    let mixed = members.iter().any(|m| m.mixed || m.context != members[leader].context);
    let mut finding = members.swap_remove(leader);
    if finding.calls_in_poll.is_none() {
        finding.time = longest;
    }
    finding.mixed = mixed;
    finding.kinds = kinds;
    finding.tests = tests.into_iter().collect();
    finding.count = count;
    finding.total = total;
    finding.also = also;
    finding
}

fn times(n: u64) -> String {
    match n {
        1 => "once".into(),
        n => format!("{n} times"),
    }
}

/// Everything that is said about a finding once it is whole.
pub(super) fn finish(finding: &mut Finding, cores: u32) {
    let summed = finding.calls_in_poll.is_some();
    let event = Event {
        category: finding.category,
        context: finding.context,
        mixed: finding.mixed,
        call: finding.call,
        object: finding.object.as_deref(),
        time: finding
            .requested
            .filter(|_| !summed && !finding.time.running)
            .unwrap_or(finding.time.wall),
        count: finding.count,
        summed: finding.calls_in_poll,
        running: finding.time.running,
        stack: &finding.stack,
    };
    let (headline, help) = (hints::headline(&event), hints::help(&event));
    finding.headline = headline;
    finding.allow = super::allow::text(finding);
    finding.help = help;
    finding.cost = cost(finding, cores);
    if finding.context == Context::RootLoop {
        finding.task = None;
    }
}

/// The ceiling: so many workers, each held so long, can do no more than that.
fn cost(finding: &Finding, cores: u32) -> Option<String> {
    let wall = finding.time.wall;
    let held = match (finding.requested, finding.calls_in_poll) {
        (Some(asked), None) => asked.min(wall),
        _ => wall,
    };
    if held < Nanos::from_millis(1) {
        return hints::short_here(finding.category).map(str::to_owned);
    }
    let busy = finding.category == Category::Busy;
    let (workers, what) = match (finding.workers, busy) {
        (0, _) => (1, "a worker".to_owned()),
        (n, true) if cores < n => (cores, units::count(cores as u64, "core")),
        (n, _) => (n, units::count(n as u64, "worker")),
    };
    let rate = workers as f64 / (held.0 as f64 / 1e9);
    let kind = if busy { "of CPU" } else { "each" };
    Some(format!(
        "{what} ÷ {} {kind}: at most {} such requests a second",
        units::time(held),
        units::rate(rate)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::WorkerIndex;

    #[test]
    fn which_runtime_speaks_does_not_go_by_microseconds() {
        let sleep = |workers: u32, micros: u64, requested: Option<u64>| {
            let wall = Nanos(micros * 1000);
            Finding {
                time: TimeSplit { wall, ..TimeSplit::default() },
                total: wall,
                requested: requested.map(Nanos::from_millis),
                workers,
                worker: Some(WorkerIndex(workers - 1)),
                ..Finding::blank(Category::Sleep)
            }
        };
        for requested in [Some(100), None] {
            for longer in [1, 4] {
                let took = |workers| 100_080 + if workers == longer { 700 } else { 0 };
                for order in [[1, 4], [4, 1]] {
                    let members = order.map(|n| sleep(n, took(n), requested)).to_vec();
                    let merged = merge(members);
                    assert_eq!((merged.workers, merged.worker), (4, Some(WorkerIndex(3))));
                    assert_eq!(merged.time.wall, Nanos(100_780_000), "the longest, whosever");
                    assert_eq!(merged.count, 2);
                }
            }
        }
        let merged = merge(vec![sleep(1, 250_000, Some(250)), sleep(4, 100_000, Some(100))]);
        assert_eq!((merged.workers, merged.requested), (1, Some(Nanos::from_millis(250))));
    }
}
