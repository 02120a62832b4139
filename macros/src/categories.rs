/// What findings are called, as in reports. `tests/settings.rs` of `stallhound` holds this list
/// against the categories there are.
pub const CATEGORIES: &[&str] =
    &["sleep", "net", "io-wait", "dns", "process", "join", "disk", "sync", "file", "busy", "raw"];
