//! 300 tiny clean async tests, each with its own runtime, as a user's suite is built: without this
//! crate, with it and off, with it and armed.
#![forbid(unsafe_code)]

use crate::calls::children_cpu;
use crate::child::{self, Watched};
use crate::stats::spread;
use crate::table::Table;
use crate::Effort;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Whether the fixture names this crate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Watching {
    None,
    Linked,
}

/// A built fixture.
pub struct Built {
    /// The test binary.
    pub suite: PathBuf,
    /// The program that says what arming costs; not without this crate.
    pub program: PathBuf,
}

/// Builds `fixtures/projects/tiny-suite`, with the versions in our own lock file.
pub fn build(watching: Watching) -> Built {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let project = root.join("fixtures/projects/tiny-suite");
    std::fs::copy(root.join("Cargo.lock"), project.join("Cargo.lock")).expect("the lock file");
    let name = if watching == Watching::None { "tiny-suite-plain" } else { "tiny-suite-watched" };
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--no-run", "--offline", "--message-format=json", "--manifest-path"]);
    command.arg(project.join("Cargo.toml")).arg("--target-dir").arg(&target);
    if watching == Watching::Linked {
        command.args(["--features", "watched"]);
    }
    let output = command.stderr(Stdio::inherit()).output().expect("cargo to run");
    assert!(output.status.success(), "the fixture does not build");
    let text = String::from_utf8_lossy(&output.stdout);
    let suite = text
        .lines()
        .filter(|line| line.contains(r#""kind":["test"]"#))
        .filter_map(|line| line.split_once(r#""executable":""#)?.1.split_once('"'))
        .map(|(path, _)| PathBuf::from(path))
        .next()
        .expect("a test binary");
    Built { suite, program: target.join("debug/arming") }
}

pub fn measure(effort: Effort, table: &mut Table) {
    let plain = build(Watching::None).suite;
    let watched = build(Watching::Linked).suite;
    let kinds = [
        (&plain, Watched::Off), // nothing there to be watched by
        (&watched, Watched::Off),
        (&watched, Watched::Armed),
    ];
    let mut wall = [const { Vec::new() }; 2];
    let mut cpu = [const { Vec::new() }; 2];
    for round in 0..effort.rounds(21, 5) + 1 {
        let mut times = [(0.0, 0.0); 3];
        for turn in 0..3 {
            // Each kind takes each place in a round equally often, in both directions.
            let which = if round % 2 == 0 { (round + turn) % 3 } else { (round + 3 - turn) % 3 };
            times[which] = once(kinds[which].0, kinds[which].1);
        }
        // The first round warms up.
        if round > 0 {
            for (i, other) in [0, 1].into_iter().enumerate() {
                wall[i].push(times[2].0 / times[other].0);
                cpu[i].push(times[2].1 / times[other].1);
            }
        }
    }
    let name = "300 tiny tests, armed";
    table.ratio(&format!("{name}, to built without: wall"), spread(&wall[0]), Some(1.03), false);
    table.ratio("  CPU time", spread(&cpu[0]), None, false);
    table.ratio(&format!("{name}, to off: wall"), spread(&wall[1]), Some(1.03), false);
    table.ratio("  CPU time", spread(&cpu[1]), None, false);
}

/// Wall and CPU seconds of one run.
fn once(suite: &Path, watched: Watched) -> (f64, f64) {
    let mut command = Command::new(suite);
    child::set(&mut command, watched);
    let (cpu, begun) = (children_cpu(), Instant::now());
    let output = command.output().expect("the suite to run");
    let wall = begun.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("test result: ok. 300 passed"), "{text}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (wall, children_cpu() - cpu)
}
