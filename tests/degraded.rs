//! Builds in which less can be seen, or nothing: `fixtures/projects/suite`, built in each of them.
//! What is missing is said once, and only `require` fails for it.

mod projects;

use projects::{cargo, run, Ran};
use std::process::Command;

/// The suite with a static libc: nothing can be watched there.
fn with_static_libc(test: &str, after: &[&str]) -> Command {
    let target = "x86_64-unknown-linux-gnu";
    let dir = concat!(env!("CARGO_TARGET_TMPDIR"), "/projects-crt-static");
    let words = ["test", "--target", target, "--target-dir", dir, "--test", test, "--"];
    let mut command = cargo("suite", &[&words[..], after].concat());
    command.env("RUSTFLAGS", "-C target-feature=+crt-static");
    command
}

const INERT: &str = "stallhound: nothing is watched: this needs Linux on x86-64 with glibc, linked \
                     dynamically; this was built with a static libc (`-C target-feature=+crt-static`)\n";

#[track_caller]
fn says_so_once(ran: &Ran) {
    assert_eq!(ran.stderr.matches(INERT).count(), 1, "{ran}");
    assert_eq!(ran.stderr.matches("stallhound: ").count(), 1, "{ran}");
    ran.keeps_stdout_clean();
}

/// Everything with a static libc: one build.
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#[test]
fn a_static_libc_makes_it_inert_and_it_says_so() {
    let ran = run(&mut with_static_libc("guilty", &[]));
    ran.is_code(0).says("test result: ok. 4 passed");
    says_so_once(&ran);

    for (after, value) in [(&["--list"][..], "deny"), (&[], "off")] {
        let ran = run(with_static_libc("guilty", after).env("STALLHOUND", value));
        ran.is_code(0).says_not("stallhound: ");
    }

    let ran = run(with_static_libc("guilty", &[]).env("STALLHOUND", "perhaps"));
    ran.is_code(0).says("perhaps").says(INERT).keeps_stdout_clean();

    // Of the attributes' tests one requires to be watched; that one fails, and says why.
    let ran = run(&mut with_static_libc("attributes", &[]));
    ran.is_code(101)
        .says("test library_awaited_in_the_root ... FAILED")
        .says("test result: FAILED. 5 passed; 1 failed")
        .says("stallhound is required here, but: nothing is watched");
    assert_eq!(ran.stderr.matches(INERT).count(), 1, "{ran}");
    let ran = run(with_static_libc("attributes", &[]).env("STALLHOUND", "off"));
    ran.is_code(0).says("test result: ok. 6 passed").says_not("stallhound: ");
}
