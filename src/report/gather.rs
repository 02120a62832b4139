//! What passing tests of their own scope had to say, in the report at the end of the run: the
//! harness shows nobody what a passing test printed.
#![forbid(unsafe_code)]

use super::build::finish;
use super::model::{Allowed, Finding, Report};
use std::collections::BTreeSet;

/// Adds notes, known findings and what was allowed of `kept` to a report. The same note in several
/// of them is one note.
pub fn gather(report: &mut Report, kept: Vec<Report>, cores: u32) {
    for Report { notes, known, allowed, summary, .. } in kept {
        for note in notes {
            add(&mut report.notes, note, cores);
        }
        for finding in known {
            add(&mut report.known, finding, cores);
        }
        for more in allowed {
            allow(&mut report.allowed, more);
        }
        report.summary.allowed += summary.allowed;
    }
    report.notes.sort_by_key(|note| std::cmp::Reverse(note.time.wall));
    report.allowed.sort_by_key(|a| std::cmp::Reverse(a.total));
}

fn add(findings: &mut Vec<Finding>, more: Finding, cores: u32) {
    let same = |f: &&mut Finding| {
        f.place.is_some()
            && (&f.place, f.category, &f.reason) == (&more.place, more.category, &more.reason)
            && (&f.also, &f.kinds) == (&more.also, &more.kinds)
    };
    let Some(own) = findings.iter_mut().find(same) else { return findings.push(more) };
    let (count, total) = (own.count + more.count, own.total + more.total);
    let tests: BTreeSet<String> = own.tests.drain(..).chain(more.tests.iter().cloned()).collect();
    let mixed = own.mixed || more.mixed || own.context != more.context;
    if more.time.wall > own.time.wall {
        *own = more;
    }
    (own.count, own.total, own.tests) = (count, total, tests.into_iter().collect());
    own.mixed = mixed;
    finish(own, cores);
}

fn allow(all: &mut Vec<Allowed>, more: Allowed) {
    let same = |a: &&mut Allowed| (a.reason, a.place) == (more.reason, more.place);
    let Some(own) = all.iter_mut().find(same) else { return all.push(more) };
    own.count += more.count;
    own.total += more.total;
    own.categories.extend(more.categories);
    own.categories.sort();
    own.categories.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Category;
    use crate::ids::Nanos;
    use crate::report::model::{Place, TimeSplit};
    use crate::verdict::context::Context;

    fn note(line: u32, millis: u64, test: &str) -> Finding {
        let wall = Nanos::from_millis(millis);
        Finding {
            place: Some(Place { file: "src/lib.rs".into(), line, column: None, source: None }),
            time: TimeSplit { wall, ..TimeSplit::default() },
            total: wall,
            tests: vec![test.into()],
            ..Finding::blank(Category::Sleep)
        }
    }

    #[test]
    fn the_same_note_of_several_tests_is_one() {
        let of = |notes| Report { notes, ..Report::default() };
        let mut report = of(vec![note(3, 10, "c")]);
        let in_root = Finding { context: Context::RootLoop, ..note(3, 40, "b") };
        let kept =
            vec![of(vec![note(7, 20, "b"), in_root]), of(vec![note(3, 30, "a"), note(3, 1, "b")])];
        gather(&mut report, kept, 4);
        assert_eq!(report.notes.len(), 2);
        let (first, second) = (&report.notes[0], &report.notes[1]);
        assert_eq!((first.count, first.total), (4, Nanos::from_millis(81)));
        assert_eq!(first.time.wall, Nanos::from_millis(40));
        assert_eq!(first.tests, ["a", "b", "c"]);
        assert_eq!(
            first.headline,
            "a task or the root future slept on its worker for 40 ms, 4 times"
        );
        assert_eq!((second.count, second.place.as_ref().map(|p| p.line)), (1, Some(7)));
    }

    #[test]
    fn what_was_allowed_is_added_up() {
        let of = |millis: u64, category| Report {
            allowed: vec![Allowed {
                reason: "a test",
                place: None,
                count: 1,
                total: Nanos::from_millis(millis),
                categories: vec![category],
            }],
            ..Report::default()
        };
        let mut report = of(1, Category::File);
        gather(&mut report, vec![of(2, Category::Sleep), of(3, Category::File)], 1);
        let [allowed] = &report.allowed[..] else { panic!("{:?}", report.allowed) };
        assert_eq!((allowed.count, allowed.total), (3, Nanos::from_millis(6)));
        let mut both = [Category::File, Category::Sleep];
        both.sort();
        assert_eq!(allowed.categories, both);
    }
}
