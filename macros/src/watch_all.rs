//! `configure!`: the settings of a `watch_all!` line.
//!
//! The static that arms is written in `stallhound`'s own `macro_rules! watch_all`, because lints
//! and editions go by where a token comes from: in there `#[link_section]` is neither an error
//! under `#![forbid(unsafe_code)]` nor wrong in edition 2024.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::{parenthesized, Result};

use crate::args::{Arguments, Place};

pub fn expand(input: TokenStream) -> TokenStream {
    let settings = |input: ParseStream<'_>| -> Result<TokenStream> {
        let content;
        parenthesized!(content in input);
        let plain: TokenStream = content.parse()?;
        let limits = Arguments::parse(Place::WatchAll, input)?.limits;
        Ok(quote!(#plain #limits))
    };
    settings.parse2(input).unwrap_or_else(|error| error.to_compile_error())
}
