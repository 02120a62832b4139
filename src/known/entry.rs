//! One known finding, and the line it is written as.
//!
//! ```text
//! 484198a7fdf38b26 sleep app::refresh at=src/lib.rs:7 call=clock_nanosleep by=lib/app,tests/api:7
//! ```
#![forbid(unsafe_code)]

use crate::report::model::{Category, Finding, Fingerprint};
use std::collections::{BTreeMap, BTreeSet};

/// By what entries are told apart. The order is that of the file: by function, so that what
/// belongs together stands together, and nothing moves when lines do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// As in [`Finding::path`].
    pub function: String,
    pub category: Category,
}

impl Key {
    pub fn new(function: &str, category: Category) -> Key {
        Key { function: function.to_owned(), category }
    }

    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.category, &self.function)
    }
}

/// What one test target saw of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// On these lines of the file, when it was blessed.
    pub lines: BTreeSet<u32>,
    /// Seen only while `#[ignore]`d tests were run too.
    pub ignored: bool,
}

/// What is known of a finding besides its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the workspace; empty where there is no line.
    pub file: String,
    /// The libc functions.
    pub calls: BTreeSet<String>,
    /// Own functions that the finding's function was called by.
    pub callers: BTreeSet<String>,
    /// By test target; [`NOBODY`]: written by hand.
    pub seen: BTreeMap<String, Sight>,
    /// Comment lines that stand above it, with their `#`.
    pub comments: Vec<String>,
}

/// The target of a line that names none.
pub const NOBODY: &str = "";

impl Entry {
    /// Every line it was seen on.
    pub fn lines(&self) -> BTreeSet<u32> {
        self.seen.values().flat_map(|sight| sight.lines.iter().copied()).collect()
    }

    /// Takes in what another entry of the same key has: nothing of either is lost.
    pub fn add(&mut self, other: Entry) {
        if !other.file.is_empty() {
            self.file = other.file;
        }
        self.calls.extend(other.calls);
        self.callers.extend(other.callers);
        for (target, sight) in other.seen {
            match self.seen.get_mut(&target) {
                Some(own) => {
                    own.lines.extend(sight.lines);
                    own.ignored &= sight.ignored;
                }
                None => {
                    self.seen.insert(target, sight);
                }
            }
        }
        self.settle();
        for comment in other.comments {
            if !self.comments.contains(&comment) {
                self.comments.push(comment);
            }
        }
    }

    /// Nobody's are the lines that no target has.
    fn settle(&mut self) {
        let others: BTreeSet<u32> = self
            .seen
            .iter()
            .filter(|(target, _)| *target != NOBODY)
            .flat_map(|(_, sight)| sight.lines.iter().copied())
            .collect();
        if self.seen.len() > 1 {
            if let Some(nobody) = self.seen.get_mut(NOBODY) {
                nobody.lines.retain(|line| !others.contains(line));
                if nobody.lines.is_empty() {
                    self.seen.remove(NOBODY);
                }
            }
        }
    }

    /// The line, without its comments.
    pub fn line(&self, key: &Key) -> String {
        let mut text =
            format!("{} {} {}", key.fingerprint(), key.category.word(), encode(&key.function, ""));
        let lines = self.lines();
        if !self.file.is_empty() {
            text.push_str(&format!(" at={}", encode(&self.file, ":")));
            if !lines.is_empty() {
                text.push_str(&format!(":{}", joined(lines.iter(), ",")));
            }
        }
        for (name, values) in [("call", &self.calls), ("below", &self.callers)] {
            if !values.is_empty() {
                let values = values.iter().map(|v| encode(v, ""));
                text.push_str(&format!(" {name}={}", joined(values, ",")));
            }
        }
        let targets = self.seen.iter().filter(|(target, _)| *target != NOBODY);
        let targets = targets.map(|(target, sight)| {
            let mark = if sight.ignored { "!" } else { "" };
            let same = sight.lines == lines;
            let own = if same { String::new() } else { format!(":{}", joined(&sight.lines, "+")) };
            format!("{}{mark}{own}", encode(target, ":+!"))
        });
        let targets = joined(targets, ",");
        if !targets.is_empty() {
            text.push_str(&format!(" by={targets}"));
        }
        text
    }

    /// Reads a line.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as the end of a sentence.
    pub fn read(line: &str) -> Result<(Key, Entry), String> {
        let mut words = line.split_whitespace();
        let (Some(fingerprint), Some(category), Some(function)) =
            (words.next(), words.next(), words.next())
        else {
            return Err("a line has a fingerprint, a category and a function".into());
        };
        let category = Category::ALL
            .into_iter()
            .find(|c| c.word() == category)
            .ok_or_else(|| format!("`{category}` is no category"))?;
        let key = Key { function: decode(function)?, category };
        if key.fingerprint().to_string() != fingerprint {
            return Err(format!(
                "`{fingerprint}` is not the fingerprint of {} in {}, which is {}",
                category.word(),
                key.function,
                key.fingerprint()
            ));
        }
        let mut entry = Entry::default();
        let mut lines = BTreeSet::new();
        let mut named = BTreeSet::new();
        for word in words {
            let (name, value) =
                word.split_once('=').ok_or_else(|| format!("`{word}` is not `name=value`"))?;
            if !named.insert(name) {
                return Err(format!("`{name}=` stands there twice"));
            }
            match name {
                "at" => {
                    let (file, numbers) = match value.rsplit_once(':') {
                        Some((file, numbers)) => (file, read_lines(numbers, ',')?),
                        None => (value, BTreeSet::new()),
                    };
                    entry.file = decode(file)?;
                    lines = numbers;
                }
                "call" => entry.calls = value.split(',').map(decode).collect::<Result<_, _>>()?,
                "below" => {
                    entry.callers = value.split(',').map(decode).collect::<Result<_, _>>()?
                }
                "by" => {
                    for target in value.split(',') {
                        let (target, own) = match target.split_once(':') {
                            Some((target, own)) => (target, Some(read_lines(own, '+')?)),
                            None => (target, None),
                        };
                        let (target, ignored) = match target.strip_suffix('!') {
                            Some(target) => (target, true),
                            None => (target, false),
                        };
                        let own = own.unwrap_or_else(|| lines.clone());
                        let target = decode(target)?;
                        if target == NOBODY {
                            return Err("`by=` names no test target".into());
                        }
                        entry.seen.insert(target, Sight { lines: own, ignored });
                    }
                }
                _ => return Err(format!("`{name}=` is not known to this version")),
            }
        }
        entry.seen.insert(NOBODY.to_owned(), Sight { lines, ignored: false });
        entry.settle();
        Ok((key, entry))
    }
}

/// The lines that put a finding into the list: one for each kind of call at its line.
pub fn entries(finding: &Finding) -> Vec<(Key, Entry)> {
    let Some(function) = finding.path.first() else { return Vec::new() };
    let place = finding.place.as_ref();
    let sight = Sight { lines: place.map(|p| p.line).into_iter().collect(), ignored: false };
    let entry = |calls: &[&'static str]| Entry {
        file: place.map(|p| p.file.clone()).unwrap_or_default(),
        calls: calls.iter().map(|c| (*c).to_owned()).collect(),
        callers: finding.path.get(1).cloned().into_iter().collect(),
        seen: BTreeMap::from([(NOBODY.to_owned(), sight.clone())]),
        comments: Vec::new(),
    };
    finding.kinds.iter().map(|k| (Key::new(function, k.category), entry(&k.calls))).collect()
}

/// The line for a finding's own category, to be pasted. `None`: it could not be known again.
pub fn offer(finding: &Finding) -> Option<String> {
    let (key, mut entry) =
        entries(finding).into_iter().find(|e| e.0.category == finding.category)?;
    // It is told apart without; the shorter, the better to paste.
    entry.callers.clear();
    Some(entry.line(&key))
}

fn joined<T: ToString>(values: impl IntoIterator<Item = T>, by: &str) -> String {
    values.into_iter().map(|v| v.to_string()).collect::<Vec<_>>().join(by)
}

fn read_lines(text: &str, by: char) -> Result<BTreeSet<u32>, String> {
    if text.is_empty() {
        return Ok(BTreeSet::new());
    }
    let number = |n: &str| n.parse().map_err(|_| format!("`{n}` is no line number"));
    text.split(by).map(number).collect()
}

/// A value without what separates values: such characters become `%` and two digits a byte.
fn encode(text: &str, more: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() || "%,=".contains(c) || more.contains(c) {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("%{byte:02x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn decode(text: &str) -> Result<String, String> {
    let wrong = || format!("`{text}` has a `%` that is not followed by two digits");
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        if *first != b'%' {
            out.push(*first);
            rest = more;
            continue;
        }
        let digits = more.get(..2).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|d| std::str::from_utf8(d).ok()).ok_or_else(wrong)?;
        out.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        rest = &more[2..];
    }
    String::from_utf8(out).map_err(|_| wrong())
}
