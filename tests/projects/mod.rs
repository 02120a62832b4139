//! Running the packages under `fixtures/projects` as a user would: by cargo, with the versions of
//! our own lock file, so that nothing is downloaded.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of a project.
pub fn folder(project: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/projects").join(project)
}

/// `cargo WORDS` for a project, its target folder shared by all of them.
pub fn cargo(project: &str, words: &[&str]) -> Command {
    cargo_in(&folder(project), words)
}

/// As [`cargo`], for a project that lies anywhere.
pub fn cargo_in(folder: &Path, words: &[&str]) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).expect("our lock file");
    let mut command = Command::new(env!("CARGO"));
    command
        .args(words)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("projects"))
        .env("CARGO_TERM_COLOR", "never")
        .env("CARGO_NET_OFFLINE", "true")
        .env_remove("STALLHOUND")
        .env_remove("RUST_TEST_THREADS")
        .env_remove("RUST_BACKTRACE")
        .env_remove("RUSTFLAGS")
        .env_remove("NO_COLOR");
    for (name, _) in std::env::vars_os() {
        // What the outer run of cargo or nextest set for us is not for the inner one.
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("NEXTEST") || name.starts_with("CARGO_PROFILE") {
            command.env_remove(name);
        }
    }
    command
}

/// A project of its own to be changed: a copy of one under `fixtures/projects`, in a fresh folder.
pub fn copy_of(project: &str, case: &str) -> PathBuf {
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("copies").join(case).join(project);
    let _ = std::fs::remove_dir_all(&to);
    copy(&folder(project), &to);
    let root = env!("CARGO_MANIFEST_DIR");
    let manifest = to.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).expect("the project's manifest");
    // Cargo tells packages in one target folder apart by name and version, not by where they lie.
    let number = case.bytes().fold(7u32, |n, byte| n.wrapping_mul(31).wrapping_add(byte.into()));
    let version = format!("version = \"0.0.{number}\"");
    let text = text
        .replace("path = \"../../..\"", &format!("path = {root:?}"))
        .replace("version = \"0.0.0\"", &version);
    assert!(text.contains(root) && text.contains(&version), "{text}");
    std::fs::write(&manifest, text).expect("a folder to write in");
    to
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder to write in");
    for entry in std::fs::read_dir(from).expect("the project").map(|e| e.expect("an entry")) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).expect("a file of the project");
        }
    }
}

/// What came out.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    #[track_caller]
    pub fn is_code(&self, code: i32) -> &Ran {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// The report begins once, on stderr, and nothing of ours is on stdout.
    #[track_caller]
    pub fn reports(&self, times: usize) -> &Ran {
        assert_eq!(self.stderr.matches("\nstallhound: ").count(), times, "{self}");
        self.keeps_stdout_clean()
    }

    #[track_caller]
    pub fn keeps_stdout_clean(&self) -> &Ran {
        assert!(!self.stdout.contains("stallhound: "), "{self}");
        self
    }

    #[track_caller]
    pub fn says(&self, text: &str) -> &Ran {
        assert!(self.stderr.contains(text) || self.stdout.contains(text), "no {text:?} in\n{self}");
        self
    }

    #[track_caller]
    pub fn says_not(&self, text: &str) -> &Ran {
        let said = self.stderr.contains(text) || self.stdout.contains(text);
        assert!(!said, "{text:?} in\n{self}");
        self
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ran { code, stdout, stderr } = self;
        write!(f, "code {code:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}

/// Runs it to its end.
pub fn run(command: &mut Command) -> Ran {
    Ran::of(command.output().expect("it can be run"))
}
