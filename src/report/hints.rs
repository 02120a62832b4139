//! What happened, and what to write instead: the wording of headlines and hints, in one place.
#![forbid(unsafe_code)]

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
    let who = e.context.words();
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

/// What fits this call, this length and this stack.
pub fn help(e: &Event<'_>) -> String {
    let near = |words: &[&str]| {
        e.stack.frames.iter().take(40).any(|f| words.iter().any(|w| f.symbol.contains(w)))
    };
    let long = e.time >= Nanos::from_millis(10);
    let text = match e.category {
        Category::Sleep if near(&["sqlite3", "rusqlite"]) => {
            "the database's busy handler sleeps: do the query in `spawn_blocking`, or give the connection a thread of its own"
        }
        Category::Sleep => return match e.summed {
            Some(_) => "`tokio::time::sleep(…).await`, or an interval, instead of many short sleeps".into(),
            None => format!("`tokio::time::sleep({}).await`", duration(e.time)),
        },
        Category::Net if near(&["reqwest::blocking", "ureq::", "attohttpc", "minreq"]) => {
            "use an asynchronous HTTP client here (reqwest, hyper); this one blocks its thread"
        }
        Category::Net if near(&["postgres::", "mysql::", "redis::"]) => {
            "use the driver's asynchronous side, or do the query in `spawn_blocking`"
        }
        Category::Net => "`tokio::net::TcpStream` (or `UnixStream`, `UdpSocket`) and `.await`; `spawn_blocking` if the code is not yours",
        Category::IoWait => "`tokio::io::unix::AsyncFd` waits for a descriptor without holding a worker",
        Category::Dns => "`tokio::net::lookup_host(…).await`; connecting by name with tokio's or an asynchronous client's own connect does it for you",
        Category::Process => "`tokio::process::Command`, and `.await` its output or status",
        Category::Join => "let the thread send its result through `tokio::sync::oneshot`, or join it in `spawn_blocking`",
        Category::Disk => "do the write and its sync in one `spawn_blocking`, or hand them to a writer thread; syncing costs what the disk costs",
        Category::Sync if near(&["mpsc", "mpmc", "crossbeam_channel", "flume"]) => {
            "`tokio::sync::mpsc` (or `oneshot`, `watch`), whose `recv().await` lets other tasks run"
        }
        Category::Sync if near(&["rayon"]) => {
            "start it with `rayon::spawn` and await a `tokio::sync::oneshot`; `install` and `join` wait on this thread"
        }
        Category::Sync => "hold the lock for less time (no I/O and no long work under it); where it must be held over an `.await`, `tokio::sync::Mutex`",
        Category::File if long => "`tokio::fs`, or all of the file work in one `spawn_blocking`",
        Category::File => "one `spawn_blocking` around all of it; `tokio::fs` pays a hop for each call",
        Category::Busy if near(&["drop_in_place", "Drop>::drop"]) => {
            "drop it elsewhere: `spawn_blocking(move || drop(value))`, or a thread that collects what is done with"
        }
        Category::Busy if near(&["poll_next", "futures_util::stream", "StreamExt"]) => {
            "the loop never yields because its stream is always ready: `tokio::task::yield_now().await` (or `consume_budget`) every so often, and heavy items to a pool"
        }
        Category::Busy => "hand the work to a pool made for it (rayon, or `spawn_blocking` with a bound), or do it in pieces with `tokio::task::yield_now().await` between",
        Category::Raw => "find the asynchronous twin of this call, or do it in `spawn_blocking`",
    };
    text.to_owned()
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
