//! `/proc/self/task/TID/{schedstat,syscall}`, read into a stack buffer: open, read, close.

use super::raw::syscall;
use crate::ids::{CpuNanos, KernelTid, Nanos};

/// What the scheduler counts for one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchedStat {
    /// On a processor.
    pub ran: CpuNanos,
    /// Runnable, but waiting for a processor.
    pub waited: Nanos,
    /// How often it was put on a processor.
    pub slices: u64,
}

fn read_file<'b>(path: &[u8], buf: &'b mut [u8]) -> Option<&'b [u8]> {
    debug_assert_eq!(path.last(), Some(&0));
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    // SAFETY: `path` ends with a null byte; `buf` is valid for its length.
    unsafe {
        let fd =
            syscall(libc::SYS_openat, [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags]);
        if fd < 0 {
            return None;
        }
        let n = syscall(libc::SYS_read, [fd as usize, buf.as_mut_ptr() as usize, buf.len()]);
        syscall(libc::SYS_close, [fd as usize]);
        (n > 0).then(|| &buf[..n as usize])
    }
}

/// Writes `/proc/self/task/<tid>/<name>\0` without formatting machinery.
fn task_path(tid: KernelTid, name: &[u8], out: &mut [u8; 64]) -> usize {
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        for b in bytes {
            if at < 63 {
                out[at] = *b;
                at += 1;
            }
        }
    };
    put(b"/proc/self/task/");
    let mut digits = [0u8; 10];
    let mut n = tid.0.max(0) as u32;
    let mut i = digits.len();
    loop {
        i -= 1;
        digits[i] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    put(&digits[i..]);
    put(b"/");
    put(name);
    out[at] = 0;
    at + 1
}

fn number(text: &[u8], at: &mut usize) -> Option<u64> {
    while *at < text.len() && text[*at] == b' ' {
        *at += 1;
    }
    let begin = *at;
    let mut value = 0u64;
    while *at < text.len() && text[*at].is_ascii_digit() {
        value = value.wrapping_mul(10).wrapping_add((text[*at] - b'0') as u64);
        *at += 1;
    }
    (*at > begin).then_some(value)
}

/// Run time, run-queue wait and slices of a thread; `None` where the kernel keeps none or the
/// thread is gone. From outside a wait still being served is not counted yet.
pub fn of(tid: KernelTid) -> Option<SchedStat> {
    let mut path = [0u8; 64];
    let len = task_path(tid, b"schedstat", &mut path);
    let mut buf = [0u8; 96];
    let text = read_file(&path[..len], &mut buf)?;
    parse(text)
}

fn parse(text: &[u8]) -> Option<SchedStat> {
    let mut at = 0;
    Some(SchedStat {
        ran: CpuNanos(number(text, &mut at)?),
        waited: Nanos(number(text, &mut at)?),
        slices: number(text, &mut at)?,
    })
}

/// What a thread is doing in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InKernel {
    /// On a processor, or waiting for one.
    Running,
    /// Blocked, but not in a system call (a page fault).
    Fault,
    /// Blocked in this system call with these arguments.
    Call { number: i64, args: [u64; 6] },
}

/// Looks at `/proc/self/task/TID/syscall`; `None` where that is not to be had.
pub fn in_kernel(tid: KernelTid) -> Option<InKernel> {
    let mut path = [0u8; 64];
    let len = task_path(tid, b"syscall", &mut path);
    let mut buf = [0u8; 256];
    let text = read_file(&path[..len], &mut buf)?;
    parse_in_kernel(text)
}

fn parse_in_kernel(text: &[u8]) -> Option<InKernel> {
    if text.starts_with(b"running") {
        return Some(InKernel::Running);
    }
    if text.starts_with(b"-1") {
        return Some(InKernel::Fault);
    }
    let mut at = 0;
    let call = number(text, &mut at)? as i64;
    let mut args = [0u64; 6];
    for arg in &mut args {
        *arg = hex(text, &mut at)?;
    }
    Some(InKernel::Call { number: call, args })
}

fn hex(text: &[u8], at: &mut usize) -> Option<u64> {
    while *at < text.len() && text[*at] == b' ' {
        *at += 1;
    }
    if !text[*at..].starts_with(b"0x") {
        return None;
    }
    *at += 2;
    let mut value = 0u64;
    while let Some(digit) = text.get(*at).and_then(|b| (*b as char).to_digit(16)) {
        value = (value << 4) | digit as u64;
        *at += 1;
    }
    Some(value)
}

/// Whether some process traces this one (a debugger, a coverage tool).
pub fn traced() -> bool {
    let mut buf = [0u8; 2048];
    let Some(text) = read_file(b"/proc/self/status\0", &mut buf) else { return false };
    let key = b"TracerPid:";
    let Some(at) = text.windows(key.len()).position(|w| w == key) else { return false };
    let mut i = at + key.len();
    while text.get(i).is_some_and(|b| *b == b'\t' || *b == b' ') {
        i += 1;
    }
    text.get(i).is_some_and(|b| *b != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedstat_has_three_numbers() {
        assert_eq!(
            parse(b"12 345 6\n"),
            Some(SchedStat { ran: CpuNanos(12), waited: Nanos(345), slices: 6 })
        );
        assert_eq!(parse(b"12 345"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn syscall_line() {
        assert_eq!(parse_in_kernel(b"running\n"), Some(InKernel::Running));
        assert_eq!(parse_in_kernel(b"-1 0x7ffc 0x55\n"), Some(InKernel::Fault));
        assert_eq!(
            parse_in_kernel(b"202 0x10 0x80 0x0 0x0 0xff 0x1 0x7ffc 0x55\n"),
            Some(InKernel::Call { number: 202, args: [0x10, 0x80, 0, 0, 0xff, 1] })
        );
        assert_eq!(parse_in_kernel(b"202 0x10"), None);
    }

    #[test]
    fn own_thread_can_be_read() {
        let tid = crate::sys::thread::own_tid();
        let mut path = [0u8; 64];
        let len = task_path(tid, b"schedstat", &mut path);
        assert_eq!(&path[..len], format!("/proc/self/task/{}/schedstat\0", tid.0).as_bytes());
        let one = of(tid).expect("schedstat of the own thread");
        let begun = crate::sys::clock::own_cpu();
        while crate::sys::clock::own_cpu().0 - begun.0 < 20_000_000 {}
        let two = of(tid).expect("schedstat of the own thread");
        assert!(two.ran > one.ran, "{one:?} {two:?}");
        assert!(!traced() || cfg!(debug_assertions));
    }
}
