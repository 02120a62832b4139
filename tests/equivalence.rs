//! Every interposed function does what libc's own does: result, errno, out-parameters and side
//! effects, outside of any runtime, in a task's poll, and under `STALLHOUND=off`.
//!
//! Each scenario runs twice, once with our definitions and once with those that `dlopen` finds in
//! libc, and writes down what it saw; the two must read the same. One process per context.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
// All of it calls libc with locals of the right types; only what is special is said.
#![allow(clippy::undocumented_unsafe_blocks)]
#![allow(unused_unsafe)] // `call!` stands inside of other unsafe blocks, too

use libc::{c_int, c_long, c_uint, c_ulong, c_void, size_t, ssize_t};
use std::ffi::{CStr, CString};
use std::fmt::Write as _;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stallhound::__private::{begin_recording, settings, Settings};

static SETTINGS: Settings = settings!();

/// Whose functions are called.
#[derive(Clone, Copy)]
enum Lib {
    Ours,
    Theirs,
}

impl Lib {
    fn address(self, name: &CStr) -> usize {
        let ours = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as usize;
        let theirs = unsafe {
            let handle = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOW);
            libc::dlsym(handle, name.as_ptr()) as usize
        };
        assert!(ours != 0 && theirs != 0 && ours != theirs, "{name:?} is not interposed");
        match self {
            Lib::Ours => ours,
            Lib::Theirs => theirs,
        }
    }
}

/// An errno that nothing sets by itself: it must still be there after a success.
const UNTOUCHED: c_int = libc::EHWPOISON;

fn errno() -> c_int {
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: c_int) {
    unsafe { *libc::__errno_location() = value }
}

/// Calls one function of `lib` and writes down its result and errno.
macro_rules! call {
    ($log:expr, $lib:expr, $name:literal, ($($t:ty),*) -> $ret:ty $(, $arg:expr)* $(,)?) => {{
        let name = CString::new($name).unwrap();
        let address = $lib.address(&name);
        // SAFETY: the function of this name has this type; the scenario passes valid arguments.
        let (result, errno) = unsafe {
            let f: unsafe extern "C-unwind" fn($($t),*) -> $ret = std::mem::transmute(address);
            set_errno(UNTOUCHED);
            let result = f($($arg),*);
            (result, errno())
        };
        let _ = write!($log, "\n  {}", $name);
        if errno != UNTOUCHED {
            let _ = write!($log, " errno {errno}");
        }
        result
    }};
}

macro_rules! note {
    ($log:expr, $($text:tt)*) => {{ let _ = write!($log, " {}", format_args!($($text)*)); }};
}

#[path = "equivalence/files.rs"]
mod files;

struct Pipe(c_int, c_int);

fn pipe(flags: c_int) -> Pipe {
    let mut p = [0; 2];
    assert_eq!(unsafe { libc::pipe2(p.as_mut_ptr(), flags | libc::O_CLOEXEC) }, 0);
    Pipe(p[0], p[1])
}

fn pair(kind: c_int) -> Pipe {
    let mut p = [0; 2];
    let kind = kind | libc::SOCK_CLOEXEC;
    assert_eq!(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, p.as_mut_ptr()) }, 0);
    Pipe(p[0], p[1])
}

impl Drop for Pipe {
    fn drop(&mut self) {
        unsafe {
            libc::close(self.0);
            libc::close(self.1);
        }
    }
}

fn feed(fd: c_int, bytes: &[u8]) {
    let n = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    assert_eq!(n, bytes.len() as ssize_t);
}

fn temp(name: &str) -> CString {
    let path = format!("{}/equivalence-{}-{name}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    CString::new(path).unwrap()
}

const MS: i64 = 1_000_000;

fn ts(nanos: i64) -> libc::timespec {
    libc::timespec { tv_sec: nanos / 1_000_000_000, tv_nsec: nanos % 1_000_000_000 }
}

type Scenario = (&'static str, fn(Lib, &mut String));

const SCENARIOS: &[Scenario] = &[
    ("sleep", sleeps),
    ("interrupted sleep", interrupted),
    ("stream sockets", streams),
    ("socket errors", socket_errors),
    ("control data", control_data),
    ("many messages", many_messages),
    ("accept and connect", connections),
    ("readiness", readiness),
    ("select", selects),
    ("epoll", epolls),
    ("dns", names),
    ("children", children),
    ("child errors", child_errors),
    ("shell", shell),
    ("joins", joins),
    ("disk", disk),
    ("transfers", transfers),
    ("partial transfers", partial),
    ("positioned", positioned),
    ("between files", between_files),
    ("open", opens),
    ("open by libc's checked names", opens_checked),
    ("streams of C", c_streams),
    ("infrastructure", infrastructure),
    ("syscall", syscalls),
    ("bad pointers", bad_pointers),
    ("stat and its kin", files::stats),
    ("changes by name", files::changes),
    ("directories", files::directories),
    ("file locks", files::file_locks),
    ("pipes", files::pipes),
    ("events", files::events),
    ("starts of processes", files::starts),
    ("random bytes", random_bytes),
];

fn sleeps(lib: Lib, log: &mut String) {
    let mut left = ts(7);
    let began = Instant::now();
    let rc = call!(log, lib, "nanosleep", (*const libc::timespec, *mut libc::timespec) -> c_int, &ts(2 * MS), &mut left);
    note!(log, "{rc} left {} long {}", left.tv_nsec, began.elapsed() >= Duration::from_millis(2));
    let rc = call!(log, lib, "nanosleep", (*const libc::timespec, *mut libc::timespec) -> c_int, &ts(0), null_mut());
    note!(log, "{rc}");
    let bad = libc::timespec { tv_sec: 0, tv_nsec: 2_000_000_000 };
    let rc = call!(log, lib, "nanosleep", (*const libc::timespec, *mut libc::timespec) -> c_int, &bad, null_mut());
    note!(log, "{rc}");
    let mut now = ts(0);
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    let until = ts(now.tv_sec * 1_000_000_000 + now.tv_nsec + 2 * MS);
    let began = Instant::now();
    let rc = call!(log, lib, "clock_nanosleep", (c_int, c_int, *const libc::timespec, *mut libc::timespec) -> c_int,
        libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, null_mut());
    note!(log, "{rc} long {}", began.elapsed() >= Duration::from_millis(1));
    for (clock, flags, t) in [
        (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, ts(1)),
        (99, 0, ts(1)),
        (libc::CLOCK_THREAD_CPUTIME_ID, 0, ts(1)),
        (libc::CLOCK_REALTIME, 0, bad),
    ] {
        let rc = call!(log, lib, "clock_nanosleep", (c_int, c_int, *const libc::timespec, *mut libc::timespec) -> c_int,
            clock, flags, &t, null_mut());
        note!(log, "{rc}");
    }
    let rc = call!(log, lib, "usleep", (c_uint) -> c_int, 1500);
    note!(log, "{rc}");
    let rc = call!(log, lib, "sleep", (c_uint) -> c_uint, 0);
    note!(log, "{rc}");
}

extern "C" fn nothing(_: c_int) {}

/// Runs `f` while another thread interrupts this one until it is done.
fn while_interrupted(f: impl FnOnce()) {
    static DONE: AtomicBool = AtomicBool::new(false);
    DONE.store(false, Ordering::SeqCst);
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        libc::sigaction(libc::SIGUSR1, &action, null_mut());
    }
    let other = std::thread::spawn(move || {
        while !DONE.load(Ordering::SeqCst) {
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGUSR1) };
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    f();
    DONE.store(true, Ordering::SeqCst);
    other.join().unwrap();
}

fn interrupted(lib: Lib, log: &mut String) {
    let mut left = ts(0);
    while_interrupted(|| {
        let rc = call!(log, lib, "nanosleep", (*const libc::timespec, *mut libc::timespec) -> c_int, &ts(1000 * 1000 * MS), &mut left);
        note!(log, "{rc} left {}", (900..=1000).contains(&left.tv_sec));
        let rc = call!(log, lib, "clock_nanosleep", (c_int, c_int, *const libc::timespec, *mut libc::timespec) -> c_int,
            libc::CLOCK_MONOTONIC, 0, &ts(1000 * 1000 * MS), &mut left);
        note!(log, "{rc} left {}", (900..=1000).contains(&left.tv_sec));
        let rc = call!(log, lib, "sleep", (c_uint) -> c_uint, 1000);
        note!(log, "{}", (900..=1000).contains(&rc));
        let rc = call!(log, lib, "usleep", (c_uint) -> c_int, 900_000_000);
        note!(log, "{rc}");
        let p = pipe(0);
        let mut byte = 0u8;
        let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, p.0, (&mut byte as *mut u8).cast(), 1);
        note!(log, "{rc}");
        let s = pair(libc::SOCK_STREAM);
        let rc = call!(log, lib, "recv", (c_int, *mut c_void, size_t, c_int) -> ssize_t, s.0, (&mut byte as *mut u8).cast(), 1, 0);
        note!(log, "{rc}");
        let mut fd = libc::pollfd { fd: p.0, events: libc::POLLIN, revents: 99 };
        let rc = call!(log, lib, "poll", (*mut libc::pollfd, libc::nfds_t, c_int) -> c_int, &mut fd, 1, -1);
        note!(log, "{rc} {}", fd.revents);
        let mut word = 5u32;
        let rc = call!(log, lib, "syscall", (c_long, usize, usize, usize, usize, usize, usize) -> c_long,
            libc::SYS_futex, &mut word as *mut u32 as usize, (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize, 5, &ts(1000 * 1000 * MS) as *const _ as usize, 0, 0);
        note!(log, "{rc}");
        let mut set: libc::fd_set = unsafe { std::mem::zeroed() };
        unsafe { libc::FD_SET(p.0, &mut set) };
        let mut wait = libc::timeval { tv_sec: 1000, tv_usec: 0 };
        let rc = call!(log, lib, "select", (c_int, *mut libc::fd_set, *mut libc::fd_set, *mut libc::fd_set, *mut libc::timeval) -> c_int,
            p.0 + 1, &mut set, null_mut(), null_mut(), &mut wait);
        note!(
            log,
            "{rc} set {} left {}",
            unsafe { libc::FD_ISSET(p.0, &set) },
            (900..=1000).contains(&wait.tv_sec)
        );
        let path = temp("interrupted");
        let open = || unsafe {
            libc::open(path.as_ptr(), libc::O_CREAT | libc::O_RDWR | libc::O_CLOEXEC, 0o600)
        };
        let (one, other) = (open(), open());
        assert_eq!(unsafe { libc::flock(one, libc::LOCK_EX) }, 0);
        let rc = call!(log, lib, "flock", (c_int, c_int) -> c_int, other, libc::LOCK_EX);
        note!(log, "{rc}");
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = libc::F_WRLCK as i16;
        assert_eq!(unsafe { libc::fcntl(one, libc::F_OFD_SETLK, &mut lock) }, 0);
        let rc = call!(log, lib, "fcntl", (c_int, c_int, *mut libc::flock) -> c_int, other, libc::F_OFD_SETLKW, &mut lock);
        note!(log, "{rc}");
        unsafe {
            libc::close(one);
            libc::close(other);
            libc::unlink(path.as_ptr());
        }
    });
}

fn streams(lib: Lib, log: &mut String) {
    for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_SEQPACKET] {
        let s = pair(kind);
        let mut buf = [0u8; 16];
        let b: *mut c_void = buf.as_mut_ptr().cast();
        let rc = call!(log, lib, "send", (c_int, *const c_void, size_t, c_int) -> ssize_t, s.0, c"hello".as_ptr().cast(), 5, libc::MSG_NOSIGNAL);
        note!(log, "{rc}");
        let rc = call!(log, lib, "recv", (c_int, *mut c_void, size_t, c_int) -> ssize_t, s.1, b, 16, libc::MSG_PEEK);
        note!(log, "{rc} {buf:?}");
        let rc = call!(log, lib, "__recv_chk", (c_int, *mut c_void, size_t, size_t, c_int) -> ssize_t, s.1, b, 3, 16, 0);
        note!(log, "{rc} {buf:?}");
        let rc = call!(log, lib, "sendto", (c_int, *const c_void, size_t, c_int, *const libc::sockaddr, libc::socklen_t) -> ssize_t,
            s.0, c"world".as_ptr().cast(), 5, 0, null(), 0);
        note!(log, "{rc}");
        let mut from = [0u8; 64];
        let mut len = 64 as libc::socklen_t;
        let rc = call!(log, lib, "recvfrom", (c_int, *mut c_void, size_t, c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> ssize_t,
            s.1, b, 16, 0, from.as_mut_ptr().cast(), &mut len);
        note!(log, "{rc} {buf:?} {len}");
        feed(s.0, b"x");
        let rc = call!(log, lib, "__recvfrom_chk", (c_int, *mut c_void, size_t, size_t, c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> ssize_t,
            s.1, b, 16, 16, 0, null_mut(), null_mut());
        note!(log, "{rc}");
        // Nothing there: by flag, by time-out, by mode.
        let rc = call!(log, lib, "recv", (c_int, *mut c_void, size_t, c_int) -> ssize_t, s.1, b, 16, libc::MSG_DONTWAIT);
        note!(log, "{rc}");
        let wait = libc::timeval { tv_sec: 0, tv_usec: 5000 };
        unsafe {
            libc::setsockopt(
                s.1,
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                (&wait as *const libc::timeval).cast(),
                16,
            )
        };
        let began = Instant::now();
        let rc =
            call!(log, lib, "recv", (c_int, *mut c_void, size_t, c_int) -> ssize_t, s.1, b, 16, 0);
        note!(log, "{rc} long {}", began.elapsed() >= Duration::from_millis(4));
        unsafe { libc::fcntl(s.1, libc::F_SETFL, libc::O_NONBLOCK) };
        let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, s.1, b, 16);
        note!(log, "{rc}");
        let rc =
            call!(log, lib, "recv", (c_int, *mut c_void, size_t, c_int) -> ssize_t, s.1, b, 16, 0);
        note!(log, "{rc}");
        unsafe { libc::shutdown(s.0, libc::SHUT_WR) };
        let rc =
            call!(log, lib, "recv", (c_int, *mut c_void, size_t, c_int) -> ssize_t, s.1, b, 16, 0);
        note!(log, "{rc}");
        let rc = call!(log, lib, "send", (c_int, *const c_void, size_t, c_int) -> ssize_t, s.0, c"x".as_ptr().cast(), 1, libc::MSG_NOSIGNAL);
        note!(log, "{rc}");
    }
}

fn socket_errors(lib: Lib, log: &mut String) {
    let p = pipe(0);
    let mut buf = [0u8; 8];
    let b: *mut c_void = buf.as_mut_ptr().cast();
    for fd in [-1, 900, p.0] {
        let rc =
            call!(log, lib, "recv", (c_int, *mut c_void, size_t, c_int) -> ssize_t, fd, b, 8, 0);
        note!(log, "{rc}");
        let rc =
            call!(log, lib, "send", (c_int, *const c_void, size_t, c_int) -> ssize_t, fd, b, 8, 0);
        note!(log, "{rc}");
        let rc = call!(log, lib, "recvmsg", (c_int, *mut libc::msghdr, c_int) -> ssize_t, fd, &mut unsafe { std::mem::zeroed::<libc::msghdr>() }, 0);
        note!(log, "{rc}");
        let rc = call!(log, lib, "connect", (c_int, *const libc::sockaddr, libc::socklen_t) -> c_int, fd, b.cast(), 8);
        note!(log, "{rc}");
        let rc = call!(log, lib, "accept", (c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int, fd, null_mut(), null_mut());
        note!(log, "{rc}");
        let rc = call!(log, lib, "accept4", (c_int, *mut libc::sockaddr, *mut libc::socklen_t, c_int) -> c_int, fd, null_mut(), null_mut(), 0);
        note!(log, "{rc}");
    }
    // Not connected, not listening.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    let rc = call!(log, lib, "recv", (c_int, *mut c_void, size_t, c_int) -> ssize_t, fd, b, 8, 0);
    note!(log, "{rc}");
    let rc = call!(log, lib, "accept", (c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int, fd, null_mut(), null_mut());
    note!(log, "{rc}");
    unsafe { libc::close(fd) };
}

fn control_data(lib: Lib, log: &mut String) {
    let s = pair(libc::SOCK_STREAM);
    let p = pipe(0);
    let mut byte = *b"c";
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = [0u64; 8];
    unsafe {
        let mut m: libc::msghdr = std::mem::zeroed();
        m.msg_iov = &mut part;
        m.msg_iovlen = 1;
        m.msg_control = control.as_mut_ptr().cast();
        m.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let c = libc::CMSG_FIRSTHDR(&m);
        (*c).cmsg_level = libc::SOL_SOCKET;
        (*c).cmsg_type = libc::SCM_RIGHTS;
        (*c).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(c).cast::<c_int>().write_unaligned(p.1);
        let rc =
            call!(log, lib, "sendmsg", (c_int, *const libc::msghdr, c_int) -> ssize_t, s.0, &m, 0);
        note!(log, "{rc}");
        control = [0; 8];
        byte = *b"-";
        let mut m: libc::msghdr = std::mem::zeroed();
        m.msg_iov = &mut part;
        m.msg_iovlen = 1;
        m.msg_control = control.as_mut_ptr().cast();
        m.msg_controllen = 64;
        let rc = call!(log, lib, "recvmsg", (c_int, *mut libc::msghdr, c_int) -> ssize_t, s.1, &mut m, libc::MSG_CMSG_CLOEXEC);
        let c = libc::CMSG_FIRSTHDR(&m);
        let fd = libc::CMSG_DATA(c).cast::<c_int>().read_unaligned();
        note!(
            log,
            "{rc} {byte:?} control {} flags {} type {}",
            m.msg_controllen,
            m.msg_flags,
            (*c).cmsg_type
        );
        feed(fd, b"through");
        let mut buf = [0u8; 8];
        let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, p.0, buf.as_mut_ptr().cast(), 8);
        note!(log, "{rc} {buf:?}");
        libc::close(fd);
    }
}

fn many_messages(lib: Lib, log: &mut String) {
    let s = pair(libc::SOCK_DGRAM);
    let mut bytes = [*b"ab", *b"cd", *b"ef"];
    let mut parts: Vec<_> = bytes
        .iter_mut()
        .map(|b| libc::iovec { iov_base: b.as_mut_ptr().cast(), iov_len: 2 })
        .collect();
    let mut m: Vec<libc::mmsghdr> = parts
        .iter_mut()
        .map(|p| unsafe {
            let mut m: libc::mmsghdr = std::mem::zeroed();
            m.msg_hdr.msg_iov = p;
            m.msg_hdr.msg_iovlen = 1;
            m
        })
        .collect();
    let rc = call!(log, lib, "sendmmsg", (c_int, *mut libc::mmsghdr, c_uint, c_int) -> c_int, s.0, m.as_mut_ptr(), 2, 0);
    note!(log, "{rc} {:?}", m.iter().map(|m| m.msg_len).collect::<Vec<_>>());
    let rc = call!(log, lib, "recvmmsg", (c_int, *mut libc::mmsghdr, c_uint, c_int, *mut libc::timespec) -> c_int,
        s.1, m.as_mut_ptr(), 3, libc::MSG_WAITFORONE, null_mut());
    note!(log, "{rc} {:?}", m.iter().map(|m| m.msg_len).collect::<Vec<_>>());
    let rc = call!(log, lib, "recvmmsg", (c_int, *mut libc::mmsghdr, c_uint, c_int, *mut libc::timespec) -> c_int,
        s.1, m.as_mut_ptr(), 3, libc::MSG_DONTWAIT, null_mut());
    note!(log, "{rc} {bytes:?}");
}

fn connections(lib: Lib, log: &mut String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let listening = std::os::fd::AsRawFd::as_raw_fd(&listener);
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as u16;
    address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    address.sin_port = port.to_be();
    let at: *const libc::sockaddr = (&address as *const libc::sockaddr_in).cast();
    for nonblocking in [0, libc::SOCK_NONBLOCK] {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | nonblocking;
        let fd = call!(log, lib, "socket", (c_int, c_int, c_int) -> c_int, libc::AF_INET, kind, 0);
        let rc = call!(log, lib, "connect", (c_int, *const libc::sockaddr, libc::socklen_t) -> c_int, fd, at, 16);
        note!(log, "{rc}");
        let mut peer: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        let mut len = 16 as libc::socklen_t;
        let new = call!(log, lib, "accept4", (c_int, *mut libc::sockaddr, *mut libc::socklen_t, c_int) -> c_int,
            listening, (&mut peer as *mut libc::sockaddr_in).cast(), &mut len, libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
        note!(log, "{} family {} {len} flags {:o}", new >= 0, peer.sin_family, unsafe {
            libc::fcntl(new, libc::F_GETFL)
        });
        let rc = call!(log, lib, "connect", (c_int, *const libc::sockaddr, libc::socklen_t) -> c_int, fd, at, 16);
        note!(log, "{rc}");
        unsafe {
            libc::close(fd);
            libc::close(new);
        }
    }
    listener.set_nonblocking(true).unwrap();
    let rc = call!(log, lib, "accept", (c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int, listening, null_mut(), null_mut());
    note!(log, "{rc}");
    drop(listener);
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    let rc = call!(log, lib, "connect", (c_int, *const libc::sockaddr, libc::socklen_t) -> c_int, fd, at, 16);
    note!(log, "{rc}");
    unsafe { libc::close(fd) };
    let rc = call!(log, lib, "socket", (c_int, c_int, c_int) -> c_int, 77, 0, 0);
    note!(log, "{rc}");
}

fn readiness(lib: Lib, log: &mut String) {
    let (full, empty) = (pipe(0), pipe(0));
    feed(full.1, b"x");
    let fresh = || {
        [
            (full.0, libc::POLLIN),
            (empty.0, libc::POLLIN),
            (full.1, libc::POLLOUT),
            (901, libc::POLLIN),
            (-1, libc::POLLIN),
        ]
        .map(|(fd, events)| libc::pollfd { fd, events, revents: 0x55 })
    };
    let wait = ts(5 * MS);
    let bad = libc::timespec { tv_sec: -1, tv_nsec: 0 };
    let mut mask: libc::sigset_t = unsafe { std::mem::zeroed() };
    unsafe { libc::sigaddset(&mut mask, libc::SIGUSR2) };
    // All; only the empty one; none.
    for (from, to) in [(0, 5), (1, 2), (0, 0)] {
        for timeout in [0, 5] {
            let mut fds = fresh();
            let began = Instant::now();
            let rc = call!(log, lib, "poll", (*mut libc::pollfd, libc::nfds_t, c_int) -> c_int,
                fds[from..to].as_mut_ptr(), (to - from) as libc::nfds_t, timeout);
            note!(
                log,
                "{rc} {:?} long {}",
                fds.map(|f| f.revents),
                rc != 0 || timeout == 0 || began.elapsed() >= Duration::from_millis(5)
            );
            let mut fds = fresh();
            let rc = call!(log, lib, "__poll_chk", (*mut libc::pollfd, libc::nfds_t, c_int, size_t) -> c_int,
                fds[from..to].as_mut_ptr(), (to - from) as libc::nfds_t, timeout, (to - from) * 8);
            note!(log, "{rc} {:?}", fds.map(|f| f.revents));
        }
        for mask in [null(), &mask as *const libc::sigset_t] {
            for timeout in [&wait, &bad] {
                let mut fds = fresh();
                let rc = call!(log, lib, "ppoll", (*mut libc::pollfd, libc::nfds_t, *const libc::timespec, *const libc::sigset_t) -> c_int,
                    fds[from..to].as_mut_ptr(), (to - from) as libc::nfds_t, timeout, mask);
                note!(log, "{rc} {:?} wait {}", fds.map(|f| f.revents), timeout.tv_nsec);
                let mut fds = fresh();
                let rc = call!(log, lib, "__ppoll_chk", (*mut libc::pollfd, libc::nfds_t, *const libc::timespec, *const libc::sigset_t, size_t) -> c_int,
                    fds[from..to].as_mut_ptr(), (to - from) as libc::nfds_t, timeout, mask, (to - from) * 8);
                note!(log, "{rc} {:?}", fds.map(|f| f.revents));
            }
        }
    }
    let mut fds = fresh();
    let rc = call!(log, lib, "ppoll", (*mut libc::pollfd, libc::nfds_t, *const libc::timespec, *const libc::sigset_t) -> c_int,
        fds.as_mut_ptr(), 1, null(), null());
    note!(log, "{rc} {:?}", fds.map(|f| f.revents));
}

fn selects(lib: Lib, log: &mut String) {
    let (full, empty) = (pipe(0), pipe(0));
    feed(full.1, b"x");
    let n = 1 + full.0.max(full.1).max(empty.0).max(empty.1);
    let set = |fds: &[c_int]| unsafe {
        let mut set: libc::fd_set = std::mem::zeroed();
        fds.iter().for_each(|fd| libc::FD_SET(*fd, &mut set));
        // Far above `n`: must be left alone.
        libc::FD_SET(1000, &mut set);
        set
    };
    let show = |set: &libc::fd_set| -> Vec<c_int> {
        (0..1024).filter(|fd| unsafe { libc::FD_ISSET(*fd, set) }).collect()
    };
    let times = [Some((0, 5000)), Some((0, 0)), Some((-1, 0)), Some((0, -1)), Some((0, 1_005_000))];
    for (r, w) in
        [(vec![full.0, empty.0], vec![empty.1]), (vec![empty.0], vec![]), (vec![902], vec![])]
    {
        let n = if r == [902] { 903 } else { n };
        for time in times {
            let ready = r.contains(&full.0);
            if time == Some((0, 1_005_000)) && !ready {
                continue; // longer than this test has time for
            }
            let (mut rs, mut ws, mut es) = (set(&r), set(&w), set(&[]));
            let mut t = time.map(|(tv_sec, tv_usec)| libc::timeval { tv_sec, tv_usec });
            let rc = call!(log, lib, "select", (c_int, *mut libc::fd_set, *mut libc::fd_set, *mut libc::fd_set, *mut libc::timeval) -> c_int,
                n, &mut rs, &mut ws, &mut es, t.as_mut().map_or(null_mut(), |t| t));
            // The kernel leaves what is left of the time.
            let left = t.map(|t| (t.tv_sec > 0, t.tv_usec > 0));
            let left = if ready { None } else { left };
            note!(log, "{rc} {:?} {:?} {:?} {left:?}", show(&rs), show(&ws), show(&es));
            for mask in [None, Some(unsafe { std::mem::zeroed::<libc::sigset_t>() })] {
                let (mut rs, mut ws) = (set(&r), set(&w));
                let t = time.map(|(tv_sec, usec)| libc::timespec { tv_sec, tv_nsec: usec * 1000 });
                let rc = call!(log, lib, "pselect", (c_int, *mut libc::fd_set, *mut libc::fd_set, *mut libc::fd_set, *const libc::timespec, *const libc::sigset_t) -> c_int,
                    n, &mut rs, &mut ws, null_mut(), t.as_ref().map_or(null(), |t| t), mask.as_ref().map_or(null(), |m| m));
                note!(
                    log,
                    "{rc} {:?} {:?} {:?}",
                    show(&rs),
                    show(&ws),
                    t.map(|t| (t.tv_sec, t.tv_nsec))
                );
            }
        }
    }
    for n in [-1, 0] {
        let mut t = libc::timeval { tv_sec: 0, tv_usec: 1000 };
        let rc = call!(log, lib, "select", (c_int, *mut libc::fd_set, *mut libc::fd_set, *mut libc::fd_set, *mut libc::timeval) -> c_int,
            n, null_mut(), null_mut(), null_mut(), &mut t);
        note!(log, "{rc}");
    }
    // A set no longer than its descriptors need, with something else behind it.
    let words = (n as usize).div_ceil(64);
    let mut short = vec![0u64; words + 1];
    short[words] = 0x5a5a;
    short[full.0 as usize / 64] |= 1 << (full.0 % 64);
    let mut t = libc::timeval { tv_sec: 1, tv_usec: 0 };
    let rc = call!(log, lib, "select", (c_int, *mut libc::fd_set, *mut libc::fd_set, *mut libc::fd_set, *mut libc::timeval) -> c_int,
        n, short.as_mut_ptr().cast(), null_mut(), null_mut(), &mut t);
    note!(log, "{rc} {short:x?}");
}

fn epolls(lib: Lib, log: &mut String) {
    let p = pipe(0);
    for flags in [0, libc::EPOLL_CLOEXEC, 12345] {
        let fd = call!(log, lib, "epoll_create1", (c_int) -> c_int, flags);
        note!(log, "{} {}", fd >= 0, unsafe { libc::fcntl(fd, libc::F_GETFD) });
        if fd >= 0 {
            unsafe { libc::close(fd) };
        }
    }
    for size in [0, 1] {
        let fd = call!(log, lib, "epoll_create", (c_int) -> c_int, size);
        note!(log, "{}", fd >= 0);
        if fd >= 0 {
            unsafe { libc::close(fd) };
        }
    }
    let ep = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    let mut interest =
        libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLONESHOT) as u32, u64: 77 };
    unsafe { libc::epoll_ctl(ep, libc::EPOLL_CTL_ADD, p.0, &mut interest) };
    let mask: libc::sigset_t = unsafe { std::mem::zeroed() };
    for ready in [false, true] {
        for which in 0..4 {
            if ready && which == 0 {
                feed(p.1, b"x");
            }
            unsafe { libc::epoll_ctl(ep, libc::EPOLL_CTL_MOD, p.0, &mut interest) };
            let mut got = [libc::epoll_event { events: 0, u64: 1 }; 3];
            let began = Instant::now();
            let rc = match which {
                0 => {
                    call!(log, lib, "epoll_wait", (c_int, *mut libc::epoll_event, c_int, c_int) -> c_int, ep, got.as_mut_ptr(), 3, 5)
                }
                1 => {
                    call!(log, lib, "epoll_pwait", (c_int, *mut libc::epoll_event, c_int, c_int, *const libc::sigset_t) -> c_int, ep, got.as_mut_ptr(), 3, 5, null())
                }
                2 => {
                    call!(log, lib, "epoll_pwait", (c_int, *mut libc::epoll_event, c_int, c_int, *const libc::sigset_t) -> c_int, ep, got.as_mut_ptr(), 3, 5, &mask)
                }
                _ => {
                    call!(log, lib, "epoll_pwait2", (c_int, *mut libc::epoll_event, c_int, *const libc::timespec, *const libc::sigset_t) -> c_int,
                    ep, got.as_mut_ptr(), 3, &ts(5 * MS), null())
                }
            };
            let seen = got.map(|e| ({ e.events }, { e.u64 }));
            note!(
                log,
                "{rc} {seen:?} long {}",
                ready || began.elapsed() >= Duration::from_millis(5)
            );
        }
    }
    let mut got = [libc::epoll_event { events: 0, u64: 1 }; 3];
    for (fd, max) in [(-1, 3), (p.0, 3), (ep, 0), (ep, -1)] {
        let rc = call!(log, lib, "epoll_wait", (c_int, *mut libc::epoll_event, c_int, c_int) -> c_int, fd, got.as_mut_ptr(), max, 5);
        note!(log, "{rc}");
    }
    unsafe { libc::close(ep) };
}

fn names(lib: Lib, log: &mut String) {
    let long = CString::new("x".repeat(300)).unwrap();
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_socktype = libc::SOCK_STREAM;
    let mut numeric = hints;
    numeric.ai_flags = libc::AI_NUMERICHOST;
    let cases: [(Option<&CStr>, Option<&CStr>, Option<&libc::addrinfo>); 9] = [
        (Some(c"127.0.0.1"), Some(c"80"), Some(&hints)),
        (Some(c"::1"), None, Some(&hints)),
        (Some(c"localhost"), Some(c"80"), Some(&hints)),
        (Some(c"localhost"), None, None),
        (Some(c"localhost"), None, Some(&numeric)),
        (Some(&long), None, Some(&hints)),
        (Some(c""), None, Some(&hints)),
        (None, None, None),
        (None, Some(c"80"), Some(&hints)),
    ];
    for (node, service, hints) in cases {
        let mut found: *mut libc::addrinfo = null_mut();
        let rc = call!(log, lib, "getaddrinfo", (*const i8, *const i8, *const libc::addrinfo, *mut *mut libc::addrinfo) -> c_int,
            node.map_or(null(), |n| n.as_ptr()), service.map_or(null(), |s| s.as_ptr()), hints.map_or(null(), |h| h), &mut found);
        note!(log, "{rc}");
        let mut at = found;
        while rc == 0 && !at.is_null() {
            let a = unsafe { &*at };
            let bytes = unsafe {
                std::slice::from_raw_parts(a.ai_addr.cast::<u8>(), a.ai_addrlen as usize)
            };
            note!(log, "{} {bytes:?}", a.ai_family);
            at = a.ai_next;
        }
        if rc == 0 {
            unsafe { libc::freeaddrinfo(found) };
        }
    }
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as u16;
    address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    address.sin_port = 80u16.to_be();
    for (len, flags) in
        [(64, libc::NI_NUMERICHOST), (64, 0), (1, libc::NI_NUMERICHOST), (0, libc::NI_NUMERICSERV)]
    {
        let (mut host, mut service) = ([0i8; 64], [0i8; 64]);
        let rc = call!(log, lib, "getnameinfo", (*const libc::sockaddr, libc::socklen_t, *mut i8, libc::socklen_t, *mut i8, libc::socklen_t, c_int) -> c_int,
            (&address as *const libc::sockaddr_in).cast(), 16, host.as_mut_ptr(), len, service.as_mut_ptr(), 64, flags);
        note!(log, "{rc} {host:?} {service:?}");
    }
    let local = u32::from_ne_bytes([127, 0, 0, 1]);
    for which in 0..4 {
        let entry = match which {
            0 => {
                call!(log, lib, "gethostbyname", (*const i8) -> *mut libc::hostent, c"localhost".as_ptr())
            }
            1 => {
                call!(log, lib, "gethostbyname", (*const i8) -> *mut libc::hostent, c"10.1.2.3".as_ptr())
            }
            2 => {
                call!(log, lib, "gethostbyname2", (*const i8, c_int) -> *mut libc::hostent, c"localhost".as_ptr(), libc::AF_INET)
            }
            _ => {
                call!(log, lib, "gethostbyaddr", (*const c_void, libc::socklen_t, c_int) -> *mut libc::hostent, (&local as *const u32).cast(), 4, libc::AF_INET)
            }
        };
        if !entry.is_null() {
            let e = unsafe { &*entry };
            note!(log, "{:?} {} {}", unsafe { CStr::from_ptr(e.h_name) }, e.h_addrtype, e.h_length);
        }
    }
    for room in [4, 4096] {
        let mut entry: libc::hostent = unsafe { std::mem::zeroed() };
        let mut buf = vec![0i8; room];
        let mut found: *mut libc::hostent = null_mut();
        let mut error = 0;
        let rc = call!(log, lib, "gethostbyname_r", (*const i8, *mut libc::hostent, *mut i8, size_t, *mut *mut libc::hostent, *mut c_int) -> c_int,
            c"localhost".as_ptr(), &mut entry, buf.as_mut_ptr(), room, &mut found, &mut error);
        note!(log, "{rc} {} {error}", found.is_null());
        let rc = call!(log, lib, "gethostbyaddr_r", (*const c_void, libc::socklen_t, c_int, *mut libc::hostent, *mut i8, size_t, *mut *mut libc::hostent, *mut c_int) -> c_int,
            (&local as *const u32).cast(), 4, libc::AF_INET, &mut entry, buf.as_mut_ptr(), room, &mut found, &mut error);
        note!(log, "{rc} {} {error}", found.is_null());
    }
}

/// A child that ends with `code` after `millis`, in a process group of its own if asked.
fn child(code: c_int, millis: i64, group: bool) -> libc::pid_t {
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            if group {
                libc::setpgid(0, 0);
            }
            let t = ts(millis * MS);
            libc::nanosleep(&t, null_mut());
            libc::syscall(libc::SYS_exit_group, code);
        }
        assert!(pid > 0);
        if group {
            libc::setpgid(pid, pid);
        }
        if millis == 0 {
            // It has ended, and can still be waited for.
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, pid as u32, &mut info, libc::WEXITED | libc::WNOWAIT);
        }
        pid
    }
}

fn children(lib: Lib, log: &mut String) {
    for millis in [0, 20] {
        let mut status = 0x7777;
        let pid = child(3, millis, false);
        let rc = call!(log, lib, "waitpid", (libc::pid_t, *mut c_int, c_int) -> libc::pid_t, pid, &mut status, 0);
        note!(log, "{} {status:x}", rc == pid);
        let pid = child(4, millis, false);
        let rc = call!(log, lib, "wait", (*mut c_int) -> libc::pid_t, &mut status);
        note!(log, "{} {status:x}", rc == pid);
        let pid = child(5, millis, false);
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        usage.ru_maxrss = -1;
        let rc = call!(log, lib, "wait3", (*mut c_int, c_int, *mut libc::rusage) -> libc::pid_t, &mut status, 0, &mut usage);
        note!(log, "{} {status:x} {}", rc == pid, usage.ru_maxrss > 0);
        let pid = child(6, millis, true);
        usage.ru_maxrss = -1;
        let rc = call!(log, lib, "wait4", (libc::pid_t, *mut c_int, c_int, *mut libc::rusage) -> libc::pid_t, -pid, &mut status, 0, &mut usage);
        note!(log, "{} {status:x} {}", rc == pid, usage.ru_maxrss > 0);
        let pid = child(7, millis, false);
        let rc = call!(log, lib, "waitpid", (libc::pid_t, *mut c_int, c_int) -> libc::pid_t, 0, null_mut(), libc::WUNTRACED);
        note!(log, "{}", rc == pid);
        for kind in [libc::P_PID, libc::P_PGID, libc::P_ALL] {
            let pid = child(8, millis, kind == libc::P_PGID);
            let mut info: libc::siginfo_t = unsafe { std::mem::transmute([0x5au8; 128]) };
            let id = if kind == libc::P_ALL { 0 } else { pid as libc::id_t };
            let rc = call!(log, lib, "waitid", (c_uint, libc::id_t, *mut libc::siginfo_t, c_int) -> c_int, kind, id, &mut info, libc::WEXITED);
            let rest: [u8; 128] = unsafe { std::mem::transmute(info) };
            note!(
                log,
                "{rc} {} {} {} {} {} rest {:?}",
                info.si_signo,
                info.si_errno,
                info.si_code,
                unsafe { info.si_pid() } == pid,
                unsafe { info.si_status() },
                &rest[28..]
            );
        }
        let pid = child(9, millis, false);
        let rc = call!(log, lib, "waitid", (c_uint, libc::id_t, *mut libc::siginfo_t, c_int) -> c_int, libc::P_PID, pid as u32, null_mut(), libc::WEXITED);
        note!(log, "{rc}");
    }
    // Stopped and continued, killed.
    let pid = child(1, 100_000, false);
    let mut status = 0;
    unsafe { libc::kill(pid, libc::SIGSTOP) };
    let rc = call!(log, lib, "waitpid", (libc::pid_t, *mut c_int, c_int) -> libc::pid_t, pid, &mut status, libc::WUNTRACED);
    note!(log, "{} {status:x}", rc == pid);
    let rc = call!(log, lib, "waitpid", (libc::pid_t, *mut c_int, c_int) -> libc::pid_t, pid, &mut status, libc::WNOHANG);
    note!(log, "{rc} {status:x}");
    unsafe { libc::kill(pid, libc::SIGCONT) };
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let rc = call!(log, lib, "waitid", (c_uint, libc::id_t, *mut libc::siginfo_t, c_int) -> c_int, libc::P_PID, pid as u32, &mut info, libc::WCONTINUED);
    note!(log, "{rc} {} {}", info.si_code, unsafe { info.si_status() });
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let rc = call!(log, lib, "waitid", (c_uint, libc::id_t, *mut libc::siginfo_t, c_int) -> c_int, libc::P_PID, pid as u32, &mut info, libc::WEXITED | libc::WNOHANG);
    note!(log, "{rc} {}", unsafe { info.si_pid() });
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let rc = call!(log, lib, "waitpid", (libc::pid_t, *mut c_int, c_int) -> libc::pid_t, -1, &mut status, libc::__WALL);
    note!(log, "{} {status:x}", rc == pid);
}

fn child_errors(lib: Lib, log: &mut String) {
    let mut status = 0x7777;
    for (pid, options) in
        [(-1, 0), (999_999, 0), (-999_999, 0), (-1, libc::WNOHANG), (-1, 0x4000), (i32::MIN, 0)]
    {
        let rc = call!(log, lib, "waitpid", (libc::pid_t, *mut c_int, c_int) -> libc::pid_t, pid, &mut status, options);
        note!(log, "{rc} {status:x}");
    }
    let rc = call!(log, lib, "wait", (*mut c_int) -> libc::pid_t, null_mut());
    note!(log, "{rc}");
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    for (kind, options) in [(libc::P_ALL, libc::WEXITED), (libc::P_ALL, 0), (99, libc::WEXITED)] {
        let rc = call!(log, lib, "waitid", (c_uint, libc::id_t, *mut libc::siginfo_t, c_int) -> c_int, kind, 0, &mut info, options);
        note!(log, "{rc}");
    }
}

fn shell(lib: Lib, log: &mut String) {
    for command in [Some(c"exit 3"), Some(c"kill -9 $$"), None] {
        let rc =
            call!(log, lib, "system", (*const i8) -> c_int, command.map_or(null(), |c| c.as_ptr()));
        note!(log, "{rc:x}");
    }
    let f = call!(log, lib, "popen", (*const i8, *const i8) -> *mut libc::FILE, c"echo out; exit 5".as_ptr(), c"r".as_ptr());
    let mut line = [0i8; 16];
    unsafe { libc::fgets(line.as_mut_ptr(), 16, f) };
    let rc = call!(log, lib, "pclose", (*mut libc::FILE) -> c_int, f);
    note!(log, "{line:?} {rc:x}");
    let f = call!(log, lib, "popen", (*const i8, *const i8) -> *mut libc::FILE, c"x".as_ptr(), c"nonsense".as_ptr());
    note!(log, "{}", f.is_null());
}

extern "C" fn returns(arg: *mut c_void) -> *mut c_void {
    let millis = arg as usize as i64 % 1000;
    if millis > 0 {
        std::thread::sleep(Duration::from_millis(millis as u64));
    }
    (arg as usize + 1) as *mut c_void
}

extern "C" fn leaves(arg: *mut c_void) -> *mut c_void {
    unsafe { libc::pthread_exit(arg) }
}

fn joins(lib: Lib, log: &mut String) {
    type Start = extern "C" fn(*mut c_void) -> *mut c_void;
    let start = |log: &mut String, f: Start, arg: usize| {
        let mut thread: libc::pthread_t = 0;
        let rc = call!(log, lib, "pthread_create", (*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> c_int,
            &mut thread, null(), f, arg as *mut c_void);
        note!(log, "{rc}");
        thread
    };
    for millis in [0, 10] {
        let thread = start(log, returns, 5000 + millis);
        let mut value = std::ptr::without_provenance_mut::<c_void>(1);
        let rc = call!(log, lib, "pthread_join", (libc::pthread_t, *mut *mut c_void) -> c_int, thread, &mut value);
        note!(log, "{rc} {value:?}");
        let thread = start(log, returns, 6000 + millis);
        let mut until = ts(0);
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut until) };
        until.tv_sec += 1000;
        let rc = call!(log, lib, "pthread_timedjoin_np", (libc::pthread_t, *mut *mut c_void, *const libc::timespec) -> c_int, thread, &mut value, &until);
        note!(log, "{rc} {value:?}");
    }
    let thread = start(log, leaves, 7000);
    let mut value = null_mut();
    let rc = call!(log, lib, "pthread_join", (libc::pthread_t, *mut *mut c_void) -> c_int, thread, &mut value);
    note!(log, "{rc} {value:?}");
    let thread = start(log, returns, 8100);
    let rc = call!(log, lib, "pthread_timedjoin_np", (libc::pthread_t, *mut *mut c_void, *const libc::timespec) -> c_int, thread, &mut value, &ts(MS));
    note!(log, "{rc} {value:?}");
    let rc = call!(log, lib, "pthread_join", (libc::pthread_t, *mut *mut c_void) -> c_int, thread, null_mut());
    note!(log, "{rc}");
    let me = unsafe { libc::pthread_self() };
    let rc = call!(log, lib, "pthread_join", (libc::pthread_t, *mut *mut c_void) -> c_int, me, null_mut());
    note!(log, "{}", rc != 0);
    unsafe {
        let mut barrier: libc::pthread_barrier_t = std::mem::zeroed();
        libc::pthread_barrier_init(&mut barrier, null(), 1);
        let rc = call!(log, lib, "pthread_barrier_wait", (*mut libc::pthread_barrier_t) -> c_int, &mut barrier);
        note!(log, "{rc}");
        libc::pthread_barrier_destroy(&mut barrier);
    }
}

fn file(name: &str, content: &[u8]) -> (CString, c_int) {
    let path = temp(name);
    let fd = unsafe {
        libc::open(
            path.as_ptr(),
            libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC,
            0o600,
        )
    };
    assert!(fd >= 0);
    feed(fd, content);
    unsafe { libc::lseek(fd, 0, libc::SEEK_SET) };
    (path, fd)
}

fn remove(file: (CString, c_int)) {
    unsafe {
        libc::close(file.1);
        libc::unlink(file.0.as_ptr());
    }
}

fn disk(lib: Lib, log: &mut String) {
    let f = file("disk", b"content");
    let p = pipe(0);
    for fd in [f.1, p.0, -1] {
        let rc = call!(log, lib, "fsync", (c_int) -> c_int, fd);
        note!(log, "{rc}");
        let rc = call!(log, lib, "fdatasync", (c_int) -> c_int, fd);
        note!(log, "{rc}");
        let rc = call!(log, lib, "sync_file_range", (c_int, i64, i64, c_uint) -> c_int, fd, 0, 4, libc::SYNC_FILE_RANGE_WRITE);
        note!(log, "{rc}");
    }
    let rc = call!(log, lib, "syncfs", (c_int) -> c_int, -1);
    note!(log, "{rc}");
    unsafe {
        let at = libc::mmap(
            null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            f.1,
            0,
        );
        for (at, flags) in [
            (at, libc::MS_SYNC),
            (at, libc::MS_ASYNC),
            (at, 999),
            (4096 as *mut c_void, libc::MS_SYNC),
        ] {
            let rc =
                call!(log, lib, "msync", (*mut c_void, size_t, c_int) -> c_int, at, 4096, flags);
            note!(log, "{rc}");
        }
        libc::munmap(at, 4096);
    }
    remove(f);
}

fn transfers(lib: Lib, log: &mut String) {
    let f = file("transfers", b"0123456789");
    let p = pipe(libc::O_NONBLOCK);
    let directory = unsafe { libc::open(c"/".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    let write_only = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    for fd in [f.1, p.0, -1, 903, directory, write_only] {
        let (mut a, mut b) = ([0u8; 4], [0u8; 4]);
        let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, fd, a.as_mut_ptr().cast(), 4);
        note!(log, "{rc} {a:?}");
        let rc = call!(log, lib, "__read_chk", (c_int, *mut c_void, size_t, size_t) -> ssize_t, fd, a.as_mut_ptr().cast(), 2, 4);
        note!(log, "{rc} {a:?}");
        let parts = [
            libc::iovec { iov_base: a.as_mut_ptr().cast(), iov_len: 3 },
            libc::iovec { iov_base: b.as_mut_ptr().cast(), iov_len: 4 },
        ];
        let rc = call!(log, lib, "readv", (c_int, *const libc::iovec, c_int) -> ssize_t, fd, parts.as_ptr(), 2);
        note!(log, "{rc} {a:?} {b:?}");
        let rc = call!(log, lib, "readv", (c_int, *const libc::iovec, c_int) -> ssize_t, fd, parts.as_ptr(), -1);
        note!(log, "{rc}");
        let rc = call!(log, lib, "write", (c_int, *const c_void, size_t) -> ssize_t, fd, c"wxyz".as_ptr().cast(), 4);
        note!(log, "{rc}");
        let rc = call!(log, lib, "writev", (c_int, *const libc::iovec, c_int) -> ssize_t, fd, parts.as_ptr(), 2);
        note!(log, "{rc} at {}", unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) });
    }
    let rc = call!(log, lib, "write", (c_int, *const c_void, size_t) -> ssize_t, p.1, c"wxyz".as_ptr().cast(), 4);
    note!(log, "{rc}");
    unsafe {
        libc::close(directory);
        libc::close(write_only);
    }
    remove(f);
}

fn partial(lib: Lib, log: &mut String) {
    let big = vec![7u8; 1 << 20];
    for s in [pipe(libc::O_NONBLOCK), pair(libc::SOCK_STREAM | libc::SOCK_NONBLOCK)] {
        let rc = call!(log, lib, "write", (c_int, *const c_void, size_t) -> ssize_t, s.1, big.as_ptr().cast(), big.len());
        note!(log, "{rc}");
        let rc = call!(log, lib, "write", (c_int, *const c_void, size_t) -> ssize_t, s.1, big.as_ptr().cast(), big.len());
        note!(log, "{rc}");
        let mut room = vec![0u8; 1 << 20];
        let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, s.0, room.as_mut_ptr().cast(), room.len());
        note!(log, "{rc}");
    }
    // A blocking sender with a reader.
    let s = pair(libc::SOCK_STREAM);
    let from = s.0;
    let reader = std::thread::spawn(move || {
        let (mut room, mut total) = (vec![0u8; 1 << 16], 0);
        loop {
            match unsafe { libc::read(from, room.as_mut_ptr().cast(), room.len()) } {
                n if n > 0 => total += n,
                _ => return total,
            }
        }
    });
    let rc = call!(log, lib, "send", (c_int, *const c_void, size_t, c_int) -> ssize_t, s.1, big.as_ptr().cast(), big.len(), 0);
    unsafe { libc::shutdown(s.1, libc::SHUT_WR) };
    note!(log, "{rc} {}", reader.join().unwrap());
}

fn positioned(lib: Lib, log: &mut String) {
    let f = file("positioned", b"0123456789");
    let p = pipe(libc::O_NONBLOCK);
    for fd in [f.1, p.0, -1] {
        for at in [3i64, -1, 1 << 33] {
            let mut buf = [0u8; 8];
            let b: *mut c_void = buf.as_mut_ptr().cast();
            let part = libc::iovec { iov_base: b, iov_len: 4 };
            macro_rules! plain {
                ($($name:literal)*) => {$(
                    let rc = call!(log, lib, $name, (c_int, *mut c_void, size_t, i64) -> ssize_t, fd, b, 4, at);
                    note!(log, "{rc} {buf:?}");
                )*};
            }
            macro_rules! checked {
                ($($name:literal)*) => {$(
                    let rc = call!(log, lib, $name, (c_int, *mut c_void, size_t, i64, size_t) -> ssize_t, fd, b, 4, at, 8);
                    note!(log, "{rc} {buf:?}");
                )*};
            }
            macro_rules! vectored {
                ($($name:literal)*) => {$(
                    let rc = call!(log, lib, $name, (c_int, *const libc::iovec, c_int, i64) -> ssize_t, fd, &part, 1, at);
                    note!(log, "{rc} {buf:?}");
                )*};
            }
            macro_rules! flagged {
                ($($name:literal)*) => {$(
                    for flags in [0, libc::RWF_HIPRI, 0x4000_0000] {
                        let rc = call!(log, lib, $name, (c_int, *const libc::iovec, c_int, i64, c_int) -> ssize_t, fd, &part, 1, at, flags);
                        note!(log, "{rc} {buf:?}");
                    }
                )*};
            }
            plain!("pread" "pread64" "pwrite" "pwrite64");
            checked!("__pread_chk" "__pread64_chk");
            vectored!("preadv" "preadv64" "pwritev" "pwritev64");
            flagged!("preadv2" "preadv64v2" "pwritev2" "pwritev64v2");
            let size = unsafe { libc::lseek(fd, 0, libc::SEEK_END) };
            note!(log, "size {size}");
            if fd == f.1 {
                unsafe { libc::ftruncate(fd, 10) };
            }
        }
    }
    remove(f);
}

fn between_files(lib: Lib, log: &mut String) {
    let a = file("between-a", b"0123456789");
    let b = file("between-b", b"");
    let p = pipe(libc::O_NONBLOCK);
    let s = pair(libc::SOCK_STREAM | libc::SOCK_NONBLOCK);
    for name in ["sendfile", "sendfile64"] {
        let mut at = 2i64;
        let rc = match name {
            "sendfile" => {
                call!(log, lib, "sendfile", (c_int, c_int, *mut i64, size_t) -> ssize_t, s.0, a.1, &mut at, 4)
            }
            _ => {
                call!(log, lib, "sendfile64", (c_int, c_int, *mut i64, size_t) -> ssize_t, s.0, a.1, &mut at, 4)
            }
        };
        note!(log, "{rc} {at}");
    }
    let rc = call!(log, lib, "sendfile", (c_int, c_int, *mut i64, size_t) -> ssize_t, s.0, -1, null_mut(), 4);
    note!(log, "{rc}");
    let rc = call!(log, lib, "splice", (c_int, *mut i64, c_int, *mut i64, size_t, c_uint) -> ssize_t, p.0, null_mut(), s.0, null_mut(), 4, 0);
    note!(log, "{rc}");
    let mut at = 5i64;
    let rc = call!(log, lib, "splice", (c_int, *mut i64, c_int, *mut i64, size_t, c_uint) -> ssize_t, a.1, &mut at, p.1, null_mut(), 3, 0);
    note!(log, "{rc} {at}");
    let rc = call!(log, lib, "splice", (c_int, *mut i64, c_int, *mut i64, size_t, c_uint) -> ssize_t, a.1, null_mut(), b.1, null_mut(), 3, 0);
    note!(log, "{rc}");
    let (mut from, mut to) = (1i64, 0i64);
    let rc = call!(log, lib, "copy_file_range", (c_int, *mut i64, c_int, *mut i64, size_t, c_uint) -> ssize_t, a.1, &mut from, b.1, &mut to, 6, 0);
    note!(log, "{rc} {from} {to}");
    let rc = call!(log, lib, "copy_file_range", (c_int, *mut i64, c_int, *mut i64, size_t, c_uint) -> ssize_t, p.0, null_mut(), b.1, null_mut(), 6, 0);
    note!(log, "{rc}");
    remove(a);
    remove(b);
}

/// What a descriptor is, for the log, and gone.
fn describe(fd: c_int) -> String {
    if fd < 0 {
        return fd.to_string();
    }
    unsafe {
        let mut st: libc::stat = std::mem::zeroed();
        libc::fstat(fd, &mut st);
        let text = format!(
            "mode {:o} flags {:o} {}",
            st.st_mode,
            libc::fcntl(fd, libc::F_GETFL),
            libc::fcntl(fd, libc::F_GETFD)
        );
        libc::close(fd);
        text
    }
}

fn opens(lib: Lib, log: &mut String) {
    let path = temp("open");
    let directory = CString::new(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = unsafe { libc::open(directory.as_ptr(), libc::O_DIRECTORY | libc::O_CLOEXEC) };
    let name = CString::new(path.to_str().unwrap().rsplit('/').next().unwrap()).unwrap();
    let create = libc::O_CREAT | libc::O_RDWR;
    for mask in [0o022, 0o077] {
        let before = unsafe { libc::umask(mask) };
        for (flags, mode) in [
            (create | libc::O_EXCL, 0o666),
            (create | libc::O_EXCL, 0o777),
            (create | libc::O_EXCL | libc::O_CLOEXEC | libc::O_APPEND, 0o4751),
            (libc::O_RDONLY, 0o777),
            (libc::O_DIRECTORY | libc::O_TMPFILE | libc::O_RDWR, 0o640),
        ] {
            macro_rules! plain {
                ($($name:literal)*) => {$(
                    let path = if flags & libc::O_TMPFILE == libc::O_TMPFILE { &directory } else { &path };
                    let fd = call!(log, lib, $name, (*const i8, c_int, libc::mode_t) -> c_int, path.as_ptr(), flags, mode);
                    note!(log, "{}", describe(fd));
                    unsafe { libc::unlink(path.as_ptr()) };
                )*};
            }
            plain!("open" "open64");
            macro_rules! relative {
                ($($function:literal)*) => {$(
                    let fd = call!(log, lib, $function, (c_int, *const i8, c_int, libc::mode_t) -> c_int, at, name.as_ptr(), flags, mode);
                    note!(log, "{}", describe(fd));
                    unsafe { libc::unlink(path.as_ptr()) };
                )*};
            }
            if flags & libc::O_TMPFILE != libc::O_TMPFILE {
                relative!("openat" "openat64");
            }
        }
        macro_rules! created {
            ($($name:literal)*) => {$(
                let fd = call!(log, lib, $name, (*const i8, libc::mode_t) -> c_int, path.as_ptr(), 0o666);
                note!(log, "{}", describe(fd));
                unsafe { libc::unlink(path.as_ptr()) };
            )*};
        }
        created!("creat" "creat64");
        unsafe { libc::umask(before) };
    }
    for (path, flags) in [
        (c"/", libc::O_RDWR),
        (c"/no/such", libc::O_RDONLY),
        (c"", libc::O_RDONLY),
        (c"/dev/null/x", 0),
        (c"/proc/self/status", libc::O_WRONLY | libc::O_TRUNC),
    ] {
        let fd = call!(log, lib, "open", (*const i8, c_int, libc::mode_t) -> c_int, path.as_ptr(), flags, 0);
        note!(log, "{}", fd < 0);
        if fd >= 0 {
            unsafe { libc::close(fd) };
        }
    }
    let fd = call!(log, lib, "openat", (c_int, *const i8, c_int, libc::mode_t) -> c_int, -5, c"x".as_ptr(), 0, 0);
    note!(log, "{fd}");
    unsafe { libc::close(at) };
}

fn opens_checked(lib: Lib, log: &mut String) {
    let fd = call!(log, lib, "__open_2", (*const i8, c_int) -> c_int, c"/".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
    note!(log, "{}", describe(fd));
    let fd = call!(log, lib, "__open64_2", (*const i8, c_int) -> c_int, c"/no/such".as_ptr(), libc::O_RDONLY);
    note!(log, "{}", describe(fd));
    let fd = call!(log, lib, "__openat_2", (c_int, *const i8, c_int) -> c_int, libc::AT_FDCWD, c"/".as_ptr(), libc::O_RDONLY);
    note!(log, "{}", describe(fd));
    let fd = call!(log, lib, "__openat64_2", (c_int, *const i8, c_int) -> c_int, -5, c"x".as_ptr(), libc::O_RDONLY);
    note!(log, "{}", describe(fd));
}

fn c_streams(lib: Lib, log: &mut String) {
    let path = temp("stream");
    for mode in [c"w", c"r", c"a", c"r+", c"wx", c"re", c"w+e", c"nonsense"] {
        for which in [0, 1] {
            let f = if which == 0 {
                call!(log, lib, "fopen", (*const i8, *const i8) -> *mut libc::FILE, path.as_ptr(), mode.as_ptr())
            } else {
                call!(log, lib, "fopen64", (*const i8, *const i8) -> *mut libc::FILE, path.as_ptr(), mode.as_ptr())
            };
            note!(log, "{mode:?} {}", f.is_null());
            if f.is_null() {
                continue;
            }
            unsafe {
                libc::fputs(c"line".as_ptr(), f);
                let fd = libc::fileno(f);
                note!(
                    log,
                    "{:o} {}",
                    libc::fcntl(fd, libc::F_GETFL),
                    libc::fcntl(fd, libc::F_GETFD)
                );
            }
            let rc = call!(log, lib, "fclose", (*mut libc::FILE) -> c_int, f);
            note!(log, "{rc} {:?}", std::fs::read(path.to_str().unwrap()).map(|c| c.len()));
        }
    }
    for which in [0, 1] {
        let f = unsafe { libc::fopen(path.as_ptr(), c"r".as_ptr()) };
        let g = if which == 0 {
            call!(log, lib, "freopen", (*const i8, *const i8, *mut libc::FILE) -> *mut libc::FILE, c"/dev/null".as_ptr(), c"r".as_ptr(), f)
        } else {
            call!(log, lib, "freopen64", (*const i8, *const i8, *mut libc::FILE) -> *mut libc::FILE, c"/no/such".as_ptr(), c"r".as_ptr(), f)
        };
        note!(log, "{}", g == f);
        if !g.is_null() {
            unsafe { libc::fclose(g) };
        }
    }
    let d = unsafe { libc::opendir(c"/".as_ptr()) };
    let rc = call!(log, lib, "closedir", (*mut libc::DIR) -> c_int, d);
    note!(log, "{rc}");
    unsafe { libc::unlink(path.as_ptr()) };
}

fn infrastructure(lib: Lib, log: &mut String) {
    let f = file("infrastructure", b"0123456789");
    let p = pipe(0);
    let new = call!(log, lib, "dup", (c_int) -> c_int, f.1);
    note!(log, "{}", describe(new));
    let new = call!(log, lib, "dup2", (c_int, c_int) -> c_int, f.1, 700);
    note!(log, "{new} {}", describe(new));
    let new = call!(log, lib, "dup2", (c_int, c_int) -> c_int, f.1, f.1);
    note!(log, "{}", new == f.1);
    let new = call!(log, lib, "dup3", (c_int, c_int, c_int) -> c_int, f.1, 701, libc::O_CLOEXEC);
    note!(log, "{new} {}", describe(new));
    for fd in [-1, 905] {
        let rc = call!(log, lib, "dup", (c_int) -> c_int, fd);
        note!(log, "{rc}");
        let rc = call!(log, lib, "dup2", (c_int, c_int) -> c_int, fd, 700);
        note!(log, "{rc}");
        let rc = call!(log, lib, "dup3", (c_int, c_int, c_int) -> c_int, f.1, f.1, 0);
        note!(log, "{rc}");
        let rc = call!(log, lib, "close", (c_int) -> c_int, fd);
        note!(log, "{rc}");
    }
    let _ = &p;
    for fd in [710, 711, 712] {
        unsafe { libc::dup2(f.1, fd) };
    }
    let rc = call!(log, lib, "close_range", (c_uint, c_uint, c_int) -> c_int, 711, 711, 0);
    note!(log, "{rc} {:?}", [710, 711, 712].map(|fd| unsafe { libc::fcntl(fd, libc::F_GETFD) }));
    let rc = call!(log, lib, "close_range", (c_uint, c_uint, c_int) -> c_int, 5, 4, 0);
    note!(log, "{rc}");
    let rc = call!(log, lib, "close_range", (c_uint, c_uint, c_int) -> c_int, 700, !0, libc::CLOSE_RANGE_CLOEXEC as c_int);
    note!(log, "{rc} {:?}", [710, 711, 712].map(|fd| unsafe { libc::fcntl(fd, libc::F_GETFD) }));
    call!(log, lib, "closefrom", (c_int) -> (), 700);
    note!(log, "{:?}", [710, 711, 712].map(|fd| unsafe { libc::fcntl(fd, libc::F_GETFD) }));
    for which in 0..2 {
        let mut control = |fd: c_int, command: c_int, arg: usize| {
            let rc = if which == 0 {
                call!(log, lib, "fcntl", (c_int, c_int, c_ulong) -> c_int, fd, command, arg as c_ulong)
            } else {
                call!(log, lib, "fcntl64", (c_int, c_int, c_ulong) -> c_int, fd, command, arg as c_ulong)
            };
            note!(log, "{command}: {rc}");
            rc
        };
        let new = control(f.1, libc::F_DUPFD, 720);
        unsafe { libc::close(new) };
        let new = control(f.1, libc::F_DUPFD_CLOEXEC, 720);
        unsafe { libc::close(new) };
        control(f.1, libc::F_DUPFD, usize::MAX >> 33);
        control(p.0, libc::F_SETFL, libc::O_NONBLOCK as usize);
        control(p.0, libc::F_GETFL, 0);
        control(p.0, libc::F_SETFL, 0);
        control(f.1, libc::F_SETFD, 0);
        control(f.1, libc::F_SETFD, libc::FD_CLOEXEC as usize);
        let mut lock = libc::flock {
            l_type: libc::F_WRLCK as i16,
            l_whence: 0,
            l_start: 2,
            l_len: 3,
            l_pid: 9,
        };
        control(f.1, libc::F_SETLK, &lock as *const _ as usize);
        control(f.1, libc::F_GETLK, &mut lock as *mut _ as usize);
        control(f.1, libc::F_SETLKW, &lock as *const _ as usize);
        control(-1, libc::F_GETFL, 0);
        control(f.1, 9999, 0);
        control(p.0, libc::F_SETPIPE_SZ, 8192);
        note!(log, "{} {} {}", lock.l_type, lock.l_start, lock.l_pid);
    }
    feed(p.1, b"abc");
    let mut n = -1;
    let rc = call!(log, lib, "ioctl", (c_int, c_ulong, c_ulong) -> c_int, p.0, libc::FIONREAD, &mut n as *mut c_int as c_ulong);
    note!(log, "{rc} {n}");
    let on = 1;
    let rc = call!(log, lib, "ioctl", (c_int, c_ulong, c_ulong) -> c_int, p.0, libc::FIONBIO, &on as *const c_int as c_ulong);
    note!(log, "{rc} {:o}", unsafe { libc::fcntl(p.0, libc::F_GETFL) });
    let rc = call!(log, lib, "ioctl", (c_int, c_ulong, c_ulong) -> c_int, p.0, libc::TCGETS, &mut [0u8; 256] as *mut _ as c_ulong);
    note!(log, "{rc}");
    let mut fds = [0; 2];
    for kind in [libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 99] {
        let rc = call!(log, lib, "socketpair", (c_int, c_int, c_int, *mut c_int) -> c_int, libc::AF_UNIX, kind, 0, fds.as_mut_ptr());
        note!(log, "{rc}");
        if rc == 0 {
            note!(log, "{} {}", describe(fds[0]), describe(fds[1]));
        }
    }
    remove(f);
}

fn syscalls(lib: Lib, log: &mut String) {
    let mut raw = |number: c_long, a: [usize; 6]| {
        let rc = call!(log, lib, "syscall", (c_long, usize, usize, usize, usize, usize, usize) -> c_long, number, a[0], a[1], a[2], a[3], a[4], a[5]);
        rc
    };
    assert_eq!(raw(libc::SYS_getpid, [0; 6]), std::process::id() as c_long);
    let mut word = 5u32;
    let at = &mut word as *mut u32 as usize;
    let short = ts(3 * MS);
    let until = &short as *const _ as usize;
    let mut results = Vec::new();
    let private = libc::FUTEX_PRIVATE_FLAG as usize;
    results.push(raw(libc::SYS_futex, [at, libc::FUTEX_WAIT as usize | private, 4, 0, 0, 0]));
    results.push(raw(libc::SYS_futex, [at, libc::FUTEX_WAIT as usize | private, 5, until, 0, 0]));
    results.push(raw(
        libc::SYS_futex,
        [at, libc::FUTEX_WAIT_BITSET as usize | private, 5, until, 0, usize::MAX],
    ));
    results.push(raw(libc::SYS_futex, [at, libc::FUTEX_WAKE as usize | private, 1, 0, 0, 0]));
    results.push(raw(libc::SYS_futex, [at, 77, 1, 0, 0, 0]));
    results.push(raw(libc::SYS_futex, [at + 1, libc::FUTEX_WAIT as usize, 5, 0, 0, 0]));
    results.push(raw(99_999, [0; 6]));
    results.push(raw(libc::SYS_pidfd_open, [usize::MAX, 0, 0, 0, 0, 0]));
    let fd = raw(libc::SYS_pidfd_open, [std::process::id() as usize, 0, 0, 0, 0, 0]);
    results.push((fd >= 0) as c_long);
    // Numbers that no other thread of this process gets: they are closed twice.
    let new = raw(libc::SYS_dup2, [fd as usize, 740, 0, 0, 0, 0]);
    let high = raw(libc::SYS_dup3, [fd as usize, 741, libc::O_CLOEXEC as usize, 0, 0, 0]);
    results.push(new);
    results.push(raw(libc::SYS_fcntl, [new as usize, libc::F_GETFD as usize, 0, 0, 0, 0]));
    results.push(raw(libc::SYS_close, [new as usize, 0, 0, 0, 0, 0]));
    results.push(raw(libc::SYS_close, [new as usize, 0, 0, 0, 0, 0]));
    results.push(raw(libc::SYS_close_range, [high as usize, high as usize, 0, 0, 0, 0]));
    results.push(raw(libc::SYS_close, [high as usize, 0, 0, 0, 0, 0]));
    unsafe { libc::close(fd as c_int) };
    // Six arguments that are all used.
    let p = pipe(0);
    feed(p.1, b"x");
    let mut set: libc::fd_set = unsafe { std::mem::zeroed() };
    unsafe { libc::FD_SET(p.0, &mut set) };
    let mask: libc::sigset_t = unsafe { std::mem::zeroed() };
    let sized = [&mask as *const _ as usize, 8];
    results.push(raw(
        libc::SYS_pselect6,
        [p.0 as usize + 1, &mut set as *mut _ as usize, 0, 0, until, sized.as_ptr() as usize],
    ));
    results.push(raw(
        libc::SYS_pselect6,
        [0, 0, 0, 0, until, [&mask as *const _ as usize, 9].as_ptr() as usize],
    ));
    note!(log, "{results:?}");
}

fn random_bytes(lib: Lib, log: &mut String) {
    let mut buf = [0u8; 64];
    let b: *mut c_void = buf.as_mut_ptr().cast();
    for (len, flags) in [(64, 0), (64, libc::GRND_NONBLOCK), (0, 0), (8, 1 << 20)] {
        let rc =
            call!(log, lib, "getrandom", (*mut c_void, size_t, c_uint) -> ssize_t, b, len, flags);
        note!(log, "{rc} {}", buf.iter().any(|b| *b != 0));
    }
}

fn bad_pointers(lib: Lib, log: &mut String) {
    let bad = std::ptr::without_provenance::<i8>(1);
    let rc = call!(log, lib, "open", (*const i8, c_int, libc::mode_t) -> c_int, bad, 0, 0);
    note!(log, "{rc}");
    let rc = call!(log, lib, "nanosleep", (*const libc::timespec, *mut libc::timespec) -> c_int, bad.cast(), null_mut());
    note!(log, "{rc}");
    let p = pipe(libc::O_NONBLOCK);
    feed(p.1, b"x");
    let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, p.0, bad as *mut c_void, 1);
    note!(log, "{rc}");
    let rc = call!(log, lib, "poll", (*mut libc::pollfd, libc::nfds_t, c_int) -> c_int, bad as *mut _, 1, 5);
    note!(log, "{rc}");
    let f = file("bad", b"x");
    let rc = call!(log, lib, "pwrite", (c_int, *const c_void, size_t, i64) -> ssize_t, f.1, bad.cast(), 1, 0);
    note!(log, "{rc}");
    remove(f);
}

/// Everything seen with one library, scenario by scenario.
fn observe(lib: Lib) -> Vec<(&'static str, String)> {
    SCENARIOS
        .iter()
        .map(|(name, scenario)| {
            let mut log = String::new();
            scenario(lib, &mut log);
            (*name, log)
        })
        .collect()
}

fn compare() {
    // The kernel's table of descriptors grows once, and then tells closed ones from absent ones.
    unsafe {
        libc::dup2(2, 1010);
        libc::close(1010);
    }
    // libc's own calls are invisible to us: kept free of samples, which would interrupt them.
    let theirs = stallhound::allow_blocking("the reference", || observe(Lib::Theirs));
    let ours = observe(Lib::Ours);
    for ((name, theirs), (_, ours)) in theirs.iter().zip(&ours) {
        for (n, (theirs, ours)) in theirs.lines().zip(ours.lines()).enumerate() {
            assert_eq!(theirs, ours, "scenario `{name}`, line {n}");
        }
        assert_eq!(theirs, ours, "scenario `{name}`");
    }
}

/// Runs `body` in a process of its own: this test again, alone.
fn alone(test: &str, env: &[(&str, &str)], body: fn()) {
    const CHILD: &str = "STALLHOUND_EQUIVALENCE_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env("RES_OPTIONS", "timeout:1 attempts:1")
        .env_remove("STALLHOUND")
        .envs(env.iter().copied())
        .output()
        .unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    assert!(
        output.status.success(),
        "{}\n{}\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    assert!(text(&output.stdout).contains("1 passed"), "{}", text(&output.stdout));
}

fn recorded(body: impl FnOnce()) {
    let recording = begin_recording(&SETTINGS, "equivalence");
    body();
    drop(recording.finish());
}

fn in_a_task(runtime: tokio::runtime::Runtime) {
    runtime.block_on(async { tokio::spawn(async { compare() }).await.unwrap() });
}

fn multi_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn current_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn outside_of_any_runtime() {
    alone("outside_of_any_runtime", &[], || recorded(compare));
}

#[test]
fn in_a_task_on_many_threads() {
    alone("in_a_task_on_many_threads", &[], || recorded(|| in_a_task(multi_thread())));
}

#[test]
fn in_a_task_on_one_thread() {
    alone("in_a_task_on_one_thread", &[], || recorded(|| in_a_task(current_thread())));
}

#[test]
fn in_a_root_future() {
    alone("in_a_root_future", &[], || recorded(|| current_thread().block_on(async { compare() })));
}

#[test]
fn switched_off() {
    alone("switched_off", &[("STALLHOUND", "off")], || {
        recorded(|| in_a_task(multi_thread()));
    });
}

/// Rows that no scenario calls by itself, and why.
const ELSEWHERE: &[&str] = &[
    "sync",           // waits for every disk of the machine
    "pthread_create", // each scenario's threads; `tests/hygiene.rs`
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "pthread_exit",
    "_exit",
    "_Exit",
];

#[test]
fn every_row_of_the_table_is_called() {
    let table = include_str!("../src/hooks/libc/table.rs");
    let here = concat!(include_str!("equivalence.rs"), include_str!("equivalence/files.rs"));
    let rows = table.lines().filter_map(|l| {
        let l = l.strip_prefix("        ")?;
        let l = l.strip_prefix('"').and_then(|l| l.split_once("\" ")).map_or(l, |(_, l)| l);
        Some(l.strip_prefix("fn ")?.split_once('(')?.0)
    });
    let rows: Vec<_> = rows.filter(|name| !name.contains('$')).collect();
    assert!(rows.len() > 150, "only {} rows were found", rows.len());
    let called = |name: &&str| here.contains(&format!("\"{name}\"")) || ELSEWHERE.contains(name);
    let missing: Vec<_> = rows.iter().filter(|name| !called(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
