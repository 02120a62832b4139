//! The text report: one block a finding, the headline first, the user's own line in the middle,
//! facts below, nothing twice.
#![forbid(unsafe_code)]

use super::allow;
use super::model::{Finding, Place, Report};
use super::units::{count, time};
use crate::evidence::{Category, Frame, Origin};
use crate::ids::Nanos;
use crate::verdict::context::Context;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// How the text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Colours, as terminal sequences.
    pub colour: bool,
    /// Lines and marks beyond ASCII.
    pub unicode: bool,
    /// Every frame of a stack.
    pub full_stack: bool,
}

impl Style {
    /// No colours, with lines, folded stacks.
    pub fn plain() -> Style {
        Style { colour: false, unicode: true, full_stack: false }
    }

    /// What fits the standard error stream and the environment: colours on a terminal unless
    /// `NO_COLOR` is set or `TERM=dumb`, or anywhere with `CLICOLOR_FORCE`; plain ASCII only where
    /// the locale names another character set than UTF-8 (an unset locale, as in most CI, does
    /// not); the whole stack with `STALLHOUND_BACKTRACE=full`.
    pub fn detect(terminal: bool, env: &dyn Fn(&str) -> Option<String>) -> Style {
        let set = |name: &str| env(name).is_some_and(|v| !v.is_empty() && v != "0");
        let dumb = env("TERM").is_some_and(|t| t == "dumb");
        let colour = !set("NO_COLOR") && ((terminal && !dumb) || set("CLICOLOR_FORCE"));
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|n| env(n).filter(|v| !v.is_empty()))
            .unwrap_or_default()
            .to_ascii_lowercase();
        let named = locale.split_once('.').map(|(_, set)| set.to_owned());
        let unicode = named.is_none_or(|set| set.starts_with("utf"));
        let full_stack = env("STALLHOUND_BACKTRACE").is_some_and(|v| v == "full");
        Style { colour, unicode, full_stack }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// A mark and its plain twin.
    fn mark(&self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.unicode {
            unicode
        } else {
            ascii
        }
    }
}

const RED: &str = "1;31";
const YELLOW: &str = "1;33";
const BOLD: &str = "1";
const DIM: &str = "2";

/// Notes that are spelled out; more are counted.
const NOTES: usize = 10;
/// Gone findings that are spelled out.
const GONE: usize = 10;
/// Own frames that a folded stack shows.
const FRAMES: usize = 8;
/// A source line is cut to about this many columns.
const WIDTH: usize = 100;

/// Renders a report. Empty if there is nothing to say.
pub fn render(report: &Report, style: &Style) -> String {
    let mut out = String::new();
    if report.findings.is_empty() && report.notes.is_empty() && report.summary.lost == 0 {
        known(report, style, &mut out);
        return if style.unicode { out } else { ascii(&out) };
    }
    // What would fail but for `level = warn` is what that level is there to show: whole, not a line.
    let (spared, notes): (Vec<&Finding>, Vec<&Finding>) =
        report.notes.iter().partition(|note| note.is_spared());
    head(report, &spared, &notes, style, &mut out);
    for finding in report.findings.iter().chain(spared.iter().copied()) {
        out.push('\n');
        block(finding, style, &mut out);
    }
    if !notes.is_empty() {
        out.push('\n');
    }
    for note in notes.iter().take(NOTES) {
        out.push_str(&note_line(note, style));
    }
    if notes.len() > NOTES {
        let more = count((notes.len() - NOTES) as u64, "more note");
        let _ = writeln!(out, "{}: and {more}", style.paint(YELLOW, "note"));
    }
    if !report.known.is_empty() || !report.gone.is_empty() {
        out.push('\n');
    }
    known(report, style, &mut out);
    allowed(report, style, &mut out);
    if report.summary.lost > 0 {
        let _ = writeln!(
            out,
            "\n{}: this report is incomplete: {} found no room (a burst of calls, or very many threads)",
            style.paint(YELLOW, "note"),
            count(report.summary.lost, "record"),
        );
    }
    end(report, &spared, style, &mut out);
    if style.unicode {
        out
    } else {
        ascii(&out)
    }
}

/// What comes of it, and what can be done.
fn end(report: &Report, spared: &[&Finding], style: &Style, out: &mut String) {
    let bless = "`STALLHOUND=bless` puts what is found on the list of known findings";
    let _ = match (report.findings.len() as u64, spared.len() as u64) {
        (0, 0) => return,
        (0, n) => writeln!(
            out,
            "\n{}: {}, {} only because the level is warn. `STALLHOUND=deny` goes before `level = warn`; {bless}",
            style.paint(YELLOW, "warning"),
            count(n, "finding"),
            if n == 1 { "which passes" } else { "which pass" },
        ),
        (n, _) => writeln!(
            out,
            "\n{}: {}. `STALLHOUND=warn` reports without failing; {bless}",
            style.paint(RED, "error"),
            match spared.len() {
                0 => count(n, "finding"),
                m => format!("{} {}, and {m} not (level = warn)", count(n, "finding"), if n == 1 { "fails" } else { "fail" }),
            },
        ),
    };
    let declared = |f: &Finding| f.allow.as_deref().is_some_and(allow::is_declaration);
    if report.findings.iter().chain(spared.iter().copied()).any(declared) {
        out.push_str(
            "       An `allowance!` stands beside `watch_all!` in the test code, in each test binary \
             that needs it\n",
        );
    }
}

/// What allowances silenced: nothing is excused in secret.
fn allowed(report: &Report, style: &Style, out: &mut String) {
    if !report.allowed.is_empty() {
        out.push('\n');
    }
    for a in &report.allowed {
        let kinds: Vec<&str> = a.categories.iter().map(|c| c.word()).collect();
        let place = a.place.map(|(file, line)| format!(", {}:{line}", clean(file)));
        let _ = writeln!(
            out,
            "{}: {} ({}; {}, {}{})",
            style.paint(BOLD, "allowed"),
            clean(a.reason),
            kinds.join(", "),
            count(a.count, "time"),
            time(a.total),
            place.unwrap_or_default(),
        );
    }
}

/// What is on the list of known findings: a count, and what can come off it.
fn known(report: &Report, style: &Style, out: &mut String) {
    let word = style.paint(BOLD, "stallhound");
    if !report.known.is_empty() {
        let n = count(report.known.len() as u64, "known finding");
        let _ = writeln!(out, "{word}: {n} (stallhound.known)");
    }
    if report.gone.is_empty() {
        return;
    }
    let n = count(report.gone.len() as u64, "known finding");
    let be = if report.gone.len() == 1 { "is" } else { "are" };
    let _ =
        writeln!(out, "{word}: {n} {be} gone; `STALLHOUND=bless cargo test` takes off the list:");
    for gone in report.gone.iter().take(GONE) {
        let _ = writeln!(out, "  {}", clean(gone));
    }
    if report.gone.len() > GONE {
        let _ = writeln!(out, "  and {} more", report.gone.len() - GONE);
    }
}

fn head(report: &Report, spared: &[&Finding], notes: &[&Finding], style: &Style, out: &mut String) {
    let s = &report.summary;
    let (failing, spared_ones) = (report.findings.len() as u64, spared.len() as u64);
    let mut what = match failing + spared_ones {
        0 if s.told > 0 => format!("no more findings, {}", count(notes.len() as u64, "note")),
        0 => format!("no findings, {}", count(notes.len() as u64, "note")),
        n => count(n, "finding"),
    };
    if failing + spared_ones > 0 && s.tests > 0 {
        let all = report.findings.iter().chain(spared.iter().copied());
        let guilty: BTreeSet<&String> = all.flat_map(|f| &f.tests).collect();
        let _ = write!(what, " in {} of {}", guilty.len(), count(s.tests, "test"));
    }
    match (failing, spared_ones) {
        (_, 0) => {}
        (0, 1) => what.push_str("; it does not fail: level = warn"),
        (0, _) => what.push_str("; none fails: level = warn"),
        (_, 1) => what.push_str("; 1 of them does not fail: level = warn"),
        (_, m) => {
            let _ = write!(what, "; {m} of them do not fail: level = warn");
        }
    }
    let works = |on: bool| if on { "on" } else { "OFF" };
    let mut calls = count(s.calls_in_polls, "blocking call");
    calls.push_str(" seen in polls");
    if s.allowed > 0 {
        let _ = write!(calls, ", {} allowed", s.allowed);
    }
    let _ = writeln!(
        out,
        "{}: {what} ({calls}) {} interception {}, sampling {}, precision: {}",
        style.paint(BOLD, "stallhound"),
        style.mark("—", "-"),
        works(s.interception),
        works(s.sampling),
        if s.precision.is_empty() { "zero-config" } else { s.precision },
    );
}

fn block(f: &Finding, style: &Style, out: &mut String) {
    let kind = if f.is_spared() { "warning" } else { "error" };
    let colour = colour_of(f);
    let word = format!("{kind}[{}]", f.category.word());
    let _ =
        writeln!(out, "{}: {}", style.paint(colour, &word), style.paint(BOLD, &clean(&f.headline)));
    let width = f.place.as_ref().map_or(2, |p| p.line.to_string().len().max(2));
    let gutter = " ".repeat(width);
    match &f.place {
        Some(place) => source(f, place, &gutter, style, out),
        None => {
            let why = match f.function {
                Some(_) => "no line: set `debug = \"line-tables-only\"` in this profile to see it",
                None => "no code of this workspace in the stack: set `debug = \"line-tables-only\"` in this profile, or see the frames below",
            };
            let _ = writeln!(out, "{gutter}{} {why}", style.mark("┌─", "--"));
        }
    }
    let mut facts: Vec<(&str, String)> = Vec::new();
    facts.push(("in", whereabouts(f)));
    if let Some(object) = &f.object {
        facts.push(("on", clean(object)));
    }
    if let Some(task) = f.task.filter(|_| f.context == Context::Task) {
        facts.push(("task", task.to_string()));
    }
    if !f.tests.is_empty() {
        let name = if f.tests.len() == 1 { "test" } else { "tests" };
        facts.push((name, tests(&f.tests)));
    }
    facts.push(("time", times(f)));
    if !f.also.is_empty() {
        facts.push(("also", f.also.iter().map(|a| clean(a)).collect::<Vec<_>>().join("; ")));
    }
    if let Some(cost) = &f.cost {
        facts.push(("cost", clean(cost)));
    }
    facts.push(("help", clean(&f.help)));
    for (name, text) in facts {
        let _ = writeln!(out, "{gutter}{} {name:<7} {text}", style.mark("├", "|"));
    }
    // The finding ends with what can be pasted: into the source, or into the list.
    let paste = [("allow", &f.allow), ("known", &f.known_line)];
    let paste: Vec<(&str, &String)> =
        paste.iter().filter_map(|(name, text)| Some((*name, text.as_ref()?))).collect();
    let (branch, last) = (style.mark("├", "|"), style.mark("└", "`"));
    stack(f, &gutter, if paste.is_empty() { last } else { branch }, style, out);
    for (at, (name, text)) in paste.iter().enumerate() {
        let mark = if at + 1 == paste.len() { last } else { branch };
        let _ = writeln!(out, "{gutter}{mark} {name:<7} {}", clean(text));
    }
}

fn colour_of(f: &Finding) -> &'static str {
    if f.is_spared() {
        YELLOW
    } else {
        RED
    }
}

/// The user's line, as rustc shows code.
fn source(f: &Finding, place: &Place, gutter: &str, style: &Style, out: &mut String) {
    let bar = style.mark("│", "|");
    let column = place.column.filter(|c| *c > 0);
    let at = match column {
        Some(c) => format!("{}:{}:{c}", clean(&place.file), place.line),
        None => format!("{}:{}", clean(&place.file), place.line),
    };
    let _ = writeln!(out, "{gutter}{} {}", style.mark("┌─", "-->"), style.paint(BOLD, &at));
    let Some(source) = &place.source else { return };
    let (text, mark, len) = excerpt(source, column);
    let number = format!("{:>width$}", place.line, width = gutter.len());
    let _ = writeln!(out, "{gutter}{bar}");
    let _ = writeln!(out, "{number}{bar} {}", style.paint(BOLD, &text));
    let what = match (f.category, f.call, f.share) {
        (Category::Busy, _, Some((percent, samples))) => {
            format!("{percent} % of {} below this line", count(samples as u64, "sample"))
        }
        (_, Some(call), _) => call.to_owned(),
        _ => String::new(),
    };
    let line = format!("{}{} {what}", " ".repeat(mark), "^".repeat(len));
    let _ = writeln!(out, "{gutter}{bar} {}", style.paint(colour_of(f), line.trim_end()));
    let _ = writeln!(out, "{gutter}{bar}");
}

/// A source line without its indentation beyond four columns and cut to a readable width, the
/// place of the marked expression in it, and that one's length; in characters.
fn excerpt(source: &str, column: Option<u32>) -> (String, usize, usize) {
    let source = source.replace('\t', " ");
    let chars: Vec<char> = clean(&source).chars().collect();
    let indent = chars.iter().take_while(|c| c.is_whitespace()).count();
    let mut mark = column
        .and_then(|c| source.get(..(c as usize - 1).min(source.len())))
        .map_or(indent, |before| clean(before).chars().count());
    mark = mark.clamp(indent, chars.len());
    let len = chars[mark..]
        .iter()
        .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '#'))
        .count()
        .max(1);
    let from =
        if mark + len > WIDTH { mark - WIDTH / 3 } else { indent.saturating_sub(4).min(indent) };
    let mut text: String = chars[from..].iter().take(WIDTH).collect();
    if chars.len() > from + WIDTH {
        text.push('…');
    }
    let text = if from > indent { format!("…{text}") } else { text };
    let shift = usize::from(from > indent);
    (text.trim_end().to_owned(), mark - from + shift, len)
}

/// Which function, through which package, where.
fn whereabouts(f: &Finding) -> String {
    let mut text = match &f.function {
        Some(function) => clean(function),
        None => "no function of this workspace".into(),
    };
    if let Some(through) = &f.through {
        let _ = write!(text, ", through {} {}", clean(&through.package), clean(&through.version));
        let short: Vec<&str> = through.function.rsplit("::").take(2).collect();
        let short: Vec<&str> = short.into_iter().rev().collect();
        let _ = write!(text, " `{}`", clean(&short.join("::")));
    }
    if f.context == Context::RootLoop {
        text.push_str(", in the root future");
    }
    match (f.worker, f.workers) {
        (Some(worker), workers) if workers > 0 => {
            let _ = write!(text, ", on worker {worker} of {workers}");
        }
        (Some(worker), _) => {
            let _ = write!(text, ", on worker {worker}");
        }
        _ => {}
    }
    if let Some(runtime) = f.runtime {
        let _ = write!(text, " (runtime #{runtime})");
    }
    text
}

fn tests(names: &[String]) -> String {
    const SHOWN: usize = 4;
    let mut text = names.iter().take(SHOWN).map(|n| clean(n)).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        let _ = write!(text, " and {} more", names.len() - SHOWN);
    }
    text
}

/// `103 ms = 100 ms asleep + 0.4 ms on CPU + 2.6 ms waiting for a processor (3 times, …)`.
fn times(f: &Finding) -> String {
    let t = &f.time;
    let mut text = time(t.wall);
    if f.category == Category::Busy {
        text.push_str(" on CPU");
        if let Some(waiting) = t.waiting.filter(|w| w.0 >= 100_000) {
            let _ = write!(
                text,
                ", and {} waiting for a processor, which does not count",
                time(waiting)
            );
        }
    } else {
        // A few milliseconds are the watchdog's own grain, and not worth a reader's while.
        let waiting = t.waiting.filter(|w| w.0 >= 10_000_000 && w.0 * 20 >= t.wall.0);
        let parts: Vec<String> = [
            (t.asleep, "asleep"),
            (t.on_cpu, "on CPU"),
            (waiting, "excused (waiting for a processor)"),
        ]
        .into_iter()
        .filter_map(|(part, name)| {
            // What makes no difference to the sum would make it look wrong.
            let part = part.filter(|p| p.0 >= 50_000 && p.0 * 50 >= t.wall.0)?;
            Some(format!("{} {name}", time(part)))
        })
        .collect();
        if parts.len() > 1 {
            let _ = write!(text, " = {}", parts.join(" + "));
        }
    }
    if let Some(asked) = f.requested.filter(|_| f.calls_in_poll.is_none()) {
        if asked.0 + asked.0 / 20 + 1_000_000 < t.wall.0 {
            let _ = write!(text, ", {} asked for", time(asked));
        }
    }
    if let Some(calls) = f.calls_in_poll {
        let _ = write!(text, ", {} of one poll added up", count(calls, "call"));
    } else if f.count > 1 {
        let _ = write!(text, ", the longest of {} ({} together)", f.count, time(f.total));
    }
    if t.running {
        text.push_str(", and not over yet");
    }
    text
}

/// Frames worth reading; the rest is folded into one line.
fn stack(f: &Finding, gutter: &str, mark: &str, style: &Style, out: &mut String) {
    let frames = &f.stack.frames;
    if frames.is_empty() {
        return;
    }
    let worth = |frame: &&Frame| {
        style.full_stack
            || matches!(frame.origin, Origin::Workspace { .. } | Origin::Dependency { .. })
    };
    // Without any of one's own frames the runtime's tell at least where it is.
    let own = frames.iter().any(|f| matches!(f.origin, Origin::Workspace { .. }));
    let all = style.full_stack || !own;
    let mut shown: Vec<&Frame> = if all {
        frames.iter().filter(|f| style.full_stack || f.origin != Origin::Stallhound).collect()
    } else {
        // From the user's line outwards, one's own frames; inwards, what it called into.
        frames
            .iter()
            .filter(worth)
            .filter(|f| matches!(f.origin, Origin::Workspace { .. }))
            .collect()
    };
    shown.dedup_by(|b, a| a.function == b.function && a.file == b.file && a.line == b.line);
    if !style.full_stack {
        // The lines of an attribute, or of a closure in the function, say nothing new about it.
        shown.dedup_by(|b, a| own && a.function == b.function && a.file == b.file);
        shown.truncate(FRAMES);
    }
    let width = shown.iter().map(|f| clean(&f.function).chars().count()).max().unwrap_or(0).min(60);
    let mut first = true;
    // The rule goes on beside the stack if something comes after it.
    let last = mark == style.mark("└", "`");
    let below = if last { " " } else { style.mark("│", "|") };
    for frame in &shown {
        let head = if first { format!("{mark} stack  ") } else { format!("{below}        ") };
        first = false;
        let at = match (&frame.file, frame.line) {
            (Some(file), Some(line)) => format!("{}:{line}", clean(&short_file(file, f))),
            (Some(file), None) => clean(file),
            _ => String::new(),
        };
        let line = format!("{:<width$}  {at}", clean(&frame.function));
        let line = line.trim_end();
        let own = matches!(frame.origin, Origin::Workspace { .. });
        let line = if own { line.to_owned() } else { style.paint(DIM, line) };
        let _ = writeln!(out, "{gutter}{head} {line}");
    }
    let folded = frames.len() - shown.len().min(frames.len());
    if folded > 0 && !style.full_stack {
        let text = format!(
            "… {} of {} (STALLHOUND_BACKTRACE=full)",
            count(folded as u64, "frame"),
            owners(frames)
        );
        let head = if first { format!("{mark} stack  ") } else { format!("{below}        ") };
        let _ = writeln!(out, "{gutter}{head} {}", style.paint(DIM, &text));
    }
}

/// A frame's file as the finding's own place shows it: with the same beginning cut off.
fn short_file(file: &str, f: &Finding) -> String {
    if let Some(place) = &f.place {
        let own = f.user_frame().and_then(|u| u.file.as_deref());
        if let Some(base) = own.and_then(|own| own.strip_suffix(place.file.as_str())) {
            if let Some(short) = file.strip_prefix(base) {
                return short.to_owned();
            }
        }
    }
    for mark in ["/registry/src/", "/git/checkouts/"] {
        if let Some((_, rest)) = file.split_once(mark) {
            return rest.split_once('/').map_or(rest, |(_, inside)| inside).to_owned();
        }
    }
    file.to_owned()
}

fn owners(frames: &[Frame]) -> String {
    let mut names: Vec<String> = Vec::new();
    for frame in frames {
        let name = match &frame.origin {
            Origin::Dependency { name, .. } => name.clone(),
            Origin::Tokio { .. } => "tokio".into(),
            Origin::Std => "std".into(),
            Origin::Harness => "the test harness".into(),
            Origin::Stallhound => continue,
            Origin::Workspace { .. } | Origin::Foreign => continue,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    const SHOWN: usize = 5;
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    let mut text = names.join(", ");
    if more > 0 {
        let _ = write!(text, " and {more} others");
    }
    if text.is_empty() {
        text.push_str("the system");
    }
    text
}

fn note_line(f: &Finding, style: &Style) -> String {
    let word = format!("note[{}]", f.category.word());
    let mut text = format!("{}: {}", style.paint(YELLOW, &word), clean(&f.headline));
    if let Some(place) = &f.place {
        let _ = write!(text, " at {}:{}", clean(&place.file), place.line);
    } else if let Some(function) = &f.function {
        let _ = write!(text, " in {}", clean(function));
    }
    if !f.tests.is_empty() {
        let name = if f.tests.len() == 1 { "test" } else { "tests" };
        let _ = write!(text, ", {name} {}", tests(&f.tests));
    }
    let why = match &f.reason {
        Some(reason) => format!("not counted: {}", clean(reason)),
        None => "below the limit that fails".into(),
    };
    let _ = writeln!(text, " ({why})");
    text
}

/// The line about a poll that has not come back, while it runs.
pub fn hold_line(f: &Finding, held: Nanos) -> String {
    let worker = match (f.worker, f.workers) {
        (Some(w), n) if n > 0 => format!("worker {w} of {n}"),
        (Some(w), _) => format!("worker {w}"),
        _ => "a worker".into(),
    };
    let mut text = format!("stallhound: {worker} has not come back for {}", time(held));
    let mut facts = Vec::new();
    match (&f.place, &f.function) {
        (Some(p), _) => {
            let source = p.source.as_deref().map(|s| clean(s.trim())).filter(|s| s.len() <= 80);
            facts.push(match source {
                Some(source) => format!("`{source}` at {}:{}", clean(&p.file), p.line),
                None => format!("{}:{}", clean(&p.file), p.line),
            });
        }
        (None, Some(function)) => facts.push(clean(function)),
        (None, None) => {}
    }
    if !f.tests.is_empty() {
        let name = if f.tests.len() == 1 { "test" } else { "tests" };
        facts.push(format!("{name} {}", tests(&f.tests)));
    }
    if !facts.is_empty() {
        let _ = write!(text, ": {}", facts.join(", "));
    }
    text.push('\n');
    text
}

/// Text of the program's without anything that a terminal would act on.
fn clean(text: &str) -> String {
    let bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.chars().any(bad) {
        return text.to_owned();
    }
    text.chars()
        .flat_map(|c| {
            let escaped: Vec<char> = match c {
                '\t' => vec![' '],
                c if bad(c) => c.escape_unicode().collect(),
                c => vec![c],
            };
            escaped
        })
        .collect()
}

/// For terminals without UTF-8.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '÷' => out.push('/'),
            'µ' => out.push('u'),
            '…' => out.push_str("..."),
            '—' => out.push('-'),
            c if c.is_ascii() => out.push(c),
            c => out.extend(c.escape_unicode()),
        }
    }
    out
}
