//! `#[stallhound::watch]`: puts a test under guard, whatever attribute makes it a test.
//!
//! Below that attribute it is handed what the attribute made: a sync function that builds a runtime
//! and blocks on the test. Above it, the async function that is still to be made a test. A sync
//! function's guard covers the runtime from its building to its shutdown.

use proc_macro2::TokenStream;
use quote::{quote, ToTokens};
use syn::{parse_quote, Attribute, Error, Path, Result};

use crate::args::{Arguments, Place};
use crate::function::Function;
use crate::guard::Guard;

const FOR_FUNCTIONS: &str = "`#[stallhound::watch]` is for a function with a body";

pub fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let wrapped = (|| {
        let function: Function =
            syn::parse2(item.clone()).map_err(|error| Error::new(error.span(), FOR_FUNCTIONS))?;
        let Arguments { limits, stallhound, .. } = Arguments::read(Place::Watch, arguments)?;
        check(&function, stallhound.as_ref())?;
        let stallhound: Path = stallhound.unwrap_or_else(|| parse_quote!(stallhound));
        Ok(Guard { stallhound, limits: limits.into_token_stream() }.wrap(function))
    })();
    match wrapped {
        Ok(function) => function.into_token_stream(),
        Err(error) => {
            // The item as it was, so that the mistake is the only thing the compiler speaks of.
            let error: TokenStream = Error::to_compile_error(&error);
            quote!(#item #error)
        }
    }
}

fn check(function: &Function, stallhound: Option<&Path>) -> Result<()> {
    if let Some(constant) = &function.signature.constness {
        return Err(Error::new(constant.span, "a `const fn` cannot be watched"));
    }
    match function.attributes.iter().find(|attribute| is_ours(attribute, stallhound)) {
        Some(second) => {
            let problem = "this function is watched already: remove one of the two attributes";
            Err(Error::new_spanned(second, problem))
        }
        None => Ok(()),
    }
}

/// `#[stallhound::test]` or `#[stallhound::watch]`, under the name of the package; without one
/// under its own.
pub fn is_ours(attribute: &Attribute, package: Option<&Path>) -> bool {
    let mut path = attribute.path().segments.iter().rev();
    let (last, before) = (path.next(), path.next());
    let ours = |ident: &syn::Ident| match package.and_then(|path| path.segments.last()) {
        Some(package) => *ident == package.ident,
        None => ident == "stallhound",
    };
    last.is_some_and(|s| s.ident == "test" || s.ident == "watch")
        && before.is_some_and(|s| ours(&s.ident))
}

#[cfg(test)]
mod tests {
    use super::is_ours;
    use quote::ToTokens;
    use syn::parse_quote;

    #[test]
    fn knows_its_own_attributes_by_the_package() {
        let package: syn::Path = parse_quote!(crate::hound);
        for (attribute, own) in [
            (parse_quote!(#[hound::watch]), true),
            (parse_quote!(#[crate::hound::test(off)]), true),
            (parse_quote!(#[::hound::watch]), true),
            (parse_quote!(#[hound::other]), false),
            (parse_quote!(#[tokio::test]), false),
            (parse_quote!(#[watch]), false),
            (parse_quote!(#[cargo::watch]), false),
        ] {
            let attribute: syn::Attribute = attribute;
            assert_eq!(is_ours(&attribute, Some(&package)), own, "{}", attribute.to_token_stream());
        }
        assert!(is_ours(&parse_quote!(#[stallhound::test]), None));
        assert!(!is_ours(&parse_quote!(#[hound::test]), None));
    }
}
