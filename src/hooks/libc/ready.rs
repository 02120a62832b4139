//! The same call without waiting: what needs not wait is no finding. Nothing of the caller's is
//! changed unless there is an answer.
//!
//! Calls: bare system calls; `pthread_tryjoin_np` and `pthread_join`, found by the constructor.

#![allow(clippy::missing_safety_doc)]

use super::real::Real;
use super::started;
use crate::slots::table;
use crate::sys::raw;
use libc::{
    c_int, c_void, epoll_event, fd_set, id_t, nfds_t, pid_t, pollfd, pthread_t, rusage, siginfo_t,
    timeval,
};

/// The same `poll` without waiting: `Some` if something is ready.
pub unsafe fn poll_now(fds: *mut pollfd, n: nfds_t) -> Option<c_int> {
    // SAFETY: the caller's own array.
    let rc = unsafe { raw::syscall(libc::SYS_poll, [fds as usize, n as usize, 0]) };
    (rc > 0).then_some(rc as c_int)
}

/// The same `epoll_wait` without waiting.
pub unsafe fn epoll_now(epfd: c_int, events: *mut epoll_event, max: c_int) -> Option<c_int> {
    // SAFETY: the caller's own array.
    let rc = unsafe {
        raw::syscall(libc::SYS_epoll_wait, [epfd as usize, events as usize, max as usize, 0])
    };
    (rc > 0).then_some(rc as c_int)
}

/// The same `select` without waiting, on copies: the sets are changed only if something is ready.
pub unsafe fn select_now(
    n: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
) -> Option<c_int> {
    if !(0..=libc::FD_SETSIZE as c_int).contains(&n) {
        return None;
    }
    // A set may be shorter than its type says: the kernel touches whole words up to `n` only.
    const WORDS: usize = libc::FD_SETSIZE / 64;
    let words = (n as usize).div_ceil(64);
    let mut zero = timeval { tv_sec: 0, tv_usec: 0 };
    let mut copies = [[0u64; WORDS]; 3];
    let mut at = [core::ptr::null_mut::<u64>(); 3];
    // SAFETY: the caller's own sets, each null or valid for `words`; the copies are locals.
    unsafe {
        for (i, set) in [read, write, except].into_iter().enumerate() {
            if !set.is_null() {
                let set = set as *const u64;
                core::ptr::copy_nonoverlapping(set, copies[i].as_mut_ptr(), words);
                at[i] = copies[i].as_mut_ptr();
            }
        }
        let rc = raw::syscall(
            libc::SYS_select,
            [
                n as usize,
                at[0] as usize,
                at[1] as usize,
                at[2] as usize,
                &mut zero as *mut _ as usize,
            ],
        );
        if rc <= 0 {
            return None;
        }
        for (i, set) in [read, write, except].into_iter().enumerate() {
            if !set.is_null() {
                core::ptr::copy_nonoverlapping(copies[i].as_ptr(), set as *mut u64, words);
            }
        }
        Some(rc as c_int)
    }
}

/// Which children `wait4` and its kin mean, in `waitid`'s words.
fn children(pid: pid_t) -> (libc::idtype_t, id_t) {
    match pid {
        -1 => (libc::P_ALL, 0),
        p if p <= 0 => (libc::P_PGID, p.unsigned_abs()),
        p => (libc::P_PID, p as id_t),
    }
}

/// The same `wait4` without waiting.
pub unsafe fn wait_now(
    pid: pid_t,
    status: *mut c_int,
    options: c_int,
    usage: *mut rusage,
) -> Option<pid_t> {
    let (kind, id) = children(pid);
    // SAFETY: the caller's own pointers; the look before leaves the child waitable, so that an
    // error or a child that still runs changes nothing of the caller's.
    unsafe {
        let passed_on = options & (libc::__WALL | libc::__WCLONE | libc::__WNOTHREAD);
        let ended = options & (libc::WUNTRACED | libc::WCONTINUED) | libc::WEXITED | passed_on;
        if started::is_own_child(pid) || !has_changed(kind, id, ended) {
            return None;
        }
        let rc = raw::syscall(
            libc::SYS_wait4,
            [pid as usize, status as usize, (options | libc::WNOHANG) as usize, usage as usize],
        );
        (rc > 0).then_some(rc as pid_t)
    }
}

/// The same `waitid` without waiting.
pub unsafe fn waitid_now(
    kind: libc::idtype_t,
    id: id_t,
    info: *mut siginfo_t,
    options: c_int,
) -> Option<c_int> {
    // SAFETY: the caller's own pointers; the look before leaves the child waitable.
    unsafe {
        let pid = if kind == libc::P_PID { id as pid_t } else { -1 };
        if started::is_own_child(pid) || !has_changed(kind, id, options) {
            return None;
        }
        let mut seen: siginfo_t = core::mem::zeroed();
        let rc = raw::syscall(
            libc::SYS_waitid,
            [
                kind as usize,
                id as usize,
                &mut seen as *mut _ as usize,
                (options | libc::WNOHANG) as usize,
                0,
            ],
        );
        if rc != 0 || seen.si_pid() == 0 {
            return None; // another thread was faster
        }
        if !info.is_null() {
            // The kernel writes these fields and leaves the rest alone.
            (*info).si_signo = seen.si_signo;
            (*info).si_errno = seen.si_errno;
            (*info).si_code = seen.si_code;
            let words = |s: *const siginfo_t| s as *mut u32;
            for word in 4..7 {
                *words(info).add(word) = *words(&seen).add(word);
            }
        }
        Some(0)
    }
}

/// Whether a child that is waited for has changed its state already (it stays waitable).
unsafe fn has_changed(kind: libc::idtype_t, id: id_t, options: c_int) -> bool {
    // SAFETY: `info` is a local.
    unsafe {
        let mut info: siginfo_t = core::mem::zeroed();
        let flags = options | libc::WNOHANG | libc::WNOWAIT;
        let rc = raw::syscall(
            libc::SYS_waitid,
            [kind as usize, id as usize, &mut info as *mut _ as usize, flags as usize, 0],
        );
        rc == 0 && info.si_pid() != 0
    }
}

static TRY_JOIN: Real = Real::new(c"pthread_tryjoin_np");
static JOIN: Real = Real::new(c"pthread_join");

type Join = unsafe extern "C-unwind" fn(pthread_t, *mut *mut c_void) -> c_int;

/// How often to look whether a thread is in its last instructions: some ten microseconds.
const LAST_INSTRUCTIONS: u32 = 200;

/// Finds what is called here.
pub fn resolve() {
    TRY_JOIN.find();
    JOIN.find();
}

/// The same `pthread_join` without waiting for anybody's code. A thread whose code is over counts
/// as ended: what is left is the system's part, and std says `is_finished` some instructions
/// before the start routine returns.
pub unsafe fn try_join(thread: pthread_t, value: *mut *mut c_void) -> Option<c_int> {
    // SAFETY: libc's own functions of that type, with the caller's own arguments; the first
    // changes nothing unless the thread has ended, the second is the caller's own call.
    unsafe {
        if started::is_own_thread(thread) {
            return None;
        }
        let attempt = core::mem::transmute::<usize, Join>(TRY_JOIN.address()?);
        let rc = attempt(thread, value);
        if rc == 0 {
            return Some(0);
        }
        if rc != libc::EBUSY {
            return None;
        }
        for _ in 0..LAST_INSTRUCTIONS {
            if table::has_ended(thread as usize) {
                let join = core::mem::transmute::<usize, Join>(JOIN.address()?);
                return Some(join(thread, value));
            }
            core::hint::spin_loop();
        }
    }
    None
}
