//! Names for addresses, at report time: files, lines, inlined functions, and whose code it is.
//!
//! - [`modules`]: which loaded file an address lies in,
//! - [`names`]: readable function names,
//! - [`origin`]: whose code a frame is,
//! - [`source`]: source files, and whether a line of them is test code,
//! - [`resolve`]: all of it together.

pub mod modules;
pub mod names;
pub mod origin;
pub mod resolve;
pub mod source;

pub use origin::Package;
pub use resolve::{harness_of, Grounds, Symbolizer};
