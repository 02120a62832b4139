//! A function in the parts the attributes need. Its body stays unread: compile time is the user's.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::{braced, token, AttrStyle, Attribute, Result, Signature, Visibility};

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

    pub fn has_attribute(&self, name: &str) -> bool {
        self.attributes.iter().any(|attribute| attribute.path().is_ident(name))
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
