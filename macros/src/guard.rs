//! `#[guard]`: wraps the whole body of a sync test function in a scope that is judged at its end.
//! [`Guard`] does so for `#[watch]` too, which takes async functions as well.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned, ToTokens};
use syn::parse::{Parse, ParseStream};
use syn::{parenthesized, Error, Path, Result, ReturnType, Type};

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
        .and_then(|guard: Guard| guard.after_tokio(syn::parse2::<Function>(item.clone())?));
    match wrapped {
        Ok(function) => function.into_token_stream(),
        Err(error) => {
            let error = error.to_compile_error();
            quote!(#item #error)
        }
    }
}

impl Guard {
    /// The function that tokio's attribute left, with its body under guard.
    ///
    /// # Errors
    ///
    /// An async function: then tokio's attribute was not there, or it was another one.
    fn after_tokio(&self, function: Function) -> Result<Function> {
        if function.is_async() {
            let problem = "tokio's own `test` did not take this function: `#[stallhound::test]` \
                           needs tokio with its feature `macros`, such as \
                           `tokio = { version = \"1\", features = [\"macros\", \"rt\"] }` under \
                           [dev-dependencies]; if it has that, `crate` names another package";
            return Err(Error::new(function.signature.fn_token.span, problem));
        }
        Ok(self.wrap(function))
    }

    /// The function with its body under guard: a sync one from before anything of it runs until
    /// after all of it was dropped, an async one from the first poll of its body to its end.
    pub fn wrap(&self, mut function: Function) -> Function {
        let Guard { stallhound, limits } = self;
        let name = function.signature.ident.to_string();
        let should_panic =
            function.has_attribute("should_panic").map(|when| quote!(.should_panic_if(#when)));
        let body = function.block();
        // Mixed site: the body cannot see our variables. The static would be visible all the
        // same, hence its own block.
        let settings = quote_spanned! {Span::mixed_site()=> {
            static SETTINGS: #stallhound::__private::Settings =
                #stallhound::__private::settings!() #limits #should_panic;
            &SETTINGS
        }};
        // An error that the test returned is said before ours. (Which `say` it is goes by its type.)
        let finish = quote_spanned! {Span::mixed_site()=>
            if let ::core::option::Option::Some(failure) = scope.finish() {
                #[allow(unused_imports)]
                use #stallhound::__private::AnyOutcome as _;
                #stallhound::__private::Outcome(output).say();
                failure.fail();
            }
            output
        };
        let name = quote!(::core::concat!(::core::module_path!(), "::", #name));
        function.body = if function.is_async() {
            // Says what the body returns, where that can be said.
            let output = match &function.signature.output {
                ReturnType::Default => quote!(()),
                ReturnType::Type(_, ty) if may_be_named(ty) => ty.to_token_stream(),
                ReturnType::Type(..) => quote!(_),
            };
            quote_spanned! {Span::mixed_site()=>
                let (scope, output) = #stallhound::__private::body::<#output, _>(
                    #settings,
                    #name,
                    async move #body,
                )
                .await;
                #finish
            }
        } else {
            let output = match &function.signature.output {
                ReturnType::Default => quote!(-> ()),
                output @ ReturnType::Type(..) => output.to_token_stream(),
            };
            // The closure keeps the `return`s and `?`s of the body inside.
            quote_spanned! {Span::mixed_site()=>
                let scope = #stallhound::__private::begin(#settings, #name,);
                let output = (move || #output #body)();
                #finish
            }
        };
        function
    }
}

/// Whether a function's return type may stand inside of it too.
fn may_be_named(ty: &Type) -> bool {
    let hidden = |word: &str| word == "impl" || word == "!";
    !ty.to_token_stream().to_string().split_whitespace().any(hidden)
}

#[cfg(test)]
mod tests {
    use super::{expand, Guard};
    use quote::{quote, ToTokens};

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
                let scope = a::hound::__private::begin(
                    {
                        static SETTINGS: a::hound::__private::Settings =
                            a::hound::__private::settings!().warn(true).should_panic_if(true);
                        &SETTINGS
                    },
                    ::core::concat!(::core::module_path!(), "::", "slow"),
                );
                let output = (move || -> Result<(), Error> {
                    return run();
                })();
                if let ::core::option::Option::Some(failure) = scope.finish() {
                    #[allow(unused_imports)]
                    use a::hound::__private::AnyOutcome as _;
                    a::hound::__private::Outcome(output).say();
                    failure.fail();
                }
                output
            }
        );
        assert_eq!(expansion.to_string(), expected.to_string());
    }

    fn wrapped(function: proc_macro2::TokenStream) -> String {
        let guard = Guard { stallhound: syn::parse_quote!(hound), limits: quote!() };
        guard.wrap(syn::parse2(function).expect("a function")).into_token_stream().to_string()
    }

    #[test]
    fn wraps_the_body_of_an_async_function() {
        let expected = quote!(
            async fn slow(#[case] n: u8) -> Result<(), Error> {
                let (scope, output) = hound::__private::body::<Result<(), Error>, _>(
                    {
                        static SETTINGS: hound::__private::Settings = hound::__private::settings!();
                        &SETTINGS
                    },
                    ::core::concat!(::core::module_path!(), "::", "slow"),
                    async move { run(n).await },
                )
                .await;
                if let ::core::option::Option::Some(failure) = scope.finish() {
                    #[allow(unused_imports)]
                    use hound::__private::AnyOutcome as _;
                    hound::__private::Outcome(output).say();
                    failure.fail();
                }
                output
            }
        );
        let function = quote!(
            async fn slow(#[case] n: u8) -> Result<(), Error> {
                run(n).await
            }
        );
        assert_eq!(wrapped(function), expected.to_string());
        assert!(wrapped(quote!(
            async fn f() {}
        ))
        .contains("body :: < () , _ >"));
        assert!(wrapped(quote!(
            async fn f() -> impl T {}
        ))
        .contains("body :: < _ , _ >"));
    }

    #[test]
    fn sees_should_panic_behind_a_condition() {
        for (attribute, call) in [
            (quote!(#[should_panic]), ". should_panic_if (true)"),
            (
                quote!(#[cfg_attr(all(a, b), inline, should_panic(expected = "x"))]),
                ". should_panic_if (:: core :: cfg ! (all (a , b)))",
            ),
        ] {
            let text = wrapped(quote!(#attribute fn f() {}));
            assert!(text.contains(call), "{text}");
        }
        for attribute in [quote!(), quote!(#[cfg_attr(should_panic, inline)]), quote!(#[ignore])] {
            assert!(!wrapped(quote!(#attribute fn f() {})).contains("should_panic_if"));
        }
    }
}
