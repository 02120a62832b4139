//! The whole list: text in, entries out, and back, in an order that does not depend on anything
//! but the entries.
#![forbid(unsafe_code)]

use super::entry::{Entry, Key};
use crate::error::SettingError;
use std::collections::BTreeMap;

/// The file's name; it lies beside the package's manifest.
pub const FILE: &str = "stallhound.known";

/// The version of the format that is written, and the only one that is read.
const VERSION: &str = "1";

const HEADER: &str = "\
# Known findings of this package: stallhound counts them and fails for the others.
# `STALLHOUND=bless cargo test` writes this file. Read what it adds as you would read code.
# A line: fingerprint, category, function; at=: where it was; call=: what was called there;
# below=: by which functions; by=: the test targets that saw it (!: only with ignored tests).
# Lines may be deleted, and those that reports offer added. A comment stays with the line below it.
";

/// Known findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    pub entries: BTreeMap<Key, Entry>,
    /// Comments below the last entry.
    pub tail: Vec<String>,
}

impl List {
    /// Reads a file's text. What is wrong is named line by line; the lines that can be read are
    /// read all the same, unless the version is not ours. `path` is for the messages.
    pub fn read(text: &str, path: &str) -> (List, Vec<SettingError>) {
        let mut list = List::default();
        let mut wrong = Vec::new();
        let mut comments: Vec<String> = Vec::new();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let mut refuse = |problem: String, remedy: &str| {
                let place = format!("{path}:{}", number + 1);
                wrong.push(SettingError { place, problem, remedy: remedy.into() });
            };
            if line.starts_with('#') {
                if !HEADER.lines().any(|header| header == line) {
                    comments.push(line.to_owned());
                }
            } else if ["<<<<<<<", "|||||||", "=======", ">>>>>>>"]
                .iter()
                .any(|m| line.starts_with(m))
            {
                refuse(
                    format!("a conflict marker of a merge, `{line}`"),
                    "keep the lines of both sides, in any order and also twice, and delete the markers",
                );
            } else if let Some(version) = line.strip_prefix("version ").map(str::trim) {
                if version != VERSION {
                    let remedy = "use the stallhound that wrote this file, or move the file away \
                                  and write it anew with `STALLHOUND=bless`";
                    refuse(format!("version `{version}` is not known, only {VERSION} is"), remedy);
                    return (List::default(), wrong);
                }
            } else if !line.is_empty() {
                match Entry::read(line) {
                    Ok((key, mut entry)) => {
                        entry.comments = std::mem::take(&mut comments);
                        list.add(key, entry);
                    }
                    Err(problem) => refuse(
                        problem,
                        "delete the line, or mend it; then let `STALLHOUND=bless` write it",
                    ),
                }
            }
        }
        list.tail = comments;
        (list, wrong)
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut text = format!("{HEADER}version {VERSION}\n");
        for (key, entry) in &self.entries {
            for comment in &entry.comments {
                text.push_str(comment);
                text.push('\n');
            }
            text.push_str(&entry.line(key));
            text.push('\n');
        }
        for comment in &self.tail {
            text.push_str(comment);
            text.push('\n');
        }
        text
    }

    /// Adds an entry to what is there.
    pub fn add(&mut self, key: Key, entry: Entry) {
        match self.entries.get_mut(&key) {
            Some(own) => own.add(entry),
            None => {
                self.entries.insert(key, entry);
            }
        }
    }
}
