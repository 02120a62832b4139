//! From judged evidence to bytes: [`model`] is the plain result, the other modules render it.
pub mod build;
pub mod model;
pub mod text;
