//! Judgement. Pure: evidence and names come in as values, a level comes out.
//!
//! - [`context`]: may this thread block right now? Tokio's facts and the stack say so,
//! - [`paths`]: functions, as rules spell them and as builds leave them,
//! - [`rules`]: the allowances, those of any crate included,
//! - [`exempt`]: whether one of them, or the nature of a wait, excuses a stack,
//! - [`classify`]: the decision table.

pub mod classify;
pub mod context;
pub mod exempt;
pub mod paths;
pub mod rules;
