//! Round trips, merges, and what a list excuses.
#![forbid(unsafe_code)]

use super::entry::{Entry, Key, Sight, NOBODY};
use super::list::List;
use super::run::{Run, Sightings};
use crate::report::model::{Category, Finding, Kind, Place, Report, BY_LEVEL};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Names as compilers and file systems have them, and worse.
fn word() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z_]{1,6}(::[a-z_]{1,6}){0,2}", "[a-zäß%,=:;+!# \t\u{a0}\u{2028}\\\\/.-]{1,10}",]
}

fn sight() -> impl Strategy<Value = Sight> {
    (btree_set(1u32..500, 0..4), any::<bool>())
        .prop_map(|(lines, ignored)| Sight { lines, ignored })
}

fn seen() -> impl Strategy<Value = BTreeMap<String, Sight>> {
    let nobody = sight()
        .prop_map(|sight| BTreeMap::from([(NOBODY.to_owned(), Sight { ignored: false, ..sight })]));
    let both = (btree_map(word(), sight(), 1..3), btree_set(500u32..900, 1..3)).prop_map(
        |(mut seen, lines)| {
            seen.insert(NOBODY.to_owned(), Sight { lines, ignored: false });
            seen
        },
    );
    prop_oneof![4 => btree_map(word(), sight(), 1..4), 1 => nobody, 1 => both]
}

fn entry() -> impl Strategy<Value = Entry> {
    let comments = vec("# [a-z ]{1,10}[a-z]", 0..3);
    (word(), any::<bool>(), btree_set(word(), 0..3), btree_set(word(), 0..3), seen(), comments)
        .prop_map(|(file, has_place, calls, callers, mut seen, mut comments)| {
            if !has_place {
                seen.values_mut().for_each(|sight| sight.lines.clear());
                if seen.len() > 1 {
                    seen.remove(NOBODY);
                }
            }
            comments.sort();
            comments.dedup();
            let file = if has_place { file } else { String::new() };
            Entry { file, calls, callers, seen, comments }
        })
}

fn key() -> impl Strategy<Value = Key> {
    let category = (0..Category::ALL.len()).prop_map(|i| Category::ALL[i]);
    (word(), category).prop_map(|(function, category)| Key { function, category })
}

fn list() -> impl Strategy<Value = List> {
    (btree_map(key(), entry(), 0..6), vec("# [a-z]{1,8}", 0..2))
        .prop_map(|(entries, tail)| List { entries, tail })
}

/// Findings at lines of functions that may be in a list as well.
fn report() -> impl Strategy<Value = Report> {
    let finding =
        (0..4usize, 0..Category::ALL.len(), 1u32..9).prop_map(|(function, kind, line)| {
            finding(
                Category::ALL[kind],
                &["app::f", "app::g", "app::h", "app::i"][function..],
                line,
            )
        });
    vec(finding, 0..6).prop_map(|findings| Report { findings, ..Report::default() })
}

fn finding(category: Category, path: &[&str], line: u32) -> Finding {
    let file = "src/lib.rs".to_owned();
    Finding {
        kinds: vec![Kind { category, calls: vec!["call"] }],
        path: path.iter().map(|f| (*f).to_owned()).collect(),
        place: Some(Place { file, line, column: None, source: Some("call();".into()) }),
        ..Finding::blank(category)
    }
}

fn run(target: &str, full: bool) -> Run {
    Run { target: target.into(), full, ignored: false, optimised: false }
}

fn seen_in(report: &Report) -> Sightings {
    let mut sightings = Sightings::default();
    sightings.note(report);
    sightings
}

fn read(text: &str) -> List {
    let (list, wrong) = List::read(text, "stallhound.known");
    assert_eq!(wrong, [], "{text}");
    list
}

/// A list after one bless by each of the targets.
fn blessed(steps: &[(&Report, &str, bool)]) -> List {
    let mut list = List::default();
    for (report, target, full) in steps {
        list.bless(&seen_in(report), &run(target, *full));
    }
    list
}

/// How many findings a run would fail for.
fn failing(list: &List, report: &Report, target: &str) -> usize {
    let mut report = report.clone();
    let all = report.findings.len();
    list.sort_out(&mut report, &run(target, true));
    assert_eq!(report.findings.len() + report.known.len(), all, "one was lost");
    report.findings.len()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(list in list()) {
        let text = list.text();
        prop_assert_eq!(&read(&text), &list, "{}", text);
        prop_assert_eq!(read(&text).text(), text.as_str());
        // As git and editors on other systems have it.
        let dos = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        prop_assert_eq!(read(&dos), list);
    }

    #[test]
    fn order_and_repetition_of_lines_mean_nothing(list in list(), seed in any::<u64>()) {
        let mut plain = list;
        plain.tail.clear();
        plain.entries.values_mut().for_each(|entry| entry.comments.clear());
        let text = plain.text();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.extend(text.lines().filter(|l| !l.starts_with(['#', 'v'])));
        let mut random = seed | 1;
        for i in (1..lines.len()).rev() {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            lines.swap(i, (random >> 33) as usize % (i + 1));
        }
        prop_assert_eq!(read(&lines.join("\n")), plain);
    }

    #[test]
    fn two_sides_of_a_merge_lose_nothing(ours in list(), theirs in list()) {
        let merged = read(&format!("{}{}", ours.text(), theirs.text()));
        for (key, entry) in ours.entries.iter().chain(&theirs.entries) {
            let both = &merged.entries[key];
            prop_assert!(both.lines().is_superset(&entry.lines()));
            prop_assert!(both.calls.is_superset(&entry.calls));
            prop_assert!(both.callers.is_superset(&entry.callers));
            for (target, sight) in entry.seen.iter().filter(|(target, _)| *target != NOBODY) {
                prop_assert!(both.seen[target].lines.is_superset(&sight.lines));
            }
            prop_assert!(entry.comments.iter().all(|c| both.comments.contains(c)));
        }
        let keys: BTreeSet<_> = ours.entries.keys().chain(theirs.entries.keys()).collect();
        prop_assert_eq!(merged.entries.keys().collect::<BTreeSet<_>>(), keys);
    }

    #[test]
    fn any_text_is_read_without_harm(text in "[ -~\n<>=#äversion0-9]{0,200}") {
        let _ = List::read(&text, "k");
    }

    #[test]
    fn a_blessed_run_passes_and_stays_blessed(report in report(), other in report(), full: bool) {
        let once = blessed(&[(&other, "tests/b", true), (&report, "tests/a", full)]);
        prop_assert_eq!(failing(&once, &report, "tests/a"), 0);
        prop_assert_eq!(failing(&once, &other, "tests/b"), 0, "others' entries are kept");
        let mut twice = once.clone();
        let changes = twice.bless(&seen_in(&report), &run("tests/a", full));
        prop_assert_eq!((changes.added, changes.removed), (0, 0));
        prop_assert_eq!(&twice, &once);
        prop_assert_eq!(read(&twice.text()), once);
    }

    #[test]
    fn the_order_of_binaries_means_nothing(a in report(), b in report()) {
        let one = blessed(&[(&a, "tests/a", true), (&b, "tests/b", true)]);
        let other = blessed(&[(&b, "tests/b", true), (&a, "tests/a", true)]);
        prop_assert_eq!(one.text(), other.text());
    }

    #[test]
    fn a_run_of_some_tests_removes_nothing(before in report(), now in report()) {
        let mut list = blessed(&[(&before, "tests/a", true)]);
        prop_assert_eq!(list.gone(&seen_in(&now), &run("tests/a", false)), Vec::<String>::new());
        let changes = list.bless(&seen_in(&now), &run("tests/a", false));
        prop_assert_eq!(changes.removed, 0);
        prop_assert_eq!(failing(&list, &before, "tests/a"), 0);
    }

    #[test]
    fn what_a_whole_run_calls_gone_is_what_its_bless_removes(before in report(), now in report()) {
        let mut list = blessed(&[(&before, "tests/a", true)]);
        let gone = list.gone(&seen_in(&now), &run("tests/a", true));
        let changes = list.bless(&seen_in(&now), &run("tests/a", true));
        prop_assert_eq!(gone.len(), changes.removed);
        prop_assert_eq!(failing(&list, &now, "tests/a"), 0);
    }

    #[test]
    fn a_category_in_a_function_that_is_not_listed_is_new(
        report in report(),
        kind in 0..Category::ALL.len(),
    ) {
        let list = blessed(&[(&report, "tests/a", true)]);
        let new = finding(Category::ALL[kind], &["app::new"], 3);
        let new = Report { findings: vec![new], ..Report::default() };
        prop_assert_eq!(failing(&list, &new, "tests/a"), 1);
    }
}

fn one(category: Category, path: &[&str], line: u32) -> Report {
    Report { findings: vec![finding(category, path, line)], ..Report::default() }
}

#[test]
fn lines_move_but_do_not_multiply() {
    let list = blessed(&[(&one(Category::Sleep, &["app::f"], 7), "tests/a", true)]);
    assert_eq!(failing(&list, &one(Category::Sleep, &["app::f"], 70), "tests/a"), 0);
    let mut report = one(Category::Sleep, &["app::f"], 5);
    report.findings.push(finding(Category::Sleep, &["app::f"], 7));
    list.sort_out(&mut report, &run("tests/a", true));
    // The one that was there is known, wherever the other stands.
    assert_eq!(report.known[0].place.as_ref().unwrap().line, 7);
    assert_eq!(report.findings[0].place.as_ref().unwrap().line, 5);
    assert_eq!(
        report.findings[0].also,
        ["stallhound.known knows 1 such line of this function; this is one more"]
    );
    // Whether a read has to wait is chance: its lines are not counted.
    let list = blessed(&[(&one(Category::Net, &["app::f"], 7), "tests/a", true)]);
    let mut report = one(Category::Net, &["app::f"], 5);
    report.findings.push(finding(Category::Net, &["app::f"], 7));
    assert_eq!(failing(&list, &report, "tests/a"), 0);
}

#[test]
fn one_kind_of_call_at_a_line_is_enough() {
    let mut both = one(Category::Net, &["app::f"], 7);
    both.findings[0].kinds.push(Kind { category: Category::Dns, calls: vec!["getaddrinfo"] });
    let list = blessed(&[(&one(Category::Dns, &["app::f"], 7), "tests/a", true)]);
    assert_eq!(failing(&list, &both, "tests/a"), 0);
    let list = blessed(&[(&both, "tests/a", true)]);
    assert_eq!(list.entries.len(), 2);
    assert_eq!(failing(&list, &one(Category::Dns, &["app::f"], 7), "tests/a"), 0);
    assert_eq!(failing(&list, &one(Category::Sleep, &["app::f"], 7), "tests/a"), 1);
}

#[test]
fn a_frame_that_optimisation_dropped() {
    let list =
        blessed(&[(&one(Category::Sleep, &["app::pause", "app::handler"], 7), "tests/a", true)]);
    let without = one(Category::Sleep, &["app::handler"], 3);
    assert_eq!(failing(&list, &without, "tests/a"), 1, "unoptimised, it is another");
    let optimised = Run { optimised: true, ..run("tests/a", true) };
    let mut report = without.clone();
    list.sort_out(&mut report, &optimised);
    assert_eq!((report.findings.len(), report.known.len()), (0, 1));
    assert_eq!(list.gone(&seen_in(&without), &optimised), Vec::<String>::new());
    assert_eq!(list.gone(&seen_in(&Report::default()), &optimised).len(), 1);
}

#[test]
fn types_may_be_missing_where_the_source_is() {
    let list = blessed(&[(&one(Category::Sleep, &["app::web::A::get"], 3), "tests/a", true)]);
    let at = |function: &str| one(Category::Sleep, &[function], 3);
    let without_source = |function: &str| {
        let mut report = at(function);
        report.findings[0].place.as_mut().unwrap().source = None;
        report
    };
    for (function, fails, fails_without) in [
        ("app::web::A::get", 0, 0),
        ("app::web::get", 1, 0),
        ("app::get", 1, 0),
        ("app::web::B::get", 1, 1),
        ("app::web::A::set", 1, 1),
        ("other::web::get", 1, 1),
        ("get", 1, 1),
    ] {
        assert_eq!(failing(&list, &at(function), "tests/a"), fails, "{function}");
        assert_eq!(
            failing(&list, &without_source(function), "tests/a"),
            fails_without,
            "{function}"
        );
    }
    let run = run("tests/a", true);
    assert_eq!(list.gone(&seen_in(&at("app::web::get")), &run).len(), 1);
    assert_eq!(list.gone(&seen_in(&without_source("app::web::get")), &run).len(), 0);
}

#[test]
fn the_hottest_function_of_a_hold_may_be_the_next() {
    let list =
        blessed(&[(&one(Category::Busy, &["app::inner", "app::outer"], 7), "tests/a", true)]);
    for path in [&["app::outer"][..], &["app::innermost", "app::inner", "app::outer"]] {
        assert_eq!(failing(&list, &one(Category::Busy, path, 9), "tests/a"), 0, "{path:?}");
    }
    assert_eq!(failing(&list, &one(Category::Busy, &["app::else", "app::outer"], 9), "tests/a"), 1);
}

#[test]
fn gone_only_where_it_can_be_known() {
    let list = blessed(&[(&one(Category::Sleep, &["app::f"], 7), "tests/a", true)]);
    let nothing = Sightings::default();
    let gone = |list: &List, run: &Run| list.gone(&nothing, run).len();
    assert_eq!(
        list.gone(&nothing, &run("tests/a", true)),
        ["sleep in app::f (was at src/lib.rs:7)"]
    );
    assert_eq!(gone(&list, &run("tests/b", true)), 0, "another target");
    assert_eq!(gone(&list, &run("tests/a", false)), 0, "some tests");
    // A finding without a line may be any of them.
    let mut unnamed = one(Category::Sleep, &[], 7);
    unnamed.findings[0].place = None;
    assert!(list.gone(&seen_in(&unnamed), &run("tests/a", true)).is_empty());
    // Seen as a note: still there.
    let mut noted = one(Category::Sleep, &["app::f"], 7);
    noted.notes = std::mem::take(&mut noted.findings);
    assert!(list.gone(&seen_in(&noted), &run("tests/a", true)).is_empty());
    // An optimised build is faster.
    let busy = blessed(&[(&one(Category::Busy, &["app::f"], 7), "tests/a", true)]);
    assert_eq!(gone(&busy, &run("tests/a", true)), 1);
    assert_eq!(gone(&busy, &Run { optimised: true, ..run("tests/a", true) }), 0);
    let locked = blessed(&[(&one(Category::FileLock, &["app::f"], 7), "tests/a", true)]);
    assert_eq!(gone(&locked, &Run { optimised: true, ..run("tests/a", true) }), 0);
    // Seen in an ignored test, and those were not run.
    let mut list = List::default();
    let ignored = Run { ignored: true, full: false, ..run("tests/a", true) };
    list.bless(&seen_in(&one(Category::Sleep, &["app::f"], 7)), &ignored);
    assert!(list.text().ends_with(" by=tests/a!\n"), "{}", list.text());
    assert_eq!(gone(&list, &run("tests/a", true)), 0);
    assert_eq!(gone(&list, &Run { ignored: true, ..run("tests/a", true) }), 1);
}

#[test]
fn notes_of_their_own_stay_notes() {
    let list = blessed(&[(&one(Category::Sleep, &["app::f"], 7), "tests/a", true)]);
    let mut report = one(Category::Sleep, &["app::f"], 7);
    report.notes = std::mem::take(&mut report.findings);
    let mut capped = report.clone();
    capped.notes[0].reason = Some(BY_LEVEL.into());
    report.notes[0].reason = Some("test code in the root future".into());
    list.sort_out(&mut report, &run("tests/a", true));
    assert_eq!((report.notes.len(), report.known.len()), (1, 0));
    let mut report = capped;
    list.sort_out(&mut report, &run("tests/a", true));
    assert_eq!((report.notes.len(), report.known.len()), (0, 1));
}

#[test]
fn a_pasted_line_is_read_alone() {
    let finding = finding(Category::Sleep, &["app::f", "app::g"], 7);
    let line = super::entry::offer(&finding).unwrap();
    assert!(line.ends_with(" sleep app::f at=src/lib.rs:7 call=call"), "{line}");
    let mut list = read(&line);
    let report = Report { findings: vec![finding], ..Report::default() };
    assert_eq!(failing(&list, &report, "tests/a"), 0);
    let nobodys = list.gone(&Sightings::default(), &run("tests/a", true));
    assert!(nobodys.is_empty(), "whose it is is not known");
    list.bless(&seen_in(&report), &run("tests/a", true));
    assert!(list.text().ends_with(" below=app::g by=tests/a\n"), "{}", list.text());
    // One line more of the same function.
    let mut more = report.clone();
    more.findings.push(super::tests::finding(Category::Sleep, &["app::f", "app::g"], 9));
    assert_eq!(failing(&list, &more, "tests/a"), 1);
    let line = super::entry::offer(&more.findings[1]).unwrap();
    let list = read(&format!("{}{line}\n", list.text()));
    assert_eq!(failing(&list, &more, "tests/a"), 0);
    assert!(list.text().contains(" at=src/lib.rs:7,9 "), "{}", list.text());
}

#[test]
fn what_cannot_be_read_is_named_with_its_line_and_a_remedy() {
    let good = "1d2ddfcf96cb0de9 sleep known::plain at=src/lib.rs:10";
    for (line, problem, remedy) in [
        ("<<<<<<< HEAD", "a conflict marker of a merge", "keep the lines of both sides"),
        ("=======", "a conflict marker", "delete the markers"),
        (">>>>>>> topic", "a conflict marker", "delete the markers"),
        ("version 2", "version `2` is not known, only 1 is", "use the stallhound that wrote"),
        ("1d2ddfcf96cb0de9 sleep", "a fingerprint, a category and a function", "delete the line"),
        ("1d2ddfcf96cb0de9 nap known::plain", "`nap` is no category", "delete the line"),
        ("1d2ddfcf96cb0de8 sleep known::plain", "is not the fingerprint", "delete the line"),
        ("1d2ddfcf96cb0de9 sleep known::plain why", "`why` is not `name=value`", "delete the line"),
        ("1d2ddfcf96cb0de9 sleep known::plain to=x", "`to=` is not known", "delete the line"),
        ("1d2ddfcf96cb0de9 sleep known::plain at=x:y", "`y` is no line number", "delete the line"),
        ("1d2ddfcf96cb0de9 sleep known::plain at=x%2", "two digits", "delete the line"),
        ("1d2ddfcf96cb0de9 sleep known::plain at=x at=y", "stands there twice", "delete the line"),
        ("1d2ddfcf96cb0de9 sleep known::plain by=a,", "names no test target", "delete the line"),
    ] {
        let (list, wrong) = List::read(&format!("# why\n{good}\n{line}\n"), "dir/stallhound.known");
        let [error] = &wrong[..] else { panic!("{line}: {wrong:?}") };
        assert_eq!(error.place, "dir/stallhound.known:3", "{line}");
        assert!(error.problem.contains(problem), "{line}: {error}");
        assert!(error.remedy.contains(remedy), "{line}: {error}");
        assert_eq!(list.entries.len(), usize::from(!line.starts_with("version")), "{line}");
    }
}
