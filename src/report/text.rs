//! The text report.
#![forbid(unsafe_code)]
use super::model::Report;
pub struct Style;
impl Style { pub fn plain() -> Style { Style } }
pub fn render(_report: &Report, _style: &Style) -> String { String::new() }
