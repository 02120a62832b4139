//! Taking stacks: on the thread itself, inside an interposed call ([`own`]), and of a thread that
//! was signalled ([`handler`] copies, [`unwind`] works the copy out later).

pub mod arena;
pub mod handler;
pub mod own;
pub mod unwind;
