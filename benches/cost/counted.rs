//! Instructions, counted by valgrind's callgrind: the same on every machine, however busy.
//!
//! The child marks what it does by callgrind's client requests: counters to zero before, a dump
//! after. Each dump has one file for each thread; only the thread that works is added up, which
//! is the main one. Without valgrind the part is left out, aloud.

use crate::calls::{self, Objects, Where};
use crate::child::{self, Watched};
use crate::polls;
use crate::table::Table;
use crate::Effort;
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

const CALLS: u32 = 1000;
const TASKS: usize = 64;
const YIELDS: usize = 2000;
/// What one poll may cost more; half of one instruction is counting noise (hashed addresses).
const ADDED: f64 = 0.5;

pub fn measure(_: Effort, table: &mut Table) {
    let valgrind = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    if !valgrind.is_ok_and(|status| status.success()) {
        table.shown("instructions", "not counted: there is no valgrind".into());
        return;
    }
    let armed = count(Watched::Armed);
    let off = count(Watched::Off);
    let per_poll = |counts: &HashMap<String, u64>, driver: &str| {
        let of = |n| counts[&format!("yield {driver} {n}")] as f64;
        (of(2) - of(1)) / (TASKS * YIELDS) as f64
    };
    for (driver, name) in [("without", "no driver"), ("with", "io and time drivers")] {
        let (on, off) = (per_poll(&armed, driver), per_poll(&off, driver));
        let measure = format!("instructions added to a poll, yield loop, {name}");
        table.count(&measure, &format!("(of {off:.1})"), on - off, ADDED);
    }
    for (place, name) in [
        ("outside", "outside of polls"),
        ("builder", "on a thread that built a runtime"),
        ("in-poll", "inside of a poll"),
    ] {
        let calls = calls::all();
        let added = calls.iter().map(|call| {
            let of = |which: &str| armed[&format!("{place} {which} {}", call.name)] as f64;
            let short = call.name.split(',').next().unwrap_or_default();
            format!("{short} {:.0}", (of("hooked") - of("plain")) / f64::from(CALLS))
        });
        table.shown(
            &format!("instructions added to a call {name}"),
            added.collect::<Vec<_>>().join(" · "),
        );
    }
}

/// Runs the child under callgrind. Instructions of the main thread, by mark.
fn count(watched: Watched) -> HashMap<String, u64> {
    let name = if watched == Watched::Armed { "armed" } else { "off" };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("callgrind").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut out = std::ffi::OsString::from("--callgrind-out-file=");
    out.push(folder.join("out"));
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--separate-threads=yes", "-q"]).arg(out);
    command.arg(std::env::current_exe().expect("a path")).args([child::ROLE, "counted"]);
    child::set(&mut command, watched);
    let output = command.output().expect("valgrind to run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "callgrind: {said}");
    let mut counts = HashMap::new();
    for file in std::fs::read_dir(&folder).expect("a folder") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("a dump");
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let Some(mark) = field("desc: Trigger: Client Request: ") else { continue };
        if field("thread: ").map(str::trim) == Some("1") {
            let total = field("summary: ").or_else(|| field("totals: ")).expect("a total");
            counts.insert(mark.trim().to_owned(), total.trim().parse().expect("a number"));
        }
    }
    counts
}

/// Does what is to be counted, under marks.
pub fn child(_: &[String]) {
    // glibc does with less in a process of one thread, which no process under watch is, nor one
    // that runs tests: cancellation points, allocation.
    std::thread::spawn(|| loop {
        std::thread::park();
    });
    child::arm();
    // First of all: once it has built a runtime this thread is asked about at each call.
    let objects = Objects::new();
    count_calls(Where::Outside, "outside", objects);
    for driver in ["without", "with"] {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        if driver == "with" {
            builder.enable_all();
        }
        let runtime = builder.build().expect("a runtime");
        // The allocator comes to rest.
        for _ in 0..5 {
            polls::yields(&runtime, TASKS, 100, false);
        }
        for n in 1..=2 {
            marked(&format!("yield {driver} {n}"), || {
                polls::yields(&runtime, TASKS, n * YIELDS, false);
            });
        }
    }
    count_calls(Where::Builder, "builder", objects);
    count_calls(Where::InPoll, "in-poll", objects);
}

fn count_calls(place: Where, name: &'static str, objects: Objects) {
    calls::at(place, async move {
        for call in calls::all() {
            for (address, which) in call.both().into_iter().zip(["hooked", "plain"]) {
                // SAFETY: an address of the function that this batch calls.
                let batch = |n| unsafe { (call.batch)(address, objects, n) };
                batch(10);
                marked(&format!("{name} {which} {}", call.name), || batch(CALLS));
                if place == Where::InPoll {
                    tokio::task::yield_now().await;
                }
            }
        }
    });
}

/// Counts what `work` does, under a name.
fn marked(name: &str, work: impl FnOnce()) {
    let name = std::ffi::CString::new(name).expect("no null byte");
    request(ZERO_STATS, 0);
    work();
    request(DUMP_STATS_AT, name.as_ptr() as usize);
}

/// callgrind's client requests: its tool's letters, and a number.
const ZERO_STATS: usize = ((b'C' as usize) << 24) + ((b'T' as usize) << 16) + 1;
const DUMP_STATS_AT: usize = ZERO_STATS + 2;

/// Asks valgrind for something; does nothing outside of it.
fn request(number: usize, argument: usize) {
    let arguments = [number, argument, 0, 0, 0, 0];
    // SAFETY: valgrind's documented sequence for amd64. Four rotations that add up to 128 bits and
    // an exchange of a register with itself change nothing; valgrind answers in rdx.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") 0usize => _,
            inout("rdi") 0usize => _,
        );
    }
}
