//! `#[stallhound::test]`: hands the function to tokio's own attribute, and leaves `#[guard]` on it.
//!
//! Tokio's attribute makes it a sync function that builds a runtime and blocks on the body. Only
//! then `#[guard]` is expanded, so that it covers the runtime from its building to its shutdown.

use proc_macro2::TokenStream;
use quote::{quote, ToTokens};
use syn::{parse_quote, Error, Path};

use crate::args::{Arguments, Place};
use crate::function::Function;
use crate::watch;

const FOR_ASYNC_FN: &str = "`#[stallhound::test]` is for an `async fn`";

pub fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut function: Function = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => return with_error(item, &Error::new(error.span(), FOR_ASYNC_FN)),
    };
    let checked = check(&function).and_then(|()| {
        let arguments = Arguments::read(Place::Test, arguments)?;
        only_once(&function, &arguments)?;
        Ok(arguments)
    });
    match checked {
        Ok(arguments) => delegate(arguments, function),
        // Still a test, so that the mistake is the only thing the compiler speaks of.
        Err(error) => {
            function.make_async();
            function.attributes.retain(|a| !is_test(a) && !watch::is_ours(a, None));
            with_error(delegate(Arguments::default(), function), &error)
        }
    }
}

fn check(function: &Function) -> syn::Result<()> {
    if let Some(second) = function.attributes.iter().find(|attribute| is_test(attribute)) {
        let problem = "`#[stallhound::test]` makes this function a test: remove this attribute";
        return Err(Error::new_spanned(second, problem));
    }
    if !function.is_async() {
        return Err(Error::new(function.signature.fn_token.span, FOR_ASYNC_FN));
    }
    Ok(())
}

/// `#[stallhound::watch]` has nothing to add.
fn only_once(function: &Function, arguments: &Arguments) -> syn::Result<()> {
    let package = arguments.stallhound.as_ref();
    match function.attributes.iter().find(|a| watch::is_ours(a, package)) {
        Some(second) => {
            let problem = "`#[stallhound::test]` watches this function already: remove this one";
            Err(Error::new_spanned(second, problem))
        }
        None => Ok(()),
    }
}

/// Another attribute that would run the function: `#[test]`, `#[tokio::test]`, …
fn is_test(attribute: &syn::Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|last| last.ident == "test")
}

fn delegate(arguments: Arguments, mut function: Function) -> TokenStream {
    let Arguments { limits, stallhound, tokio, for_tokio } = arguments;
    // Without a leading `::`, as tokio's attribute has it: a re-export in scope will do.
    let tokio: Path = tokio.unwrap_or_else(|| parse_quote!(tokio));
    let stallhound: Path = stallhound.unwrap_or_else(|| parse_quote!(stallhound));
    // Last, so that the user's other attribute macros are handed what tokio's would give them.
    function.attributes.push(parse_quote!(#[#stallhound::__private::guard((#stallhound) #limits)]));
    quote! {
        #[#tokio::test(#(#for_tokio),*)]
        #function
    }
}

fn with_error(mut tokens: TokenStream, error: &Error) -> TokenStream {
    error.to_compile_error().to_tokens(&mut tokens);
    tokens
}

#[cfg(test)]
mod tests {
    use super::expand;
    use quote::quote;

    #[test]
    fn hands_each_its_arguments() {
        let expansion = expand(
            quote!(flavor = "local", threshold = "5ms", crate = "a::tokio", stallhound = hound),
            quote!(
                #[ignore]
                async fn test() {
                    work().await
                }
            ),
        );
        let expected = quote!(
            #[a::tokio::test(flavor = "local", crate = "a::tokio")]
            #[ignore]
            #[hound::__private::guard((hound) .threshold_nanos(5000000u64))]
            async fn test() {
                work().await
            }
        );
        assert_eq!(expansion.to_string(), expected.to_string());
    }
}
