//! How a suite fails, under every runner: `fixtures/projects/suite` is built and run as a user's.

mod projects;

use projects::{cargo, folder, run, Ran};

fn test(target: &str, more: &[&str]) -> Ran {
    let mut words = vec!["test", "--test", target];
    words.extend(more);
    run(&mut cargo("suite", &words))
}

/// The guilty line, as reports name it.
fn place() -> String {
    let text = std::fs::read_to_string(folder("suite").join("src/lib.rs")).unwrap();
    let line = text.lines().position(|l| l.ends_with("// GUILTY")).unwrap() + 1;
    format!("src/lib.rs:{line}:")
}

#[track_caller]
fn names_the_guilty(ran: &Ran, test: &str) {
    ran.is_code(101)
        .reports(1)
        .says("error[sleep]: a task slept on its worker for 30 ms")
        .says(&place())
        .says("clock_nanosleep")
        .says(&format!("test    {test}\n"))
        .says("error: 1 finding.");
}

#[test]
fn watch_all_fails_the_binary_and_names_the_test() {
    let ran = test("guilty", &[]);
    names_the_guilty(&ran, "guilty_sleep");
    ran.says("test result: ok. 4 passed").says("1 finding in 1 of 3 tests");
}

#[test]
fn one_thread_names_the_test_too() {
    names_the_guilty(&test("guilty", &["--", "--test-threads=1"]), "guilty_sleep");
    names_the_guilty(&test("guilty", &["--", "--exact", "guilty_sleep"]), "guilty_sleep");
}

#[test]
fn release_builds_are_watched_too() {
    let ran = test("guilty", &["--release"]);
    names_the_guilty(&ran, "guilty_sleep");
    ran.says("suite::refresh");
}

#[test]
fn without_lines_it_still_fails_and_says_how_to_get_them() {
    let words = ["test", "--release", "--test", "guilty", "--target-dir"];
    let dir = concat!(env!("CARGO_TARGET_TMPDIR"), "/projects-no-debug");
    let mut command = cargo("suite", &[&words[..], &[dir]].concat());
    let ran = run(command.env("CARGO_PROFILE_RELEASE_DEBUG", "0"));
    ran.is_code(101).reports(1).says("error[sleep]").says("debug = \"line-tables-only\"");
}

#[test]
fn a_stripped_binary_says_what_it_cannot_judge_and_fails_where_that_is_required() {
    let dir = concat!(env!("CARGO_TARGET_TMPDIR"), "/projects-stripped");
    let words = ["test", "--release", "--test", "attributes", "--target-dir", dir, "--", "--exact"];
    let run = |test: &str| {
        let mut command = cargo("suite", &[&words[..], &[test]].concat());
        command.env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
        run(&mut command)
    };
    let why = "call could not be judged: the binary has no symbols; set `strip = false` and \
               `debug = \"line-tables-only\"` in [profile.release]\n";
    run("library_awaited_in_the_root")
        .is_code(101)
        .says("test result: ok. 1 passed")
        .says(&format!("stallhound: failing because of `require`: 1 {why}"));
    run("library_awaited_in_the_root_unless_it_cannot_be_told")
        .is_code(0)
        .says(&format!("stallhound: 1 {why}"));
    // What tokio itself tells needs no name.
    run("attribute_guilty").is_code(101).says("error[sleep]").says_not("could not be judged");
    run("attribute_innocent").is_code(0).says_not("stallhound");
}

#[test]
fn a_clean_binary_says_nothing() {
    test("clean", &[]).is_code(0).reports(0).says("test result: ok. 2 passed");
}

#[test]
fn listing_says_nothing() {
    let ran = test("guilty", &["--", "--list"]);
    ran.is_code(0).reports(0).says("guilty_sleep: test").says_not("stallhound");
}

#[test]
fn a_panic_of_the_tests_own_stays_first() {
    let ran = test("panics", &[]);
    ran.is_code(101).reports(1).says("error[sleep]");
    let own = ran.stdout.find("its own message").expect("the test's own message");
    assert!(ran.stdout[..own].contains("panics_by_itself"), "{ran}");
}

#[test]
fn exit_with_findings_is_a_failure() {
    names_the_guilty(&test("exits", &[]), "exits_with_findings");
}

#[test]
fn attributes_fail_their_own_tests() {
    let ran = test("attributes", &[]);
    ran.is_code(101)
        .says("test attribute_guilty ... FAILED")
        .says("test attribute_innocent ... ok")
        .says("test attribute_warned ... ok")
        .says("test not_watched ... ok")
        .says("test library_awaited_in_the_root ... FAILED")
        .says("test result: FAILED. 3 passed; 3 failed")
        .says(&place());
    // Each panic has its own findings only.
    assert_eq!(ran.stdout.matches("stallhound: 1 finding").count(), 3, "{ran}");
    // At the end is only what a test that passed has to say. Five are watched: which others began
    // after the first of those armed the process is chance.
    assert_eq!(ran.stderr.matches("\nstallhound: ").count(), 1, "{ran}");
    ran.says("\nstallhound: 1 finding in 1 of 5 tests; it does not fail: level = warn (")
        .says("\nwarning[sleep]: a task slept on its worker for 30 ms\n")
        .says("clock_nanosleep\n")
        .says("  ├ in      suite::refresh, on worker 0 of 1 (runtime #1)\n")
        .says("  ├ test    attribute_warned\n");
    assert_eq!(ran.stderr.matches("warning[").count(), 1, "{ran}");
    assert!(!ran.stderr.contains("note["), "{ran}");
}

#[test]
fn off_and_warn_fail_nothing() {
    for value in ["off", "warn"] {
        let ran = run(cargo("suite", &["test", "--test", "guilty"]).env("STALLHOUND", value));
        ran.is_code(0);
        let noted = ran.stderr.contains("warning[sleep]");
        assert_eq!(noted, value == "warn", "{ran}");
        let ran = run(cargo("suite", &["test", "--test", "attributes"]).env("STALLHOUND", value));
        ran.is_code(0).says("6 passed");
        let said = ran.stderr.contains("\nwarning[sleep]: ")
            && ran.stderr.contains("; it does not fail: level = warn (");
        assert_eq!(said, value == "warn", "{ran}");
        assert_eq!(ran.stderr.contains("attribute_guilty"), value == "warn", "{ran}");
    }
}

#[test]
fn deny_fails_also_where_the_code_says_warn() {
    let mut command = cargo("suite", &["test", "--test", "attributes"]);
    let ran = run(command.env("STALLHOUND", "deny"));
    ran.is_code(101).says("test attribute_warned ... FAILED");
}

#[test]
fn a_wrong_value_of_the_variable_is_said_once_and_changes_nothing() {
    let ran = run(cargo("suite", &["test", "--test", "guilty"]).env("STALLHOUND", "of"));
    ran.is_code(101)
        .says("environment variable STALLHOUND: \"of\" is not a value it knows")
        .says("set it to `off`, `warn`, `deny` or `bless`, or unset it");
    assert_eq!(ran.stderr.matches("is not a value it knows").count(), 1, "{ran}");
}

#[test]
fn doctests_are_watched() {
    run(&mut cargo("suite", &["test", "--doc"])).is_code(0).says("1 passed");
}

#[test]
fn nextest_fails_the_very_test() {
    let mut command = cargo("suite", &["nextest", "run", "--test", "guilty", "--no-fail-fast"]);
    let ran = run(&mut command);
    if ran.stderr.contains("no such command") {
        eprintln!("NOT RUN: cargo-nextest is not installed");
        return;
    }
    ran.is_code(100)
        .says("4 tests run: 3 passed, 1 failed")
        .says("error[sleep]")
        .says("test    guilty_sleep\n");
}

mod hazards {
    use super::*;

    fn hazard(way: &str) -> Ran {
        run(&mut cargo("suite", &["run", "--quiet", "--bin", "hazard", "--", way]))
    }

    /// Streams and handlers of C's ran to their end.
    #[track_caller]
    fn all_was_said(ran: &Ran) {
        ran.says("said by main\n").says("said by atexit\n");
    }

    #[test]
    fn returning_from_main_with_findings_is_101() {
        let ran = hazard("return");
        ran.is_code(101).reports(1).says_not("test    ");
        all_was_said(&ran);
    }

    #[test]
    fn exit_0_becomes_101_and_handlers_run() {
        let ran = hazard("exit0");
        ran.is_code(101).reports(1);
        all_was_said(&ran);
    }

    #[test]
    fn a_code_of_ones_own_is_kept() {
        let ran = hazard("exit3");
        ran.is_code(3).reports(1);
        all_was_said(&ran);
    }

    #[test]
    fn _exit_0_becomes_101() {
        hazard("_exit0").is_code(101).reports(1);
    }

    #[test]
    fn a_panic_in_main_comes_first() {
        let ran = hazard("panic");
        ran.is_code(101).reports(1);
        let own = ran.stderr.find("its own message").expect("the panic's message");
        assert!(own < ran.stderr.find("\nstallhound: ").unwrap(), "{ran}");
    }

    #[test]
    fn a_fork_child_is_left_alone() {
        let ran = hazard("fork");
        ran.is_code(101).reports(1).says("child ended with 0\n");
    }

    #[test]
    fn clean_programs_end_as_ever() {
        let ran = hazard("clean");
        ran.is_code(0).reports(0);
        all_was_said(&ran);
    }
}

#[test]
fn a_coverage_profile_is_as_complete_as_without() {
    let dir = format!("{}/coverage", env!("CARGO_TARGET_TMPDIR"));
    let sizes: Vec<u64> = ["off", "deny"]
        .iter()
        .map(|value| {
            let profile = format!("{dir}/{value}.profraw");
            let _ = std::fs::remove_file(&profile);
            let target = format!("{dir}/target");
            let words = ["test", "--test", "guilty", "--target-dir", &target];
            let mut command = cargo("suite", &words);
            command.env("STALLHOUND", value).env("RUSTFLAGS", "-C instrument-coverage");
            // Build scripts and macros write profiles too, at another time.
            run(command.args(["--no-run"]).env("LLVM_PROFILE_FILE", "/dev/null")).is_code(0);
            let mut command = cargo("suite", &words);
            command.env("STALLHOUND", value).env("RUSTFLAGS", "-C instrument-coverage");
            let ran = run(command.env("LLVM_PROFILE_FILE", &profile));
            ran.is_code(if *value == "off" { 0 } else { 101 });
            std::fs::metadata(&profile).unwrap_or_else(|e| panic!("{profile}: {e}\n{ran}")).len()
        })
        .collect();
    assert!(sizes[0] > 10_000, "{sizes:?}");
    assert_eq!(sizes[0], sizes[1], "the profile of a failing run is cut");
}
