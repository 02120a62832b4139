//! How the attributes and the other front ends fail a suite: `fixtures/projects/fronts` is built
//! and run as a user's.

mod projects;

use projects::{cargo, folder, run, Ran};
use std::collections::BTreeMap;

/// Runs one test target; what it needs beyond our own lock file may be downloaded.
fn test(target: &str, more: &[&str]) -> Ran {
    let mut words = vec!["test", "--test", target];
    words.extend(more);
    run(cargo("fronts", &words).env("CARGO_NET_OFFLINE", "false"))
}

/// Where a marked line is, as reports name it.
fn place(file: &str, marker: &str) -> String {
    let text = std::fs::read_to_string(folder("fronts").join(file)).unwrap();
    let line = text.lines().position(|l| l.ends_with(marker)).unwrap() + 1;
    format!("{file}:{line}:")
}

/// Each test's outcome, and what libtest shows of its output.
fn outcomes(ran: &Ran) -> BTreeMap<String, (String, String)> {
    let mut all = BTreeMap::new();
    for line in ran.stdout.lines() {
        let Some((name, outcome)) =
            line.strip_prefix("test ").and_then(|line| line.split_once(" ... "))
        else {
            continue;
        };
        let name = name.trim_end_matches(" - should panic");
        let head = format!("---- {name} stdout ----\n");
        let output = ran.stdout.split_once(&head).map_or("", |(_, rest)| {
            rest.split("\n---- ").next().unwrap().split("\nfailures:\n").next().unwrap()
        });
        all.insert(name.to_owned(), (outcome.to_owned(), output.to_owned()));
    }
    all
}

/// The output of a guilty test: one report, with one finding, of this very test.
#[track_caller]
fn names_the_guilty(output: &str, name: &str) {
    let who = if name.contains("root") { "the root future" } else { "a task" };
    for text in [
        &format!("error[sleep]: {who} slept on its worker for 30 ms\n"),
        &place("src/lib.rs", "// GUILTY"),
        "clock_nanosleep\n",
        &format!(" test    {name}\n"),
        "error: 1 finding.",
    ] {
        assert!(output.contains(text), "{name}: no {text:?} in\n{output}");
    }
    assert_eq!(output.matches("\nstallhound: 1 finding (").count(), 1, "{name}\n{output}");
    assert!(!output.contains("note["), "{name}\n{output}");
}

#[test]
fn the_attribute_composes_with_everybodys() {
    let ran = test("compose", &["--", "--show-output"]);
    ran.is_code(101);
    assert_eq!(ran.stderr.matches("\nstallhound: ").count(), 0, "no report at the end: {ran}");
    let outcomes = outcomes(&ran);
    let modules: Vec<&str> =
        outcomes.keys().filter_map(|n| n.split_once("::")).map(|n| n.0).collect();
    for (module, tests) in [
        ("with_tokio", 10),
        ("with_rstest", 6),
        ("with_test_log", 4),
        ("with_actix", 5),
        ("with_serial_test", 5),
        ("with_a_pass_through", 5),
        ("what_stays", 8),
    ] {
        assert_eq!(modules.iter().filter(|m| **m == module).count(), tests, "{module}: {ran}");
    }
    for (name, (outcome, output)) in &outcomes {
        if name.contains("guilty") {
            assert_eq!(outcome, "FAILED", "{name}: {ran}");
            names_the_guilty(output, name);
        } else if name.contains("ignored") {
            assert_eq!(outcome, "ignored, to see whether it is", "{name}: {ran}");
        } else {
            assert_eq!(outcome, "ok", "{name}: {ran}");
            assert!(!output.contains("stallhound"), "{name}: {output}");
        }
    }
    // Cases keep the names that rstest makes.
    for case in ["below::case_1_guilty", "below::case_2_clean", "above_sync::case_1_guilty"] {
        assert!(outcomes.contains_key(&format!("with_rstest::{case}")), "{case}: {ran}");
    }
    // What a test says of itself stays, and stays first.
    for (test, own) in [("result", "\"its own error\""), ("own_panic", "its own panic")] {
        for place in ["below", "above"] {
            let (_, output) = &outcomes[&format!("what_stays::guilty_{test}_{place}")];
            let at = |text: &str| output.find(text).unwrap_or_else(|| panic!("{text}: {output}"));
            assert!(at(own) < at("stallhound: 1 finding"), "{test} {place}: {output}");
        }
    }
}

#[test]
fn findings_under_should_panic_go_to_the_exit_code() {
    let ran = test("should_panic", &[]);
    ran.is_code(101).keeps_stdout_clean();
    for name in ["nothing_panics_above", "nothing_panics_below", "nothing_panics_by_a_condition"] {
        ran.says(&format!("test {name} - should panic ... FAILED"))
            .says(&format!(" test    {name}\n"));
    }
    ran.says("test panics_on_purpose - should panic ... ok").says(" test    panics_on_purpose\n");
    assert_eq!(ran.stderr.matches("stallhound: 1 finding (").count(), 4, "{ran}");
    // It passes by itself, and fails the process.
    let ran = test("should_panic", &["--", "--exact", "panics_on_purpose"]);
    ran.is_code(101).reports(1).says("test result: ok. 1 passed");
}

#[test]
fn tests_at_once_are_each_judged_by_their_own_settings() {
    let ran = test("levels", &["--", "--show-output"]);
    ran.is_code(101);
    let outcomes = outcomes(&ran);
    assert_eq!(outcomes.len(), 7 * 4 + 1, "{ran}");
    // Nobody sees what a passing test prints: what it notes is said at the end.
    let noted: Vec<&str> =
        outcomes.keys().filter(|n| n.starts_with("noted")).map(String::as_str).collect();
    assert!(!noted.is_empty());
    assert_eq!(ran.stderr.matches("\nstallhound: ").count(), 1, "{ran}");
    let of = noted.len();
    ran.says(&format!(
        "\nstallhound: 1 finding in {of} of {} tests; it does not fail",
        outcomes.len()
    ))
    .says(&format!("\nwarning[sleep]: a task slept on its worker for 30 ms, {of} times"))
    .says("  ├ in      fronts::refresh, on worker ")
    .says("which passes only because the level is warn");
    for (name, (outcome, output)) in &outcomes {
        let guilty = name.starts_with("guilty");
        assert_eq!(outcome, if guilty { "FAILED" } else { "ok" }, "{name}: {ran}");
        if guilty {
            names_the_guilty(output, name);
        } else {
            assert!(!output.contains("stallhound"), "{name}: {output}");
        }
    }
    // The environment goes before the code, but not before what is allowed.
    for (value, failed) in [("warn", 0), ("deny", 5 * 4), ("off", 0)] {
        let mut command = cargo("fronts", &["test", "--test", "levels"]);
        let ran = run(command.env("CARGO_NET_OFFLINE", "false").env("STALLHOUND", value));
        ran.is_code(if failed > 0 { 101 } else { 0 });
        ran.says(&format!("{} passed; {failed} failed", 7 * 4 + 1 - failed));
    }
}

#[test]
fn the_line_for_all_has_levels_of_categories() {
    let ran = test("line", &[]);
    ran.is_code(101).reports(1).says("2 passed").says("1 finding in 1 of 2 tests");
    ran.says("error[busy]").says("fronts::compute").says(" test    computes\n").says_not("[sleep]");
}

#[test]
fn nothing_is_judged_that_nobody_watches() {
    test("beside", &[]).is_code(0).reports(0).says("1 passed");
}

#[test]
fn reports_in_the_tests_own_hands() {
    let ran = test("by_hand", &[]);
    ran.is_code(101).says("test guilty_report ... FAILED").says("3 passed; 1 failed");
    let (_, output) = &outcomes(&ran)["guilty_report"];
    names_the_guilty(output, "guilty_report");
    // `assert_clean` fails where it stands.
    ran.says(&format!("panicked at {}", place("tests/by_hand.rs", "// ASSERTED")));
    // What nobody asked for fails the process: the runtime that was dropped, the future given up.
    ran.says("\nstallhound: 2 findings; 1 of them does not fail: level = warn (")
        .says(" tests   given_up, never_asked_for\n");
    // Who asks whether a report is clean does not see its notes.
    ran.says("warning[sleep]: a task slept on its worker for 30 ms\n")
        .says(" test    noted_report\n");
    assert_eq!(ran.stderr.matches("\nstallhound: ").count(), 1, "{ran}");
}

#[test]
fn without_a_harness_the_function_names_its_findings() {
    let ran = test("plain_program", &[]);
    ran.is_code(101).says("error[sleep]: a task slept on its worker for 30 ms, 2 times");
    ran.says(" test    run\n").says(&place("src/lib.rs", "// GUILTY"));
    assert_eq!(ran.stderr.matches("stallhound: ").count(), 1, "{ran}");
}
