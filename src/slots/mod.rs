//! The lock-free ground between the program's threads and the watchdog: one [`slot::Slot`] a
//! thread, one [`queue`] of finished records, one arena of [`label`]s.
//!
//! Who writes what: a slot's owner-fields are written by its thread alone, its watch-fields by the
//! watchdog alone. All of it is static memory: nothing here allocates, locks or panics, so it may
//! be used in signal handlers and interposed functions.

pub mod alarm;
pub mod label;
pub mod queue;
pub mod record;
pub mod slot;
pub mod table;
