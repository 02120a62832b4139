//! What rows of the table do that no other row does.
//!
//! Calls: `observe`, `descriptors`, `births`, bare system calls; libc's `fileno` and `dirfd`.

use super::{own_address, reals, Id, FUTEX_COMMAND};
use crate::hooks::libc::look::{self, Look};
use crate::hooks::libc::{births, descriptors, observe, reentry, start, started};
use crate::hooks::tokio::Glance;
use crate::slots::record::CallId;
use crate::slots::slot::flag;
use crate::slots::table as slots;
use crate::sys::{clock, raw};
use libc::{c_int, c_long, c_uint, c_ulong, pid_t, DIR, FILE};

/// Whether a scheduler looks at its driver between two polls, without waiting. It does so every 61
/// polls: a few instructions and the jump into libc are all that it may cost.
#[inline(always)]
pub fn turning(epfd: c_int, timeout: c_int) -> bool {
    timeout == 0
        && descriptors::is_driver(epfd)
        && slots::own().is_some_and(|slot| {
            let known = slot.has(flag::RUNTIME);
            if known {
                slot.turn();
            }
            known
        })
}

/// `syscall` is variadic; ours has fixed arguments, which the kernel's convention makes equal.
pub type Syscall =
    unsafe extern "C-unwind" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;

unsafe fn real_syscall(number: c_long, args: [usize; 6]) -> c_long {
    let [a, b, c, d, e, f] = args;
    // SAFETY: the caller's own call, by libc's own function or, before it is found, the bare one.
    unsafe {
        match reals::syscall.address() {
            Some(address) => {
                core::mem::transmute::<usize, Syscall>(address)(number, a, b, c, d, e, f)
            }
            None => raw::to_libc(raw::syscall6(number, args)) as c_long,
        }
    }
}

/// Whether a futex' operation waits.
#[inline(always)]
fn is_wait(operation: usize) -> bool {
    const WAIT_REQUEUE_PI: c_int = 11;
    const LOCK_PI2: c_int = 13;
    matches!(
        (operation & FUTEX_COMMAND) as c_int,
        libc::FUTEX_WAIT
            | libc::FUTEX_WAIT_BITSET
            | libc::FUTEX_LOCK_PI
            | WAIT_REQUEUE_PI
            | LOCK_PI2
    )
}

/// A futex that is waited on.
#[inline(never)]
unsafe fn futex_wait(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long {
    // SAFETY: the caller's own call.
    let real = || unsafe { real_syscall(libc::SYS_futex, [a, b, c, d, e, f]) };
    match reentry::watched() {
        None => real(),
        // SAFETY: as above.
        Some(slot) => unsafe { observe::wait(slot, CallId(Id::syscall as u16), a, real) },
    }
}

/// Any other call: some change what is known of descriptors or threads, or end the process.
#[inline(never)]
pub unsafe extern "C-unwind" fn by_number(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    if number == libc::SYS_futex {
        if is_wait(b) {
            // SAFETY: the caller's own call.
            return unsafe { futex_wait(a, b, c, d, e, f) };
        }
        if let Some(slot) = slots::own() {
            slot.woke();
        }
    }
    let args = [a, b, c, d, e, f];
    let [a, b, ..] = args.map(|a| a as c_int);
    match number {
        libc::SYS_getrandom => births::random_bytes(),
        libc::SYS_close => descriptors::forget(a),
        libc::SYS_close_range => descriptors::forget_range(a, b as c_uint as i64 as i32 & i32::MAX),
        libc::SYS_exit_group => {
            let code = start::gate_elsewhere(a);
            // SAFETY: no pointers.
            unsafe { raw::syscall(libc::SYS_exit_group, [code as usize]) };
        }
        _ => {}
    }
    // SAFETY: the caller's own call.
    let result = unsafe { real_syscall(number, args) };
    match number {
        libc::SYS_dup | libc::SYS_dup2 | libc::SYS_dup3 => descriptors::duplicated(result as c_int),
        libc::SYS_socket | libc::SYS_accept | libc::SYS_accept4 | libc::SYS_epoll_create1 => {
            descriptors::forget(result as c_int)
        }
        libc::SYS_fcntl => controlled_by(b, a, result as c_int),
        libc::SYS_ioctl if args[1] as c_ulong == libc::FIONBIO => descriptors::mode_changed(a),
        _ => {}
    }
    result
}

/// The descriptor below a C stream. errno is kept.
pub unsafe fn number_of(stream: *mut FILE) -> c_int {
    if stream.is_null() {
        return -1;
    }
    let errno = raw::errno();
    // SAFETY: the caller's own open stream.
    let fd = unsafe { libc::fileno(stream) };
    raw::set_errno(errno);
    fd
}

pub fn controlled_by(command: c_int, fd: c_int, result: c_int) {
    match command {
        libc::F_SETFL => descriptors::mode_changed(fd),
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => descriptors::duplicated(result),
        _ => {}
    }
}

/// Whether this program and its shared libraries call our definitions: the dynamic symbol table
/// finds them first, and one call of our own arrives here.
pub fn in_force() -> bool {
    // SAFETY: null-terminated names; a descriptor that is never open.
    unsafe {
        [c"nanosleep", c"read", c"syscall", c"pthread_create"].iter().all(|name| {
            let first = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize;
            first != 0 && Some(first) == own_address(name)
        }) && {
            let before = PROBED.load(core::sync::atomic::Ordering::Relaxed);
            libc::fcntl(PROBE, libc::F_SETFL, 0);
            PROBED.load(core::sync::atomic::Ordering::Relaxed) != before
        }
    }
}

/// A descriptor that no program has: the self-test's call.
pub const PROBE: c_int = -77;
pub static PROBED: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);

/// `fcntl` that waits for a lock on a file.
#[cold]
#[inline(never)]
pub unsafe fn locked(id: Id, fd: c_int, real: impl FnOnce() -> c_int) -> c_int {
    let Some(slot) = reentry::watched() else { return real() };
    let look = look::lock(fd, true);
    let refused = |r: &c_int| *r == -1 && matches!(raw::errno(), libc::EBADF | libc::EINVAL);
    // SAFETY: the caller's own call.
    unsafe {
        observe::call(slot, observe::glance(), CallId(id as u16), look, real, || None, refused)
    }
}

/// Starting a copy of this process. In the copy nothing is watched any more, and nothing of ours
/// may run there: other threads' locks may be held in it for ever.
#[inline(always)]
pub unsafe fn forked(id: Id, real: impl FnOnce() -> pid_t) -> pid_t {
    let Some(slot) = reentry::watched() else { return real() };
    let seen = observe::glance();
    if seen == Glance::Outside || slot.allow.load(core::sync::atomic::Ordering::Relaxed) != 0 {
        return real();
    }
    let began = clock::now();
    slot.enter(look::inside(look::SUM_SPAWN), began);
    let child = real();
    if child == 0 {
        return child;
    }
    let errno = raw::errno();
    slot.leave();
    let wall = clock::now() - began;
    let look = look::spawn(core::ptr::null());
    let id = CallId(id as u16);
    observe::ended(slot, id, &look, seen, look::SUM_SPAWN, began, wall, child == -1);
    started::child(slot, child);
    raw::set_errno(errno);
    child
}

/// Starting a program.
#[inline(always)]
pub unsafe fn spawned(
    id: Id,
    pid: *const pid_t,
    program: *const libc::c_char,
    real: impl FnOnce() -> c_int,
) -> c_int {
    let Some(slot) = reentry::watched() else { return real() };
    let look = look::spawn(program);
    let seen = observe::glance();
    // SAFETY: the caller's own call, which has filled `pid`, if there is one, on success.
    unsafe {
        let rc = observe::call(slot, seen, CallId(id as u16), look, real, || None, |rc| *rc != 0);
        if rc == 0 && !pid.is_null() {
            started::child(slot, *pid);
        }
        rc
    }
}

/// `opendir`: timed, and the descriptor below the stream is a new one.
#[inline(always)]
pub unsafe fn directory(
    id: Id,
    path: *const libc::c_char,
    real: impl FnOnce() -> *mut DIR,
) -> *mut DIR {
    let watched = if reentry::concerned(true) { reentry::watched() } else { None };
    let stream = match watched {
        None => real(),
        // SAFETY: the caller's own arguments.
        Some(slot) => unsafe {
            let look: Look = look::path(path);
            let seen = observe::glance();
            observe::call(slot, seen, CallId(id as u16), look, real, || None, |_| false)
        },
    };
    if !stream.is_null() {
        // SAFETY: an open stream; reads a field of it.
        descriptors::forget(unsafe { libc::dirfd(stream) });
    }
    stream
}

/// Both ends of a pipe are new descriptors.
#[inline(always)]
pub unsafe fn piped(ends: *const c_int, result: c_int) -> c_int {
    if result == 0 {
        // SAFETY: libc has just written both.
        unsafe {
            descriptors::forget(*ends);
            descriptors::forget(*ends.add(1));
        }
    }
    result
}
