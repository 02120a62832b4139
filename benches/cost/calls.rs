//! An intercepted call, over libc's own function called the same way.
//!
//! Both are called through a pointer by the same loop, in short batches that take turns; a round
//! gives one difference. Inside of a poll the task yields after each round, so that no poll is
//! long enough to be looked at.

use crate::child::{self, Watched};
use crate::stats::{spread, Spread};
use crate::table::Table;
use crate::Effort;
use libc::{c_int, c_long, c_ulong, c_void, pollfd, size_t, ssize_t, timespec};
use std::ffi::CStr;
use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// Calls in a batch.
const BATCH: u32 = 100;
/// An intercepted call outside of any poll.
const OUTSIDE: f64 = 5.0;
/// One inside of a poll, permitted.
const IN_POLL: f64 = 60.0;

/// What the calls act on. Lives as long as the process.
#[derive(Clone, Copy)]
pub struct Objects {
    eventfd: c_int,
    null: c_int,
    file: c_int,
    socket: c_int,
    /// Addresses of a buffer, a `pollfd` that is ready, a `timespec` that is refused.
    room: usize,
    ready: usize,
    refused: usize,
}

impl Objects {
    pub fn new() -> Objects {
        let (socket, other) = UnixStream::pair().expect("a socket pair");
        socket.set_nonblocking(true).expect("a mode");
        let null = std::fs::File::options().write(true).open("/dev/null").expect("/dev/null");
        let file = std::fs::File::open(std::env::current_exe().expect("a path")).expect("a file");
        // SAFETY: no pointers.
        let eventfd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        let ready = pollfd { fd: eventfd, events: libc::POLLOUT, revents: 0 };
        let refused = timespec { tv_sec: 0, tv_nsec: -1 };
        let objects = Objects {
            eventfd,
            null: null.as_raw_fd(),
            file: file.as_raw_fd(),
            socket: socket.as_raw_fd(),
            room: Box::leak(Box::new([0u8; 64])).as_mut_ptr() as usize,
            ready: Box::leak(Box::new(ready)) as *mut pollfd as usize,
            refused: Box::leak(Box::new(refused)) as *mut timespec as usize,
        };
        std::mem::forget((socket, other, null, file));
        objects
    }
}

/// Where a call is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// On a thread that has to do with no runtime.
    Outside,
    /// On a thread that has built a runtime.
    Builder,
    InPoll,
    SpawnBlocking,
}

/// How a call is judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Cannot block, or is told from its arguments not to.
    Harmless,
    /// Counts by its length only.
    Timed,
    /// Would be recorded inside of a poll if it had to wait; it has not.
    Ready,
}

/// One call: how it is named, which function, and a batch of it through a pointer.
pub struct Call {
    pub name: &'static str,
    symbol: &'static CStr,
    hooked: usize,
    kind: Kind,
    pub batch: unsafe fn(usize, Objects, u32),
}

impl Call {
    /// The program's definition and libc's own.
    pub fn both(&self) -> [usize; 2] {
        // SAFETY: null-terminated names; a library that is loaded already.
        let plain = unsafe {
            let library = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            libc::dlsym(library, self.symbol.as_ptr()) as usize
        };
        assert!(plain != 0 && plain != self.hooked, "{:?} is not intercepted", self.symbol);
        [self.hooked, plain]
    }
}

macro_rules! call {
    ($name:literal, $kind:ident, $symbol:literal, $hooked:path as fn($($ty:ty),*) -> $ret:ty,
     |$o:ident| ($($value:expr),*)) => {
        Call {
            name: $name,
            symbol: $symbol,
            hooked: $hooked as *const () as usize,
            kind: Kind::$kind,
            batch: {
                unsafe fn batch(f: usize, $o: Objects, n: u32) {
                    type F = unsafe extern "C" fn($($ty),*) -> $ret;
                    // SAFETY: the address of a function of this type, by `Call`.
                    let f = unsafe { core::mem::transmute::<usize, F>(black_box(f)) };
                    for _ in 0..n {
                        // SAFETY: descriptors and memory that live for ever.
                        black_box(unsafe { f($($value),*) });
                    }
                }
                batch
            },
        }
    };
}

/// All that is measured.
pub fn all() -> Vec<Call> {
    vec![
        call!(
            "read, non-blocking eventfd",
            Harmless,
            c"read",
            libc::read as fn(c_int, *mut c_void, size_t) -> ssize_t,
            |o| (o.eventfd, o.room as _, 8)
        ),
        call!(
            "read, non-blocking socket",
            Harmless,
            c"read",
            libc::read as fn(c_int, *mut c_void, size_t) -> ssize_t,
            |o| (o.socket, o.room as _, 8)
        ),
        call!(
            "recv, MSG_DONTWAIT",
            Harmless,
            c"recv",
            libc::recv as fn(c_int, *mut c_void, size_t, c_int) -> ssize_t,
            |o| (o.socket, o.room as _, 8, libc::MSG_DONTWAIT)
        ),
        call!(
            "write, /dev/null",
            Harmless,
            c"write",
            libc::write as fn(c_int, *const c_void, size_t) -> ssize_t,
            |o| (o.null, o.room as _, 1)
        ),
        call!(
            "fcntl, F_GETFD",
            Harmless,
            c"fcntl",
            libc::fcntl as fn(c_int, c_int, c_ulong) -> c_int,
            |o| (o.null, libc::F_GETFD, 0)
        ),
        // One of 0 ns sleeps for 50 µs; a refused one comes back at once.
        call!(
            "clock_nanosleep, refused",
            Harmless,
            c"clock_nanosleep",
            libc::clock_nanosleep as fn(c_int, c_int, *const timespec, *mut timespec) -> c_int,
            |o| (libc::CLOCK_MONOTONIC, 0, o.refused as _, std::ptr::null_mut())
        ),
        call!(
            "syscall, a futex wake",
            Harmless,
            c"syscall",
            libc::syscall as fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long,
            |o| (libc::SYS_futex, o.room, 0x81, 1, 0, 0, 0)
        ),
        call!(
            "pread, 16 bytes of a file",
            Timed,
            c"pread",
            libc::pread as fn(c_int, *mut c_void, size_t, i64) -> ssize_t,
            |o| (o.file, o.room as _, 16, 0)
        ),
        call!(
            "poll, ready at once",
            Ready,
            c"poll",
            libc::poll as fn(*mut pollfd, c_ulong, c_int) -> c_int,
            |o| (o.ready as _, 1, 1)
        ),
    ]
}

pub fn measure(effort: Effort, table: &mut Table) {
    let rounds = effort.rounds(3000, 600);
    let measured = |place: &str, watched| {
        let numbers =
            child::numbers(child::command("calls", watched).args([place, &rounds.to_string()]));
        let spreads = numbers.chunks(4).map(|n| Spread { median: n[0], low: n[1], high: n[2] });
        spreads.collect::<Vec<_>>()
    };
    let outside = measured("outside", Watched::Armed);
    let off = measured("outside", Watched::Off);
    let builder = measured("builder", Watched::Armed);
    let in_poll = measured("in-poll", Watched::Armed);
    let blocking = measured("spawn-blocking", Watched::Armed);
    for (at, call) in all().iter().enumerate() {
        let bound = Some(OUTSIDE);
        table.amount(&format!("added outside of polls: {}", call.name), "ns", outside[at], bound);
    }
    table.amount("  the first of them, linked and off", "ns", off[0], None);
    for (at, call) in all().iter().enumerate() {
        let name = format!("the same on a thread that built a runtime: {}", call.name);
        // Two look-ups in tokio tell that no poll runs: shown, not promised.
        table.amount(&name, "ns", builder[at], None);
    }
    for (at, call) in all().iter().enumerate() {
        // A timed call reads the clock twice, a ready one asks the kernel: shown, not promised.
        let bound = (call.kind == Kind::Harmless).then_some(IN_POLL);
        table.amount(&format!("added inside of a poll: {}", call.name), "ns", in_poll[at], bound);
    }
    for (at, call) in all().iter().enumerate().filter(|(_, call)| call.kind != Kind::Harmless) {
        table.amount(&format!("added in spawn_blocking: {}", call.name), "ns", blocking[at], None);
    }
}

/// Says median, interval and libc's own time of every call, at one place.
pub fn child(rest: &[String]) {
    child::arm();
    let rounds: usize = rest[1].parse().expect("rounds");
    let objects = Objects::new();
    let place = match &rest[0][..] {
        "builder" => Where::Builder,
        "in-poll" => Where::InPoll,
        "spawn-blocking" => Where::SpawnBlocking,
        _ => Where::Outside,
    };
    at(place, async move {
        for call in all() {
            let addresses = call.both();
            let mut differences = Vec::new();
            let mut plain = Vec::new();
            for round in 0..rounds + 50 {
                let mut times = [0.0; 2];
                for which in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
                    let begun = Instant::now();
                    // SAFETY: two addresses of the function that this batch calls.
                    unsafe { (call.batch)(addresses[which], objects, BATCH) };
                    times[which] = begun.elapsed().as_nanos() as f64 / f64::from(BATCH);
                }
                if round >= 50 {
                    differences.push(times[0] - times[1]);
                    plain.push(times[1]);
                }
                if place == Where::InPoll {
                    tokio::task::yield_now().await;
                }
            }
            let s = spread(&differences);
            println!("{} {} {} {}", s.median, s.low, s.high, crate::stats::median(plain));
        }
    });
}

/// Runs something on this thread where it is wanted, as far as that is possible.
pub fn at(place: Where, work: impl std::future::Future<Output = ()> + Send + 'static) {
    let build =
        || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match place {
        Where::Outside => now(work),
        Where::Builder => {
            let _runtime = build();
            now(work);
        }
        Where::InPoll => build().block_on(async { tokio::spawn(work).await.expect("the task") }),
        Where::SpawnBlocking => build()
            .block_on(async { tokio::task::spawn_blocking(|| now(work)).await.expect("the task") }),
    }
}

/// A future that never waits, without any runtime.
fn now(work: impl std::future::Future<Output = ()>) {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::pin::pin!(work).poll(&mut cx).is_ready());
}

/// A clock, in nanoseconds.
pub fn clock(which: libc::clockid_t) -> u64 {
    let mut t = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for writing.
    unsafe { libc::clock_gettime(which, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// What all children that have ended spent on processors, in seconds.
pub fn children_cpu() -> f64 {
    // SAFETY: a local, valid when zeroed.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
