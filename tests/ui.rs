//! A mistake in an argument is an error on the very token, and says what is allowed.
//!
//! All text in `ui/*.stderr` is ours. What only a test build refuses is in `expansions.rs`.

#[test]
fn mistakes() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
