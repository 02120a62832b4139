//! Writing to the standard error stream, past any capture and buffer.

use super::raw::syscall;

/// Writes all of `bytes` to descriptor 2. Gives up on the first error that is not an
/// interruption: there is nobody left to tell.
pub fn stderr(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: `bytes` is valid for its length.
        let n = unsafe { syscall(libc::SYS_write, [2, bytes.as_ptr() as usize, bytes.len()]) };
        if n == -(libc::EINTR as isize) {
            continue;
        }
        if n == -(libc::EAGAIN as isize) {
            let mut poll = libc::pollfd { fd: 2, events: libc::POLLOUT, revents: 0 };
            // SAFETY: one pollfd, a local.
            unsafe { syscall(libc::SYS_poll, [&mut poll as *mut _ as usize, 1, 1000]) };
            continue;
        }
        if n <= 0 {
            return;
        }
        bytes = &bytes[n as usize..];
    }
}

/// Whether descriptor 2 is a terminal.
pub fn stderr_is_terminal() -> bool {
    let mut termios = [0u8; 256];
    // SAFETY: TCGETS writes less than 256 bytes.
    let rc = unsafe {
        syscall(libc::SYS_ioctl, [2, libc::TCGETS as usize, termios.as_mut_ptr() as usize])
    };
    rc == 0
}
