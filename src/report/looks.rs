//! What a reader sees, whole: from evidence to text, held to `looks/*.snap`.
#![forbid(unsafe_code)]

use super::build::{build, Names};
use super::model::Report;
use super::text::{hold_line, render, Style};
use crate::config::{Level, Limits};
use crate::evidence::*;
use crate::ids::*;

/// Names of made-up stacks: an address is an index into [`FRAMES`].
struct Made;

/// Function, file, line and column, whose.
type Made1 = (&'static str, &'static str, u32, u32, Whose);

#[derive(Clone, Copy)]
enum Whose {
    Own,
    Test,
    Dependency(&'static str, &'static str),
    Tokio,
    Std,
}

const SLEEP: usize = 1;
const HANDLER: usize = 2;
const POLL: usize = 3;
const STD_THREAD: usize = 4;
const FSYNC: usize = 5;
const EXECUTE: usize = 6;
const SAVE: usize = 7;
const DEFLATE: usize = 8;
const CRC: usize = 9;
const PACK: usize = 10;
const EXPORT: usize = 11;
const LOOKUP: usize = 12;
const SETUP: usize = 13;
const MUTEX: usize = 14;
const COUNT_UP: usize = 15;
const NAMELESS: usize = 16;

const FRAMES: [Made1; 17] = [
    ("", "", 0, 0, Whose::Std),
    ("std::thread::sleep", "/rustc/1/library/std/src/thread/mod.rs", 900, 9, Whose::Std),
    ("api::handlers::slow", "/w/src/handlers.rs", 11, 5, Whose::Own),
    (
        "tokio::runtime::task::harness::poll_future",
        "/home/u/.cargo/registry/src/index/tokio-1.54.1/src/runtime/task/harness.rs",
        535,
        19,
        Whose::Tokio,
    ),
    ("std::thread::start", "/rustc/1/library/std/src/thread/mod.rs", 100, 1, Whose::Std),
    (
        "unixSync",
        "/home/u/.cargo/registry/src/index/libsqlite3-sys-0.35.0/sqlite3.c",
        42811,
        3,
        Whose::Dependency("libsqlite3-sys", "0.35.0"),
    ),
    (
        "rusqlite::Connection::execute",
        "/home/u/.cargo/registry/src/index/rusqlite-0.37.0/src/lib.rs",
        600,
        9,
        Whose::Dependency("rusqlite", "0.37.0"),
    ),
    ("store::notifications::save_all", "/w/store/src/notifications.rs", 38, 19, Whose::Own),
    (
        "miniz_oxide::deflate",
        "/home/u/.cargo/registry/src/index/miniz_oxide-0.8.9/src/deflate.rs",
        70,
        5,
        Whose::Dependency("miniz_oxide", "0.8.9"),
    ),
    (
        "miniz_oxide::crc",
        "/home/u/.cargo/registry/src/index/miniz_oxide-0.8.9/src/crc.rs",
        7,
        5,
        Whose::Dependency("miniz_oxide", "0.8.9"),
    ),
    ("api::export::pack", "/w/src/export.rs", 20, 9, Whose::Own),
    ("api::export::download", "/w/src/export.rs", 31, 5, Whose::Own),
    ("std::net::lookup_host", "/rustc/1/library/std/src/net.rs", 5, 1, Whose::Std),
    ("suite::start_server", "/w/tests/suite.rs", 14, 20, Whose::Test),
    ("std::sync::mutex::Mutex::lock", "/rustc/1/library/std/src/sync/mutex.rs", 5, 1, Whose::Std),
    ("api::state::count_up", "/w/src/state.rs", 9, 28, Whose::Own),
    ("", "", 0, 0, Whose::Dependency("blocker", "1.2.3")),
];

/// Lines of the made-up sources.
const SOURCES: [(&str, u32, &str); 6] = [
    ("/w/src/handlers.rs", 11, "    std::thread::sleep(hold);"),
    (
        "/w/store/src/notifications.rs",
        38,
        "\tlet changed = tx.execute(INSERT, params![n.user, n.text, n.at])?;",
    ),
    ("/w/src/export.rs", 20, "        out.write_all(rows)?;"),
    ("/w/src/export.rs", 31, "    let body = pack(&rows)?;"),
    (
        "/w/tests/suite.rs",
        14,
        "    let address = \"localhost:0\".to_socket_addrs().unwrap().next().unwrap();",
    ),
    ("/w/src/state.rs", 9, "    let mut seen = state.seen.lock().unwrap();"),
];

impl Names for Made {
    fn resolve(&mut self, stack: &RawStack) -> Stack {
        let frame = |address: &CodeAddress| {
            let at = address.lookup().wrapping_add(1);
            let (function, file, line, column, whose) = FRAMES[at];
            let known = line != 0;
            Frame {
                function: if known { function.into() } else { "0x7f00".into() },
                symbol: function.into(),
                file: known.then(|| file.to_owned()),
                line: known.then_some(line),
                column: known.then_some(column),
                inlined: false,
                origin: match whose {
                    Whose::Own => Origin::Workspace { test_code: false },
                    Whose::Test => Origin::Workspace { test_code: true },
                    Whose::Dependency(name, version) => {
                        Origin::Dependency { name: name.into(), version: version.into() }
                    }
                    Whose::Tokio => Origin::Tokio { version: "1.54.1".into() },
                    Whose::Std => Origin::Std,
                },
            }
        };
        Stack { frames: stack.addresses.iter().map(frame).collect(), truncated: stack.truncated }
    }
    fn plain_function(&mut self, frame: &Frame) -> Option<String> {
        frame.line.map(|_| frame.function.clone())
    }
    fn source_line(&mut self, file: &str, line: u32) -> Option<String> {
        SOURCES.iter().find(|s| (s.0, s.1) == (file, line)).map(|s| s.2.to_owned())
    }
    fn display_path(&self, file: &str) -> String {
        file.strip_prefix("/w/").unwrap_or(file).to_owned()
    }
}

fn stack(frames: &[usize]) -> RawStack {
    RawStack {
        addresses: frames.iter().map(|at| CodeAddress::Return(*at)).collect(),
        truncated: false,
    }
}

fn who(task: Option<u64>, test: &str) -> Who {
    Who {
        scope: ScopeId::PROCESS,
        thread: ThreadNo(4),
        tid: KernelTid(4711),
        facts: TokioFacts {
            constrained: true,
            task: task.map(TaskId),
            worker: Some(WorkerIndex(if task.is_some() { 2 } else { 0 })),
            worker_known: true,
            flavor: if task.is_some() { Flavor::MultiThread } else { Flavor::CurrentThread },
            runtime: Some(RuntimeId(if task.is_some() { 7 } else { 9 })),
            workers: if task.is_some() { 4 } else { 1 },
        },
        test: Some(test.to_owned()),
    }
}

const MS: u64 = 1_000_000;

fn call(
    category: Category,
    function: &'static str,
    who: Who,
    frames: &[usize],
    ms: u64,
) -> CallEvidence {
    CallEvidence {
        category,
        function,
        who,
        object: Object::None,
        stack: stack(frames),
        at: Nanos(0),
        count: 1,
        total: Nanos(ms * MS),
        max: Nanos(ms * MS),
        cpu: Some(CpuNanos(80_000)),
        excused: Nanos(0),
        requested: None,
        summed: None,
        running: false,
    }
}

fn evidence(calls: Vec<CallEvidence>, holds: Vec<HoldEvidence>) -> Evidence {
    Evidence {
        capabilities: Capabilities { interception: true, sampling: true, schedstat: true },
        harness: Harness::Libtest,
        calls_in_polls: calls.iter().map(|c| c.count).sum(),
        calls,
        holds,
        tests_seen: 14,
        ..Evidence::default()
    }
}

fn slept() -> CallEvidence {
    CallEvidence {
        count: 3,
        total: Nanos(302 * MS),
        requested: Some(Nanos(100 * MS)),
        ..call(
            Category::Sleep,
            "clock_nanosleep",
            who(Some(17), "lists_notifications"),
            &[SLEEP, HANDLER, POLL, STD_THREAD],
            101,
        )
    }
}

fn flushed() -> CallEvidence {
    CallEvidence {
        object: Object::Fd { fd: 9, path: Some("/tmp/notifications.db-wal".into()) },
        count: 350,
        total: Nanos(81 * MS),
        max: Nanos(2 * MS),
        ..call(
            Category::Disk,
            "fsync",
            who(Some(21), "saves_notifications"),
            &[FSYNC, EXECUTE, SAVE, POLL, STD_THREAD],
            2,
        )
    }
}

fn computed() -> HoldEvidence {
    let sample = |frames: &[usize], weight| Sample { stack: stack(frames), weight };
    HoldEvidence {
        who: who(Some(30), "exports"),
        identity: Identity::Same,
        at: Nanos(0),
        count: 1,
        total: Nanos(480 * MS),
        max: Nanos(480 * MS),
        cpu: CpuNanos(410 * MS),
        asleep: Nanos(0),
        excused: Nanos(70 * MS),
        in_calls: Nanos(0),
        samples: vec![
            sample(&[DEFLATE, PACK, EXPORT, POLL, STD_THREAD], 30),
            sample(&[CRC, DEFLATE, PACK, EXPORT, POLL, STD_THREAD], 8),
            sample(&[EXPORT, POLL, STD_THREAD], 2),
        ],
        syscall: None,
        running: false,
    }
}

fn looked_up_in_the_test() -> CallEvidence {
    CallEvidence {
        object: Object::Host("localhost".into()),
        ..call(
            Category::Dns,
            "getaddrinfo",
            who(None, "starts"),
            &[LOOKUP, SETUP, POLL, STD_THREAD],
            1,
        )
    }
}

fn locked() -> CallEvidence {
    call(
        Category::Sync,
        "syscall",
        who(Some(3), "counts"),
        &[MUTEX, COUNT_UP, POLL, STD_THREAD],
        44,
    )
}

fn report(evidence: &Evidence) -> Report {
    build(evidence, &mut Made, &|_| Limits::default_for(true), 2)
}

fn look(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("looks");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn of_all_kinds_at_once() {
    let mut e =
        evidence(vec![slept(), flushed(), looked_up_in_the_test(), locked()], vec![computed()]);
    e.allowed = 2;
    let report = report(&e);
    let plain = render(&report, &Style::plain());
    look("plain", &plain);
    assert_eq!(report.to_string(), plain);
    look("full_stack", &render(&report, &Style { full_stack: true, ..Style::plain() }));
    let ascii = render(&report, &Style { unicode: false, ..Style::plain() });
    assert!(ascii.is_ascii(), "{ascii}");
    look("ascii", &ascii);
    let coloured = render(&report, &Style { colour: true, ..Style::plain() });
    look("colours", &coloured.replace('\x1b', "ESC"));
    assert!(!plain.contains('\x1b'));
    // The guide explains one of them.
    let guide = include_str!("../../docs/guide.md");
    let (_, shown) = guide.split_once("```text\nerror[disk]").expect("the guide's example");
    let shown = shown.split("```").next().expect("its end");
    assert!(plain.contains(&format!("\nerror[disk]{shown}")), "docs/guide.md: {shown}");
}

/// The crate page and the guide show what is printed, and nothing else.
#[test]
fn of_one_finding_as_the_readme_shows_it() {
    let mut report = report(&evidence(vec![slept()], vec![]));
    report.findings[0].known_line = Some(
        "22cbf294d29da4ac sleep api::handlers::slow at=src/handlers.rs:11 call=clock_nanosleep"
            .into(),
    );
    let block = format!("```text\n{report}```\n");
    let readme = include_str!("../../README.md");
    assert!(readme.contains(&block), "README.md shows another report than\n{block}");
}

#[test]
fn of_notes_only_and_of_nothing() {
    look("notes", &report(&evidence(vec![looked_up_in_the_test(), locked()], vec![])).to_string());
    assert_eq!(report(&evidence(vec![], vec![])).to_string(), "");
}

/// Less than a millisecond: no rate can be told, but what decides the time elsewhere.
#[test]
fn of_calls_that_were_short_here() {
    let brief = |category, function| CallEvidence {
        max: Nanos(400_000),
        total: Nanos(400_000),
        cpu: None,
        ..call(category, function, who(Some(21), "saves"), &[SAVE, POLL, STD_THREAD], 1)
    };
    for (category, function, cost) in [
        (Category::Disk, "fsync", "it takes what the disk takes: milliseconds on many"),
        (Category::Net, "connect", "in production it waits as long as the other side takes"),
        (Category::Join, "pthread_join", "it waits as long as the other thread runs"),
    ] {
        let text = report(&evidence(vec![brief(category, function)], vec![])).to_string();
        assert!(text.contains(&format!("├ cost    short here; {cost}")), "{text}");
    }
}

#[test]
fn of_findings_that_fail_nothing() {
    let mut limits = Limits::default_for(true);
    limits.cap = Level::Warn;
    let calls = || vec![slept(), flushed(), locked()];
    let warned = build(&evidence(calls(), vec![]), &mut Made, &|_| limits, 2);
    look("spared", &warned.to_string());
    let coloured = render(&warned, &Style { colour: true, ..Style::plain() });
    assert!(coloured.contains("\x1b[1;33mwarning[sleep]") && !coloured.contains("1;31m"));

    // Runtimes have levels of their own.
    let mut mixed = evidence(calls(), vec![]);
    mixed.calls[1].who.scope = ScopeId(9);
    let of = |scope| match scope {
        ScopeId(9) => limits,
        _ => Limits::default_for(true),
    };
    let text = build(&mixed, &mut Made, &of, 2).to_string();
    let (first, last) = (text.lines().next().unwrap(), text.lines().rev().nth(1).unwrap());
    assert!(
        first.contains("2 findings in 2 of 14 tests; 1 of them does not fail: level = warn ("),
        "{text}"
    );
    assert!(last.starts_with("error: 1 finding fails, and 1 not (level = warn). "), "{text}");
}

#[test]
fn of_a_library_without_the_users_code_and_without_names() {
    let nameless = CallEvidence {
        object: Object::Socket {
            fd: 5,
            local: Some("127.0.0.1:40000".into()),
            peer: Some("127.0.0.1:5432".into()),
            datagram: false,
        },
        running: true,
        ..call(Category::Net, "recv", who(Some(5), "queries"), &[NAMELESS, POLL, STD_THREAD], 1500)
    };
    let mut e = evidence(vec![nameless], vec![]);
    e.lost = 3;
    e.capabilities.sampling = false;
    look("nameless", &report(&e).to_string());
}

#[test]
fn of_a_poll_that_has_not_come_back() {
    let report = report(&evidence(vec![slept()], vec![]));
    look("running", &hold_line(&report.findings[0], Nanos(2_004 * MS)));
}

#[test]
fn of_a_program_that_writes_to_the_terminal() {
    let mut e = evidence(vec![slept()], vec![]);
    e.calls[0].who.test = Some("evil\x1b[2J\u{202e}name".into());
    e.calls[0].object = Object::Path("/tmp/\x07bell\nline".into());
    let text = report(&e).to_string();
    assert!(!text.contains(['\x1b', '\x07', '\u{202e}']), "{text:?}");
    look("escaped", &text);
}
