//! The operating system, as thin as it goes: raw system calls that neither touch `errno` nor pass
//! through our own definitions of libc's functions. Everything here may be called from a signal
//! handler and from an interposed function: no allocation, no lock, no formatting, no panic.

pub mod clock;
pub mod descriptor;
pub mod elf;
pub mod lock;
pub mod output;
pub mod raw;
pub mod schedstat;
pub mod signal;
pub mod thread;
