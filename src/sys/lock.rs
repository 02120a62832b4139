//! A lock between processes on an open file or folder, which ends with the process at the latest.

use super::raw::syscall;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Takes the lock if nobody else has it. It is given back when the last copy of the descriptor is
/// closed.
pub fn try_exclusive(file: BorrowedFd<'_>) -> bool {
    let operation = (libc::LOCK_EX | libc::LOCK_NB) as usize;
    // SAFETY: numbers only; the descriptor is open, since it is borrowed.
    unsafe { syscall(libc::SYS_flock, [file.as_raw_fd() as usize, operation]) == 0 }
}
