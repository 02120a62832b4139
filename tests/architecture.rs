//! Who may import whom (docs/architecture.md), where `unsafe` may stand, how large files may be.
//! The rules are read off the sources: a module that breaks one fails here by name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Stage → stages it may import. `ids`, `error` are free for all.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("ids", &[]),
    ("error", &[]),
    ("sys", &[]),
    ("slots", &[]),
    ("evidence", &[]),
    ("config", &["evidence"]),
    ("hooks", &["slots", "sys"]),
    ("capture", &["slots", "sys"]),
    ("watchdog", &["slots", "capture", "sys", "config", "evidence"]),
    ("symbolize", &["evidence"]),
    ("verdict", &["evidence", "config"]),
    ("report", &["verdict", "evidence", "config"]),
    ("known", &["report"]),
];

/// The front ends know all in-process stages.
const FRONT_ENDS: &[&str] =
    &["lib", "detector", "inert", "bless", "builder", "scope", "watch", "private", "macros"];

/// Stages that are given texts and reports as values: they open no file and read no clock.
const PURE: &[&str] = &["evidence", "config", "verdict", "report", "known"];

/// Stages in which `unsafe` may stand; every other file forbids it.
const UNSAFE: &[&str] = &["sys", "slots", "hooks", "capture"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Every source file with its stage and its text.
fn files() -> Vec<(String, PathBuf, String)> {
    let src = root().join("src");
    let mut paths = Vec::new();
    sources(&src, &mut paths);
    assert!(paths.len() > 20, "found only {} files", paths.len());
    paths
        .into_iter()
        .map(|path| {
            let relative = path.strip_prefix(&src).unwrap().to_path_buf();
            let first = relative.components().next().unwrap().as_os_str().to_str().unwrap();
            let stage = first.trim_end_matches(".rs").to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            (stage, relative, text)
        })
        .collect()
}

/// The part of a file before its unit tests.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests").next().unwrap()
}

/// The stages named after `crate::` in code (comments left out).
fn imports(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in text.lines().map(|l| l.split("//").next().unwrap()) {
        for (at, _) in line.match_indices("crate::") {
            if line[..at].ends_with('$') {
                continue;
            }
            let rest = &line[at + "crate::".len()..];
            let names: Vec<&str> = match rest.strip_prefix('{') {
                Some(list) => list.trim_end_matches(['}', ';']).split(',').collect(),
                None => vec![rest],
            };
            for name in names {
                let end = name
                    .trim_start()
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(name.trim_start().len());
                found.insert(name.trim_start()[..end].to_owned());
            }
        }
    }
    found.remove("");
    found
}

#[test]
fn stages_import_only_what_the_table_allows() {
    let allowed: BTreeMap<&str, &[&str]> = MAY_IMPORT.iter().copied().collect();
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for (stage, path, text) in files() {
        if FRONT_ENDS.contains(&stage.as_str()) {
            continue;
        }
        let Some(may) = allowed.get(stage.as_str()) else {
            wrong.push(format!("src/{}: stage `{stage}` is not in the table", path.display()));
            continue;
        };
        for import in imports(without_tests(&text)) {
            looked_at += 1;
            let free = ["ids", "error"].contains(&import.as_str()) || import == stage;
            if !free && !may.contains(&import.as_str()) {
                wrong.push(format!("src/{}: `{stage}` imports `{import}`", path.display()));
            }
        }
    }
    assert!(looked_at > 50, "only {looked_at} imports were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_import_reader_sees_all_spellings() {
    let text = "use crate::{ids, sys::clock};\nlet x = crate::slots::own(); // crate::comment\n\
                macro { $crate::private }";
    let found: Vec<_> = imports(text).into_iter().collect();
    assert_eq!(found, ["ids", "slots", "sys"]);
}

#[test]
fn unsafe_stands_only_where_it_may() {
    let mut wrong = Vec::new();
    for (stage, path, text) in files() {
        let forbids = text.contains("#![forbid(unsafe_code)]");
        // A module file that only lists modules has nothing to forbid.
        let only_lists = text.lines().all(|l| {
            let l = l.trim();
            l.is_empty()
                || l.starts_with("//")
                || l.starts_with("mod ")
                || l.starts_with("pub mod ")
                || l.starts_with("pub use ")
                || l.starts_with('#')
        });
        let mentions = text
            .lines()
            .map(|l| l.split("//").next().unwrap())
            .any(|l| l.contains("unsafe ") || l.contains("unsafe{"));
        if !UNSAFE.contains(&stage.as_str()) {
            if mentions {
                wrong.push(format!("src/{}: has `unsafe`", path.display()));
            } else if !forbids && !only_lists {
                wrong.push(format!("src/{}: does not forbid unsafe code", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn judgement_opens_no_file_and_reads_no_clock() {
    let mut looked_at = 0;
    for (stage, path, text) in files() {
        if !PURE.contains(&stage.as_str()) {
            continue;
        }
        looked_at += 1;
        for line in without_tests(&text).lines().map(|l| l.split("//").next().unwrap()) {
            for module in ["std::fs", "std::io", "std::env", "std::net", "Instant", "SystemTime"] {
                // Every other piece is inside of quotes: advice names modules too.
                let names = line.split('"').step_by(2).any(|code| code.contains(module));
                assert!(!names, "src/{}: {line}", path.display());
            }
        }
    }
    assert!(looked_at > 10, "only {looked_at} files were found");
}

#[test]
fn known_findings_know_the_model_of_reports_and_nothing_else_of_them() {
    for (stage, path, text) in files() {
        let code = without_tests(&text).lines().map(|l| l.split("//").next().unwrap());
        for line in code.filter(|l| stage == "known" && l.contains("crate::report")) {
            assert!(line.contains("crate::report::model"), "src/{}: {line}", path.display());
        }
    }
}

#[test]
fn files_stay_small() {
    let mut sizes = Vec::new();
    for (_, path, text) in files() {
        let lines = without_tests(&text).lines().count();
        assert!(lines <= 800, "src/{} has {lines} lines without its tests", path.display());
        sizes.push(lines);
    }
    sizes.sort_unstable();
    let median = sizes[sizes.len() / 2];
    assert!(median <= 200, "the median file has {median} lines");
}

#[test]
fn handlers_and_interposed_code_say_what_they_call() {
    for (_, path, text) in files() {
        let name = path.to_string_lossy().into_owned();
        let careful =
            name.starts_with("hooks/") || name == "capture/handler.rs" || name == "capture/own.rs";
        if careful && !name.ends_with("mod.rs") {
            let head: String = text.lines().take_while(|l| l.starts_with("//!")).collect();
            assert!(
                head.contains("alls:") || head.contains("calls"),
                "src/{name} does not list its calls"
            );
        }
    }
}
