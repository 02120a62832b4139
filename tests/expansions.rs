//! The macros in packages of their own: in every edition, under strict lints, with both packages
//! renamed. The packages are built and run as a user's are, by `cargo test`.
//!
//! They use the versions in our own lock file, so that nothing is downloaded.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// How often a line of libtest's appears for the workspace `expansions`.
const EXPECTED: &[(&str, usize)] = &[
    // tests/suite.rs, once in each edition.
    ("test result: ok. 31 passed; 0 failed; 2 ignored;", 3),
    // Unit tests, once in each edition.
    ("test result: ok. 1 passed; 0 failed; 0 ignored;", 3),
    // renamed/tests/suite.rs
    ("test result: ok. 8 passed; 0 failed; 0 ignored;", 1),
    ("test ignored ... ignored, to see whether it is", 3),
    ("test watch::ignored_above ... ignored, to see whether it is", 3),
    ("test watch::should_panic_above - should panic ... ok", 3),
    ("test should_panic_below - should panic ... ok", 3),
    ("test should_panic_above - should panic ... ok", 3),
    ("test should_panic_by_cfg_attr - should panic ... ok", 3),
];

/// What is refused as it is under `#[tokio::test]`: part of the message, and the line and column.
const REFUSED: &[(&str, &str)] = &[
    ("functions used as tests can not have any arguments", "src/lib.rs:6:11"),
    (
        "functions used as tests can not have any non-lifetime generic parameters",
        "src/lib.rs:11:11",
    ),
    ("the trait bound `u8: Termination` is not satisfied", "src/lib.rs:14:36"),
];

#[test]
fn work_in_every_edition_and_under_other_names() {
    let output = cargo_test("expansions");
    let (stdout, stderr) = texts(&output);
    assert!(output.status.success(), "{stdout}\n{stderr}");
    for &(line, times) in EXPECTED {
        assert_eq!(stdout.matches(line).count(), times, "{line}\n{stdout}");
    }
}

#[test]
fn refuse_what_tokio_refuses() {
    let output = cargo_test("rejected");
    let (_, stderr) = texts(&output);
    assert!(!output.status.success(), "{stderr}");
    for (message, place) in REFUSED {
        let at = stderr.find(message).unwrap_or_else(|| panic!("{message}\n{stderr}"));
        let arrow = stderr[at..].lines().nth(1).unwrap_or_default();
        assert!(arrow.ends_with(place), "{message}: {arrow}");
    }
    assert_eq!(stderr.matches("\nerror").count(), REFUSED.len() + 1, "{stderr}");
}

#[test]
fn without_tokios_macros_the_error_names_the_feature() {
    let output = cargo_test("no-macros");
    let (_, stderr) = texts(&output);
    assert!(!output.status.success(), "{stderr}");
    let message = "needs tokio with its feature `macros`, such as \
                   `tokio = { version = \"1\", features = [\"macros\", \"rt\"] }`";
    let first = stderr.find("\nerror").unwrap_or_else(|| panic!("{stderr}"));
    let line = stderr[first + 1..].lines().next().unwrap_or_default();
    assert!(line.contains(message), "{stderr}");
}

fn cargo_test(project: &str) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let project = root.join("fixtures/projects").join(project);
    fs::copy(root.join("Cargo.lock"), project.join("Cargo.lock")).expect("the lock file to copy");
    Command::new(env!("CARGO"))
        .args(["test", "--offline", "--color=never", "--manifest-path"])
        .arg(project.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("projects"))
        // The suites hold several lines of `watch_all!`, one for each way to write it, and a
        // process takes only one. What it does is tried in tests/suite.rs.
        .env("STALLHOUND", "off")
        .env_remove("RUST_TEST_THREADS")
        .output()
        .expect("cargo to run")
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}
