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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = folder(project);
    std::fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).expect("our lock file");
    let mut command = Command::new(env!("CARGO"));
    command
        .args(words)
        .current_dir(&folder)
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
