//! Judgement. Pure: evidence and names come in as values, a level comes out.
//!
//! - [`context`]: may this thread block right now? Tokio's facts and the stack say so,
//! - [`exempt`]: code below which nothing, or nothing hard, counts,
//! - [`classify`]: the decision table.

pub mod classify;
pub mod context;
pub mod exempt;
