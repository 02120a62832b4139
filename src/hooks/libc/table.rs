//! The one table of intercepted functions. It generates every exported definition, the list of
//! calls that reports name, and the documentation page.
//!
//! A row: `fn name(arguments) -> result, kernel = system call or none, look = how it is looked at,
//! ready = the answer, if it needs not wait, refused = whether it failed without waiting;`. Rows under `by` are infrastructure: seen, never
//! judged; their second expression says all that happens.
//!
//! Each generated function calls: libc's own function or, before it is found, the bare system
//! call; `reentry::watched`; its row's expressions; `observe`.
//!
//! Not here, on purpose: `vfork`, whose child returns through the frame of its parent; `dlopen`,
//! which looks at its caller's address; names that std looks up itself and that older libcs lack
//! (`pidfd_spawnp`): ours would be found there, with nothing behind it.

#![allow(unknown_lints, clippy::missing_safety_doc, clippy::too_many_arguments)]
#![allow(clippy::unused_unit, unused_unsafe)]

use super::births::{self, Start};
use super::look::{self, Look};
use super::ready::{self, epoll_now, poll_now, select_now, try_join, wait_now, waitid_now};
use super::real::{Real, Return};
use super::{descriptors, observe, reentry};
use crate::hooks::tokio::Glance;
use crate::slots::record::CallId;
use crate::slots::slot::flag;
use crate::slots::table as slots;
use crate::sys::raw;
use core::ffi::CStr;
use libc::{
    addrinfo, c_char, c_int, c_long, c_uint, c_ulong, c_void, epoll_event, fd_set, hostent, id_t,
    iovec, loff_t, mmsghdr, mode_t, msghdr, nfds_t, off_t, pid_t, pollfd, pthread_attr_t,
    pthread_barrier_t, pthread_t, rusage, siginfo_t, sigset_t, size_t, sockaddr, socklen_t,
    ssize_t, timespec, timeval, DIR, FILE,
};

mod special;
pub use special::in_force;
use special::{by_number, controlled_by, number_of, turning, PROBE, PROBED};

/// One row of the table, for people and for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The libc function.
    pub name: &'static str,
    /// The category's word; `infrastructure` is never judged.
    pub category: &'static str,
}

macro_rules! kernel {
    (none, $($arg:expr),*) => { -(libc::ENOSYS as isize) };
    // SAFETY: the caller's own call, by number: the kernel's arguments are the function's.
    ($number:ident, $($arg:expr),*) => { unsafe { raw::syscall(libc::$number, [$($arg as usize),*]) } };
}

/// The functions that fail at once say so with one of these; whatever else they say, they were
/// ready to wait.
fn at_once(failed: bool) -> bool {
    failed
        && matches!(
            raw::errno(),
            libc::EAGAIN
                | libc::EINPROGRESS
                | libc::EALREADY
                | libc::EBADF
                | libc::EINVAL
                | libc::ENOTSOCK
                | libc::EISCONN
                | libc::ENOTCONN
                | libc::ECHILD
                | libc::EFAULT
                | libc::EPIPE
        )
}

/// Whether a result means failure.
trait Failed {
    fn failed(&self) -> bool;
}
impl Failed for i32 {
    fn failed(&self) -> bool {
        *self == -1
    }
}
impl Failed for isize {
    fn failed(&self) -> bool {
        *self == -1
    }
}
impl Failed for u32 {
    fn failed(&self) -> bool {
        false
    }
}
impl Failed for () {
    fn failed(&self) -> bool {
        false
    }
}
impl<T> Failed for *mut T {
    fn failed(&self) -> bool {
        self.is_null()
    }
}

/// Categories of calls that programs make all the time. A sleep or a look-up of a host is never
/// too short to ask who makes it.
const fn is_hot(category: &str) -> bool {
    matches!(category.as_bytes(), b"net" | b"io-wait" | b"file")
}

/// A sleep that is none (refused, or of no time at all) is told from its arguments at once.
const fn is_sleep(category: &str) -> bool {
    matches!(category.as_bytes(), b"sleep")
}

macro_rules! table {
    (
        $( $category:literal {
            $( fn $name:ident ( $($arg:ident : $ty:ty),* ) -> $ret:ty,
                kernel = $kernel:ident, look = $look:expr $(, ready = $ready:expr)?
                $(, refused = $refused:expr)? ; )*
        } )*
        by {
            $( $bcategory:literal fn $bname:ident ( $($barg:ident : $bty:ty),* ) -> $bret:ty,
                kernel = $bkernel:ident, $real:ident => $body:expr ; )*
        }
    ) => {
        /// Every intercepted function, in the order of their ids.
        pub const ROWS: &[Row] = &[
            $($( Row { name: stringify!($name), category: $category }, )*)*
            $( Row { name: stringify!($bname), category: $bcategory }, )*
        ];

        // Infrastructure has ids that no record ever carries.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, dead_code)]
        #[repr(u16)]
        enum Id { $($( $name, )*)* $( $bname, )* }

        /// libc's own functions.
        mod reals {
            use super::*;
            $($(
                #[allow(non_upper_case_globals)]
                pub static $name: Real = Real::new(
                    match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => panic!("a name with a null byte"),
                    });
            )*)*
            $(
                #[allow(non_upper_case_globals)]
                pub static $bname: Real = Real::new(
                    match CStr::from_bytes_with_nul(concat!(stringify!($bname), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => panic!("a name with a null byte"),
                    });
            )*
        }

        /// Finds all of libc's own functions.
        pub fn resolve_all() {
            $($( reals::$name.find_behind($name as *const () as usize); )*)*
            $( reals::$bname.find_behind($bname as *const () as usize); )*
            ready::resolve();
            // What this libc has not is nobody else's error.
            // SAFETY: takes no arguments.
            unsafe { libc::dlerror() };
        }

        /// The address of our own definition.
        pub fn own_address(name: &CStr) -> Option<usize> {
            let name = name.to_bytes();
            $($( if name == stringify!($name).as_bytes() { return Some($name as *const () as usize); } )*)*
            $( if name == stringify!($bname).as_bytes() { return Some($bname as *const () as usize); } )*
            None
        }

        // In two parts: the exported one is a few instructions and, where nothing is to be
        // watched, a jump into libc; all else is behind it.
        $($(
            #[doc(hidden)]
            #[no_mangle]
            pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> $ret {
                let waits = || -> bool {
                    // SAFETY: looks at the caller's own arguments as the function itself would.
                    let look: Look = unsafe { $look };
                    look.judge != look::Judge::Pass
                };
                if reentry::concerned(is_hot($category)) && (!is_sleep($category) || waits()) {
                    // SAFETY: the caller's own call.
                    return unsafe { watched::$name($($arg),*) };
                }
                match reals::$name.address() {
                    // SAFETY: libc's own function of this name and type, with the caller's own
                    // arguments.
                    Some(address) => unsafe {
                        core::mem::transmute::<usize, unsafe extern "C-unwind" fn($($ty),*) -> $ret>(address)($($arg),*)
                    },
                    None => <$ret as Return>::from_kernel(kernel!($kernel, $($arg),*)),
                }
            }
        )*)*

        /// The calls that may have to be watched.
        mod watched {
            use super::*;
            $($(
                #[inline(never)]
                pub unsafe fn $name($($arg: $ty),*) -> $ret {
                    let real = || -> $ret {
                        match reals::$name.address() {
                            // SAFETY: libc's own function of this name and type, with the
                            // caller's own arguments.
                            Some(address) => unsafe {
                                core::mem::transmute::<usize, unsafe extern "C-unwind" fn($($ty),*) -> $ret>(address)($($arg),*)
                            },
                            None => <$ret as Return>::from_kernel(kernel!($kernel, $($arg),*)),
                        }
                    };
                    let Some(slot) = reentry::watched() else { return real() };
                    // SAFETY: looks at the caller's own arguments as the function itself would.
                    let look: Look = unsafe { $look };
                    if look.judge == look::Judge::Pass {
                        return real();
                    }
                    let seen = observe::glance();
                    if seen == Glance::Outside {
                        return real();
                    }
                    let ready = || -> Option<$ret> {
                        #[allow(unused_mut, unused_assignments)]
                        let mut answer = None;
                        // SAFETY: the same call without waiting, with the caller's own arguments.
                        $( answer = unsafe { $ready }; )?
                        answer
                    };
                    let refused = |r: &$ret| at_once(Failed::failed(r));
                    $( let refused = { let _ = refused; let other: fn(&$ret) -> bool = $refused; other }; )?
                    // SAFETY: both call libc's own function as the caller asked for.
                    unsafe {
                        observe::call(slot, seen, CallId(Id::$name as u16), look, real, ready, refused)
                    }
                }
            )*)*
        }

        $(
            #[doc(hidden)]
            #[no_mangle]
            pub unsafe extern "C-unwind" fn $bname($($barg: $bty),*) -> $bret {
                let $real = || -> $bret {
                    match reals::$bname.address() {
                        // SAFETY: libc's own function of this name and type, with the caller's
                        // own arguments.
                        Some(address) => unsafe {
                            core::mem::transmute::<usize, unsafe extern "C-unwind" fn($($bty),*) -> $bret>(address)($($barg),*)
                        },
                        None => <$bret as Return>::from_kernel(kernel!($bkernel, $($barg),*)),
                    }
                };
                // SAFETY: handles the caller's own arguments as the function itself would.
                unsafe { $body }
            }
        )*
    };
}

const FUTEX_COMMAND: usize = 0x7f;

table! {
    "sleep" {
        fn nanosleep(asked: *const timespec, left: *mut timespec) -> c_int,
            kernel = SYS_nanosleep, look = look::sleep(look::nanos(asked));
        fn clock_nanosleep(clock: c_int, flags: c_int, asked: *const timespec, left: *mut timespec) -> c_int,
            kernel = none, look = look::clock_sleep(clock, flags, asked);
        fn usleep(micros: c_uint) -> c_int,
            kernel = none, look = look::sleep(micros as u64 * 1000);
        fn sleep(seconds: c_uint) -> c_uint,
            kernel = none, look = look::sleep(seconds as u64 * 1_000_000_000);
    }
    "net" {
        fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int,
            kernel = SYS_connect, look = look::connect(fd);
        fn recv(fd: c_int, buf: *mut c_void, len: size_t, flags: c_int) -> ssize_t,
            kernel = SYS_recvfrom, look = look::message(fd, flags);
        fn __recv_chk(fd: c_int, buf: *mut c_void, len: size_t, room: size_t, flags: c_int) -> ssize_t,
            kernel = none, look = look::message(fd, flags);
        fn recvfrom(fd: c_int, buf: *mut c_void, len: size_t, flags: c_int, from: *mut sockaddr, from_len: *mut socklen_t) -> ssize_t,
            kernel = SYS_recvfrom, look = look::message(fd, flags);
        fn __recvfrom_chk(fd: c_int, buf: *mut c_void, len: size_t, room: size_t, flags: c_int, from: *mut sockaddr, from_len: *mut socklen_t) -> ssize_t,
            kernel = none, look = look::message(fd, flags);
        fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t,
            kernel = SYS_recvmsg, look = look::message(fd, flags);
        fn recvmmsg(fd: c_int, messages: *mut mmsghdr, n: c_uint, flags: c_int, timeout: *mut timespec) -> c_int,
            kernel = SYS_recvmmsg, look = look::message(fd, flags);
        fn send(fd: c_int, buf: *const c_void, len: size_t, flags: c_int) -> ssize_t,
            kernel = SYS_sendto, look = look::message(fd, flags);
        fn sendto(fd: c_int, buf: *const c_void, len: size_t, flags: c_int, to: *const sockaddr, to_len: socklen_t) -> ssize_t,
            kernel = SYS_sendto, look = look::message(fd, flags);
        fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t,
            kernel = SYS_sendmsg, look = look::message(fd, flags);
        fn sendmmsg(fd: c_int, messages: *mut mmsghdr, n: c_uint, flags: c_int) -> c_int,
            kernel = SYS_sendmmsg, look = look::message(fd, flags);
    }
    "io-wait" {
        fn poll(fds: *mut pollfd, n: nfds_t, timeout: c_int) -> c_int,
            kernel = SYS_poll, look = look::readiness(timeout != 0), ready = poll_now(fds, n);
        fn __poll_chk(fds: *mut pollfd, n: nfds_t, timeout: c_int, room: size_t) -> c_int,
            kernel = none, look = look::readiness(timeout != 0), ready = poll_now(fds, n);
        fn ppoll(fds: *mut pollfd, n: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int,
            kernel = none, look = look::readiness(timeout.is_null() || look::nanos(timeout) != 0),
            ready = if mask.is_null() { poll_now(fds, n) } else { None };
        fn __ppoll_chk(fds: *mut pollfd, n: nfds_t, timeout: *const timespec, mask: *const sigset_t, room: size_t) -> c_int,
            kernel = none, look = look::readiness(timeout.is_null() || look::nanos(timeout) != 0),
            ready = if mask.is_null() { poll_now(fds, n) } else { None };
        fn select(n: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval) -> c_int,
            kernel = SYS_select,
            look = look::readiness(look::select_waits(timeout)),
            ready = select_now(n, read, write, except);
        fn pselect(n: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *const timespec, mask: *const sigset_t) -> c_int,
            kernel = none, look = look::readiness(timeout.is_null() || look::nanos(timeout) != 0),
            ready = if mask.is_null() { select_now(n, read, write, except) } else { None };
    }
    "dns" {
        fn getaddrinfo(node: *const c_char, service: *const c_char, hints: *const addrinfo, found: *mut *mut addrinfo) -> c_int,
            kernel = none,
            look = look::host(node, !hints.is_null() && (*hints).ai_flags & libc::AI_NUMERICHOST != 0);
        fn getnameinfo(address: *const sockaddr, len: socklen_t, host: *mut c_char, host_len: socklen_t, service: *mut c_char, service_len: socklen_t, flags: c_int) -> c_int,
            kernel = none,
            look = if host.is_null() || host_len == 0 || flags & libc::NI_NUMERICHOST != 0 { look::PASS } else { look::ALWAYS };
        fn gethostbyname(name: *const c_char) -> *mut hostent,
            kernel = none, look = look::host(name, false);
        fn gethostbyname2(name: *const c_char, family: c_int) -> *mut hostent,
            kernel = none, look = look::host(name, false);
        fn gethostbyname_r(name: *const c_char, entry: *mut hostent, buf: *mut c_char, len: size_t, found: *mut *mut hostent, error: *mut c_int) -> c_int,
            kernel = none, look = look::host(name, false);
        fn gethostbyaddr(address: *const c_void, len: socklen_t, family: c_int) -> *mut hostent,
            kernel = none, look = look::ALWAYS;
        fn gethostbyaddr_r(address: *const c_void, len: socklen_t, family: c_int, entry: *mut hostent, buf: *mut c_char, buf_len: size_t, found: *mut *mut hostent, error: *mut c_int) -> c_int,
            kernel = none, look = look::ALWAYS;
    }
    "process" {
        fn wait(status: *mut c_int) -> pid_t,
            kernel = none, look = look::child(-1, 0),
            ready = wait_now(-1, status, 0, core::ptr::null_mut());
        fn waitpid(pid: pid_t, status: *mut c_int, options: c_int) -> pid_t,
            kernel = none, look = look::child(pid as i64, options),
            ready = wait_now(pid, status, options, core::ptr::null_mut());
        fn wait3(status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t,
            kernel = none, look = look::child(-1, options),
            ready = wait_now(-1, status, options, usage);
        fn wait4(pid: pid_t, status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t,
            kernel = SYS_wait4, look = look::child(pid as i64, options),
            ready = wait_now(pid, status, options, usage);
        fn waitid(kind: c_uint, id: id_t, info: *mut siginfo_t, options: c_int) -> c_int,
            kernel = SYS_waitid, look = look::child(id as i64, options),
            ready = waitid_now(kind, id, info, options);
        fn system(command: *const c_char) -> c_int,
            kernel = none,
            look = if command.is_null() { look::PASS } else { look::ALWAYS };
        fn popen(command: *const c_char, mode: *const c_char) -> *mut FILE,
            kernel = none, look = look::ALWAYS;
        fn pclose(stream: *mut FILE) -> c_int,
            kernel = none, look = { descriptors::forget(number_of(stream)); look::ALWAYS };
    }
    "join" {
        fn pthread_join(thread: pthread_t, value: *mut *mut c_void) -> c_int,
            kernel = none, look = look::ALWAYS, ready = try_join(thread, value), refused = |r| *r != 0;
        fn pthread_timedjoin_np(thread: pthread_t, value: *mut *mut c_void, until: *const timespec) -> c_int,
            kernel = none, look = look::ALWAYS, ready = try_join(thread, value), refused = |r| *r != 0;
        fn pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int,
            kernel = none, look = look::ALWAYS,
            refused = |r| *r == libc::PTHREAD_BARRIER_SERIAL_THREAD; // the last one never waits
    }
    "disk" {
        fn fsync(fd: c_int) -> c_int, kernel = SYS_fsync, look = look::flush(fd);
        fn fdatasync(fd: c_int) -> c_int, kernel = SYS_fdatasync, look = look::flush(fd);
        fn syncfs(fd: c_int) -> c_int, kernel = SYS_syncfs, look = look::flush(fd);
        fn sync_file_range(fd: c_int, offset: loff_t, n: loff_t, flags: c_uint) -> c_int,
            kernel = SYS_sync_file_range, look = look::flush(fd);
        fn sync() -> (), kernel = none, look = look::ALWAYS;
        fn msync(at: *mut c_void, len: size_t, flags: c_int) -> c_int,
            kernel = SYS_msync, look = if flags & libc::MS_SYNC != 0 { look::ALWAYS } else { look::PASS };
    }
    "file" {
        fn read(fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t,
            kernel = SYS_read, look = look::transfer(fd);
        fn __read_chk(fd: c_int, buf: *mut c_void, len: size_t, room: size_t) -> ssize_t,
            kernel = none, look = look::transfer(fd);
        fn readv(fd: c_int, parts: *const iovec, n: c_int) -> ssize_t,
            kernel = SYS_readv, look = look::transfer(fd);
        fn write(fd: c_int, buf: *const c_void, len: size_t) -> ssize_t,
            kernel = SYS_write, look = look::transfer(fd);
        fn writev(fd: c_int, parts: *const iovec, n: c_int) -> ssize_t,
            kernel = SYS_writev, look = look::transfer(fd);
        fn pread(fd: c_int, buf: *mut c_void, len: size_t, at: off_t) -> ssize_t,
            kernel = SYS_pread64, look = look::transfer(fd);
        fn pread64(fd: c_int, buf: *mut c_void, len: size_t, at: off_t) -> ssize_t,
            kernel = SYS_pread64, look = look::transfer(fd);
        fn __pread_chk(fd: c_int, buf: *mut c_void, len: size_t, at: off_t, room: size_t) -> ssize_t,
            kernel = none, look = look::transfer(fd);
        fn __pread64_chk(fd: c_int, buf: *mut c_void, len: size_t, at: off_t, room: size_t) -> ssize_t,
            kernel = none, look = look::transfer(fd);
        fn preadv(fd: c_int, parts: *const iovec, n: c_int, at: off_t) -> ssize_t,
            kernel = SYS_preadv, look = look::transfer(fd);
        fn preadv64(fd: c_int, parts: *const iovec, n: c_int, at: off_t) -> ssize_t,
            kernel = SYS_preadv, look = look::transfer(fd);
        fn preadv2(fd: c_int, parts: *const iovec, n: c_int, at: off_t, flags: c_int) -> ssize_t,
            kernel = none, look = look::transfer(fd);
        fn preadv64v2(fd: c_int, parts: *const iovec, n: c_int, at: off_t, flags: c_int) -> ssize_t,
            kernel = none, look = look::transfer(fd);
        fn pwrite(fd: c_int, buf: *const c_void, len: size_t, at: off_t) -> ssize_t,
            kernel = SYS_pwrite64, look = look::transfer(fd);
        fn pwrite64(fd: c_int, buf: *const c_void, len: size_t, at: off_t) -> ssize_t,
            kernel = SYS_pwrite64, look = look::transfer(fd);
        fn pwritev(fd: c_int, parts: *const iovec, n: c_int, at: off_t) -> ssize_t,
            kernel = SYS_pwritev, look = look::transfer(fd);
        fn pwritev64(fd: c_int, parts: *const iovec, n: c_int, at: off_t) -> ssize_t,
            kernel = SYS_pwritev, look = look::transfer(fd);
        fn pwritev2(fd: c_int, parts: *const iovec, n: c_int, at: off_t, flags: c_int) -> ssize_t,
            kernel = none, look = look::transfer(fd);
        fn pwritev64v2(fd: c_int, parts: *const iovec, n: c_int, at: off_t, flags: c_int) -> ssize_t,
            kernel = none, look = look::transfer(fd);
        fn sendfile(out: c_int, from: c_int, at: *mut off_t, n: size_t) -> ssize_t,
            kernel = SYS_sendfile, look = look::pair(out, from, true);
        fn sendfile64(out: c_int, from: c_int, at: *mut off_t, n: size_t) -> ssize_t,
            kernel = SYS_sendfile, look = look::pair(out, from, true);
        fn splice(from: c_int, from_at: *mut loff_t, out: c_int, out_at: *mut loff_t, n: size_t, flags: c_uint) -> ssize_t,
            kernel = SYS_splice, look = look::pair(out, from, flags & libc::SPLICE_F_NONBLOCK == 0);
        fn tee(from: c_int, out: c_int, n: size_t, flags: c_uint) -> ssize_t,
            kernel = SYS_tee, look = look::pair(out, from, flags & libc::SPLICE_F_NONBLOCK == 0);
        fn vmsplice(fd: c_int, parts: *const iovec, n: size_t, flags: c_uint) -> ssize_t,
            kernel = SYS_vmsplice,
            look = if flags & libc::SPLICE_F_NONBLOCK == 0 { look::transfer(fd) } else { look::PASS };
        fn copy_file_range(from: c_int, from_at: *mut loff_t, out: c_int, out_at: *mut loff_t, n: size_t, flags: c_uint) -> ssize_t,
            kernel = SYS_copy_file_range, look = look::transfer(out);
        fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE,
            kernel = none, look = look::path(path);
        fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE,
            kernel = none, look = look::path(path);
        fn stat(path: *const c_char, out: *mut c_void) -> c_int, kernel = SYS_stat, look = look::path(path);
        fn stat64(path: *const c_char, out: *mut c_void) -> c_int, kernel = SYS_stat, look = look::path(path);
        fn lstat(path: *const c_char, out: *mut c_void) -> c_int, kernel = SYS_lstat, look = look::path(path);
        fn lstat64(path: *const c_char, out: *mut c_void) -> c_int, kernel = SYS_lstat, look = look::path(path);
        fn fstat(fd: c_int, out: *mut c_void) -> c_int, kernel = SYS_fstat, look = look::file(fd);
        fn fstat64(fd: c_int, out: *mut c_void) -> c_int, kernel = SYS_fstat, look = look::file(fd);
        fn fstatat(at: c_int, path: *const c_char, out: *mut c_void, flags: c_int) -> c_int, kernel = SYS_newfstatat, look = look::below(at, path);
        fn fstatat64(at: c_int, path: *const c_char, out: *mut c_void, flags: c_int) -> c_int, kernel = SYS_newfstatat, look = look::below(at, path);
        fn statx(at: c_int, path: *const c_char, flags: c_int, mask: c_uint, out: *mut c_void) -> c_int, kernel = SYS_statx, look = look::below(at, path);
        // What programs call that were built with a glibc before 2.33.
        fn __xstat(version: c_int, path: *const c_char, out: *mut c_void) -> c_int, kernel = none, look = look::path(path);
        fn __xstat64(version: c_int, path: *const c_char, out: *mut c_void) -> c_int, kernel = none, look = look::path(path);
        fn __lxstat(version: c_int, path: *const c_char, out: *mut c_void) -> c_int, kernel = none, look = look::path(path);
        fn __lxstat64(version: c_int, path: *const c_char, out: *mut c_void) -> c_int, kernel = none, look = look::path(path);
        fn __fxstat(version: c_int, fd: c_int, out: *mut c_void) -> c_int, kernel = none, look = look::file(fd);
        fn __fxstat64(version: c_int, fd: c_int, out: *mut c_void) -> c_int, kernel = none, look = look::file(fd);
        fn __fxstatat(version: c_int, at: c_int, path: *const c_char, out: *mut c_void, flags: c_int) -> c_int, kernel = none, look = look::below(at, path);
        fn __fxstatat64(version: c_int, at: c_int, path: *const c_char, out: *mut c_void, flags: c_int) -> c_int, kernel = none, look = look::below(at, path);
        fn access(path: *const c_char, mode: c_int) -> c_int, kernel = SYS_access, look = look::path(path);
        fn eaccess(path: *const c_char, mode: c_int) -> c_int, kernel = none, look = look::path(path);
        fn euidaccess(path: *const c_char, mode: c_int) -> c_int, kernel = none, look = look::path(path);
        fn faccessat(at: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int, kernel = none, look = look::below(at, path);
        fn rename(path: *const c_char, to: *const c_char) -> c_int, kernel = SYS_rename, look = look::path(path);
        fn renameat(at: c_int, path: *const c_char, to_at: c_int, to: *const c_char) -> c_int, kernel = SYS_renameat, look = look::path(path);
        fn renameat2(at: c_int, path: *const c_char, to_at: c_int, to: *const c_char, flags: c_uint) -> c_int, kernel = SYS_renameat2, look = look::path(path);
        fn unlink(path: *const c_char) -> c_int, kernel = SYS_unlink, look = look::path(path);
        fn unlinkat(at: c_int, path: *const c_char, flags: c_int) -> c_int, kernel = SYS_unlinkat, look = look::path(path);
        fn remove(path: *const c_char) -> c_int, kernel = none, look = look::path(path);
        fn mkdir(path: *const c_char, mode: mode_t) -> c_int, kernel = SYS_mkdir, look = look::path(path);
        fn mkdirat(at: c_int, path: *const c_char, mode: mode_t) -> c_int, kernel = SYS_mkdirat, look = look::path(path);
        fn rmdir(path: *const c_char) -> c_int, kernel = SYS_rmdir, look = look::path(path);
        fn link(path: *const c_char, new: *const c_char) -> c_int, kernel = SYS_link, look = look::path(path);
        fn linkat(at: c_int, path: *const c_char, new_at: c_int, new: *const c_char, flags: c_int) -> c_int, kernel = SYS_linkat, look = look::below(at, path);
        fn symlink(target: *const c_char, path: *const c_char) -> c_int, kernel = SYS_symlink, look = look::path(path);
        fn symlinkat(target: *const c_char, at: c_int, path: *const c_char) -> c_int, kernel = SYS_symlinkat, look = look::path(path);
        fn readlink(path: *const c_char, buf: *mut c_char, len: size_t) -> ssize_t, kernel = SYS_readlink, look = look::path(path);
        fn __readlink_chk(path: *const c_char, buf: *mut c_char, len: size_t, room: size_t) -> ssize_t, kernel = none, look = look::path(path);
        fn readlinkat(at: c_int, path: *const c_char, buf: *mut c_char, len: size_t) -> ssize_t, kernel = SYS_readlinkat, look = look::below(at, path);
        fn __readlinkat_chk(at: c_int, path: *const c_char, buf: *mut c_char, len: size_t, room: size_t) -> ssize_t, kernel = none, look = look::below(at, path);
        fn realpath(path: *const c_char, out: *mut c_char) -> *mut c_char, kernel = none, look = look::path(path);
        fn __realpath_chk(path: *const c_char, out: *mut c_char, room: size_t) -> *mut c_char, kernel = none, look = look::path(path);
        fn canonicalize_file_name(path: *const c_char) -> *mut c_char, kernel = none, look = look::path(path);
        fn fdopendir(fd: c_int) -> *mut DIR, kernel = none, look = look::file(fd);
        fn readdir(stream: *mut DIR) -> *mut c_void, kernel = none, look = look::entry(stream);
        fn readdir64(stream: *mut DIR) -> *mut c_void, kernel = none, look = look::entry(stream);
        fn readdir_r(stream: *mut DIR, entry: *mut c_void, found: *mut *mut c_void) -> c_int, kernel = none, look = look::entry(stream);
        fn readdir64_r(stream: *mut DIR, entry: *mut c_void, found: *mut *mut c_void) -> c_int, kernel = none, look = look::entry(stream);
        fn getdents64(fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t, kernel = SYS_getdents64, look = look::file(fd);
        fn truncate(path: *const c_char, len: off_t) -> c_int, kernel = SYS_truncate, look = look::path(path);
        fn truncate64(path: *const c_char, len: off_t) -> c_int, kernel = SYS_truncate, look = look::path(path);
        fn ftruncate(fd: c_int, len: off_t) -> c_int, kernel = SYS_ftruncate, look = look::file(fd);
        fn ftruncate64(fd: c_int, len: off_t) -> c_int, kernel = SYS_ftruncate, look = look::file(fd);
        fn fallocate(fd: c_int, mode: c_int, at: off_t, len: off_t) -> c_int, kernel = SYS_fallocate, look = look::file(fd);
        fn fallocate64(fd: c_int, mode: c_int, at: off_t, len: off_t) -> c_int, kernel = SYS_fallocate, look = look::file(fd);
        fn posix_fallocate(fd: c_int, at: off_t, len: off_t) -> c_int, kernel = none, look = look::file(fd);
        fn posix_fallocate64(fd: c_int, at: off_t, len: off_t) -> c_int, kernel = none, look = look::file(fd);
        fn statfs(path: *const c_char, out: *mut c_void) -> c_int, kernel = SYS_statfs, look = look::path(path);
        fn statfs64(path: *const c_char, out: *mut c_void) -> c_int, kernel = SYS_statfs, look = look::path(path);
        fn fstatfs(fd: c_int, out: *mut c_void) -> c_int, kernel = SYS_fstatfs, look = look::file(fd);
        fn fstatfs64(fd: c_int, out: *mut c_void) -> c_int, kernel = SYS_fstatfs, look = look::file(fd);
        fn statvfs(path: *const c_char, out: *mut c_void) -> c_int, kernel = none, look = look::path(path);
        fn statvfs64(path: *const c_char, out: *mut c_void) -> c_int, kernel = none, look = look::path(path);
        fn fstatvfs(fd: c_int, out: *mut c_void) -> c_int, kernel = none, look = look::file(fd);
        fn fstatvfs64(fd: c_int, out: *mut c_void) -> c_int, kernel = none, look = look::file(fd);
        fn chmod(path: *const c_char, mode: mode_t) -> c_int, kernel = SYS_chmod, look = look::path(path);
        fn fchmod(fd: c_int, mode: mode_t) -> c_int, kernel = SYS_fchmod, look = look::file(fd);
        fn fchmodat(at: c_int, path: *const c_char, mode: mode_t, flags: c_int) -> c_int, kernel = none, look = look::below(at, path);
        fn chown(path: *const c_char, owner: c_uint, group: c_uint) -> c_int, kernel = SYS_chown, look = look::path(path);
        fn lchown(path: *const c_char, owner: c_uint, group: c_uint) -> c_int, kernel = SYS_lchown, look = look::path(path);
        fn fchown(fd: c_int, owner: c_uint, group: c_uint) -> c_int, kernel = SYS_fchown, look = look::file(fd);
        fn fchownat(at: c_int, path: *const c_char, owner: c_uint, group: c_uint, flags: c_int) -> c_int, kernel = SYS_fchownat, look = look::below(at, path);
        fn utime(path: *const c_char, times: *const c_void) -> c_int, kernel = SYS_utime, look = look::path(path);
        fn utimes(path: *const c_char, times: *const timeval) -> c_int, kernel = SYS_utimes, look = look::path(path);
        fn utimensat(at: c_int, path: *const c_char, times: *const timespec, flags: c_int) -> c_int, kernel = SYS_utimensat, look = look::below(at, path);
        fn futimens(fd: c_int, times: *const timespec) -> c_int, kernel = none, look = look::file(fd);
    }
    "file-lock" {
        fn flock(fd: c_int, operation: c_int) -> c_int, kernel = SYS_flock, look = look::flock(fd, operation);
        fn lockf(fd: c_int, command: c_int, len: off_t) -> c_int, kernel = none, look = look::lock(fd, command == libc::F_LOCK);
        fn lockf64(fd: c_int, command: c_int, len: off_t) -> c_int, kernel = none, look = look::lock(fd, command == libc::F_LOCK);
    }
    by {
        "file" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int, kernel = SYS_open,
            real => opened(Id::open, path, real);
        "file" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int, kernel = SYS_open,
            real => opened(Id::open64, path, real);
        "file" fn openat(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int, kernel = SYS_openat,
            real => opened(Id::openat, path, real);
        "file" fn openat64(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int, kernel = SYS_openat,
            real => opened(Id::openat64, path, real);
        "file" fn __open_2(path: *const c_char, flags: c_int) -> c_int, kernel = SYS_open,
            real => opened(Id::__open_2, path, real);
        "file" fn __open64_2(path: *const c_char, flags: c_int) -> c_int, kernel = SYS_open,
            real => opened(Id::__open64_2, path, real);
        "file" fn __openat_2(at: c_int, path: *const c_char, flags: c_int) -> c_int, kernel = SYS_openat,
            real => opened(Id::__openat_2, path, real);
        "file" fn __openat64_2(at: c_int, path: *const c_char, flags: c_int) -> c_int, kernel = SYS_openat,
            real => opened(Id::__openat64_2, path, real);
        "file" fn creat(path: *const c_char, mode: mode_t) -> c_int, kernel = SYS_creat,
            real => opened(Id::creat, path, real);
        "file" fn creat64(path: *const c_char, mode: mode_t) -> c_int, kernel = SYS_creat,
            real => opened(Id::creat64, path, real);
        "file" fn opendir(path: *const c_char) -> *mut DIR, kernel = none,
            real => special::directory(Id::opendir, path, real);
        "spawn" fn posix_spawn(pid: *mut pid_t, path: *const c_char, actions: *const c_void, attributes: *const c_void, args: *const *mut c_char, env: *const *mut c_char) -> c_int,
            kernel = none, real => special::spawned(Id::posix_spawn, pid, path, real);
        "spawn" fn posix_spawnp(pid: *mut pid_t, name: *const c_char, actions: *const c_void, attributes: *const c_void, args: *const *mut c_char, env: *const *mut c_char) -> c_int,
            kernel = none, real => special::spawned(Id::posix_spawnp, pid, name, real);
        "spawn" fn fork() -> pid_t, kernel = SYS_fork,
            real => special::forked(Id::fork, real);
        "net" fn accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int, kernel = SYS_accept,
            real => accepted(Id::accept, fd, real);
        "net" fn accept4(fd: c_int, address: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int, kernel = SYS_accept4,
            real => accepted(Id::accept4, fd, real);
        "io-wait" fn epoll_wait(epfd: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int, kernel = SYS_epoll_wait,
            real => match turning(epfd, timeout) {
                true => real(),
                false => match reentry::watched() {
                None => real(),
                Some(slot) => observe::epoll(slot, CallId(Id::epoll_wait as u16), epfd, timeout != 0, real,
                    || epoll_now(epfd, events, max), |r| at_once(*r == -1)),
            }};
        "io-wait" fn epoll_pwait(epfd: c_int, events: *mut epoll_event, max: c_int, timeout: c_int, mask: *const sigset_t) -> c_int, kernel = none,
            real => match reentry::watched() {
                None => real(),
                Some(slot) => observe::epoll(slot, CallId(Id::epoll_pwait as u16), epfd, timeout != 0, real,
                    || if mask.is_null() { epoll_now(epfd, events, max) } else { None }, |r| at_once(*r == -1)),
            };
        "io-wait" fn epoll_pwait2(epfd: c_int, events: *mut epoll_event, max: c_int, timeout: *const timespec, mask: *const sigset_t) -> c_int, kernel = none,
            real => match reentry::watched() {
                None => real(),
                Some(slot) => observe::epoll(slot, CallId(Id::epoll_pwait2 as u16), epfd,
                    timeout.is_null() || look::nanos(timeout) != 0, real,
                    || if mask.is_null() { epoll_now(epfd, events, max) } else { None }, |r| at_once(*r == -1)),
            };
        "sync" fn syscall(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long, kernel = none,
            real => {
                let _ = real;
                if number == libc::SYS_futex && b & FUTEX_COMMAND == libc::FUTEX_WAKE as usize {
                    if let Some(slot) = slots::own() {
                        slot.woke();
                    }
                    // Waking has no further arguments: called with these it ends in a jump.
                    if let Some(address) = reals::syscall.address() {
                        return core::mem::transmute::<usize, unsafe extern "C-unwind" fn(c_long, usize, usize, usize) -> c_long>(address)(number, a, b, c);
                    }
                }
                by_number(number, a, b, c, d, e, f)
            };
        "infrastructure" fn pthread_create(thread: *mut pthread_t, attr: *const pthread_attr_t, begin: Start, arg: *mut c_void) -> c_int, kernel = none,
            real => match reals::pthread_create.address() {
                None => real(),
                Some(address) => births::create(thread, attr, begin, arg,
                    core::mem::transmute::<usize, unsafe extern "C-unwind" fn(*mut pthread_t, *const pthread_attr_t, Start, *mut c_void) -> c_int>(address)),
            };
        "infrastructure" fn close(fd: c_int) -> c_int, kernel = SYS_close,
            real => { descriptors::forget(fd); descriptors::forget_driver(fd); real() };
        "infrastructure" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int, kernel = SYS_close_range,
            real => { descriptors::forget_range(first as i32, last.min(i32::MAX as u32) as i32); real() };
        "infrastructure" fn dup(fd: c_int) -> c_int, kernel = SYS_dup,
            real => { let new = real(); descriptors::duplicated(new); new };
        "infrastructure" fn dup2(fd: c_int, onto: c_int) -> c_int, kernel = SYS_dup2,
            real => { let new = real(); descriptors::duplicated(new); new };
        "infrastructure" fn dup3(fd: c_int, onto: c_int, flags: c_int) -> c_int, kernel = SYS_dup3,
            real => { let new = real(); descriptors::duplicated(new); new };
        "file-lock" fn fcntl(fd: c_int, command: c_int, arg: c_ulong) -> c_int, kernel = SYS_fcntl,
            real => if is_of_interest(command) { controlled(Id::fcntl, fd, command, arg) } else { real() };
        "file-lock" fn fcntl64(fd: c_int, command: c_int, arg: c_ulong) -> c_int, kernel = SYS_fcntl,
            real => if is_of_interest(command) { controlled(Id::fcntl64, fd, command, arg) } else { real() };
        "infrastructure" fn ioctl(fd: c_int, request: c_ulong, arg: c_ulong) -> c_int, kernel = SYS_ioctl,
            real => {
                let result = real();
                // Afterwards: whoever asks in between remembers the old mode.
                if request == libc::FIONBIO { descriptors::mode_changed(fd); }
                result
            };
        "infrastructure" fn closefrom(first: c_int) -> (), kernel = none,
            real => { descriptors::forget_range(first, i32::MAX); real() };
        "infrastructure" fn fclose(stream: *mut FILE) -> c_int, kernel = none,
            real => { descriptors::forget(number_of(stream)); real() };
        "infrastructure" fn freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE, kernel = none,
            real => { descriptors::forget(number_of(stream)); real() };
        "infrastructure" fn freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE, kernel = none,
            real => { descriptors::forget(number_of(stream)); real() };
        "infrastructure" fn closedir(stream: *mut libc::DIR) -> c_int, kernel = none,
            real => {
                if !stream.is_null() { descriptors::forget(libc::dirfd(stream)); }
                real()
            };
        "infrastructure" fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int, kernel = SYS_socketpair,
            real => {
                let result = real();
                if result == 0 { descriptors::forget(*pair); descriptors::forget(*pair.add(1)); }
                result
            };
        "infrastructure" fn pipe(ends: *mut c_int) -> c_int, kernel = SYS_pipe,
            real => special::piped(ends, real());
        "infrastructure" fn pipe2(ends: *mut c_int, flags: c_int) -> c_int, kernel = SYS_pipe2,
            real => special::piped(ends, real());
        "infrastructure" fn eventfd(count: c_uint, flags: c_int) -> c_int, kernel = SYS_eventfd2,
            real => { let fd = real(); descriptors::forget(fd); fd };
        "infrastructure" fn timerfd_create(clock: c_int, flags: c_int) -> c_int, kernel = SYS_timerfd_create,
            real => { let fd = real(); descriptors::forget(fd); fd };
        "infrastructure" fn signalfd(fd: c_int, mask: *const sigset_t, flags: c_int) -> c_int, kernel = none,
            real => { let fd = real(); descriptors::forget(fd); fd };
        "infrastructure" fn inotify_init1(flags: c_int) -> c_int, kernel = SYS_inotify_init1,
            real => { let fd = real(); descriptors::forget(fd); fd };
        // As the C library's malloc and our own table may be: nothing but a flag is raised.
        "infrastructure" fn getrandom(buf: *mut c_void, len: size_t, flags: c_uint) -> ssize_t, kernel = SYS_getrandom,
            real => { births::random_bytes(); real() };
        "infrastructure" fn epoll_create(size: c_int) -> c_int, kernel = SYS_epoll_create,
            real => { let fd = real(); descriptors::forget(fd); fd };
        "infrastructure" fn longjmp(to: *mut c_void, value: c_int) -> (), kernel = none,
            real => { reentry::jumped(); real() };
        "infrastructure" fn _longjmp(to: *mut c_void, value: c_int) -> (), kernel = none,
            real => { reentry::jumped(); real() };
        "infrastructure" fn siglongjmp(to: *mut c_void, value: c_int) -> (), kernel = none,
            real => { reentry::jumped(); real() };
        "infrastructure" fn __longjmp_chk(to: *mut c_void, value: c_int) -> (), kernel = none,
            real => { reentry::jumped(); real() };
        "infrastructure" fn pthread_exit(value: *mut c_void) -> (), kernel = none,
            real => { births::ending(); real() };
        "infrastructure" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int, kernel = SYS_socket,
            real => { let fd = real(); descriptors::forget(fd); fd };
        "infrastructure" fn epoll_create1(flags: c_int) -> c_int, kernel = SYS_epoll_create1,
            real => {
                let fd = real();
                descriptors::forget(fd);
                descriptors::forget_driver(fd);
                if let Some(slot) = reentry::watched() {
                    // Most often a runtime is being built: the test takes its name now.
                    let errno = raw::errno();
                    slot.raise(flag::BUILDER);
                    births::label(slot);
                    observe::rouse();
                    raw::set_errno(errno);
                }
                fd
            };
        "infrastructure" fn _exit(code: c_int) -> (), kernel = none,
            real => {
                let _ = real;
                raw::syscall(libc::SYS_exit_group, [super::start::gate_elsewhere(code) as usize]);
            };
        "infrastructure" fn _Exit(code: c_int) -> (), kernel = none,
            real => {
                let _ = real;
                raw::syscall(libc::SYS_exit_group, [super::start::gate_elsewhere(code) as usize]);
            };
    }
}

/// `open` and its kin: timed, and the descriptor they return is a new one.
#[inline(always)]
unsafe fn opened(id: Id, path: *const c_char, real: impl FnOnce() -> c_int) -> c_int {
    let watched = if reentry::concerned(true) { reentry::watched() } else { None };
    let Some(slot) = watched else {
        let fd = real();
        descriptors::forget(fd);
        return fd;
    };
    // SAFETY: the caller's own arguments.
    let fd = unsafe {
        let look = look::path(path);
        let seen = observe::glance();
        observe::call(slot, seen, CallId(id as u16), look, real, || None, |r| at_once(*r == -1))
    };
    descriptors::forget(fd);
    fd
}

/// `accept`: waits, and returns a new descriptor.
#[inline(always)]
unsafe fn accepted(id: Id, fd: c_int, real: impl FnOnce() -> c_int) -> c_int {
    let watched = if reentry::concerned(true) { reentry::watched() } else { None };
    let new = match watched {
        None => real(),
        // SAFETY: the caller's own arguments.
        Some(slot) => unsafe {
            let look = look::socket(fd);
            let seen = observe::glance();
            observe::call(slot, seen, CallId(id as u16), look, real, || None, |r| at_once(*r == -1))
        },
    };
    descriptors::forget(new);
    new
}

/// Whether a command of `fcntl` changes what is remembered, or waits. The others end in a jump.
#[inline(always)]
fn is_of_interest(command: c_int) -> bool {
    matches!(
        command,
        libc::F_SETFL | libc::F_DUPFD | libc::F_DUPFD_CLOEXEC | libc::F_SETLKW | libc::F_OFD_SETLKW
    )
}

/// `fcntl` with such a command.
#[inline(never)]
unsafe fn controlled(id: Id, fd: c_int, command: c_int, arg: c_ulong) -> c_int {
    let real = || match reals::fcntl.address() {
        // SAFETY: libc's own function of this type, with the caller's own arguments.
        Some(address) => unsafe {
            core::mem::transmute::<usize, unsafe extern "C-unwind" fn(c_int, c_int, c_ulong) -> c_int>(
                address,
            )(fd, command, arg)
        },
        None => c_int::from_kernel(kernel!(SYS_fcntl, fd, command, arg)),
    };
    if fd == PROBE {
        PROBED.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        return real();
    }
    if matches!(command, libc::F_SETLKW | libc::F_OFD_SETLKW) {
        // SAFETY: the caller's own call.
        return unsafe { special::locked(id, fd, real) };
    }
    let result = real();
    controlled_by(command, fd, result);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_force_and_has_a_real_one() {
        for row in ROWS {
            let name = std::ffi::CString::new(row.name).unwrap();
            let own = own_address(&name).unwrap();
            // SAFETY: a null-terminated name.
            let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as usize;
            assert_eq!(first, own, "{} is not ours", row.name);
            let real = Real::new(Box::leak(name.into_boxed_c_str()));
            let real = real.find().unwrap_or_else(|| panic!("no real {}", row.name));
            assert_ne!(real, own, "{}", row.name);
        }
    }
}
