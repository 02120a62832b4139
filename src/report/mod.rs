//! From judged evidence to bytes: [`model`] is the plain result, the other modules render it.
pub mod allow;
pub mod build;
pub mod gather;
pub mod hints;
pub mod hot;
#[cfg(test)]
mod looks;
pub mod model;
pub mod pages;
pub mod text;
pub mod units;
