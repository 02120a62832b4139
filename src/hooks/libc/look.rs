//! The cheap look at a call's arguments: may it block, how is it judged, what does it act on?
//!
//! Calls: `descriptors`, `hooks::tokio::glance`; reads the arguments the caller passed.

use super::descriptors::{self, Known, Mode};
use crate::hooks::tokio::{glance, Glance};
use crate::slots::record::ObjectKind;
use crate::slots::slot::Inside;
use crate::sys::descriptor::Kind;

/// How a call that may block is treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judge {
    /// It cannot block, or is not ours to judge.
    Pass,
    /// Any such call inside of a poll is recorded.
    Always,
    /// Recorded if it takes long; short ones of one poll are added up, by kind of sum.
    Timed(usize),
    /// A sleep below a millisecond: what was asked for is added up.
    Nap,
    /// Nothing is known of the descriptor: inside of a runtime the kernel is [`ask`]ed.
    Ask(Use),
}

/// What a descriptor is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    Transfer,
    /// A call that only regular files and directories make wait.
    File,
    Socket,
    Connect,
}

/// Indices of [`crate::slots::slot::Slot::sums`].
pub const SUM_FILE: usize = 0;
pub const SUM_DATAGRAM: usize = 1;
pub const SUM_NAP: usize = 2;
pub const SUM_PIPE: usize = 3;
pub const SUM_STANDARD: usize = 4;
pub const SUM_LOCK: usize = 5;
pub const SUM_SPAWN: usize = 6;

/// What a thread is inside of during a timed call of this kind of sum.
#[inline(always)]
pub fn inside(which: usize) -> Inside {
    match which {
        SUM_PIPE | SUM_STANDARD | SUM_LOCK => Inside::Other,
        _ => Inside::Timed,
    }
}

/// What the look saw.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub judge: Judge,
    pub kind: ObjectKind,
    pub number: i64,
    /// A null-terminated path or host name, or null.
    pub text: *const libc::c_char,
    /// Sleeps: nanoseconds asked for.
    pub requested: u64,
}

pub const PASS: Look = Look {
    judge: Judge::Pass,
    kind: ObjectKind::None,
    number: 0,
    text: core::ptr::null(),
    requested: 0,
};

pub const ALWAYS: Look = Look { judge: Judge::Always, ..PASS };

/// Whether a pointer cannot be read: the kernel will refuse it, and so it is not looked at.
#[inline(always)]
fn unreadable<T>(p: *const T) -> bool {
    (p as usize) < 4096
}

/// A sleep of so many nanoseconds.
#[inline(always)]
pub fn sleep(requested: u64) -> Look {
    let judge = match requested {
        0 => Judge::Pass,
        1..=999_999 => Judge::Nap,
        _ => Judge::Always,
    };
    Look { judge, requested, ..PASS }
}

/// A relative `timespec`, in nanoseconds.
///
/// # Safety
///
/// - `t` is null or valid for reading, as the caller's own libc call demands.
#[inline(always)]
pub unsafe fn nanos(t: *const libc::timespec) -> u64 {
    if unreadable(t) {
        return 0;
    }
    // SAFETY: not null, and valid by the contract.
    let t = unsafe { &*t };
    if t.tv_sec < 0 || !(0..1_000_000_000).contains(&t.tv_nsec) {
        return 0; // the kernel will refuse it at once
    }
    (t.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(t.tv_nsec as u64)
}

/// An absolute or relative sleep by `clock_nanosleep`.
///
/// # Safety
///
/// As [`nanos`].
#[inline(always)]
pub unsafe fn clock_sleep(clock: libc::clockid_t, flags: i32, t: *const libc::timespec) -> Look {
    // SAFETY: passed on.
    let asked = unsafe { nanos(t) };
    if flags & libc::TIMER_ABSTIME == 0 {
        return sleep(asked);
    }
    sleep(asked.saturating_sub(reading(clock).unwrap_or(u64::MAX)))
}

/// What a clock says; `None`: there is no such clock.
#[cold]
#[inline(never)]
fn reading(clock: libc::clockid_t) -> Option<u64> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a local.
    unsafe {
        let rc = crate::sys::raw::syscall(
            libc::SYS_clock_gettime,
            [clock as usize, &mut now as *mut _ as usize],
        );
        (rc == 0).then(|| nanos(&now))
    }
}

/// Reading from or writing to a descriptor of whatever kind.
#[inline(always)]
pub fn transfer(fd: i32) -> Look {
    by_use(fd, Use::Transfer)
}

#[inline(always)]
fn by_use(fd: i32, used: Use) -> Look {
    match descriptors::known(fd) {
        Known::Harmless => PASS,
        Known::Mode(mode) => of_mode(fd, mode, used),
        Known::Nothing => Look { judge: Judge::Ask(used), number: fd as i64, ..PASS },
    }
}

#[inline(always)]
fn of_mode(fd: i32, mode: Mode, used: Use) -> Look {
    let (judge, kind) = match (mode.kind, mode.nonblocking) {
        (Kind::File, _) => (Judge::Timed(SUM_FILE), ObjectKind::Descriptor),
        (Kind::Stream, false) => (Judge::Always, ObjectKind::Stream),
        (Kind::Datagram, false) => (Judge::Timed(SUM_DATAGRAM), ObjectKind::Datagram),
        (Kind::Pipe, false) => (Judge::Timed(SUM_PIPE), ObjectKind::Pipe),
        (Kind::Standard, false) => (Judge::Timed(SUM_STANDARD), ObjectKind::Standard),
        _ => return PASS,
    };
    let counts = match used {
        Use::Transfer => true,
        Use::File => kind == ObjectKind::Descriptor,
        Use::Socket => matches!(kind, ObjectKind::Stream | ObjectKind::Datagram),
        // Only streams wait for the other side.
        Use::Connect => kind == ObjectKind::Stream,
    };
    if counts {
        Look { judge, kind, number: fd as i64, ..PASS }
    } else {
        PASS
    }
}

/// Asks the kernel what the descriptor is, where nothing is known of it. Inside of a runtime only.
#[cold]
#[inline(never)]
pub fn ask(fd: i32, used: Use) -> Look {
    descriptors::ask(fd).map_or(PASS, |mode| of_mode(fd, mode, used))
}

/// Sending or receiving on a socket, with flags.
#[inline(always)]
pub fn message(fd: i32, flags: i32) -> Look {
    if flags & libc::MSG_DONTWAIT != 0 {
        return PASS;
    }
    socket(fd)
}

/// Any socket call that may wait for the other side.
#[inline(always)]
pub fn socket(fd: i32) -> Look {
    by_use(fd, Use::Socket)
}

/// `connect`: only streams wait for the other side.
#[inline(always)]
pub fn connect(fd: i32) -> Look {
    by_use(fd, Use::Connect)
}

/// Two descriptors at once (`sendfile`, `splice`): the one that may block for longer decides.
/// `pipes_wait`: whether a pipe among them may be waited for.
#[inline(never)]
pub fn pair(one: i32, other: i32, pipes_wait: bool) -> Look {
    let now = |fd| {
        let look = match transfer(fd) {
            Look { judge: Judge::Ask(_), .. } if glance() == Glance::Outside => PASS,
            Look { judge: Judge::Ask(used), .. } => ask(fd, used),
            look => look,
        };
        if look.judge == Judge::Timed(SUM_PIPE) && !pipes_wait {
            PASS
        } else {
            look
        }
    };
    let weight = |look: &Look| match look.judge {
        Judge::Always => 3,
        Judge::Timed(SUM_PIPE | SUM_STANDARD) => 2,
        Judge::Timed(_) => 1,
        _ => 0,
    };
    let (a, b) = (now(one), now(other));
    if weight(&b) > weight(&a) {
        b
    } else {
        a
    }
}

/// A call on a file by its descriptor that transfers nothing (`fstat`, `ftruncate`, `readdir`).
#[inline(always)]
pub fn file(fd: i32) -> Look {
    by_use(fd, Use::File)
}

/// A file named by a path below a directory's descriptor; an empty path is the descriptor itself.
///
/// # Safety
///
/// - `name` is null or null-terminated, as the caller's own libc call demands.
#[inline(always)]
pub unsafe fn below(at: i32, name: *const libc::c_char) -> Look {
    // SAFETY: by the contract.
    unsafe {
        if !unreadable(name) && *name == 0 {
            return file(at);
        }
        path(name)
    }
}

/// The next entry of an open directory.
///
/// # Safety
///
/// - `stream` is null or an open directory stream.
#[inline(always)]
pub unsafe fn entry(stream: *mut libc::DIR) -> Look {
    if unreadable(stream) {
        return PASS;
    }
    // SAFETY: an open stream, by the contract; reads a field of it.
    file(unsafe { libc::dirfd(stream) })
}

/// Locking a file; `waits`: rather than fail if somebody else has the lock.
#[inline(always)]
pub fn lock(fd: i32, waits: bool) -> Look {
    if !waits {
        return PASS;
    }
    let judge = Judge::Timed(SUM_LOCK);
    Look { judge, kind: ObjectKind::Descriptor, number: fd as i64, ..PASS }
}

/// `flock`: waits unless it unlocks or was asked not to.
#[inline(always)]
pub fn flock(fd: i32, operation: i32) -> Look {
    let waits = matches!(operation, libc::LOCK_SH | libc::LOCK_EX);
    lock(fd, waits)
}

/// Starting a process: its program by path or name; null if it is this one again.
#[inline(always)]
pub fn spawn(program: *const libc::c_char) -> Look {
    let judge = Judge::Timed(SUM_SPAWN);
    if unreadable(program) {
        return Look { judge, ..PASS };
    }
    Look { judge, kind: ObjectKind::Path, text: program, ..PASS }
}

/// A file or directory named by path. Pseudo file systems are nothing to wait for.
///
/// # Safety
///
/// - `path` is null or null-terminated, as the caller's own libc call demands.
#[inline(always)]
pub unsafe fn path(path: *const libc::c_char) -> Look {
    // SAFETY: by the contract; compares no further than the first difference or the end.
    let pseudo = unreadable(path)
        || unsafe { begins(path, b"/proc/") || begins(path, b"/sys/") || begins(path, b"/dev/") };
    if pseudo {
        return PASS;
    }
    Look { judge: Judge::Timed(SUM_FILE), kind: ObjectKind::Path, text: path, ..PASS }
}

unsafe fn begins(text: *const libc::c_char, with: &[u8]) -> bool {
    for (i, b) in with.iter().enumerate() {
        // SAFETY: every byte before this one was equal to one of `with`, hence not the end.
        if unsafe { *text.add(i) } as u8 != *b {
            return false;
        }
    }
    true
}

/// A regular file's descriptor that is flushed to the disk.
#[inline(always)]
pub fn flush(fd: i32) -> Look {
    Look { judge: Judge::Always, kind: ObjectKind::Descriptor, number: fd as i64, ..PASS }
}

/// Waiting for descriptors to become ready.
#[inline(always)]
pub fn readiness(may_wait: bool) -> Look {
    if may_wait {
        ALWAYS
    } else {
        PASS
    }
}

/// Whether a `select` with this time-out may wait at all; it refuses a negative one at once.
///
/// # Safety
///
/// - `t` is null or valid for reading.
#[inline(always)]
pub unsafe fn select_waits(t: *const libc::timeval) -> bool {
    if unreadable(t) {
        return t.is_null();
    }
    // SAFETY: not null, and valid by the contract.
    let t = unsafe { &*t };
    t.tv_sec >= 0 && t.tv_usec >= 0 && (t.tv_sec != 0 || t.tv_usec != 0)
}

/// Waiting for a child.
#[inline(always)]
pub fn child(pid: i64, flags: i32) -> Look {
    if flags & libc::WNOHANG != 0 {
        return PASS;
    }
    Look { judge: Judge::Always, kind: ObjectKind::Pid, number: pid, ..PASS }
}

/// Resolving a host's name; literals and `AI_NUMERICHOST` need no resolver.
///
/// # Safety
///
/// - `host` is null or null-terminated.
#[inline(always)]
pub unsafe fn host(host: *const libc::c_char, numeric_only: bool) -> Look {
    // SAFETY: by the contract.
    if unreadable(host) || numeric_only || unsafe { is_literal(host) } {
        return PASS;
    }
    Look { judge: Judge::Always, kind: ObjectKind::Host, text: host, ..PASS }
}

/// Whether a host is written as an address: digits and dots, or with a colon.
///
/// # Safety
///
/// - `host` is null-terminated.
unsafe fn is_literal(host: *const libc::c_char) -> bool {
    let mut digits_and_dots = true;
    let mut i = 0;
    loop {
        // SAFETY: no byte before this one was the end.
        match unsafe { *host.add(i) } as u8 {
            0 => return i > 0 && digits_and_dots,
            b':' => return true, // no host name has one
            b'0'..=b'9' | b'.' => {}
            _ => digits_and_dots = false,
        }
        i += 1;
    }
}
