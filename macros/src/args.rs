//! The arguments of `watch_all!` and `#[stallhound::test]`: `name = value`, separated by commas.
//!
//! Every error stands on the token that is wrong and says what is allowed there.

use proc_macro2::{TokenStream, TokenTree};
use quote::{quote, ToTokens};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Error, Ident, LitBool, LitStr, Path, Result, Token};

use crate::duration;

/// Which macro the arguments were given to.
#[derive(Clone, Copy)]
pub enum Place {
    /// `watch_all!`
    WatchAll,
    /// `#[stallhound::test]`, which also takes what `#[tokio::test]` takes.
    Test,
}

const LIMITS: &[&str] = &["threshold", "busy_threshold", "level", "require"];
const PACKAGE: &str = "stallhound";
/// As of tokio-macros 2.7. What their values may be is judged by tokio's own attribute.
const TOKIO: &[&str] =
    &["flavor", "worker_threads", "start_paused", "unhandled_panic", "name", "crate"];

impl Place {
    fn allowed(self) -> Vec<&'static str> {
        let mut names = LIMITS.to_vec();
        if let Place::Test = self {
            names.push(PACKAGE);
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
            arguments.parse_value(&name, &text, input)?;
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
        ] {
            let said = read(Place::WatchAll, text).err().expect(text);
            assert!(said.contains(part), "{text}: {said}");
        }
        for (text, part) in [
            (
                "workers = 2",
                "one of `threshold`, `busy_threshold`, `level`, `require`, `stallhound`, `flavor`",
            ),
            ("flavor", "`flavor` needs a value"),
            ("crate = tokio", "expected `crate = \"path::to::tokio\"`"),
            ("crate = \"1\"", "expected `crate = \"path::to::tokio\"`"),
            ("stallhound = 1", "expected `stallhound = path::to::stallhound`"),
        ] {
            let said = read(Place::Test, text).err().expect(text);
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
