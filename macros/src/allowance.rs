//! `declare!`: what an `allowance!` says. The code that registers it is written in `stallhound`, for
//! the reason in `watch_all`.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{bracketed, parenthesized, Error, Ident, LitStr, Result, Token};

use crate::args::categories;

const PARTS: &[&str] = &["below", "allow", "warn", "only", "reason"];
const ALL: &str = "all";
const ROOT: &str = "root_future";

pub fn expand(input: TokenStream) -> TokenStream {
    let declared = |input: ParseStream<'_>| -> Result<TokenStream> {
        let content;
        parenthesized!(content in input);
        let plain: TokenStream = content.parse()?;
        let calls = read(input)?;
        Ok(quote!(#plain #calls))
    };
    declared.parse2(input).unwrap_or_else(|error| error.to_compile_error())
}

/// The parts, in any order, as calls on `__private::Allowance`.
fn read(input: ParseStream<'_>) -> Result<TokenStream> {
    let named = || PARTS.iter().map(|p| format!("`{p}`")).collect::<Vec<_>>().join(", ");
    let mut seen = Vec::<String>::new();
    let mut calls = TokenStream::new();
    while !input.is_empty() {
        if !input.peek(Ident::peek_any) {
            return Err(input.error(format!("expected a part of an allowance: one of {}", named())));
        }
        let name = input.call(Ident::parse_any)?;
        let text = name.to_string();
        if !PARTS.contains(&text.as_str()) {
            let problem = format!("no part is called `{text}`: one of {}", named());
            return Err(Error::new(name.span(), problem));
        }
        let is_grant = |text: &str| matches!(text, "allow" | "warn");
        if is_grant(&text) && seen.iter().any(|before| before != &text && is_grant(before)) {
            let problem = "either `allow` or `warn`: make two allowances of it";
            return Err(Error::new(name.span(), problem));
        }
        if seen.contains(&text) {
            return Err(Error::new(name.span(), format!("`{text}` is given twice")));
        }
        calls.extend(part(&name, &text, input)?);
        seen.push(text);
        if !input.is_empty() {
            if !input.peek(Token![,]) {
                return Err(input.error("expected `,` before the next part"));
            }
            input.parse::<Token![,]>()?;
        }
    }
    let has = |part: &str| seen.iter().any(|s| s == part);
    for (there, missing) in [
        (has("below"), "`below`: the function that may block, `\"package::module::function\"`"),
        (has("allow") || has("warn"), "`allow(…)` or `warn(…)`: what it may do, `allow(file)`"),
        (has("reason"), "`reason`: why it may, `\"once a process\"`"),
    ] {
        if !there {
            return Err(Error::new(Span::call_site(), format!("an allowance needs {missing}")));
        }
    }
    Ok(calls)
}

fn part(name: &Ident, text: &str, input: ParseStream<'_>) -> Result<TokenStream> {
    match text {
        "below" => {
            let paths = paths(name, input)?;
            Ok(quote!(.below(&[#(#paths),*])))
        }
        "reason" => {
            equals(name, "a reason in quotes", input)?;
            let reason = quoted("a reason", input)?;
            match reason.value().trim() {
                "" => Err(Error::new(reason.span(), "the reason is empty: say why this may block")),
                _ => Ok(quote!(.because(#reason))),
            }
        }
        "only" => {
            let needed =
                || Error::new(name.span(), format!("`only` needs its place: `only({ROOT})`"));
            if !input.peek(syn::token::Paren) {
                return Err(needed());
            }
            let content;
            parenthesized!(content in input);
            let place = content.call(Ident::parse_any).map_err(|_| needed())?;
            if place != ROOT || !content.is_empty() {
                return Err(Error::new(place.span(), format!("the only place is `{ROOT}`")));
            }
            Ok(quote!(.root_future()))
        }
        grant => {
            let note = (grant == "warn").then(|| quote!(.note()));
            if takes_all(input) {
                input.parse::<TokenTree>()?;
                return Ok(quote!(#note));
            }
            let words = categories(name, &mut Vec::new(), input)?;
            Ok(quote!(.only(&[#(#words),*]) #note))
        }
    }
}

/// Whether `(all)` comes next.
fn takes_all(input: ParseStream<'_>) -> bool {
    let all = |input: ParseStream<'_>| -> Result<bool> {
        let content;
        parenthesized!(content in input);
        Ok(content.call(Ident::parse_any)? == ALL && content.is_empty())
    };
    all(&input.fork()).unwrap_or(false)
}

fn equals(name: &Ident, what: &str, input: ParseStream<'_>) -> Result<()> {
    if !input.peek(Token![=]) {
        return Err(Error::new(name.span(), format!("`{name}` needs a value: {what}")));
    }
    input.parse::<Token![=]>().map(drop)
}

fn quoted(what: &str, input: ParseStream<'_>) -> Result<LitStr> {
    input.parse().map_err(|error| Error::new(error.span(), format!("expected {what} in quotes")))
}

/// `"a::b"` or `["a::b", "c::d"]`.
fn paths(name: &Ident, input: ParseStream<'_>) -> Result<Vec<LitStr>> {
    equals(name, "a path in quotes, or several in `[…]`", input)?;
    let mut paths = Vec::new();
    if input.peek(syn::token::Bracket) {
        let content;
        bracketed!(content in input);
        while !content.is_empty() {
            paths.push(quoted("a path", &content)?);
            if !content.is_empty() {
                if !content.peek(Token![,]) {
                    return Err(content.error("expected `,` before the next path"));
                }
                content.parse::<Token![,]>()?;
            }
        }
        if paths.is_empty() {
            return Err(Error::new(name.span(), "`below` names no function"));
        }
    } else {
        paths.push(quoted("a path", input)?);
    }
    for path in &paths {
        if let Some(problem) = problem(&path.value()) {
            return Err(Error::new(path.span(), problem));
        }
    }
    Ok(paths)
}

/// What is wrong with a path.
fn problem(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("an empty path: it is the package, modules and a function, joined by `::`");
    }
    if path.contains(['<', '>', '(', ')', '{', '}', '[', ']', '&']) {
        return Some("a path has no brackets: leave generic arguments, traits and closures out");
    }
    if path.contains('-') {
        return Some("a path names its package as code does: `_` for `-`");
    }
    let names: Vec<&str> = path.split("::").collect();
    if names.iter().any(|name| name.is_empty()) {
        return Some("a path has an empty part: `::` stands between two names");
    }
    if names[0].starts_with('*') {
        return Some("a path begins with its package: without one it would be everybody's");
    }
    for (at, name) in names.iter().enumerate() {
        let bare = match at + 1 == names.len() {
            true => name.strip_suffix('*').unwrap_or(name),
            false => name,
        };
        if bare.contains('*') {
            return Some("`*` stands only at the end of a path");
        }
        if bare.contains(|c: char| !c.is_alphanumeric() && c != '_') {
            return Some("a path is names joined by `::`, without spaces");
        }
        if bare.starts_with(|c: char| c.is_numeric()) {
            return Some("no name in a path begins with a digit");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_paths() {
        for good in ["a", "a::b", "a::B::c_1*", "a::*", "größe::f"] {
            assert_eq!(problem(good), None, "{good}");
        }
        for (bad, why) in [
            ("", "an empty path"),
            ("::a", "empty part"),
            ("a::", "empty part"),
            ("a::::b", "empty part"),
            ("a:b", "without spaces"),
            ("a:::b", "without spaces"),
            ("a :: b", "without spaces"),
            ("*", "begins with its package"),
            ("*::f", "begins with its package"),
            ("a::*::f", "only at the end"),
            ("a::**", "only at the end"),
            ("a::B<T>::c", "no brackets"),
            ("a::{closure}", "no brackets"),
            ("my-package::f", "`_` for `-`"),
            ("a::1", "digit"),
        ] {
            let problem = problem(bad).unwrap_or_else(|| panic!("{bad:?} is fine?"));
            assert!(problem.contains(why), "{bad:?}: {problem}");
        }
    }

    #[test]
    fn parts_in_any_order() {
        let declared = |tokens: TokenStream| expand(tokens).to_string().replace(' ', "");
        assert_eq!(
            declared(
                quote!((A) reason = "r", only(root_future), warn(file, io-wait), below = "a::b")
            ),
            r#"A.because("r").root_future().only(&["file","io-wait"]).note().below(&["a::b"])"#
        );
        assert_eq!(
            declared(quote!((A) below = ["a::b", "c"], allow(all), reason = "r",)),
            r#"A.below(&["a::b","c"]).because("r")"#
        );
    }
}
