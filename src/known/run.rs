//! One process and the list: which findings it knows, which are gone, what blessing changes.
#![forbid(unsafe_code)]

use super::entry::{self, Entry, Key, Sight, NOBODY};
use super::list::{List, FILE};
use crate::report::model::{Category, Finding, Report, BY_LEVEL};
use std::collections::{BTreeMap, BTreeSet};

/// What this process ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// `lib/app`, `bin/app`, `tests/api`.
    pub target: String,
    /// All of the target's tests ran to their end, but for ignored ones.
    pub full: bool,
    /// Ignored tests ran as well, or alone.
    pub ignored: bool,
    /// Built with optimisation: what is judged by its time may not show.
    pub optimised: bool,
}

/// What was seen in this process so far, findings and notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sightings {
    /// What a bless writes.
    found: BTreeMap<Key, Entry>,
    /// What is not gone.
    met: BTreeSet<Key>,
    /// Something had no line, or no source, and so perhaps not its own function's whole name:
    /// anything may be that.
    unnamed: bool,
}

/// What a bless changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Entries that were not there.
    pub added: usize,
    /// Entries that say something else now: of more lines, other targets.
    pub changed: usize,
    /// Entries that are not there any more.
    pub removed: usize,
}

/// Judged by the time it took, so that its absence proves little and its second line nothing.
fn by_time(category: Category) -> bool {
    use Category::*;
    !matches!(category, Sleep | Net | IoWait | Dns | Process | Join | Disk)
}

/// Holds are pinned on a line by samples: it may move to the function above or below.
fn is_hold(category: Category) -> bool {
    matches!(category, Category::Busy | Category::Raw)
}

/// Counts however fast it was, and whatever the other side did: every line of it shows each time
/// it is reached, so that one more line is one more finding.
fn is_countable(category: Category) -> bool {
    matches!(category, Category::Sleep | Category::Dns | Category::Disk)
}

/// Whether a finding's line could be read, and with it the types and modules around it. Where it
/// could not, they may be missing from its function's name.
fn has_source(finding: &Finding) -> bool {
    finding.place.as_ref().is_some_and(|place| place.source.is_some())
}

/// Whether a name is what is left of `whole` without some of its modules and types.
fn is_rest_of(name: &str, whole: &str) -> bool {
    let mut parts = whole.split("::");
    let same_end = name.rsplit("::").next() == whole.rsplit("::").next();
    let same_begin = name.split("::").next() == whole.split("::").next();
    same_begin && same_end && name.split("::").all(|part| parts.any(|p| p == part))
}

impl Sightings {
    /// Remembers a report's findings.
    pub fn note(&mut self, report: &Report) {
        for finding in &report.findings {
            for (key, entry) in entry::entries(finding) {
                match self.found.get_mut(&key) {
                    Some(own) => own.add(entry),
                    None => {
                        self.found.insert(key, entry);
                    }
                }
            }
        }
        for finding in report.findings.iter().chain(&report.notes) {
            self.unnamed |= !has_source(finding) || finding.path.is_empty();
            for kind in &finding.kinds {
                self.met.extend(finding.path.iter().map(|f| Key::new(f, kind.category)));
            }
        }
    }
}

impl List {
    /// Moves what is known from a report's findings and notes to its `known`.
    pub fn sort_out(&self, report: &mut Report, run: &Run) {
        if self.entries.is_empty() {
            return;
        }
        let mut taken: BTreeMap<&Key, BTreeSet<(String, u32)>> = BTreeMap::new();
        let (mut new, mut known) = (Vec::new(), Vec::new());
        // Those that stand where they stood when they were blessed come first, so that the
        // surplus one is the one that was added.
        let mut findings: Vec<(usize, Finding)> = report.findings.drain(..).enumerate().collect();
        findings.sort_by_key(|(_, f)| {
            let line = f.place.as_ref().map_or(0, |p| p.line);
            let entry = self.matches(f, run).first().map(|key| &self.entries[*key]);
            (entry.is_some_and(|e| !e.lines().contains(&line)), line)
        });
        for (order, mut finding) in findings {
            let keys = self.matches(&finding, run);
            if keys.is_empty() {
                new.push((order, finding));
                continue;
            }
            let place = finding.place.as_ref().map(|p| (p.file.clone(), p.line));
            if let Some((place, key)) = place.zip(surplus(&keys)) {
                let room = self.entries[key].lines().len().max(1);
                let taken = taken.entry(key).or_default();
                if taken.len() >= room && !taken.contains(&place) {
                    finding.also.push(format!(
                        "{FILE} knows {room} such line{} of this function; this is one more",
                        if room == 1 { "" } else { "s" }
                    ));
                    new.push((order, finding));
                    continue;
                }
                taken.insert(place);
            }
            known.push((order, finding));
        }
        new.sort_by_key(|(order, _)| *order);
        known.sort_by_key(|(order, _)| *order);
        report.findings = new.into_iter().map(|(_, f)| f).collect();
        report.known = known.into_iter().map(|(_, f)| f).collect();
        // Under `level = warn` findings are notes. Those that are notes for a reason of their own
        // never failed anything and stay.
        let (known, notes) = report.notes.drain(..).partition(|note| {
            note.reason.as_deref().is_none_or(|reason| reason == BY_LEVEL)
                && !self.matches(note, run).is_empty()
        });
        report.notes = notes;
        report.known.extend::<Vec<_>>(known);
    }

    /// The entries that excuse a finding.
    fn matches(&self, finding: &Finding, run: &Run) -> Vec<&Key> {
        let Some(function) = finding.path.first() else { return Vec::new() };
        let get = |key: Key| self.entries.get_key_value(&key).map(|(key, _)| key);
        let kinds = || finding.kinds.iter().map(|k| k.category);
        // One kind of call at the line is enough: which of them had to wait is chance.
        let mut found: Vec<&Key> =
            kinds().filter_map(|category| get(Key::new(function, category))).collect();
        if found.is_empty() && !has_source(finding) {
            let rest = |key: &&Key| {
                kinds().any(|c| c == key.category) && is_rest_of(function, &key.function)
            };
            found.extend(self.entries.keys().filter(rest));
        }
        if found.is_empty() {
            for category in kinds().filter(|c| is_hold(*c)) {
                found.extend(finding.path.iter().filter_map(|f| get(Key::new(f, category))));
            }
        }
        if found.is_empty() {
            // A function that ends in the call may have left no frame of its own in an optimised
            // build; and the hottest part of a hold may be spread over what it calls.
            for category in kinds().filter(|c| run.optimised || is_hold(*c)) {
                found.extend(
                    self.entries
                        .iter()
                        .filter(|(key, entry)| {
                            key.category == category && entry.callers.contains(function)
                        })
                        .map(|(key, _)| key),
                );
            }
        }
        found
    }

    /// The entries of this run's target that it did not see, and would have.
    fn unseen(&self, seen: &Sightings, run: &Run) -> Vec<Key> {
        if !run.full || seen.unnamed {
            return Vec::new();
        }
        let met = |key: &Key, entry: &Entry| {
            let same = |k: &Key| {
                k.category == key.category
                    && (k.function == key.function
                        || (run.optimised || is_hold(key.category))
                            && entry.callers.contains(&k.function))
            };
            seen.met.iter().any(same)
        };
        let could = |sight: &Sight| run.ignored || !sight.ignored;
        self.entries
            .iter()
            .filter(|(key, entry)| {
                entry.seen.get(&run.target).is_some_and(could)
                    && !(run.optimised && by_time(key.category))
                    && !met(key, entry)
            })
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Known findings that are gone, as far as this run can tell: text for the report.
    pub fn gone(&self, seen: &Sightings, run: &Run) -> Vec<String> {
        let text = |key: Key| {
            let entry = &self.entries[&key];
            let at = match entry.lines().first() {
                Some(line) if !entry.file.is_empty() => format!(" (was at {}:{line})", entry.file),
                _ => String::new(),
            };
            format!("{} in {}{at}", key.category.word(), key.function)
        };
        self.unseen(seen, run).into_iter().map(text).collect()
    }

    /// Takes over what a run saw, and drops what it would have seen and did not. Entries that
    /// other targets saw stay.
    pub fn bless(&mut self, seen: &Sightings, run: &Run) -> Changes {
        let before = self.entries.clone();
        for key in self.unseen(seen, run) {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.seen.remove(&run.target);
                if entry.seen.is_empty() {
                    self.entries.remove(&key);
                }
            }
        }
        for (key, sighted) in &seen.found {
            let mut sighted = sighted.clone();
            if let Some(mut sight) = sighted.seen.remove(NOBODY) {
                sight.ignored = run.ignored;
                sighted.seen.insert(run.target.clone(), sight);
            }
            if let Some(own) = self.entries.get_mut(key) {
                // What was written by hand is this target's now.
                own.seen.remove(NOBODY);
            }
            let certain = run.full && !(run.optimised && by_time(key.category));
            if let Some(own) = self.entries.get_mut(key).filter(|_| certain) {
                // Lines move. A run of all tests knows all that are left.
                if let Some(sight) = own.seen.get_mut(&run.target) {
                    sight.lines.clear();
                    if own.seen.len() == 1 {
                        own.calls.clear();
                        own.callers.clear();
                    }
                }
            }
            self.add(key.clone(), sighted);
        }
        Changes {
            added: self.entries.keys().filter(|key| !before.contains_key(key)).count(),
            changed: self
                .entries
                .iter()
                .filter(|(key, entry)| before.get(key).is_some_and(|old| old != *entry))
                .count(),
            removed: before.keys().filter(|key| !self.entries.contains_key(key)).count(),
        }
    }
}

/// The entry whose lines are counted; `None` if any other entry excuses the finding as well.
fn surplus<'k>(keys: &[&'k Key]) -> Option<&'k Key> {
    match keys {
        [key] if is_countable(key.category) => Some(key),
        _ => None,
    }
}
