//! The watchdog: one thread that looks at every worker that has not returned to its scheduler,
//! and collects what the interposed functions recorded.
//!
//! - [`cadence`]: ticks, and how late they are,
//! - [`thread`]: the loop, which sleeps while every worker is parked,
//! - [`track`]: one thread over time: which poll, how long, asleep or busy,
//! - [`excuse`]: how much of a wait was the machine's fault,
//! - [`collect`]: records become evidence,
//! - [`watch`]: all of it together.

pub mod cadence;
pub mod collect;
pub mod excuse;
pub mod thread;
pub mod track;
pub mod watch;
