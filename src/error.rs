//! Errors of settings and arming: each names its place and the remedy.
#![forbid(unsafe_code)]

use std::fmt;

/// Something a user wrote that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingError {
    /// Where it was written, e.g. `environment variable STALLHOUND`.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.problem, self.remedy)
    }
}

impl std::error::Error for SettingError {}
