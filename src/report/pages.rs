// What is said of each category: what it is, why it blocks, what to use, when it is fine. The one
// place for these words: the report's help lines, the README's table and `docs/categories.md` (the
// documentation of this module) are made of it.
//
// What is kept in mind here: `spawn_blocking` is no place for a call that may never end, since the
// runtime waits for it when it shuts down; `tokio::fs` is the blocking pool, too; yielding helps
// against CPU work and against nothing that sleeps; std's locks are right where they are held for
// short; and what takes a millisecond now and then is best left alone.
#![doc = include_str!("../../docs/categories.md")]
#![forbid(unsafe_code)]

use crate::evidence::Category;

/// The page of one category.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Page {
    /// Whose page it is.
    pub category: Category,
    /// Which calls, in a few words of Markdown.
    pub what: &'static str,
    /// How it is judged in a task by default, in a few words.
    pub judged: &'static str,
    /// What it does to the worker, and how it gets into async code.
    pub why: &'static str,
    /// What to write instead, the best first.
    pub instead: &'static [&'static str],
    /// When there is nothing to mend.
    pub fine: &'static str,
    /// Whether such a call ends by itself. If not, `spawn_blocking` alone is no advice.
    pub ends: bool,
    /// The report's line, the first that fits; the last one always does.
    pub hints: &'static [Hint],
}

/// One line of advice, and where it fits.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Hint {
    /// Where it fits.
    pub when: When,
    /// One line of Markdown. `{time}` stands for the duration as Rust code.
    pub text: &'static str,
}

/// Where a line of advice fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// Everywhere.
    Any,
    /// The function's path of one of the inner frames contains one of these.
    Near(&'static [&'static str]),
    /// The libc function is one of these.
    Call(&'static [&'static str]),
    /// Several calls of one poll were added up.
    Summed,
    /// It took less than 10 ms.
    Short,
}

const fn any(text: &'static str) -> Hint {
    Hint { when: When::Any, text }
}

const fn near(words: &'static [&'static str], text: &'static str) -> Hint {
    Hint { when: When::Near(words), text }
}

const fn call(functions: &'static [&'static str], text: &'static str) -> Hint {
    Hint { when: When::Call(functions), text }
}

/// The page of a category.
///
/// ```
/// use stallhound::{categories::page, evidence::Category};
/// assert!(page(Category::FileLock).what.contains("flock"));
/// ```
pub fn page(category: Category) -> &'static Page {
    match category {
        Category::Sleep => &SLEEP,
        Category::Net => &NET,
        Category::IoWait => &IO_WAIT,
        Category::Dns => &DNS,
        Category::Process => &PROCESS,
        Category::Join => &JOIN,
        Category::Disk => &DISK,
        Category::Sync => &SYNC,
        Category::File => &FILE,
        Category::FileLock => &FILE_LOCK,
        Category::Pipe => &PIPE,
        Category::Stdio => &STDIO,
        Category::Spawn => &SPAWN,
        Category::Busy => &BUSY,
        Category::Raw => &RAW,
    }
}

impl Page {
    /// The page as Markdown, below a heading of the second level.
    pub fn markdown(&self) -> String {
        let mut instead = String::new();
        for line in self.instead {
            instead.push_str(&format!("- {line}\n"));
        }
        format!(
            "## {}\n\n**What.** {}\n\n**Judged in a task.** {}\n\n**Why it blocks.** {}\n\n\
             **Instead:**\n\n{instead}\n**When it is fine.** {}\n",
            self.category.word(),
            self.what,
            self.judged,
            self.why,
            self.fine
        )
    }

    /// The row of the README's table.
    pub fn row(&self) -> String {
        format!("| `{}` | {} | {} |\n", self.category.word(), self.what, self.judged)
    }
}

/// All pages as one document.
#[doc(hidden)]
pub fn document() -> String {
    let mut text = String::from(
        "# The categories, page by page\n\n\
         Made from `src/report/pages.rs`, which the report's help lines come from as well.\n\n\
         `deny` fails the test, `warn` is one line and fails nothing. Times are those that \
         count: waiting for a processor does not. What is said of tasks holds for library code in \
         the root future of a current-thread runtime, too; test code there is noted at most.\n",
    );
    for category in Category::ALL {
        text.push('\n');
        text.push_str(&page(category).markdown());
    }
    text
}

/// The rows of the README's table.
#[doc(hidden)]
pub fn table() -> String {
    Category::ALL.iter().map(|c| page(*c).row()).collect()
}

const SLEEP: Page = Page {
    category: Category::Sleep,
    what: "`thread::sleep`, `nanosleep`, `usleep`, …",
    judged: "deny always from 1 ms; shorter ones by the sum asked for in one poll: over 10 ms",
    why: "The thread sleeps, and with it every task that waits for this worker. Retry loops, \
          back-offs, rate limits and busy handlers of synchronous databases bring it in.",
    instead: &[
        "`tokio::time::sleep(…).await`, or `tokio::time::interval` where it repeats. It also \
         follows a test's paused clock.",
        "Where a library sleeps inside of a call of its own (a database's busy handler), the whole \
         call in `spawn_blocking`.",
        "Where something is waited for, the thing itself rather than a nap: a channel, \
         `tokio::sync::Notify`, `watch`.",
    ],
    fine: "In `spawn_blocking`, on threads of your own, in the root future of a multi-thread \
           runtime. A nap of some microseconds now and then is not worth a change.",
    ends: true,
    hints: &[
        near(
            &["sqlite3", "rusqlite"],
            "the database's busy handler sleeps: do the query in `spawn_blocking`, or give the connection a thread of its own",
        ),
        Hint {
            when: When::Summed,
            text: "`tokio::time::sleep(…).await`, or an interval, instead of many short sleeps",
        },
        any("`tokio::time::sleep({time}).await`"),
    ],
};

const NET: Page = Page {
    category: Category::Net,
    what: "connect, accept, read, write, send, receive on a stream socket in blocking mode",
    judged: "deny always; datagrams over 10 ms",
    why: "The other side decides how long it takes, and it may never answer. On loopback, in a \
          test, the same call takes microseconds; that is why it counts however short it was.",
    instead: &[
        "tokio's own: `tokio::net::TcpStream`, `TcpListener`, `UnixStream`, `UdpSocket`, and \
         `.await`.",
        "The asynchronous side of the client: reqwest or hyper for `reqwest::blocking`, ureq and \
         the like; the async driver of the database.",
        "Blocking code that cannot be changed: `spawn_blocking` for a request that ends, with a \
         time-out on its socket; a thread of its own for what serves a connection or listens.",
    ],
    fine: "Sockets in non-blocking mode, and calls with `MSG_DONTWAIT`, are never meant. \
           Datagrams that only fill a buffer (log and metrics writers) are not accused.",
    ends: false,
    hints: &[
        near(
            &["reqwest::blocking", "ureq::", "attohttpc", "minreq"],
            "use an asynchronous HTTP client here (reqwest, hyper); this one blocks its thread",
        ),
        near(
            &["postgres::", "mysql::", "redis::"],
            "use the driver's asynchronous side; or give its connection a thread of its own, or each query to `spawn_blocking`",
        ),
        call(
            &["accept", "accept4"],
            "`tokio::net::TcpListener` and `accept().await`; a blocking accept loop needs a thread of its own",
        ),
        any("`tokio::net::TcpStream` (or `UnixStream`, `UdpSocket`) and `.await`; for code that is not yours `spawn_blocking` if it ends, a thread of its own if it may not"),
    ],
};

const IO_WAIT: Page = Page {
    category: Category::IoWait,
    what: "`poll`, `select`, `epoll_wait` that have to wait, other than the runtime's own",
    judged: "deny always",
    why: "A second event loop inside of the first: it sleeps until something is ready, and the \
          tasks of this worker with it. C libraries with a loop of their own (libpq, curl) and \
          synchronous clients with time-outs do it.",
    instead: &[
        "`tokio::io::unix::AsyncFd`: the runtime's own driver waits for the descriptor.",
        "The library's non-blocking interface below an `AsyncFd`, or its asynchronous twin.",
        "A thread of its own for a loop that never ends, with a channel to the tasks.",
    ],
    fine: "With a time-out of zero, or when something is ready at once: that is asking, not \
           waiting, and is not counted.",
    ends: false,
    hints: &[any("`tokio::io::unix::AsyncFd` waits for a descriptor without holding a worker")],
};

const DNS: Page = Page {
    category: Category::Dns,
    what: "`getaddrinfo` and its kin, but for literal addresses",
    judged: "deny always",
    why: "libc's resolver reads files, asks servers one after the other, and waits seconds for each \
          that does not answer. `(host, port).to_socket_addrs()` and std's `TcpStream::connect` by \
          name do it in passing. In a test the name is `localhost`; in production it is not.",
    instead: &[
        "Connecting by name with tokio or an asynchronous client: they resolve elsewhere.",
        "`tokio::net::lookup_host(…).await`, which asks libc on the blocking pool.",
        "An asynchronous resolver (hickory) where there are many names.",
    ],
    fine: "Literal addresses need no resolver and are not counted. Resolving once, before the \
           runtime starts, is right.",
    ends: true,
    hints: &[any("`tokio::net::lookup_host(…).await`; connecting by name with tokio's or an asynchronous client's own connect does it for you")],
};

const PROCESS: Page = Page {
    category: Category::Process,
    what: "waiting for a child that has not ended or was started in the same poll, `system`, `popen`",
    judged: "deny always",
    why: "The worker sleeps until another program is done. `Command::output()` and `status()` \
          start a child and wait for it, also when they look like one quick call.",
    instead: &[
        "`tokio::process::Command`, and `.await` its `output()`, `status()` or `wait()`.",
        "`try_wait()` where only a look is wanted.",
    ],
    fine: "A child that was started in an earlier poll and has ended already is only collected; that is not counted.",
    ends: false,
    hints: &[any("`tokio::process::Command`, and `.await` its output or status")],
};

const JOIN: Page = Page {
    category: Category::Join,
    what: "joining a thread that has not ended or was started in the same poll, barriers",
    judged: "deny always",
    why: "The worker sleeps for as long as that thread works. `JoinHandle::join` in a `Drop`, and \
          the end of `std::thread::scope`, do it where nobody sees it.",
    instead: &[
        "Let the thread send its result through `tokio::sync::oneshot`, and await that.",
        "If it only has to be gone: join it in `spawn_blocking` once it was told to stop, or let it \
         go unjoined.",
        "For pieces of CPU work, a pool (rayon) and a `oneshot`, instead of scoped threads.",
    ],
    fine: "A thread that was started in an earlier poll and has ended already is joined at once; that is not counted.",
    ends: true,
    hints: &[any("let the thread send its result through `tokio::sync::oneshot`, or join it in `spawn_blocking`")],
};

const DISK: Page = Page {
    category: Category::Disk,
    what: "`fsync`, `fdatasync`, `sync`, `msync(MS_SYNC)`, …",
    judged: "deny always",
    why: "It waits for the device, not for the page cache: a tenth of a millisecond on a fast disk \
          in a test, tens of milliseconds on a busy one, seconds on a network volume.",
    instead: &[
        "The write and its sync together in one `spawn_blocking`, or on a writer thread that many \
         tasks send to: it can sync once for all of them.",
        "`tokio::fs::File::sync_all().await`: the same on the blocking pool, with a hop for each \
         call.",
    ],
    fine: "Where durability does not matter (temporary files, tests), leave the sync out: that is \
           cheaper than moving it.",
    ends: true,
    hints: &[any("do the write and its sync in one `spawn_blocking`, or hand them to a writer thread; syncing costs what the disk costs")],
};

const SYNC: Page = Page {
    category: Category::Sync,
    what: "mutexes, condition variables, channels, parking",
    judged: "warn over 10 ms, deny over 100 ms, by one wait",
    why: "The worker sleeps until another thread lets go. If that is a task of the same worker, it \
          never will. A short lock is nobody's trouble: only waits that took long count.",
    instead: &[
        "Hold the lock for less: no I/O, no `.await`, no long work under it. std's `Mutex` is the \
         right one for a few instructions; tokio's is slower, and does not make a long hold short.",
        "`tokio::sync::Mutex` only where the lock must be held over an `.await`.",
        "tokio's channels (`mpsc`, `oneshot`, `watch`, `broadcast`) instead of std's or crossbeam's \
         where a task receives, or sends to a bounded one; `Notify` for a condition variable.",
        "`rayon::spawn` and a `oneshot` instead of `rayon::join` or `install`, which wait.",
    ],
    fine: "`std::sync::Mutex` around a map or a counter, held for microseconds. `try_lock`. Sending \
           on an unbounded channel.",
    ends: false,
    hints: &[
        near(
            &["mpsc", "mpmc", "crossbeam_channel", "flume"],
            "`tokio::sync::mpsc` (or `oneshot`, `watch`), whose `recv().await` lets other tasks run",
        ),
        near(
            &["rayon"],
            "start it with `rayon::spawn` and await a `tokio::sync::oneshot`; `install` and `join` wait on this thread",
        ),
        near(
            &["condvar", "Condvar", "thread::park"],
            "`tokio::sync::Notify` (or `watch`): its `notified().await` lets other tasks run",
        ),
        any("hold the lock for less time (no I/O and no long work under it); where it must be held over an `.await`, `tokio::sync::Mutex`"),
    ],
};

const FILE: Page = Page {
    category: Category::File,
    what: "opening, reading, writing regular files; `stat`, `rename`, `unlink`, `mkdir`, `readdir` and other calls on file names",
    judged: "warn over 10 ms, deny over 100 ms, by one call or a poll's sum",
    why: "What is in the page cache takes microseconds; what is not takes as long as the disk or \
          the network volume does. Linux offers no readiness for regular files: something has to \
          wait.",
    instead: &[
        "All of the file work of one step in one `spawn_blocking`: read, parse, write.",
        "`tokio::fs` for a call or two. It is the blocking pool as well, with a hop for each call: \
         a directory walk through it is slower than one job.",
        "Read configuration, templates and certificates once, before the server answers.",
    ],
    fine: "A small file now and then: a hop to the blocking pool costs more than reading it. Only \
           long calls count, and many in one poll.",
    ends: true,
    hints: &[
        Hint {
            when: When::Short,
            text: "one `spawn_blocking` around all of it; `tokio::fs` pays a hop for each call",
        },
        Hint {
            when: When::Summed,
            text: "one `spawn_blocking` around all of it; `tokio::fs` pays a hop for each call",
        },
        any("`tokio::fs` (the blocking pool, a hop a call), or all of the file work in one `spawn_blocking`"),
    ],
};

const FILE_LOCK: Page = Page {
    category: Category::FileLock,
    what: "waiting for a lock on a file: `flock` (`File::lock`), `lockf`, `fcntl` with `F_SETLKW` or `F_OFD_SETLKW`",
    judged: "deny over 10 ms",
    why: "The worker sleeps until another process, or another task of this one, gives the lock \
          back, and nothing says when. Two tasks of one worker that take the same lock through two \
          descriptors stop it for good.",
    instead: &[
        "Within one process: `tokio::sync::Mutex`, or one task that owns the file.",
        "Between processes: try without waiting (`File::try_lock`, `LOCK_NB`) and \
         `tokio::time::sleep` between two tries.",
        "A thread of its own that waits for the lock and answers through a `oneshot`. In \
         `spawn_blocking` it keeps a thread of the pool, and the runtime's shutdown, waiting.",
    ],
    fine: "A lock that is free is taken at once and not counted; nor is asking without waiting. In \
           the root future of a test it is noted at most: tests that must not overlap do that.",
    ends: false,
    hints: &[any("try without waiting (`try_lock`, `LOCK_NB`) and `tokio::time::sleep` between tries, or wait for it on a thread of its own; within one process `tokio::sync::Mutex`")],
};

const PIPE: Page = Page {
    category: Category::Pipe,
    what: "reading from or writing to a pipe, FIFO, eventfd, timerfd, signalfd or inotify in blocking mode; opening a FIFO",
    judged: "deny over 100 ms",
    why: "A read sleeps until somebody writes, a write until somebody has read, opening a FIFO \
          until the other end is opened. The other end is most often another process.",
    instead: &[
        "A child's pipes from `tokio::process::Command`: they are asynchronous.",
        "`tokio::net::unix::pipe` for pipes and FIFOs of your own.",
        "`tokio::io::unix::AsyncFd` around the descriptor in non-blocking mode, for eventfds, \
         timerfds, inotify; `tokio::signal` instead of a signalfd.",
        "A thread of its own that reads and sends on, where the descriptor cannot be made \
         non-blocking. Not `spawn_blocking`: a read that never ends keeps the runtime from \
         shutting down.",
    ],
    fine: "Pipes in non-blocking mode are never meant; nor is a pipe that has what is wanted: it \
           takes microseconds.",
    ends: false,
    hints: &[
        near(
            &["std::process::"],
            "start the child with `tokio::process::Command`: its pipes are asynchronous",
        ),
        any("`tokio::net::unix::pipe`, or `AsyncFd` around the descriptor in non-blocking mode; where it must block, a thread of its own and a channel"),
    ],
};

const STDIO: Page = Page {
    category: Category::Stdio,
    what: "reading from or writing to a terminal or a standard stream in blocking mode",
    judged: "warn over 100 ms; printing with std is silent",
    why: "A read sleeps until somebody types. A write sleeps when whoever reads the output is slow: \
          a full pipe to a log collector stops every worker that prints.",
    instead: &[
        "Standard input: a thread of its own that reads lines and sends them through \
         `tokio::sync::mpsc`. `tokio::io::stdin` reads on the blocking pool and keeps the runtime's \
         shutdown waiting until a line comes; tokio itself advises the thread.",
        "Output in quantity: a writer thread behind a channel (`tracing_appender::non_blocking` is \
         one).",
    ],
    fine: "Printing in tests and small tools. Whoever runs the tests reads their output, so it is \
           never denied.",
    ends: false,
    hints: &[
        call(
            &["read", "readv", "__read_chk"],
            "read standard input on a thread of its own, and send the lines through `tokio::sync::mpsc`",
        ),
        any("write from a thread of its own behind a channel (`tracing_appender::non_blocking` is one)"),
    ],
};

const SPAWN: Page = Page {
    category: Category::Spawn,
    what: "starting a process: `posix_spawn`, `fork`; not below `tokio::process`",
    judged: "warn over 100 ms",
    why: "The thread waits until the child runs its own program. That is short, unless the program \
          comes from a slow disk, or std must `fork` (with `pre_exec`, `uid`, `gid`, `groups`): \
          then the page tables of a large process are copied first.",
    instead: &[
        "`Command::spawn` in `spawn_blocking`. `tokio::process` does not help here: it starts the \
         child in the poll, too; what it makes asynchronous is the waiting.",
        "One helper process that stays, instead of one a request.",
        "`pre_exec`, `uid` and `gid` left out where they are not needed: std then need not copy \
         this process.",
    ],
    fine: "Nearly always: it takes a millisecond. Waiting for the child is another category.",
    ends: true,
    hints: &[
        call(
            &["fork"],
            "copying a large process takes long: start children early, or without `pre_exec`, `uid`, `gid`, so that std need not `fork`",
        ),
        any("start it in `spawn_blocking`, or keep one helper process instead of one a request"),
    ],
};

const BUSY: Page = Page {
    category: Category::Busy,
    what: "CPU work, no call",
    judged: "warn over half, deny over 50 ms of CPU time; 200 ms with debug assertions",
    why: "Nothing interrupts a task: until it returns from its poll, the others of this worker \
          wait. Serialising, compressing, hashing passwords, templates, regular expressions, large \
          drops, and loops over streams that are always ready.",
    instead: &[
        "A pool made for it: rayon, or `spawn_blocking` behind a semaphore of as many permits as \
         there are processors. The blocking pool's own bound is 512 threads, which is none for CPU \
         work.",
        "In pieces, with `tokio::task::yield_now().await` between, where it is a loop of your own.",
        "Large values dropped elsewhere: `spawn_blocking(move || drop(value))`.",
        "`tokio::task::block_in_place` on a multi-thread runtime, where the code cannot be moved.",
    ],
    fine: "Some milliseconds. Moving work of that length costs more than it gains.",
    ends: true,
    hints: &[
        near(
            &["drop_in_place", "Drop>::drop"],
            "drop it elsewhere: `spawn_blocking(move || drop(value))`, or a thread that collects what is done with",
        ),
        near(
            &["poll_next", "futures_util::stream", "StreamExt"],
            "the loop never yields because its stream is always ready: `tokio::task::yield_now().await` (or `consume_budget`) every so often, and heavy items to a pool",
        ),
        any("hand the work to a pool made for it (rayon, or `spawn_blocking` with a bound), or do it in pieces with `tokio::task::yield_now().await` between"),
    ],
};

const RAW: Page = Page {
    category: Category::Raw,
    what: "asleep in something that is not intercepted",
    judged: "deny over 10 ms; locks as `sync`",
    why: "The thread slept inside of a poll, and no call of the other categories explains it: a \
          system call that went around libc, a lock of a C library, a device. The stack says where.",
    instead: &[
        "The asynchronous twin of whatever it was.",
        "`spawn_blocking` if it ends soon, a thread of its own if it may not.",
    ],
    fine: "Only sleeps count here, and only of more than 10 ms: a page fault or two does not.",
    ends: false,
    hints: &[any("find the asynchronous twin of this call; without one, `spawn_blocking` if it ends, a thread of its own if it may not")],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> impl Iterator<Item = &'static Page> {
        Category::ALL.into_iter().map(page)
    }

    /// Every text of a page that gives advice.
    fn advice(page: &Page) -> Vec<&'static str> {
        page.instead.iter().copied().chain(page.hints.iter().map(|h| h.text)).collect()
    }

    #[test]
    fn every_category_has_a_whole_page_of_its_own() {
        for category in Category::ALL {
            let page = page(category);
            assert_eq!(page.category, category);
            for text in [page.what, page.judged, page.why, page.fine] {
                assert!(text.len() > 10, "{category:?}: {text:?}");
            }
            assert!(!page.instead.is_empty(), "{category:?}");
            let last = page.hints.last().expect("a hint");
            assert_eq!(last.when, When::Any, "{category:?}: the last line fits everywhere");
            let any = page.hints.iter().filter(|h| h.when == When::Any).count();
            assert_eq!(any, 1, "{category:?}: lines behind it are never seen");
        }
    }

    #[test]
    fn texts_are_whole_and_plain() {
        for page in pages() {
            let all = advice(page).into_iter().chain([page.what, page.judged, page.why, page.fine]);
            for text in all {
                assert_eq!(text.matches('`').count() % 2, 0, "{text}");
                assert!(!text.contains("  ") && !text.contains('\n'), "{text}");
            }
            for sentence in page.instead.iter().chain([&page.why, &page.fine]) {
                assert!(sentence.ends_with('.'), "{sentence}");
            }
            for hint in page.hints {
                assert!(!hint.text.ends_with('.') && hint.text.len() < 180, "{}", hint.text);
            }
        }
    }

    /// A call that may never end must not be moved to the blocking pool without another word.
    #[test]
    fn spawn_blocking_is_no_answer_to_what_never_ends() {
        let mut looked_at = 0;
        for page in pages().filter(|p| !p.ends) {
            for text in advice(page).into_iter().filter(|t| t.contains("spawn_blocking")) {
                looked_at += 1;
                assert!(text.contains("thread"), "{:?}: {text}", page.category);
            }
        }
        assert!(looked_at > 4);
    }

    #[test]
    fn yielding_is_only_an_answer_to_cpu_work() {
        for page in pages() {
            let yields = advice(page).iter().any(|t| t.contains("yield") || t.contains("budget"));
            assert_eq!(yields, page.category == Category::Busy, "{:?}", page.category);
        }
    }

    #[test]
    fn what_people_are_told_wrongly_elsewhere_is_said_rightly() {
        let text = |c: Category| page(c).markdown();
        assert!(
            text(Category::File).contains("`tokio::fs` for a call or two. It is the blocking pool")
        );
        for page in pages() {
            for text in advice(page).iter().filter(|t| t.contains("tokio::fs")) {
                assert!(text.contains("blocking pool") || text.contains("hop"), "{text}");
            }
        }
        assert!(
            text(Category::Sync).contains("std's `Mutex` is the right one for a few instructions")
        );
        assert!(text(Category::Busy).contains("512 threads"));
        assert!(text(Category::Spawn).contains("`tokio::process` does not help here"));
    }
}
