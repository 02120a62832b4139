//! What runs inside the program under test: look-ups in tokio and our definitions of libc's
//! functions. Hooks write facts into slots and decide nothing about guilt.

pub mod libc;
pub mod tokio;
