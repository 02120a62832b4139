//! Known findings: the list that `STALLHOUND=bless` writes, and what it excuses.
//!
//! - [`entry`]: one line of the list,
//! - [`list`]: the whole text, read and written,
//! - [`run`]: what one process looked for and saw, held against the list.
//!
//! Text and reports come in as values; the front end (`bless.rs`) opens the file.

pub mod entry;
pub mod list;
pub mod run;

pub use list::{List, FILE};
pub use run::{Changes, Run, Sightings};

#[cfg(test)]
mod tests;
