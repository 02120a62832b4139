//! Readable function names.
#![forbid(unsafe_code)]

/// Removes the hash that legacy mangling appends (`::h` and 16 hexadecimal digits).
pub fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::") {
        Some((path, hash))
            if hash.len() == 17
                && hash.starts_with('h')
                && hash[1..].bytes().all(|b| b.is_ascii_hexdigit()) =>
        {
            path
        }
        _ => name,
    }
}

/// The last part of a path is compiler-made: a closure, an async block or function body.
fn is_made(part: &str) -> bool {
    let part = part.trim_end_matches(|c: char| c.is_ascii_digit() || c == '#');
    matches!(
        part,
        "{{closure}}"
            | "{closure"
            | "{closure}"
            | "{async_fn"
            | "{async_block"
            | "{async_closure"
            | "{closure_env"
            | "{async_fn_env"
            | "{async_block_env"
            | "{coroutine"
            | "{gen_fn"
    ) || (part.starts_with('{') && part.ends_with('}'))
}

/// Splits a path at the `::` that are not inside of `<>`, `()` or `{}`.
pub fn parts(path: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut depth, mut begin) = (0i32, 0usize);
    let bytes = path.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'<' | b'(' | b'{' | b'[' => depth += 1,
            // `->` closes nothing.
            b'>' if i > 0 && bytes[i - 1] == b'-' => {}
            b'>' | b')' | b'}' | b']' => depth -= 1,
            b':' if depth <= 0 && bytes.get(i + 1) == Some(&b':') => {
                out.push(&path[begin..i]);
                i += 1;
                begin = i + 1;
            }
            _ => {}
        }
        i += 1;
    }
    out.push(&path[begin..]);
    out
}

/// The name people know a function by.
///
/// The body of an async function and of an async block is a closure to the compiler, and legacy
/// names do not tell it from a real one: all such endings are removed, so that
/// `app::slow::{{closure}}` reads `app::slow`. A closure inside a function thus has that
/// function's name; its line tells it apart.
pub fn readable(symbol: &str) -> String {
    let mut parts = parts(without_hash(symbol));
    while parts.len() > 1 && parts.last().is_some_and(|p| is_made(p)) {
        parts.pop();
    }
    if parts.len() > 1 {
        parts.retain(|p| !is_made(p));
    }
    parts.join("::")
}

/// Whether a name has no path: with line tables only, debug information has just `poll<T>` or
/// `{closure#0}`.
pub fn is_short(symbol: &str) -> bool {
    let name = without_generics(symbol);
    let parts = parts(name);
    parts.len() == 1 || parts.iter().all(|p| is_made(p))
}

/// Whether a name is the compiler's own: a closure, an async function's body.
pub fn is_nameless(symbol: &str) -> bool {
    parts(without_generics(symbol)).iter().all(|p| is_made(p))
}

/// The module path that a file of a package stands for: `src/a/b.rs` is `a::b`, `src/a/mod.rs` is
/// `a`, `src/lib.rs` is the root.
pub fn module_of(file: &str) -> String {
    let inside = match file.rfind("/src/") {
        Some(at) => &file[at + 5..],
        None => {
            file.strip_prefix("src/").unwrap_or_else(|| file.rsplit('/').next().unwrap_or(file))
        }
    };
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    let parts: Vec<&str> =
        inside.split('/').filter(|p| !matches!(*p, "mod" | "lib" | "main" | "bin")).collect();
    parts.join("::")
}

/// A name without its generic arguments: `poll<T, U>` is `poll`.
pub fn without_generics(name: &str) -> &str {
    match name.find('<') {
        Some(at) if at > 0 => name[..at].trim_end_matches("::"),
        _ => name,
    }
}

/// The function's own name alone: no path, no types, no generic arguments. `None` for names that
/// are the compiler's own, and for what is no name at all.
pub fn bare(readable: &str) -> Option<&str> {
    let last = parts(readable).into_iter().rev().find(|part| {
        // `::<T>` behind the name.
        !part.starts_with('<') && !part.is_empty()
    })?;
    let name = without_generics(last);
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    (is_name && !name.is_empty()).then_some(name)
}

/// The modules in a function's path, without its types and its own name: `app::export` of
/// `<app::export::Zip as app::Pack>::go`. Modules are in lower case, types are not.
pub fn modules_in(readable: &str) -> String {
    let mut path = parts(readable);
    path.pop();
    let Some(first) = path.first() else { return String::new() };
    let inner = first.trim_start_matches(['<', '&', '*', '(', '[']);
    let inner = ["mut ", "const ", "dyn ", "impl "]
        .iter()
        .fold(inner, |text, word| text.strip_prefix(word).unwrap_or(text));
    let end = inner.find([' ', '<', '>', '(', '&', ',']).unwrap_or(inner.len());
    inner[..end]
        .split("::")
        .chain(path[1..].iter().copied())
        .take_while(|p| p.starts_with(|c: char| c.is_lowercase() || c == '_'))
        .collect::<Vec<_>>()
        .join("::")
}

/// The type that a method's path names: `Zip` of `<app::export::Zip<T> as app::Pack>::go`, of
/// `app::export::Zip<T>::go` and of `app::<impl app::export::Zip>::go`.
pub fn type_in(readable: &str) -> Option<&str> {
    let mut path = parts(readable);
    path.pop();
    path.into_iter().rev().find_map(|part| match part.strip_prefix('<') {
        Some(inner) => named_type(inner.strip_suffix('>').unwrap_or(inner)),
        None => part.starts_with(|c: char| c.is_uppercase()).then(|| without_generics(part)),
    })
}

fn named_type(inner: &str) -> Option<&str> {
    let inner = match inner.strip_prefix("impl ") {
        Some(rest) => outside(rest, " for ").map_or(rest, |at| &rest[at + 5..]),
        None => outside(inner, " as ").map_or(inner, |at| &inner[..at]),
    };
    let mut of = inner.trim_start_matches(['&', '*', ' ']);
    for word in ["mut ", "const ", "dyn "] {
        of = of.strip_prefix(word).unwrap_or(of);
    }
    let path = of.split(['<', ' ', '+']).next()?;
    let name = path.rsplit("::").next()?;
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_name && !name.is_empty()).then_some(name)
}

/// Where `word` stands outside of any angle brackets.
fn outside(text: &str, word: &str) -> Option<usize> {
    let mut depth = 0i32;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' if text[..at].ends_with('-') => {}
            '>' | ')' | ']' => depth -= 1,
            _ => {}
        }
        (depth == 0 && text[at..].starts_with(word)).then_some(at)
    })
}

/// The first part of a function's path, looking through `<A as B>` and `<impl B for A>`.
pub fn crate_of(symbol: &str) -> Option<&str> {
    let inner = symbol.trim_start_matches(['<', '&', '*', '(', '[']);
    let inner =
        inner.trim_start_matches("mut ").trim_start_matches("const ").trim_start_matches("dyn ");
    let inner = inner.strip_prefix("impl ").unwrap_or(inner);
    let end = inner.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inner.len());
    let (word, rest) = inner.split_at(end);
    if word.is_empty() {
        return None;
    }
    // `<T as other::Trait>::f` or `<str as other::Trait>::f`: a type without a path of its own.
    if !rest.starts_with("::") || word.len() == 1 {
        if let Some((_, after)) = rest.split_once(" as ") {
            return crate_of(after);
        }
        if let Some((_, after)) = rest.split_once(" for ") {
            return crate_of(after);
        }
        return rest.starts_with("::").then_some(word);
    }
    Some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_know_functions_by_these_names() {
        for (symbol, name) in [
            ("app::slow::h0123456789abcdef", "app::slow"),
            ("app::slow::{{closure}}::h0123456789abcdef", "app::slow"),
            ("app::slow::{{closure}}::{{closure}}", "app::slow"),
            ("app::slow::{async_fn#0}::{closure#1}", "app::slow"),
            ("<app::S<T> as app::Tr>::go::{{closure}}", "<app::S<T> as app::Tr>::go"),
            (
                "core::ptr::drop_in_place<app::f::{{closure}}>",
                "core::ptr::drop_in_place<app::f::{{closure}}>",
            ),
            ("app::outer::{{closure}}::inner", "app::outer::inner"),
            ("{closure#0}", "{closure#0}"),
            ("clock_nanosleep", "clock_nanosleep"),
            ("<fn(u8) -> u8 as core::ops::Fn>::call", "<fn(u8) -> u8 as core::ops::Fn>::call"),
        ] {
            assert_eq!(readable(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn crates_are_found_through_angle_brackets() {
        for (symbol, owner) in [
            ("app::slow", Some("app")),
            ("<app::S<T> as other::Tr>::go", Some("app")),
            ("<T as app::Tr>::go", Some("app")),
            ("<&mut app::S as core::fmt::Debug>::fmt", Some("app")),
            ("<str as app::Ext>::go", Some("app")),
            ("<impl app::Tr for u8>::go", Some("app")),
            ("<alloc::vec::Vec<app::S> as core::ops::Drop>::drop", Some("alloc")),
            ("main", None),
            ("__rust_try", None),
        ] {
            assert_eq!(crate_of(symbol), owner, "{symbol}");
        }
    }

    #[test]
    fn modules_by_file() {
        for (file, module) in [
            (
                "/r/tokio-1.54.1/src/runtime/scheduler/multi_thread/worker.rs",
                "runtime::scheduler::multi_thread::worker",
            ),
            (
                "/r/tokio-1.54.1/src/runtime/scheduler/current_thread/mod.rs",
                "runtime::scheduler::current_thread",
            ),
            ("/w/app/src/lib.rs", ""),
            ("src/handlers.rs", "handlers"),
            ("/w/app/src/bin/tool/main.rs", "tool"),
            ("tests/api.rs", "api"),
        ] {
            assert_eq!(module_of(file), module, "{file}");
        }
        assert_eq!(without_generics("poll<alloc::boxed::Box<T>>"), "poll");
        assert_eq!(without_generics("<a as b>::c"), "<a as b>::c");
    }

    #[test]
    fn bare_names_and_their_modules() {
        for (name, function, modules) in [
            ("app::handlers::slow", Some("slow"), "app::handlers"),
            ("app::export::Zip<T>::go", Some("go"), "app::export"),
            ("app::export::Zip<T>::go<u8>", Some("go"), "app::export"),
            ("app::export::go::<u8>", Some("go"), "app::export"),
            ("<app::export::Zip<T> as app::Pack>::go", Some("go"), "app::export"),
            ("<&mut app::export::Zip as core::fmt::Debug>::fmt", Some("fmt"), "app::export"),
            ("app::handlers::{impl#3}::go", Some("go"), "app::handlers"),
            ("go", Some("go"), ""),
            ("{closure#0}", None, ""),
            ("0x7f12 in libfoo.so", None, ""),
        ] {
            assert_eq!(bare(name), function, "{name}");
            if function.is_some() && !name.ends_with("<u8>") {
                assert_eq!(modules_in(name), modules, "{name}");
            }
        }
    }

    #[test]
    fn types_in_names() {
        for (name, of) in [
            ("app::handlers::slow", None),
            ("app::export::Zip<T>::go", Some("Zip")),
            ("<app::export::Zip<T>>::go", Some("Zip")),
            ("<app::export::Zip<a::T> as app::Pack<b::U>>::go", Some("Zip")),
            ("<&mut app::export::Zip as core::fmt::Debug>::fmt", Some("Zip")),
            ("app::_::<impl app::Tr for app::m::U>::go", Some("U")),
            ("app::handlers::<impl app::types::A>::get", Some("A")),
            ("app::A::get::inner", Some("A")),
            ("<u8 as app::Ext>::go", Some("u8")),
            ("<[T] as app::Ext>::go", None),
            ("app::handlers::{impl#3}::go", None),
            ("go", None),
        ] {
            assert_eq!(type_in(name), of, "{name}");
        }
    }

    #[test]
    fn short_names() {
        assert!(is_short("slow"));
        assert!(is_short("{async_fn#0}"));
        assert!(!is_short("app::slow"));
    }
}
