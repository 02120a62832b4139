//! `#[guard]`: wraps the whole body of a sync test function in a scope that is judged at its end.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned, ToTokens};
use syn::parse::{Parse, ParseStream};
use syn::{parenthesized, Error, Path, Result, ReturnType};

use crate::function::Function;

/// `(stallhound) .threshold_nanos(5) …`: what the public attributes made of their arguments.
pub struct Guard {
    /// Where our package is.
    pub stallhound: Path,
    /// Calls on `__private::Settings`.
    pub limits: TokenStream,
}

impl Parse for Guard {
    fn parse(input: ParseStream<'_>) -> Result<Guard> {
        let content;
        parenthesized!(content in input);
        let stallhound = content.call(Path::parse_mod_style)?;
        Ok(Guard { stallhound, limits: input.parse()? })
    }
}

pub fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let wrapped = syn::parse2(arguments)
        .and_then(|guard: Guard| guard.wrap(syn::parse2::<Function>(item.clone())?));
    match wrapped {
        Ok(function) => function.into_token_stream(),
        Err(error) => {
            let error = error.to_compile_error();
            quote!(#item #error)
        }
    }
}

impl Guard {
    /// The function with its body under guard.
    ///
    /// # Errors
    ///
    /// An async function: its body returns before anything has run.
    pub fn wrap(&self, mut function: Function) -> Result<Function> {
        if function.is_async() {
            let problem = "the attribute named by `crate` left this function async: \
                           it is not tokio's `test`";
            return Err(Error::new(function.signature.fn_token.span, problem));
        }
        let Guard { stallhound, limits } = self;
        let name = function.signature.ident.to_string();
        let output = match &function.signature.output {
            ReturnType::Default => quote!(-> ()),
            output @ ReturnType::Type(..) => output.to_token_stream(),
        };
        let should_panic = function.has_attribute("should_panic").then(|| quote!(.should_panic()));
        let body = function.block();
        // Mixed site: the body cannot see our variables. The static would be visible all the
        // same, hence its own block. The closure keeps the `return`s and `?`s of the body inside.
        function.body = quote_spanned! {Span::mixed_site()=>
            let scope = {
                static SETTINGS: #stallhound::__private::Settings =
                    #stallhound::__private::settings!() #limits #should_panic;
                #stallhound::__private::begin(
                    &SETTINGS,
                    ::core::concat!(::core::module_path!(), "::", #name),
                )
            };
            let output = (move || #output #body)();
            scope.finish();
            output
        };
        Ok(function)
    }
}

#[cfg(test)]
mod tests {
    use super::expand;
    use quote::quote;

    #[test]
    fn wraps_the_whole_body() {
        let expansion = expand(
            quote!((a::hound).warn(true)),
            quote!(
                #[should_panic(expected = "late")]
                #[::core::prelude::v1::test]
                pub fn slow() -> Result<(), Error> {
                    #![allow(unused)]
                    return run();
                }
            ),
        );
        let expected = quote!(
            #[should_panic(expected = "late")]
            #[::core::prelude::v1::test]
            #[allow(unused)]
            pub fn slow() -> Result<(), Error> {
                let scope = {
                    static SETTINGS: a::hound::__private::Settings =
                        a::hound::__private::settings!().warn(true).should_panic();
                    a::hound::__private::begin(
                        &SETTINGS,
                        ::core::concat!(::core::module_path!(), "::", "slow"),
                    )
                };
                let output = (move || -> Result<(), Error> {
                    return run();
                })();
                scope.finish();
                output
            }
        );
        assert_eq!(expansion.to_string(), expected.to_string());
    }
}
