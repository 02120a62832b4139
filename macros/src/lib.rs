//! The macros behind `stallhound::watch_all!`, `#[stallhound::test]` and `#[stallhound::watch]`.
//!
//! Depend on `stallhound`; this crate is pinned by it to one exact version and has no interface
//! of its own. What the macros do for a user is written where `stallhound` re-exports them. Here:
//!
//! - `args` reads the arguments, `duration` the limits among them, `categories` has their names;
//! - `function` takes a function apart without looking into its body;
//! - one module for each macro: `allowance`, `watch_all`, `test_attribute`, `watch`, `guard`.
//!
//! Expansions name nothing of `stallhound` but its `__private` module.
#![forbid(unsafe_code)]

mod allowance;
mod args;
mod categories;
mod duration;
mod function;
mod guard;
mod test_attribute;
mod watch;
mod watch_all;

use proc_macro::TokenStream;

/// `#[stallhound::test]`. Its docs are in `stallhound`.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    test_attribute::expand(arguments.into(), item.into()).into()
}

/// `#[stallhound::watch]`. Its docs are in `stallhound`.
#[proc_macro_attribute]
pub fn watch(arguments: TokenStream, item: TokenStream) -> TokenStream {
    watch::expand(arguments.into(), item.into()).into()
}

/// What `#[stallhound::test]` leaves on the function for after tokio's attribute.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn guard(arguments: TokenStream, item: TokenStream) -> TokenStream {
    guard::expand(arguments.into(), item.into()).into()
}

/// `configure! { (SETTINGS) name = value, … }`: the settings with the arguments of `watch_all!`.
#[doc(hidden)]
#[proc_macro]
pub fn configure(input: TokenStream) -> TokenStream {
    watch_all::expand(input.into()).into()
}

/// `declare! { (ALLOWANCE) name = value, … }`: the allowance with the parts of `allowance!`.
#[doc(hidden)]
#[proc_macro]
pub fn declare(input: TokenStream) -> TokenStream {
    allowance::expand(input.into()).into()
}
