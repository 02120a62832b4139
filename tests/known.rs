//! Known findings, as a user meets them: `fixtures/projects/known` is copied, blessed and changed.

mod projects;

use projects::{cargo_in, copy_of, run, Ran};
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

/// The list that blessing the whole project writes, without its header.
const LIST: &str = "\
version 1
88df4027a467c84f sleep known::Nap::run at=src/lib.rs:51 call=clock_nanosleep by=tests/shapes
9fcf1b50deab624d sleep known::inner::in_an_inline_module at=src/lib.rs:39 call=clock_nanosleep by=tests/other,tests/shapes
bf552c924ffea0af dns known::looks_up at=src/lib.rs:57 call=getaddrinfo by=tests/shapes
33be4529b64f779f sleep known::pause at=src/lib.rs:20 call=clock_nanosleep below=known::through_a_function by=tests/shapes
1d2ddfcf96cb0de9 sleep known::plain at=src/lib.rs:10 call=clock_nanosleep by=lib/known,tests/other,tests/shapes
7129a08f347c3254 disk known::store::Store::save at=src/store.rs:9 call=fsync by=tests/shapes
0b5987fe3775489a sleep known::through_a_block at=src/lib.rs:32 call=clock_nanosleep by=tests/shapes
d4e52affc845940a sleep known::through_a_closure at=src/lib.rs:24 call=clock_nanosleep by=tests/shapes
";

/// Tests of `tests/shapes.rs` with a finding.
const SHAPES: [&str; 8] = [
    "block",
    "closure",
    "function",
    "inline_module",
    "looks_up",
    "method_of_a_trait",
    "plain",
    "saves",
];

struct Project(PathBuf);

impl Project {
    fn new(case: &str) -> Project {
        Project(copy_of("known", case))
    }

    /// One whose findings are all known.
    fn blessed(case: &str) -> Project {
        let project = Project::new(case);
        project.write("stallhound.known", LIST);
        project
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let text = self.read(file);
        assert!(text.contains(from), "no {from:?} in {file}");
        self.write(file, &text.replace(from, to));
    }

    /// The list without its header.
    fn list(&self) -> String {
        let text = self.read("stallhound.known");
        text[text.find("version ").expect("a version")..].to_owned()
    }

    fn mends_plain(&self) {
        self.edit(
            "src/lib.rs",
            "std::thread::sleep(NAP); // plain",
            "tokio::time::sleep(NAP).await;",
        );
    }

    fn cargo(&self, switch: &str, words: &str) -> Ran {
        let words: Vec<&str> = words.split_whitespace().collect();
        run(cargo_in(&self.0, &words).env("STALLHOUND", switch))
    }

    fn test(&self, words: &str) -> Ran {
        self.cargo("", &format!("test --no-fail-fast {words}"))
    }

    fn bless(&self, words: &str) -> Ran {
        self.cargo("bless", &format!("test --no-fail-fast {words}"))
    }
}

#[test]
fn blessed_findings_pass_as_one_line() {
    let project = Project::new("bless");
    project
        .test("--test shapes")
        .is_code(101)
        .says("8 findings in 8 of 8 tests")
        .says("├ allow   stallhound::allowance! { below = \"known::plain\", allow(sleep), reason = \"why it may block\" }\n")
        .says("       An `allowance!` stands beside `watch_all!` in the test code, in each test binary that needs it\n")
        .says_not("allow_blocking")
        .says("└ known   1d2ddfcf96cb0de9 sleep known::plain at=src/lib.rs:10 call=clock_nanosleep\n")
        .says("error: 8 findings. `STALLHOUND=warn` reports without failing; `STALLHOUND=bless`");
    project
        .bless("")
        .is_code(0)
        .says("stallhound.known has 8 lines now, 6 added, 2 changed, 0 removed");
    assert_eq!(project.list(), LIST);
    let written = fs::metadata(project.0.join("stallhound.known")).unwrap().modified().unwrap();

    let ran = project.test("");
    ran.is_code(0)
        .says("stallhound: 8 known findings (stallhound.known)\n")
        .says_not("error[")
        .says_not("note[")
        .says_not("gone");
    // By the library's tests, `tests/other.rs` and `tests/shapes.rs`, each at its end.
    assert_eq!(ran.stderr.matches("stallhound: ").count(), 3, "{ran}");

    project.bless("").is_code(0).says_not("blessed:");
    let again = fs::metadata(project.0.join("stallhound.known")).unwrap().modified().unwrap();
    assert_eq!(again, written, "nothing to write, and nothing written");
    let files = fs::read_dir(&project.0).unwrap().map(|e| e.unwrap().file_name());
    let left: Vec<_> = files.filter(|f| f.to_string_lossy().starts_with(".stall")).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn what_is_printed_to_be_pasted_works() {
    let of_the_test =
        "    std::thread::sleep(std::time::Duration::from_millis(\"20 ms?\".len() as u64 * 5));\n";
    for profile in ["", "--release"] {
        let project = Project::new("pasted");
        let text = project.read("tests/shapes.rs");
        project.write(
            "tests/shapes.rs",
            &format!(
                "{text}\n#[tokio::test]\nasync fn of_its_own() {{\n    tokio::spawn(nap()).await.unwrap();\n}}\n\n\
                 async fn nap() {{\n{of_the_test}}}\n"
            ),
        );
        let ran = project.test(&format!("--test shapes {profile}"));
        ran.is_code(101).says("9 findings in 9 of 9 tests");
        let lines = ran.stderr.lines().filter_map(|l| Some(l.split_once(" allow   ")?.1));
        let (declared, wrapped): (Vec<&str>, Vec<&str>) =
            lines.partition(|l| l.starts_with("stallhound::allowance!"));
        assert_eq!((declared.len(), wrapped.len()), (8, 1), "{ran}");
        let armed = "stallhound::watch_all!();\n";
        project.edit("tests/shapes.rs", armed, &format!("{armed}{}\n", declared.join("\n")));
        project.edit("tests/shapes.rs", of_the_test, &format!("    {}\n", wrapped[0]));
        let ran = project.test(&format!("--test shapes {profile}"));
        ran.is_code(0).says("9 passed").says_not("stallhound:");
    }
}

#[test]
fn they_are_known_again_in_another_folder_on_other_lines_and_optimised() {
    let project = Project::blessed("moved");
    for file in ["src/lib.rs", "src/store.rs"] {
        let text = project.read(file);
        let head = text.split_inclusive('\n').take_while(|l| l.starts_with("//!")).count();
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        lines.splice(head..head, ["\n"; 7]);
        project.write(file, &lines.concat());
    }
    for profile in ["", "--release"] {
        project
            .test(&format!("--test shapes {profile}"))
            .is_code(0)
            .says("stallhound: 8 known findings (stallhound.known)\n")
            .says_not("gone");
    }
    // Lines are for people: a bless writes where things are now.
    project.bless("").is_code(0).says("8 lines now, 0 added, 8 changed, 0 removed");
    let list = project.list();
    let plain = list.lines().find(|l| l.contains("known::plain")).unwrap();
    assert!(plain.contains(" at=src/lib.rs:17 "), "{list}");
    assert_eq!(list.lines().count(), LIST.lines().count());
}

#[test]
fn new_ones_fail() {
    let project = Project::blessed("new");
    project.edit(
        "src/lib.rs",
        "pub async fn through_a_function() {\n",
        "pub async fn through_a_function() {\n    std::thread::sleep(NAP * 3); // new\n",
    );
    project.edit(
        "src/lib.rs",
        "    std::thread::sleep(NAP); // plain\n",
        "    std::thread::sleep(NAP); // plain\n    std::thread::sleep(NAP * 2); // more\n",
    );
    let ran = project.test("--test shapes");
    ran.is_code(101)
        .says("2 findings in 2 of 8 tests")
        .says("known::through_a_function at=src/lib.rs:15 call=clock_nanosleep\n")
        .says("src/lib.rs:11:5\n")
        .says("├ also    stallhound.known knows 1 such line of this function; this is one more\n")
        .says("stallhound: 8 known findings (stallhound.known)\n");
    assert_eq!(ran.stderr.matches("error[").count(), 2, "{ran}");
}

#[test]
fn a_known_function_hides_none_of_that_name_in_another_type_or_module() {
    let project = Project::blessed("types");
    let store = project.read("src/store.rs");
    let others = "
pub struct Other(pub File);
impl Other {
    pub async fn save(&mut self) -> io::Result<()> {
        Ok(self.0.sync_all()?)
    }
}
pub mod deep {
    pub async fn save(file: super::File) {
        file.sync_all().unwrap();
    }
}
";
    project.write("src/store.rs", &(store + others));
    project.edit(
        "tests/shapes.rs",
        "let mut store = known::store::Store(file);\n",
        "tokio::spawn(known::store::deep::save(file.try_clone().unwrap())).await.unwrap();\n    \
         let mut store = known::store::Other(file);\n",
    );
    for profile in ["", "--release"] {
        let ran = project.test(&format!("--test shapes {profile}"));
        ran.is_code(101)
            .says(" disk known::store::Other::save at=src/store.rs:17 call=fsync\n")
            .says(" disk known::store::deep::save at=src/store.rs:22 call=fsync\n")
            .says("stallhound: 7 known findings (stallhound.known)\n");
        assert_eq!(ran.stderr.matches("error[").count(), 2, "{ran}");
    }
    project.bless("--test shapes").is_code(0);
    let list = project.list();
    for function in ["known::store::Other::save", "known::store::deep::save"] {
        assert!(list.contains(&format!(" disk {function} at=src/store.rs:")), "{list}");
    }
    assert!(!list.contains("known::store::Store::save"), "it is gone: {list}");
    project.test("--test shapes --release").is_code(0).says("9 known findings");
}

#[test]
fn a_bless_counts_what_it_changes() {
    let project = Project::new("counts");
    let plain = "test --test shapes -- --exact plain";
    project.cargo("bless", plain).is_code(0).says(
        "stallhound: blessed: stallhound.known has 1 line now, 1 added, 0 changed, 0 removed\n",
    );
    project.edit("src/lib.rs", "(NAP); // plain\n", "(NAP);\n    std::thread::sleep(NAP * 2);\n");
    project
        .cargo("bless", plain)
        .is_code(0)
        .says("stallhound.known has 1 line now for 2 places, 0 added, 1 changed, 0 removed\n");
    project.cargo("", plain).is_code(0).says("stallhound: 2 known findings (stallhound.known)\n");
}

#[test]
fn gone_ones_are_named_where_that_is_known_and_only_then_dropped() {
    let project = Project::blessed("gone");
    project.mends_plain();
    project
        .test("--test shapes")
        .is_code(0)
        .says("stallhound: 7 known findings (stallhound.known)\n")
        .says("stallhound: 1 known finding is gone; `STALLHOUND=bless cargo test` takes off the list:\n")
        .says("  sleep in known::plain (was at src/lib.rs:10)\n");
    for some in ["plain", "--exact plain", "--skip closure", "--ignored"] {
        let ran = project.test(&format!("--test shapes -- {some}"));
        ran.says_not("gone");
        let ran = project.bless(&format!("--test shapes -- {some}"));
        ran.is_code(0).says_not("gone");
    }
    let with_ignored = project.list();
    let ignored = with_ignored.lines().find(|l| l.contains(" shapes::ignored ")).unwrap();
    assert!(ignored.ends_with(" by=tests/shapes!"), "{ignored}");
    let others = with_ignored.lines().filter(|l| *l != ignored);
    assert_eq!(others.collect::<Vec<_>>(), LIST.lines().collect::<Vec<_>>());

    // All tests but the ignored one: what that one saw stays, and what other targets saw.
    project.bless("--test shapes").is_code(0);
    let list = project.list();
    assert!(list.contains(ignored), "{list}");
    assert!(
        list.contains(
            "known::plain at=src/lib.rs:10 call=clock_nanosleep by=lib/known,tests/other\n"
        ),
        "{list}"
    );
    project.bless("").is_code(0).says("1 removed");
    let list = project.list();
    assert!(!list.contains("known::plain "), "{list}");
    assert_eq!(list.lines().count(), LIST.lines().count(), "{list}");
    project.test("").is_code(0).says_not("gone");
}

#[test]
fn a_test_that_fails_hides_what_came_after() {
    let project = Project::blessed("failing");
    project.mends_plain();
    project.edit(
        "tests/shapes.rs",
        "    tokio::spawn(known::plain()).await.unwrap();\n",
        "    panic!(\"before it\");\n",
    );
    project.test("--test shapes").is_code(101).says("before it").says_not("gone");
    project.bless("--test shapes").is_code(101);
    assert_eq!(project.list(), LIST);
}

#[test]
fn attributes_and_levels_go_by_the_list_too() {
    let project = Project::blessed("levels");
    project.test("--test other").is_code(0).says("2 passed");
    project.write("stallhound.known", "");
    project
        .test("--test other")
        .is_code(101)
        .says("test only_noted ... ok")
        .says("test plain_again ... FAILED")
        .says("known::plain at=src/lib.rs:10 call=clock_nanosleep\n");

    // `level = warn` says everything and fails nothing, known or not.
    project.edit("tests/shapes.rs", "watch_all!()", "watch_all!(level = warn)");
    let ran = project.test("--test shapes");
    ran.is_code(0)
        .says("stallhound: 8 findings in 8 of 8 tests; none fails: level = warn (")
        .says("warning: 8 findings, which pass only because the level is warn. `STALLHOUND=deny`")
        .says_not("error[");
    for (category, times) in [("sleep", 6), ("disk", 1), ("dns", 1)] {
        let found = ran.stderr.matches(&format!("warning[{category}]")).count();
        assert_eq!(found, times, "{category}: {ran}");
    }
    for line in [" help    ", " known   ", " allow   "] {
        assert_eq!(ran.stderr.matches(line).count(), 8, "{line}: {ran}");
    }
    // What would fail without it is what is blessed, so that it can go.
    project.bless("--test shapes").is_code(0).says("8 lines now, 8 added");
    let ran = project.test("--test shapes");
    ran.is_code(0).says("stallhound: 8 known findings (stallhound.known)\n").says_not("warning[");
    let ran = project.cargo("deny", "test --test shapes");
    ran.is_code(0).says("stallhound: 8 known findings (stallhound.known)\n");
}

#[test]
fn a_file_that_cannot_be_read_fails_and_nothing_is_lost() {
    let project = Project::blessed("bad");
    let path = project.0.join("stallhound.known");
    let path = path.display();
    let lines: Vec<&str> = LIST.lines().collect();

    let conflict = format!(
        "{}\n<<<<<<< ours\n{}\n=======\n{}\n>>>>>>> theirs\n{}\n",
        lines[0],
        lines[1],
        lines[2],
        lines[3..].join("\n")
    );
    project.write("stallhound.known", &conflict);
    for line in [2, 4, 6] {
        project
            .test("--test shapes")
            .is_code(101)
            .says(&format!("stallhound: {path}:{line}: a conflict marker of a merge, `"))
            .says("; keep the lines of both sides, in any order and also twice, and delete the markers\n")
            .says("stallhound: 8 known findings (stallhound.known)\n");
    }
    // In a binary without findings too.
    project.test("--bin known").is_code(101).says(&format!("{path}:2: a conflict marker"));
    project
        .bless("--test shapes")
        .is_code(101)
        .says(&format!("{path}:2: a conflict marker"))
        .says("stallhound: stallhound.known is left as it was\n")
        .says("8 findings in 8 of 8 tests");
    assert_eq!(project.read("stallhound.known"), conflict);

    // Where nothing is to fail this does not either; it is said all the same.
    project
        .cargo("warn", "test --test shapes")
        .is_code(0)
        .says(&format!("stallhound: {path}:2: a conflict marker of a merge, `"));
    project.edit("tests/shapes.rs", "watch_all!()", "watch_all!(level = warn)");
    project.test("--test shapes").is_code(0).says(&format!("{path}:2: a conflict marker"));
    project.edit("tests/shapes.rs", "(level = warn)", "(level = warn, deny(dns))");
    project.test("--test shapes").is_code(101).says(&format!("{path}:2: a conflict marker"));
    project.edit("tests/shapes.rs", "(level = warn, deny(dns))", "()");
    fs::write(project.0.join("stallhound.known"), b"version 1\n\xff\n").unwrap();
    project
        .cargo("warn", "test --test shapes")
        .is_code(0)
        .says(&format!("stallhound: {path}: it is not UTF-8; mend it"))
        .says("8 findings in 8 of 8 tests; none fails: level = warn")
        .says("warning[sleep]")
        .says_not("error[");
    project.test("--test shapes").is_code(101).says("8 findings in 8 of 8 tests (");

    // The one line that is broken excuses nothing; the others do.
    let broken = LIST.replace("d4e52affc845940a sleep", "d4e52affc845940a slept");
    project.write("stallhound.known", &broken);
    project
        .test("--test shapes")
        .is_code(101)
        .says(&format!("{path}:9: `slept` is no category; delete the line, or mend it"))
        .says("stallhound: 1 finding in 1 of 8 tests")
        .says("7 known findings");
    project.bless("--test shapes").is_code(101);
    assert_eq!(project.read("stallhound.known"), broken);

    let newer = LIST.replace("version 1", "version 2");
    project.write("stallhound.known", &newer);
    project
        .test("--test shapes")
        .is_code(101)
        .says(&format!(
            "{path}:1: version `2` is not known, only 1 is; use the stallhound that wrote"
        ))
        .says("8 findings in 8 of 8 tests");
    project.bless("--test shapes").is_code(101);
    assert_eq!(project.read("stallhound.known"), newer);

    // `off` and `--list` look at nothing.
    project.cargo("off", "test --test shapes").is_code(0).says_not("stallhound");
    project.test("--test shapes -- --list").is_code(0).says_not("version `2`");
}

#[test]
fn processes_that_bless_at_once_lose_nothing() {
    let project = Project::new("parallel");
    project.test("--no-run").is_code(0);
    let start = |test: &str| {
        let words = ["test", "--test", "shapes", "--", "--exact", test];
        let mut command = cargo_in(&project.0, &words);
        command.env("STALLHOUND", "bless").stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let children: Vec<_> = SHAPES.iter().map(|test| start(test)).collect();
    for child in children {
        Ran::of(child.wait_with_output().unwrap()).is_code(0).says("blessed:");
    }
    let list = project.list();
    for line in LIST.lines() {
        let stem = line.split(" by=").next().unwrap();
        assert!(list.contains(stem), "no {stem:?} in\n{list}");
    }
    assert_eq!(list.lines().count(), LIST.lines().count());
}

#[test]
fn nextest_blesses_from_many_processes_and_passes() {
    let project = Project::new("nextest");
    let ran = project.cargo("bless", "nextest run --no-fail-fast");
    if ran.stderr.contains("no such command") {
        eprintln!("NOT RUN: cargo-nextest is not installed");
        return;
    }
    ran.is_code(0).says("12 tests run: 12 passed");
    assert_eq!(project.list(), LIST);
    project.cargo("", "nextest run --no-fail-fast").is_code(0).says("12 tests run: 12 passed");
    // One process is one test: what it does not see is not gone.
    project.mends_plain();
    let ran = project.cargo("", "nextest run --no-fail-fast --success-output immediate");
    ran.is_code(0).says_not("gone");
    project.cargo("bless", "nextest run --no-fail-fast").is_code(0);
    assert_eq!(project.list(), LIST);
    project.edit("src/lib.rs", "pause();\n", "pause();\n    std::thread::sleep(NAP); // new\n");
    let ran = project.cargo("", "nextest run --no-fail-fast");
    ran.is_code(100)
        .says("12 tests run: 11 passed, 1 failed")
        .says("sleep known::through_a_function at=");
}
