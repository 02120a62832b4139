//! stallhound (crate page to come)

pub mod ids;
pub mod error;
pub mod config;
pub mod evidence;
pub mod report;
mod sys;
mod slots;
mod capture;
mod hooks;
mod watchdog;
#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
