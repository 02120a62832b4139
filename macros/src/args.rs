//! The arguments of `watch_all!` and the attributes: `name = value`, `name(list)` or `off`,
//! separated by commas.
//!
//! Every error stands on the token that is wrong and says what is allowed there.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{quote, ToTokens};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{parenthesized, Error, Ident, LitBool, LitStr, Path, Result, Token};

use crate::categories::CATEGORIES;
use crate::duration;

/// Which macro the arguments were given to.
#[derive(Clone, Copy)]
pub enum Place {
    /// `watch_all!`
    WatchAll,
    /// `#[stallhound::test]`, which also takes what `#[tokio::test]` takes.
    Test,
    /// `#[stallhound::watch]`.
    Watch,
}

const LIMITS: &[&str] =
    &["threshold", "busy_threshold", "level", "allow", "warn", "deny", "require"];
const LISTS: &[&str] = &["allow", "warn", "deny"];
const OFF: &str = "off";
const PACKAGE: &str = "stallhound";
/// As of tokio-macros 2.7. What their values may be is judged by tokio's own attribute.
const TOKIO: &[&str] =
    &["flavor", "worker_threads", "start_paused", "unhandled_panic", "name", "crate"];

impl Place {
    fn allowed(self) -> Vec<&'static str> {
        let mut names = LIMITS.to_vec();
        if let Place::Test | Place::Watch = self {
            names.extend([OFF, PACKAGE]);
        }
        if let Place::Test = self {
            names.extend(TOKIO);
        }
        names
    }

    fn allowed_text(self) -> String {
        let quoted: Vec<String> = self.allowed().iter().map(|name| format!("`{name}`")).collect();
        quoted.join(", ")
    }
}

/// What was written, checked.
#[derive(Default)]
pub struct Arguments {
    pub limits: Limits,
    /// `stallhound = path`: where our package is, if it is renamed.
    pub stallhound: Option<Path>,
    /// `crate = "path"`: where tokio is, if it is renamed. Is among `for_tokio` too.
    pub tokio: Option<Path>,
    /// The arguments that tokio's attribute gets, each as it was written.
    pub for_tokio: Vec<TokenStream>,
}

/// The limits as calls on `__private::Settings`.
#[derive(Default)]
pub struct Limits(Vec<TokenStream>);

impl ToTokens for Limits {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(self.0.iter().cloned());
    }
}

impl Arguments {
    /// Reads the arguments given at `place`.
    ///
    /// # Errors
    ///
    /// The first argument with an unknown name, a second value, or a value that is not allowed.
    pub fn read(place: Place, tokens: TokenStream) -> Result<Arguments> {
        (|input: ParseStream<'_>| Arguments::parse(place, input)).parse2(tokens)
    }

    /// The same for the rest of `input`.
    pub fn parse(place: Place, input: ParseStream<'_>) -> Result<Arguments> {
        let mut arguments = Arguments::default();
        let mut seen = Vec::<String>::new();
        let mut listed = Vec::<String>::new();
        while !input.is_empty() {
            if !input.peek(Ident::peek_any) {
                let allowed = place.allowed_text();
                return Err(input.error(format!("expected the name of an argument: {allowed}")));
            }
            // `crate` is a keyword.
            let name = input.call(Ident::parse_any)?;
            let text = name.to_string();
            if !place.allowed().contains(&text.as_str()) {
                let allowed = place.allowed_text();
                return Err(Error::new(
                    name.span(),
                    format!("no argument is called `{text}`: one of {allowed}"),
                ));
            }
            if seen.contains(&text) {
                return Err(Error::new(name.span(), format!("`{text}` is given twice")));
            }
            let settings = |name: &String| LIMITS.contains(&name.as_str());
            let contradicts = match text.as_str() {
                OFF => seen.iter().any(settings),
                _ => settings(&text) && seen.iter().any(|before| before == OFF),
            };
            if contradicts {
                let problem = "`off` leaves nothing to set: remove it, or the other settings";
                return Err(Error::new(name.span(), problem));
            }
            if text == OFF {
                if !input.is_empty() && !input.peek(Token![,]) {
                    return Err(input.error("`off` takes no value"));
                }
                arguments.limits.0.push(quote!(.off()));
            } else if LISTS.contains(&text.as_str()) {
                arguments.parse_list(&name, &text, &mut listed, input)?;
            } else {
                arguments.parse_value(&name, &text, input)?;
            }
            seen.push(text);
            if input.is_empty() {
                break;
            }
            if !input.peek(Token![,]) {
                return Err(input.error("expected `,` before the next argument"));
            }
            input.parse::<Token![,]>()?;
        }
        Ok(arguments)
    }

    /// `allow(file, sync)`, each category in one list only.
    fn parse_list(
        &mut self,
        name: &Ident,
        text: &str,
        listed: &mut Vec<String>,
        input: ParseStream<'_>,
    ) -> Result<()> {
        let words = categories(name, listed, input)?;
        let call = Ident::new(if text == "warn" { "note" } else { text }, name.span());
        self.limits.0.push(quote!(.#call(&[#(#words),*])));
        Ok(())
    }

    fn parse_value(&mut self, name: &Ident, text: &str, input: ParseStream<'_>) -> Result<()> {
        let missing = || Error::new(name.span(), format!("`{text}` needs a value: {}", form(text)));
        if !input.peek(Token![=]) {
            return Err(missing());
        }
        let equals = input.parse::<Token![=]>()?;
        if input.is_empty() || input.peek(Token![,]) {
            return Err(missing());
        }
        match text {
            "threshold" => {
                let nanos = duration_value(text, input)?;
                self.limits.0.push(quote!(.threshold_nanos(#nanos)));
            }
            "busy_threshold" => {
                let nanos = duration_value(text, input)?;
                self.limits.0.push(quote!(.busy_threshold_nanos(#nanos)));
            }
            "level" => {
                let warn = level_is_warn(text, input)?;
                self.limits.0.push(quote!(.warn(#warn)));
            }
            "require" => {
                let require: LitBool = value(text, input)?;
                self.limits.0.push(quote!(.require(#require)));
            }
            PACKAGE => self.stallhound = Some(path_value(text, input)?),
            "crate" => {
                let path: LitStr = value(text, input)?;
                self.tokio = Some(path_in(text, &path)?);
                self.for_tokio.push(quote!(#name #equals #path));
            }
            _ => {
                let value = rest_of_value(input)?;
                self.for_tokio.push(quote!(#name #equals #value));
            }
        }
        Ok(())
    }
}

/// How an argument is written, for messages.
fn form(name: &str) -> &'static str {
    match name {
        "threshold" => "a duration in quotes, such as `threshold = \"5ms\"`",
        "busy_threshold" => "a duration in quotes, such as `busy_threshold = \"100ms\"`",
        "level" => "`level = warn` or `level = deny`",
        "allow" => "a list of categories, such as `allow(file, sync)`",
        "warn" => "a list of categories, such as `warn(file, sync)`",
        "deny" => "a list of categories, such as `deny(file, sync)`",
        "require" => "`require = true` or `require = false`",
        PACKAGE => "`stallhound = path::to::stallhound`",
        "crate" => "`crate = \"path::to::tokio\"`",
        "flavor" => "`flavor = \"current_thread\"`, `\"multi_thread\"` or `\"local\"`",
        "worker_threads" => "`worker_threads = 2`",
        "start_paused" => "`start_paused = true`",
        "unhandled_panic" => "`unhandled_panic = \"ignore\"` or `\"shutdown_runtime\"`",
        _ => "`name = \"…\"`",
    }
}

/// `(file, sync)` after `name`: the words of categories, none of them `listed` before.
pub fn categories(
    name: &Ident,
    listed: &mut Vec<String>,
    input: ParseStream<'_>,
) -> Result<Vec<String>> {
    let text = name.to_string();
    let needed = || Error::new(name.span(), format!("`{text}` needs {}", form(&text)));
    if !input.peek(syn::token::Paren) {
        return Err(needed());
    }
    let content;
    parenthesized!(content in input);
    let mut words = Vec::<String>::new();
    while !content.is_empty() {
        let (word, span) = category(&content)?;
        if !CATEGORIES.contains(&word.as_str()) {
            let all: Vec<String> = CATEGORIES.iter().map(|c| format!("`{c}`")).collect();
            let problem = format!("no category is called `{word}`: one of {}", all.join(", "));
            return Err(Error::new(span, problem));
        }
        if listed.contains(&word) {
            return Err(Error::new(span, format!("`{word}` is listed twice")));
        }
        listed.push(word.clone());
        words.push(word);
        if !content.is_empty() {
            if !content.peek(Token![,]) {
                return Err(content.error("expected `,` before the next category"));
            }
            content.parse::<Token![,]>()?;
        }
    }
    if words.is_empty() {
        return Err(needed());
    }
    Ok(words)
}

/// `sync`, `io-wait`, `io_wait` or `"io-wait"`: its word, and where it begins.
fn category(input: ParseStream<'_>) -> Result<(String, Span)> {
    if input.peek(LitStr) {
        let text: LitStr = input.parse()?;
        return Ok((text.value(), text.span()));
    }
    if !input.peek(Ident::peek_any) {
        let all: Vec<String> = CATEGORIES.iter().map(|c| format!("`{c}`")).collect();
        return Err(input.error(format!("expected a category: one of {}", all.join(", "))));
    }
    let first = input.call(Ident::parse_any)?;
    let mut word = first.to_string().replace('_', "-");
    while input.peek(Token![-]) && input.peek2(Ident::peek_any) {
        input.parse::<Token![-]>()?;
        let next = input.call(Ident::parse_any)?;
        word = format!("{word}-{next}");
    }
    Ok((word, first.span()))
}

/// A value of one token, with our words on the token where it is of another kind.
fn value<T: syn::parse::Parse>(name: &str, input: ParseStream<'_>) -> Result<T> {
    let ahead = input.fork();
    match ahead.parse::<T>() {
        Ok(_) => input.parse(),
        Err(_) => {
            Err(Error::new_spanned(rest_of_value(input)?, format!("expected {}", form(name))))
        }
    }
}

fn duration_value(name: &str, input: ParseStream<'_>) -> Result<u64> {
    let text: LitStr = value(name, input)?;
    duration::nanos(&text.value()).map_err(|problem| Error::new(text.span(), problem))
}

fn level_is_warn(name: &str, input: ParseStream<'_>) -> Result<bool> {
    let (level, span) = if input.peek(LitStr) {
        let text: LitStr = input.parse()?;
        (text.value(), text.span())
    } else {
        let word: Ident = value(name, input)?;
        (word.to_string(), word.span())
    };
    match level.as_str() {
        "warn" => Ok(true),
        "deny" => Ok(false),
        _ => Err(Error::new(span, format!("expected {}", form(name)))),
    }
}

/// A path, bare or (as tokio's `crate` has it) in quotes.
fn path_value(name: &str, input: ParseStream<'_>) -> Result<Path> {
    if input.peek(LitStr) {
        return path_in(name, &input.parse()?);
    }
    match input.fork().call(Path::parse_mod_style) {
        Ok(_) => input.call(Path::parse_mod_style),
        Err(_) => {
            Err(Error::new_spanned(rest_of_value(input)?, format!("expected {}", form(name))))
        }
    }
}

fn path_in(name: &str, text: &LitStr) -> Result<Path> {
    text.parse_with(Path::parse_mod_style)
        .map_err(|_| Error::new(text.span(), format!("expected {}", form(name))))
}

/// Everything up to the next comma.
fn rest_of_value(input: ParseStream<'_>) -> Result<TokenStream> {
    let mut value = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        value.extend([input.parse::<TokenTree>()?]);
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Place};
    use quote::ToTokens;

    fn read(place: Place, text: &str) -> Result<Arguments, String> {
        let tokens = text.parse().expect("tokens");
        Arguments::read(place, tokens).map_err(|error| error.to_string())
    }

    fn limits(text: &str) -> String {
        let arguments = read(Place::WatchAll, text).expect(text);
        arguments.limits.into_token_stream().to_string().replace(' ', "")
    }

    #[test]
    fn limits_become_calls() {
        assert_eq!(limits(""), "");
        assert_eq!(limits("threshold = \"5ms\""), ".threshold_nanos(5000000u64)");
        assert_eq!(
            limits("busy_threshold = \"0.1s\", require = true,"),
            ".busy_threshold_nanos(100000000u64).require(true)"
        );
        for warn in ["level = warn", "level = \"warn\""] {
            assert_eq!(limits(warn), ".warn(true)");
        }
        for deny in ["level = deny", "level = \"deny\""] {
            assert_eq!(limits(deny), ".warn(false)");
        }
    }

    #[test]
    fn lists_name_categories() {
        assert_eq!(limits("allow(file)"), ".allow(&[\"file\"])");
        assert_eq!(
            limits("level = warn, deny(sleep, io-wait,), warn(\"net\"), allow(sync)"),
            ".warn(true).deny(&[\"sleep\",\"io-wait\"]).note(&[\"net\"]).allow(&[\"sync\"])"
        );
        assert_eq!(limits("allow(io_wait)"), ".allow(&[\"io-wait\"])");
        for category in super::CATEGORIES {
            assert_eq!(limits(&format!("warn({category})")), format!(".note(&[\"{category}\"])"));
        }
        for place in [Place::Test, Place::Watch] {
            let arguments = read(place, "stallhound = hound, off").expect("arguments");
            assert_eq!(arguments.limits.into_token_stream().to_string(), ". off ()");
        }
    }

    #[test]
    fn the_attribute_sorts_what_is_whose() {
        let arguments = read(
            Place::Test,
            "flavor = \"multi_thread\", threshold = \"5ms\", worker_threads = 1 + 1, \
             crate = \"my::tokio\", stallhound = ::hound",
        )
        .expect("arguments");
        let tokio: Vec<String> = arguments.for_tokio.iter().map(ToString::to_string).collect();
        assert_eq!(
            tokio,
            ["flavor = \"multi_thread\"", "worker_threads = 1 + 1", "crate = \"my::tokio\""]
        );
        let path = |path: Option<syn::Path>| path.to_token_stream().to_string().replace(' ', "");
        assert_eq!(path(arguments.tokio), "my::tokio");
        assert_eq!(path(arguments.stallhound), "::hound");
        let quoted = read(Place::Test, "stallhound = \"a::hound\"").expect("arguments");
        assert_eq!(path(quoted.stallhound), "a::hound");
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, part) in [
            ("treshold = \"5ms\"", "no argument is called `treshold`: one of `threshold`"),
            ("flavor = \"local\"", "no argument is called `flavor`"),
            ("\"5ms\"", "expected the name of an argument"),
            ("threshold", "`threshold` needs a value"),
            ("threshold = ", "`threshold` needs a value"),
            ("threshold = , require = true", "`threshold` needs a value"),
            ("threshold = 5", "expected a duration in quotes"),
            ("threshold = 5ms", "expected a duration in quotes"),
            ("threshold = \"5\"", "has no unit"),
            ("level = forbid", "expected `level = warn` or"),
            ("level = \"allow\"", "expected `level = warn` or"),
            ("level = 3", "expected `level = warn` or"),
            ("require = \"true\"", "expected `require = true` or"),
            ("threshold = \"5ms\" require = true", "expected `,`"),
            ("threshold = \"5ms\", threshold = \"6ms\"", "`threshold` is given twice"),
            ("allow", "`allow` needs a list of categories, such as `allow(file, sync)`"),
            ("deny()", "`deny` needs a list"),
            ("warn = file", "`warn` needs a list"),
            ("allow(disc)", "no category is called `disc`: one of `sleep`, `net`, `io-wait`"),
            ("allow(file sync)", "expected `,` before the next category"),
            ("allow(5)", "expected a category: one of `sleep`"),
            ("allow(file, file)", "`file` is listed twice"),
            ("allow(file), warn(file)", "`file` is listed twice"),
            ("allow(file), allow(sync)", "`allow` is given twice"),
            ("off", "no argument is called `off`"),
        ] {
            let said = read(Place::WatchAll, text).err().expect(text);
            assert!(said.contains(part), "{text}: {said}");
        }
        for (text, part) in [
            (
                "workers = 2",
                "one of `threshold`, `busy_threshold`, `level`, `allow`, `warn`, `deny`, `require`, \
                 `off`, `stallhound`, `flavor`",
            ),
            ("flavor", "`flavor` needs a value"),
            ("crate = tokio", "expected `crate = \"path::to::tokio\"`"),
            ("crate = \"1\"", "expected `crate = \"path::to::tokio\"`"),
            ("stallhound = 1", "expected `stallhound = path::to::stallhound`"),
            ("off, level = warn", "`off` leaves nothing to set"),
            ("allow(file), off", "`off` leaves nothing to set"),
            ("off = true", "`off` takes no value"),
            ("off(file)", "`off` takes no value"),
        ] {
            let said = read(Place::Test, text).err().expect(text);
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
