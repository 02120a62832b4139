//! The file of known findings, for one process: read when the first report is written, held
//! against each, and under `STALLHOUND=bless` written when the process ends.
//!
//! Several processes may bless one file at the same time (nextest). Each takes a lock on the
//! folder, reads the file as it then is, adds its own, writes a second file and renames it. The
//! lock is the kernel's and ends with its process. Whoever reads sees a whole file.
#![forbid(unsafe_code)]

use crate::__private::Settings;
use crate::error::SettingError;
use crate::evidence::Harness;
use crate::known::{self, Changes, List, Run, Sightings, FILE};
use crate::report::model::Report;
use crate::report::units::count;
use crate::sys::lock;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longer than anybody else can take, shorter than what `_exit` waits for its report.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// What this process knows of its package's known findings.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The package: the first that armed anything here.
    home: Option<Home>,
    file: Option<File>,
    seen: Sightings,
}

/// Whose findings they are.
#[derive(Clone, Debug)]
pub struct Home {
    /// Of the manifest.
    folder: PathBuf,
    /// The test target in few words.
    target: String,
    optimised: bool,
    /// The target is certain: no other has the same words.
    certain: bool,
}

impl Home {
    /// The crate in whose code a macro's line stands.
    pub fn of(settings: &Settings) -> Home {
        let kind = match (settings.test_target, settings.bin_name) {
            (true, _) => "tests",
            (false, Some(_)) => "bin",
            (false, None) => "lib",
        };
        Home {
            folder: PathBuf::from(settings.manifest_dir),
            target: format!("{kind}/{}", settings.crate_name),
            optimised: !settings.debug_assertions,
            certain: true,
        }
    }

    /// A crate of which only the executable's name is known.
    pub fn by_hand(folder: &Path, crate_name: &str, debug_assertions: bool) -> Home {
        Home {
            folder: folder.to_owned(),
            target: format!("exe/{crate_name}"),
            optimised: !debug_assertions,
            certain: false,
        }
    }

    /// The folder of the manifest: where it was built, or, if that is not on this machine, where
    /// the runner of an archive says that it is.
    fn folder(&self) -> PathBuf {
        match std::env::var_os("CARGO_MANIFEST_DIR") {
            Some(here) if !self.folder.is_dir() => here.into(),
            _ => self.folder.clone(),
        }
    }
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    list: List,
    wrong: Vec<SettingError>,
}

/// What is to be said and done when the process ends.
#[derive(Debug, Default)]
pub struct Closing {
    pub text: String,
    pub failed: bool,
}

impl Ledger {
    /// Where the file lies, and which target this is.
    pub fn open(&mut self, home: &Home) {
        if self.home.as_ref().is_none_or(|own| home.certain && !own.certain) {
            self.home = Some(home.clone());
        }
    }

    fn file(&mut self) -> Option<&File> {
        let home = self.home.as_ref()?;
        Some(self.file.get_or_insert_with(|| {
            let path = home.folder().join(FILE);
            let (list, wrong) = read(&path);
            File { path, list, wrong }
        }))
    }

    fn run(&self) -> Run {
        let home = self.home.as_ref();
        Run {
            target: home.map(|home| home.target.clone()).unwrap_or_default(),
            optimised: home.is_some_and(|home| home.optimised),
            ..Run::default()
        }
    }

    /// Holds a report against the file. With `bless` all that can be known again is known.
    pub fn sort_out(&mut self, report: &mut Report, bless: bool) {
        for finding in report.findings.iter_mut().chain(&mut report.notes) {
            finding.known_line = known::entry::offer(finding);
        }
        let run = self.run();
        let Some(file) = self.file() else { return };
        if !bless {
            file.list.sort_out(report, &run);
        } else if file.wrong.is_empty() {
            let (known, left) =
                report.findings.drain(..).partition(|finding| finding.fingerprint().is_some());
            (report.known, report.findings) = (known, left);
        }
        let guilty: BTreeSet<&String> = report.findings.iter().flat_map(|f| &f.tests).collect();
        report.summary.guilty_tests = guilty.len() as u64;
    }

    /// Remembers what a report had, before it is sorted out.
    pub fn note(&mut self, report: &Report) {
        self.seen.note(report);
    }

    /// Whether it matters how the tests were run: something is known of this target.
    pub fn wants_harness(&mut self) -> bool {
        let target = self.run().target;
        self.file().is_some_and(|f| f.list.entries.values().any(|e| e.seen.contains_key(&target)))
    }

    /// What this process ran, once it is over. `whole`: it ended as the harness ends, with code 0,
    /// and its report is complete.
    pub fn ran(&self, harness: Harness, whole: bool, arguments: &[String]) -> Run {
        let (all, ignored) = selection(arguments);
        let certain = self.home.as_ref().is_some_and(|home| home.certain);
        Run { full: certain && all && whole && harness == Harness::Libtest, ignored, ..self.run() }
    }

    /// Known findings that are gone.
    pub fn gone(&mut self, run: &Run) -> Vec<String> {
        let seen = std::mem::take(&mut self.seen);
        let gone = self.file().map(|f| f.list.gone(&seen, run)).unwrap_or_default();
        self.seen = seen;
        gone
    }

    /// Writes the file, if that is asked for, and says what is wrong with it.
    pub fn close(&mut self, bless: bool, run: &Run) -> Closing {
        let mut closing = Closing::default();
        if self.file().is_none() {
            return closing;
        }
        let Some(file) = &self.file else { return closing };
        let wrong = if bless { self.write(&file.path, run, &mut closing.text) } else { Ok(()) };
        let wrong = match wrong {
            Ok(()) if bless => Vec::new(),
            Ok(()) => file.wrong.clone(),
            Err(wrong) => wrong,
        };
        for error in &wrong {
            closing.text.push_str(&format!("stallhound: {error}\n"));
        }
        if bless && !wrong.is_empty() {
            closing.text.push_str(&format!("stallhound: {FILE} is left as it was\n"));
        }
        closing.failed = !wrong.is_empty();
        closing
    }

    fn write(&self, path: &Path, run: &Run, said: &mut String) -> Result<(), Vec<SettingError>> {
        let failed = |problem: &str, error: io::Error| {
            vec![SettingError {
                place: path.display().to_string(),
                problem: format!("{problem}: {error}"),
                remedy: format!("bless where the folder can be written, and commit {FILE}"),
            }]
        };
        // A link is written through, not replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().unwrap_or(Path::new("."));
        let folder_open = fs::File::open(folder).map_err(|e| failed("its folder", e))?;
        let mut left = PATIENCE;
        while !lock::try_exclusive(folder_open.as_fd()) {
            if left.is_zero() {
                let error = io::Error::new(ErrorKind::TimedOut, "another process has the lock");
                return Err(failed("cannot be written", error));
            }
            std::thread::sleep(PAUSE);
            left = left.saturating_sub(PAUSE);
        }
        let (mut list, wrong) = read(&path);
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let before = list.clone();
        let changes = list.bless(&self.seen, run);
        if list != before {
            replace(&path, &list.text()).map_err(|e| failed("cannot be written", e))?;
            said.push_str(&format!("stallhound: blessed: {}\n", now(&list, changes)));
        }
        Ok(())
    }
}

/// What the file has after a bless. A line may stand for several places of one function, which
/// reports count one by one.
fn now(list: &List, Changes { added, changed, removed }: Changes) -> String {
    let places: usize = list.entries.values().map(|entry| entry.lines().len().max(1)).sum();
    let lines = list.entries.len();
    let of = match places == lines {
        true => String::new(),
        false => format!(" for {}", count(places as u64, "place")),
    };
    let lines = count(lines as u64, "line");
    format!("{FILE} has {lines} now{of}, {added} added, {changed} changed, {removed} removed")
}

fn read(path: &Path) -> (List, Vec<SettingError>) {
    let place = path.display().to_string();
    let text = match fs::read(path).map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return (List::default(), Vec::new()),
        unreadable => {
            let problem = match unreadable {
                Ok(_) => "it is not UTF-8".to_owned(),
                Err(error) => format!("it cannot be read: {error}"),
            };
            let remedy = "mend it, or move it away and write it anew with `STALLHOUND=bless`";
            let wrong = SettingError { place, problem, remedy: remedy.into() };
            return (List::default(), vec![wrong]);
        }
    };
    List::read(&text, &place)
}

/// Puts a whole new file in the place of the old one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_file_name(format!(".{FILE}.{}", std::process::id()));
    let written = fs::write(&new, text).and_then(|()| {
        if let Ok(old) = fs::metadata(path) {
            fs::set_permissions(&new, old.permissions())?;
        }
        fs::rename(&new, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

/// Whether libtest's arguments let all tests run, and whether ignored ones ran too. An argument
/// that is not known may mean anything: then not all.
fn selection(arguments: &[String]) -> (bool, bool) {
    const SWITCHES: &[&str] = &[
        "--nocapture",
        "--no-capture",
        "--show-output",
        "--quiet",
        "-q",
        "--test",
        "--exact",
        "--report-time",
        "--ensure-time",
        "--shuffle",
        "--force-run-in-process",
    ];
    const WITH_VALUE: &[&str] =
        &["--test-threads", "--color", "--format", "--logfile", "--shuffle-seed", "-Z"];
    let (mut all, mut ignored) = (true, false);
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        let name = argument.split_once('=').map_or(argument, |(name, _)| name);
        if name == "--include-ignored" {
            ignored = true;
        } else if name == "--ignored" {
            (all, ignored) = (false, true);
        } else if WITH_VALUE.contains(&name) {
            if name == argument {
                arguments.next();
            }
        } else if !SWITCHES.contains(&argument) {
            all = false;
        }
    }
    (all, ignored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_leave_tests_out() {
        for (line, expected) in [
            ("", (true, false)),
            ("--nocapture --test-threads 1", (true, false)),
            ("--test-threads=1 -q --color always", (true, false)),
            ("--include-ignored", (true, true)),
            ("--ignored", (false, true)),
            ("some_name", (false, false)),
            ("--exact some_name", (false, false)),
            ("--skip slow", (false, false)),
            ("--skip=slow", (false, false)),
            ("--bench", (false, false)),
            ("--unheard-of", (false, false)),
        ] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(selection(&words), expected, "{line}");
        }
    }
}
