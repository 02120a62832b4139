//! System calls by number. The result is the kernel's: a negative number is `-errno`.
//!
//! Calls nothing at all.

use core::arch::asm;

/// One system call with six arguments; surplus ones are ignored by the kernel.
///
/// # Safety
///
/// - As the system call `number` demands of its arguments: pointers valid for what the kernel
///   reads or writes through them.
#[inline]
pub unsafe fn syscall6(number: i64, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the x86-64 Linux convention: number in rax, arguments in rdi, rsi, rdx, r10, r8,
    // r9; rcx and r11 are overwritten; memory may be read and written as the caller vouched for.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// As [`syscall6`], with the arguments there are; the rest is 0.
///
/// # Safety
///
/// As [`syscall6`].
#[inline]
pub unsafe fn syscall<const N: usize>(number: i64, args: [usize; N]) -> isize {
    let mut six = [0usize; 6];
    let mut i = 0;
    while i < N && i < 6 {
        six[i] = args[i];
        i += 1;
    }
    // SAFETY: passed on to the caller.
    unsafe { syscall6(number, six) }
}

/// This thread's `errno`.
#[inline]
pub fn errno() -> i32 {
    // SAFETY: glibc's own accessor; the pointer is valid for this thread's whole life.
    unsafe { *libc::__errno_location() }
}

/// Sets this thread's `errno`.
#[inline]
pub fn set_errno(value: i32) {
    // SAFETY: as in `errno`.
    unsafe { *libc::__errno_location() = value }
}

/// What a libc function makes of a kernel's answer: -1 and `errno`, or the number.
#[inline]
pub fn to_libc(result: isize) -> isize {
    if (-4095..0).contains(&result) {
        set_errno(-result as i32);
        -1
    } else {
        result
    }
}
