//! Our definitions of libc's functions. The linker lets them win over libc's, also for C code and,
//! through the dynamic symbol table, for shared libraries.
//!
//! - [`table`]: the one declarative table; it generates every exported function,
//! - [`look`]: a cheap look at the arguments: may this call block at all?
//! - [`observe`]: what happens around a call that may,
//! - [`sums`]: short calls of one poll, added up,
//! - [`descriptors`]: the cache of descriptor modes,
//! - [`births`]: threads, from `pthread_create` to their end,
//! - [`ready`]: the same calls without waiting,
//! - [`started`]: what the running poll has started itself,
//! - [`real`]: libc's own functions,
//! - [`reentry`]: whether we watch here and now; the depth guard.
//!
//! Rules for all of it: no allocation, no lock, no formatting, no panic, no lazy thread-local; no
//! local with a destructor around a real call; errno is kept. Each file names what it calls.

pub mod births;
pub mod descriptors;
pub mod look;
pub mod observe;
pub mod ready;
pub mod real;
pub mod reentry;
pub mod start;
pub mod started;
pub mod sums;
pub mod table;
