//! What happened, and what to write instead: the wording of headlines and hints, in one place.
#![forbid(unsafe_code)]

use super::pages::{page, When};
use super::units::time;
use crate::evidence::{Category, Origin, Stack};
use crate::ids::Nanos;
use crate::verdict::context::Context;

/// What kind of lock or channel a stack waits in.
pub fn waited_for(stack: &Stack) -> &'static str {
    const KINDS: &[(&str, &str)] = &[
        ("mpsc", "a channel"),
        ("mpmc", "a channel"),
        ("crossbeam_channel", "a channel"),
        ("flume", "a channel"),
        ("condvar", "a condition variable"),
        ("barrier", "a barrier"),
        ("rwlock", "a read-write lock"),
        ("raw_rwlock", "a read-write lock"),
        ("dashmap", "a shard of a map"),
        ("rayon", "a rayon job"),
        ("mutex", "a mutex"),
        ("thread::park", "another thread to unpark it"),
        ("thread::functions::park", "another thread to unpark it"),
    ];
    let near: Vec<String> = stack
        .frames
        .iter()
        .take_while(|f| !matches!(f.origin, Origin::Workspace { .. }))
        .map(|f| f.symbol.to_ascii_lowercase())
        .collect();
    let kind = KINDS.iter().find(|(word, _)| near.iter().any(|s| s.contains(word)));
    kind.map_or("a lock", |(_, name)| name)
}

/// What is said of a finding in one sentence.
pub struct Event<'e> {
    /// What kind of thing it was.
    pub category: Category,
    /// Where it happened, as far as tokio is concerned.
    pub context: Context,
    /// Some of it in a task, some in a root future.
    pub mixed: bool,
    /// The libc function.
    pub call: Option<&'static str>,
    /// What it acted on, as text.
    pub object: Option<&'e str>,
    /// The longest occurrence.
    pub time: Nanos,
    /// How often.
    pub count: u64,
    /// Calls of one poll, added up.
    pub summed: Option<u64>,
    /// It had not ended.
    pub running: bool,
    /// Its names.
    pub stack: &'e Stack,
}

/// The headline, without a full stop.
pub fn headline(e: &Event<'_>) -> String {
    let who = if e.mixed { "a task or the root future" } else { e.context.words() };
    let took = time(e.time);
    let what = match (e.category, e.call) {
        (Category::Sleep, _) => "slept on its worker".to_owned(),
        (Category::Net, Some("connect")) => "connected a blocking socket on its worker".into(),
        (Category::Net, Some("accept" | "accept4")) => {
            "waited for a connection on its worker".into()
        }
        (Category::Net, Some("send" | "sendto" | "sendmsg" | "sendmmsg" | "write" | "writev")) => {
            "sent on a blocking socket".into()
        }
        (Category::Net, _) => "waited on a blocking socket".into(),
        (Category::IoWait, call) => format!("waited in `{}`", call.unwrap_or("poll")),
        (Category::Dns, _) => match e.object {
            Some(host) => format!("looked up {host} on its worker"),
            None => "looked up a name on its worker".into(),
        },
        (Category::Process, _) => "waited for a child process".into(),
        (Category::Join, _) => "waited for a thread to end".into(),
        (Category::Disk, _) => "waited for the disk".into(),
        (Category::Sync, _) => format!("waited for {}", waited_for(e.stack)),
        (Category::File, _) => "did file I/O on its worker".into(),
        (Category::FileLock, _) => "waited for a file lock".into(),
        (Category::Pipe, Some("write" | "writev" | "vmsplice")) => {
            "waited to write to a pipe".into()
        }
        (Category::Pipe, Some("read" | "readv")) => "waited to read from a pipe".into(),
        (Category::Pipe, _) => "waited for the other end of a pipe".into(),
        (Category::Stdio, Some("read" | "readv")) => "waited for standard input".into(),
        (Category::Stdio, _) => "waited for its output to be read".into(),
        (Category::Spawn, _) => "started a process on its worker".into(),
        (Category::Busy, _) => "computed on its worker".into(),
        (Category::Raw, _) => "was asleep on its worker".into(),
    };
    let mut text = match e.summed {
        Some(calls) => format!("{who} {what}: {calls} calls in one poll, {took} together"),
        None => format!("{who} {what} for {took}"),
    };
    if e.count > 1 && e.summed.is_none() {
        text.push_str(&format!(", {} times", e.count));
    }
    if e.running {
        text.push_str(", and has not come back");
    }
    text
}

/// What fits this call, this length and this stack: a line of the category's page.
pub fn help(e: &Event<'_>) -> String {
    let fits = |when: When| match when {
        When::Any => true,
        When::Near(words) => {
            e.stack.frames.iter().take(40).any(|f| words.iter().any(|w| f.symbol.contains(w)))
        }
        When::Call(functions) => e.call.is_some_and(|call| functions.contains(&call)),
        When::Summed => e.summed.is_some(),
        When::Short => e.time < Nanos::from_millis(10),
    };
    let hint = page(e.category).hints.iter().find(|h| fits(h.when));
    hint.map_or_else(String::new, |h| h.text.replace("{time}", &duration(e.time)))
}

/// What is to be said of a call that took less than a millisecond here, instead of what it costs.
/// `None` where the time is the program's own doing and the same everywhere.
pub fn short_here(category: Category) -> Option<&'static str> {
    Some(match category {
        Category::Net => "short here; in production it waits as long as the other side takes",
        Category::Dns => "short here; in production it waits as long as the name servers take",
        Category::IoWait => "short here; it waits as long as nothing is ready",
        Category::Process => "short here; it waits as long as the child runs",
        Category::Join => "short here; it waits as long as the other thread runs",
        Category::Disk => {
            "short here; it takes what the disk takes: milliseconds on many, more under load"
        }
        Category::File => "short here; it takes what the disk takes, and more under load",
        Category::Sync | Category::FileLock => "short here; it waits as long as the lock is held",
        Category::Pipe | Category::Stdio => "short here; it waits as long as the other end takes",
        Category::Sleep | Category::Spawn | Category::Busy | Category::Raw => return None,
    })
}

/// A duration as people write it in code.
fn duration(t: Nanos) -> String {
    let ms = (t.0 as f64 / 1e6).round() as u64;
    if ms >= 1000 && ms % 1000 == 0 {
        format!("Duration::from_secs({})", ms / 1000)
    } else if ms > 0 {
        format!("Duration::from_millis({ms})")
    } else {
        format!("Duration::from_micros({})", (t.0 / 1000).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Frame;

    fn line(category: Category, call: Option<&'static str>, ms: u64, near: &str) -> String {
        let frame = Frame {
            function: near.into(),
            symbol: near.into(),
            file: None,
            line: None,
            column: None,
            inlined: false,
            origin: Origin::Foreign,
        };
        let stack = Stack { frames: vec![frame], truncated: false };
        help(&Event {
            category,
            context: Context::Task,
            mixed: false,
            call,
            object: None,
            time: Nanos::from_millis(ms),
            count: 1,
            summed: None,
            running: false,
            stack: &stack,
        })
    }

    #[test]
    fn the_reports_line_is_one_of_the_categorys_page() {
        for category in Category::ALL {
            let text = line(category, None, 50, "app::f");
            let last = page(category).hints.last().expect("a line").text;
            assert_eq!(text, last.replace("{time}", "Duration::from_millis(50)"), "{category:?}");
        }
    }

    #[test]
    fn who_is_waited_for_is_what_the_call_waits_for() {
        let others = [Category::Net, Category::Pipe, Category::Stdio];
        for category in Category::ALL {
            let text = short_here(category).unwrap_or_default();
            let other = text.contains("other side") || text.contains("other end");
            assert_eq!(other, others.contains(&category), "{category:?}: {text}");
            let disk = [Category::Disk, Category::File].contains(&category);
            assert_eq!(text.contains("disk"), disk, "{category:?}: {text}");
        }
    }

    #[test]
    fn what_is_near_or_called_chooses_the_line() {
        assert!(line(Category::Sleep, None, 5, "sqlite3_step").contains("busy handler"));
        assert!(line(Category::Stdio, Some("read"), 200, "app::f").contains("standard input"));
        assert!(line(Category::Stdio, Some("write"), 200, "app::f").contains("behind a channel"));
        assert!(
            line(Category::Pipe, None, 200, "std::process::ChildStdout").contains("tokio::process")
        );
        assert!(line(Category::Spawn, Some("fork"), 200, "app::f").contains("pre_exec"));
        assert!(line(Category::File, None, 5, "app::f").starts_with("one `spawn_blocking`"));
        assert!(line(Category::File, None, 50, "app::f").starts_with("`tokio::fs`"));
    }
}
