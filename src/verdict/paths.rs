//! Names of functions, as allowances spell them and as builds leave them.
//!
//! The same function is `store::lease::Lease<T>::take::{closure#0}` in one build,
//! `<store::lease::Lease<u8>>::take` in another and `store::lease::take` where only line tables are
//! left. What they have in common is the package, the modules and the function; types come and go.
#![forbid(unsafe_code)]

/// The parts of a function's path: without generic arguments, closures, references and traits.
/// `<a::B<T> as c::D>::e` is `a`, `B`, `e`.
pub fn parts(function: &str) -> Vec<&str> {
    let mut out = Vec::new();
    collect(function.trim(), &mut out);
    out
}

fn collect<'a>(path: &'a str, out: &mut Vec<&'a str>) {
    let path = path.trim_start_matches(['&', '*', ' ']);
    let path = ["mut ", "const ", "dyn ", "impl "]
        .iter()
        .find_map(|word| path.strip_prefix(word))
        .unwrap_or(path);
    for (n, part) in split(path).into_iter().enumerate() {
        match part.strip_prefix('<') {
            // The type that a method belongs to; elsewhere generic arguments.
            Some(of) if n == 0 => collect(of_type(of), out),
            Some(_) => {}
            None if part.starts_with(['{', '[', '(']) => {}
            None => {
                let end = part.find('<').unwrap_or(part.len());
                if end > 0 {
                    out.push(&part[..end]);
                }
            }
        }
    }
}

/// `B<T> as c::D>` is `B<T>`; `impl c::D for B>` is `B`.
fn of_type(inner: &str) -> &str {
    let inner = inner.strip_suffix('>').unwrap_or(inner);
    if let Some(rest) = inner.strip_prefix("impl ") {
        return outside(rest, " for ").map_or(rest, |at| &rest[at + 5..]);
    }
    outside(inner, " as ").map_or(inner, |at| &inner[..at])
}

/// Where `word` stands outside of any brackets.
fn outside(text: &str, word: &str) -> Option<usize> {
    let mut depth = 0i32;
    text.char_indices().find_map(|(at, c)| {
        depth += nesting(text, at, c);
        (depth == 0 && text[at..].starts_with(word)).then_some(at)
    })
}

fn nesting(text: &str, at: usize, c: char) -> i32 {
    match c {
        '<' | '(' | '[' | '{' => 1,
        // `->` closes nothing.
        '>' if text[..at].ends_with('-') => 0,
        '>' | ')' | ']' | '}' => -1,
        _ => 0,
    }
}

/// Splits at each `::` outside of brackets.
fn split(path: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = path;
    while let Some(at) = outside(rest, "::") {
        out.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    out.push(rest);
    out
}

fn is_type(part: &str) -> bool {
    part.starts_with(|c: char| c.is_uppercase())
}

/// Whether a function is the one that `pattern` names, or lies below it. A type may be left out on
/// either side, unless the pattern ends with it; `*` at the end stands for the rest of a name.
pub fn covers(pattern: &str, function: &[&str]) -> bool {
    let wanted: Vec<&str> = pattern.split("::").collect();
    let (mut w, mut f) = (0, 0);
    while w < wanted.len() {
        let (want, last) = (wanted[w], w + 1 == wanted.len());
        let Some(part) = function.get(f) else { return false };
        let same = match want.strip_suffix('*') {
            Some(begin) => part.starts_with(begin),
            None => *part == want,
        };
        match same {
            true => (w, f) = (w + 1, f + 1),
            false if is_type(part) && !is_type(want) => f += 1,
            false if is_type(want) && !is_type(part) && !last => w += 1,
            false => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_builds_have_in_common() {
        for (function, expected) in [
            ("app::slow", "app::slow"),
            ("<app::S<T> as other::Tr>::go", "app::S::go"),
            ("<std::thread::Builder>::spawn_unchecked_", "std::thread::Builder::spawn_unchecked_"),
            (
                "std::sync::once_lock::OnceLock<T>::initialize",
                "std::sync::once_lock::OnceLock::initialize",
            ),
            ("<&mut app::S<a::B, fn(u8) -> c::D> as core::fmt::Debug>::fmt", "app::S::fmt"),
            ("app::_::<impl app::Tr for app::m::U>::go", "app::_::go"),
            ("<impl app::Tr for app::m::U>::go", "app::m::U::go"),
            ("app::f::<u8>::g", "app::f::g"),
            ("app::{impl#3}::go::{closure#0}", "app::go"),
            ("<[T] as app::Ext>::go", "go"),
            ("<<a::B as c::D>::E as f::G>::h", "a::B::E::h"),
            ("core::ptr::drop_in_place<app::f::{{closure}}>", "core::ptr::drop_in_place"),
            ("open64", "open64"),
            ("", ""),
            ("<", ""),
            ("a::", "a"),
        ] {
            assert_eq!(parts(function).join("::"), expected, "{function}");
        }
    }

    #[test]
    fn types_may_be_missing_on_either_side() {
        for (pattern, function, expected) in [
            ("store::lease", "store::lease", true),
            ("store::lease", "store::lease::take", true),
            ("store::lease", "store::Lease::lease", true),
            ("store", "store::anything::at_all", true),
            ("store", "storehouse::f", false),
            ("store::lease::take", "store::lease::Lease<u8>::take", true),
            ("store::lease::Lease::take", "store::lease::take", true),
            ("store::lease::Lease::take", "<store::lease::Lease<T>>::take", true),
            ("store::lease::Lease::take", "store::lease::Other::take", false),
            ("store::lease::Lease", "store::lease::Lease::take", true),
            ("store::lease::Lease", "store::lease::take", false),
            ("store::lease::ta*", "store::lease::Lease::take", true),
            ("store::lease::ta*", "store::lease::give", false),
            ("store::lease::*", "store::lease::Lease::take", true),
            ("store::lease::*", "store::lease", false),
            ("store::lease::take", "other::store::lease::take", false),
            ("store::lease::take", "open64", false),
            ("store::lease::take", "", false),
        ] {
            assert_eq!(covers(pattern, &parts(function)), expected, "{pattern} on {function}");
        }
    }
}
