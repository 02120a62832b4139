//! What a file descriptor is.

use super::raw::syscall;

/// The kinds of file descriptors that are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A regular file or a directory.
    File = 1,
    /// A stream socket.
    Stream = 2,
    /// A datagram socket (UDP, unix datagram).
    Datagram = 3,
    /// Anything else: devices, netlink, epoll, ….
    Other = 4,
    /// A pipe or FIFO, or an eventfd, timerfd, signalfd, inotify.
    Pipe = 5,
    /// A terminal, or what the process has as its standard input, output or error stream.
    Standard = 6,
}

/// The highest number of a standard stream.
const STANDARD: i32 = 2;

fn stat(fd: i32) -> Option<libc::stat> {
    // SAFETY: the pointer is to a local of the right size, which the kernel fills.
    unsafe {
        let mut st: libc::stat = core::mem::zeroed();
        let rc = syscall(libc::SYS_fstat, [fd as usize, &mut st as *mut _ as usize]);
        (rc == 0).then_some(st)
    }
}

/// Asks the kernel (fstat, and getsockopt for sockets). `None`: not open.
pub fn kind(fd: i32) -> Option<Kind> {
    let st = stat(fd)?;
    let kind = match st.st_mode & libc::S_IFMT {
        // Files of /proc and /sys are regular files too, but nothing to wait for.
        libc::S_IFREG | libc::S_IFDIR if !pseudo(fd) => Kind::File,
        libc::S_IFSOCK => match (option(fd, libc::SO_DOMAIN), option(fd, libc::SO_TYPE)) {
            (_, Some(libc::SOCK_STREAM | libc::SOCK_SEQPACKET)) => Kind::Stream,
            (Some(libc::AF_INET | libc::AF_INET6 | libc::AF_UNIX), Some(libc::SOCK_DGRAM)) => {
                Kind::Datagram
            }
            _ => Kind::Other,
        },
        libc::S_IFIFO if is_standard(&st) => Kind::Standard,
        // Nothing that has a name: what can be read of these is an event.
        libc::S_IFIFO | 0 => Kind::Pipe,
        libc::S_IFCHR if terminal(fd) => Kind::Standard,
        _ => Kind::Other,
    };
    Some(match kind {
        Kind::Other => kind,
        _ if fd <= STANDARD => Kind::Standard,
        _ => kind,
    })
}

/// Whether a pipe is another name of one of the standard streams.
fn is_standard(pipe: &libc::stat) -> bool {
    let same = |st: libc::stat| st.st_dev == pipe.st_dev && st.st_ino == pipe.st_ino;
    (0..=STANDARD).any(|fd| stat(fd).is_some_and(same))
}

fn terminal(fd: i32) -> bool {
    // SAFETY: the pointer is to a local larger than the kernel's `termios`.
    unsafe {
        let mut settings: libc::termios = core::mem::zeroed();
        let args = [fd as usize, libc::TCGETS as usize, &mut settings as *mut _ as usize];
        syscall(libc::SYS_ioctl, args) == 0
    }
}

/// Whether a path names a FIFO.
///
/// # Safety
///
/// - `path` is null-terminated.
pub unsafe fn is_fifo(path: *const libc::c_char) -> bool {
    // SAFETY: null-terminated by the contract; `st` is a local of the right size.
    unsafe {
        let mut st: libc::stat = core::mem::zeroed();
        syscall(libc::SYS_stat, [path as usize, &mut st as *mut _ as usize]) == 0
            && st.st_mode & libc::S_IFMT == libc::S_IFIFO
    }
}

/// Whether the file lies in procfs, sysfs or a cgroup file system.
fn pseudo(fd: i32) -> bool {
    const PROC: i64 = 0x9fa0;
    const SYSFS: i64 = 0x6265_6572;
    const CGROUP: i64 = 0x0027_e0eb;
    const CGROUP2: i64 = 0x6367_7270;
    // SAFETY: `fs` is a local of the right size.
    unsafe {
        let mut fs: libc::statfs = core::mem::zeroed();
        syscall(libc::SYS_fstatfs, [fd as usize, &mut fs as *mut _ as usize]) == 0
            && matches!(fs.f_type as i64, PROC | SYSFS | CGROUP | CGROUP2)
    }
}

fn option(fd: i32, name: i32) -> Option<i32> {
    let mut value = 0i32;
    let mut len = core::mem::size_of::<i32>() as libc::socklen_t;
    // SAFETY: pointers to locals; `len` says how large `value` is.
    let rc = unsafe {
        syscall(
            libc::SYS_getsockopt,
            [
                fd as usize,
                libc::SOL_SOCKET as usize,
                name as usize,
                &mut value as *mut _ as usize,
                &mut len as *mut _ as usize,
            ],
        )
    };
    (rc == 0).then_some(value)
}

/// Whether `O_NONBLOCK` is set. A descriptor that is not open counts as non-blocking: the call
/// will fail at once.
pub fn nonblocking(fd: i32) -> bool {
    // SAFETY: no pointers.
    let flags = unsafe { syscall(libc::SYS_fcntl, [fd as usize, libc::F_GETFL as usize]) };
    flags < 0 || flags as i32 & libc::O_NONBLOCK != 0
}

/// The path behind a descriptor (`/proc/self/fd/N`), as far as it fits. Returns its length.
pub fn path(fd: i32, out: &mut [u8]) -> usize {
    let mut name = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut at = 14;
    let mut digits = [0u8; 10];
    let mut n = fd.max(0) as u32;
    let mut i = digits.len();
    loop {
        i -= 1;
        digits[i] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    for d in &digits[i..] {
        name[at] = *d;
        at += 1;
    }
    // SAFETY: `name` is null-terminated, `out` valid for its length.
    let n = unsafe {
        syscall(
            libc::SYS_readlinkat,
            [libc::AT_FDCWD as usize, name.as_ptr() as usize, out.as_mut_ptr() as usize, out.len()],
        )
    };
    n.max(0) as usize
}

/// The raw socket address of this end (`peer == false`) or the other. Returns its length.
pub fn address(fd: i32, peer: bool, out: &mut [u8]) -> usize {
    let mut len = out.len() as libc::socklen_t;
    let call = if peer { libc::SYS_getpeername } else { libc::SYS_getsockname };
    // SAFETY: `out` is valid for `len` bytes.
    let rc = unsafe {
        syscall(call, [fd as usize, out.as_mut_ptr() as usize, &mut len as *mut _ as usize])
    };
    if rc == 0 {
        (len as usize).min(out.len())
    } else {
        0
    }
}
