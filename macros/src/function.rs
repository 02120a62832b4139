//! A function in the parts the attributes need. Its body stays unread: compile time is the user's.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{quote, ToTokens};
use syn::parse::{Parse, ParseStream};
use syn::{braced, token, AttrStyle, Attribute, Meta, Result, Signature, Visibility};

pub struct Function {
    /// Inner ones too, made outer: what replaces the body may not begin with an attribute.
    pub attributes: Vec<Attribute>,
    pub visibility: Visibility,
    pub signature: Signature,
    brace: token::Brace,
    /// What stands between the braces.
    pub body: TokenStream,
}

impl Function {
    pub fn is_async(&self) -> bool {
        self.signature.asyncness.is_some()
    }

    pub fn make_async(&mut self) {
        self.signature.asyncness = Some(token::Async { span: Span::call_site() });
    }

    /// The last of the attributes that says where `name` is said, by itself or by `cfg_attr`: the
    /// condition, as a test of the compiler's.
    pub fn has_attribute(&self, name: &str) -> Option<TokenStream> {
        self.attributes.iter().rev().find_map(|attribute| {
            if attribute.path().is_ident(name) {
                return Some(quote!(true));
            }
            let Meta::List(list) = &attribute.meta else { return None };
            if !list.path.is_ident("cfg_attr") {
                return None;
            }
            // The condition, then attributes, each up to a comma.
            let tokens: Vec<TokenTree> = list.tokens.clone().into_iter().collect();
            let mut parts =
                tokens.split(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ','));
            let condition = parts.next()?.iter();
            let says = |part: &[TokenTree]| matches!(part, [TokenTree::Ident(i), ..] if i == name);
            parts.any(says).then(|| quote!(::core::cfg!(#(#condition)*)))
        })
    }

    /// The body as a block, for use in another one.
    pub fn block(&self) -> TokenStream {
        let mut block = TokenStream::new();
        self.brace.surround(&mut block, |tokens| self.body.to_tokens(tokens));
        block
    }
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Function> {
        let mut attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        let signature = input.parse()?;
        let content;
        let brace = braced!(content in input);
        for mut inner in content.call(Attribute::parse_inner)? {
            inner.style = AttrStyle::Outer;
            attributes.push(inner);
        }
        let body = content.parse()?;
        Ok(Function { attributes, visibility, signature, brace, body })
    }
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        for attribute in &self.attributes {
            attribute.to_tokens(tokens);
        }
        self.visibility.to_tokens(tokens);
        self.signature.to_tokens(tokens);
        self.block().to_tokens(tokens);
    }
}
