//! What is to be written so that a finding is allowed: around the source line of test code, or, for
//! code that cannot name this crate because it is not for tests, a declaration beside the tests.
#![forbid(unsafe_code)]

use super::model::{Finding, Kind};
use crate::evidence::Origin;
use crate::verdict::paths::parts;

/// What is to be pasted, if there is such a thing.
pub fn text(finding: &Finding) -> Option<String> {
    match finding.user_frame()?.origin {
        Origin::Workspace { test_code: false } => {
            declared(finding.function.as_deref()?, finding.path.first()?, &finding.kinds)
        }
        _ => {
            let place = finding.place.as_ref()?;
            wrapped(place.source.as_deref()?, place.column)
        }
    }
}

/// Whether what is to be pasted goes beside the tests, and not where the finding is.
pub fn is_declaration(text: &str) -> bool {
    text.starts_with(DECLARATION)
}

const DECLARATION: &str = "stallhound::allowance! {";

/// The declaration for a function. `plain` is its name without types, which says whether the full
/// one begins with a package.
fn declared(function: &str, plain: &str, kinds: &[Kind]) -> Option<String> {
    let parts = parts(function);
    let package = plain.split("::").next();
    let is_name = |part: &&str| {
        part.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !part.starts_with(|c: char| c.is_numeric())
    };
    // A package alone would allow all of it.
    if parts.len() < 2 || parts.first().copied() != package || !parts.iter().all(is_name) {
        return None;
    }
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.category.word()).collect();
    Some(format!(
        "{DECLARATION} below = \"{}\", allow({}), reason = \"why it may block\" }}",
        parts.join("::"),
        kinds.join(", ")
    ))
}

/// The line with its expression inside of `allow_blocking`. `None` where one line does not say
/// enough: it is part of a longer statement, it leaves the function, or it awaits.
///
/// `column` (counted from 1, in bytes) is where the call stands; it must lie in what is wrapped.
fn wrapped(source: &str, column: Option<u32>) -> Option<String> {
    let indent = source.len() - source.trim_start().len();
    let code = without_comment(source).trim();
    let (before, rest) = binding(code)?;
    let (expression, end) = match rest.strip_suffix(';') {
        Some(expression) => (expression.trim_end(), ";"),
        None => (rest, ""),
    };
    // A `?` at the end leaves the function, and so stays outside.
    let inner = expression.trim_end_matches('?');
    let end = format!("{}{end}", &expression[inner.len()..]);
    let at = column.map(|c| c as usize - 1);
    let wraps = at.is_none_or(|at| at >= indent + before.len());
    (wraps && is_whole(inner)).then(|| {
        format!("{before}stallhound::allow_blocking(\"why it may block\", || {inner}){end}")
    })
}

/// `let x = `, `x = `, `return `, and the expression behind it.
fn binding(code: &str) -> Option<(&str, &str)> {
    if let Some(rest) = code.strip_prefix("return ") {
        return Some(("return ", rest));
    }
    let equals = code.match_indices('=').map(|(at, _)| at).find(|at| {
        let before = code[..*at].chars().next_back();
        let after = code[at + 1..].chars().next();
        !matches!(before, Some('=' | '<' | '>' | '!')) && !matches!(after, Some('=' | '>'))
    });
    let split = equals.filter(|at| outside(code, *at)).map(|at| {
        let rest = code[at + 1..].trim_start();
        (&code[..code.len() - rest.len()], rest)
    });
    match split {
        Some((before, rest)) => {
            let target = before.trim_end_matches(['=', ' ']);
            let plain = before.starts_with("let ") || is_place(target);
            // `let … else` is not one line's business, and `x += f()` reads x after f.
            plain.then_some((before, rest))
        }
        None => (!code.starts_with("let ")).then_some(("", code)),
    }
}

/// `self.x` or `x`: what an assignment can be made to without a closure's borrow in the way.
fn is_place(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "._* ".contains(c))
}

/// Whether a place in the code is outside of all brackets and literals.
fn outside(code: &str, at: usize) -> bool {
    brackets(&code[..at]) == Some(0)
}

/// One expression from end to end that can be run in a closure.
fn is_whole(code: &str) -> bool {
    let begins = code.starts_with(|c: char| {
        c.is_alphanumeric() || matches!(c, '_' | '(' | ':' | '&' | '*' | '<')
    });
    let words = [
        "let", "if", "match", "for", "while", "loop", "async", "await", "return", "break",
        "continue", "else", "fn", "use", "yield", "unsafe", "move", "where", "impl", "static",
        "const",
    ];
    // What stands in a text is no operator, no bracket and no word of the language.
    let Some(bare) = without_texts(code) else { return false };
    let mut names = bare.split(|c: char| !c.is_alphanumeric() && c != '_');
    begins
        && code.ends_with([')', ']', '!'])
        && bare.contains('(')
        && brackets(code) == Some(0)
        && !bare.contains(['?', '{', '}', ';'])
        && !names.any(|name| words.contains(&name))
}

/// How many brackets are open at the end; `None` if they do not match, or a literal is not closed.
fn brackets(code: &str) -> Option<usize> {
    let mut open = Vec::new();
    for c in without_texts(code)?.chars() {
        match c {
            '(' | '[' => open.push(c),
            ')' => (open.pop()? == '(').then_some(())?,
            ']' => (open.pop()? == '[').then_some(())?,
            _ => {}
        }
    }
    Some(open.len())
}

/// The code without what its texts and characters say: `f("a?")` is `f("")`. `None` if one is not
/// closed.
fn without_texts(code: &str) -> Option<String> {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => {
                let hashes = out.len() - out.trim_end_matches('#').len();
                let before = &out[..out.len() - hashes];
                let word = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next();
                let end = match word {
                    Some("r" | "br" | "cr") => {
                        let end = format!("\"{}", "#".repeat(hashes));
                        rest.find(&end)?
                    }
                    _ => end_of_text(rest, '"')?,
                };
                rest = &rest[end + 1..];
                out.push_str("\"\"");
            }
            // A character, or a lifetime.
            '\'' if rest.starts_with('\\') || rest.chars().nth(1) == Some('\'') => {
                rest = &rest[end_of_text(rest, '\'')? + 1..];
                out.push_str("''");
            }
            '\'' if rest.is_empty() => return None,
            _ => out.push(c),
        }
    }
    Some(out)
}

/// Where a literal's content ends.
fn end_of_text(content: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    content.char_indices().find_map(|(at, c)| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at)
    })
}

/// The line up to a `//` that is not in a text.
fn without_comment(source: &str) -> &str {
    let comment = source.match_indices("//").map(|(at, _)| at);
    let mut comment = comment.filter(|at| brackets(&source[..*at]).is_some());
    comment.next().map_or(source, |at| &source[..at])
}

#[cfg(test)]
mod tests {
    use super::{declared, wrapped};
    use crate::evidence::Category;
    use crate::report::model::Kind;

    #[test]
    fn functions_are_declared_by_their_names() {
        let kind = |category| Kind { category, calls: Vec::new() };
        let kinds = [kind(Category::IoWait), kind(Category::Sleep)];
        for (function, plain, below) in [
            ("app::slow", "app::slow", "app::slow"),
            ("app::inner::slow", "app::slow", "app::inner::slow"),
            ("<app::m::S<u8> as other::Tr>::go", "app::m::go", "app::m::S::go"),
            ("app::m::S<T>::go", "app::m::go", "app::m::S::go"),
        ] {
            let text = format!(
                "stallhound::allowance! {{ below = \"{below}\", allow(io-wait, sleep), \
                 reason = \"why it may block\" }}"
            );
            assert_eq!(declared(function, plain, &kinds), Some(text), "{function}");
        }
        // All of a package, and everybody's of that name.
        for (function, plain) in [("app", "app"), ("<T as other::Tr>::go", "app::go")] {
            assert_eq!(declared(function, plain, &kinds), None, "{function}");
        }
    }

    #[test]
    fn lines_that_can_be_wrapped() {
        let around = |expression: &str| {
            format!("stallhound::allow_blocking(\"why it may block\", || {expression})")
        };
        for (line, before, expression, after) in [
            ("    std::thread::sleep(nap); // GUILTY", "", "std::thread::sleep(nap)", ";"),
            ("let x = read(&path)?;", "let x = ", "read(&path)", "?;"),
            ("let Some(x) = get(')', \"//(\");", "let Some(x) = ", "get(')', \"//(\")", ";"),
            (
                "let guard: Guard<'_, u8> = lock.lock().unwrap();",
                "let guard: Guard<'_, u8> = ",
                "lock.lock().unwrap()",
                ";",
            ),
            ("self.state = load(x == y);", "self.state = ", "load(x == y)", ";"),
            ("return client.get(url);", "return ", "client.get(url)", ";"),
            ("thread.join()", "", "thread.join()", ""),
            ("(self.sleep)(nap);", "", "(self.sleep)(nap)", ";"),
            ("check(|x| x >= 3);", "", "check(|x| x >= 3)", ";"),
            // What texts say is not code.
            (r#"get("/pages?n=1");"#, "", r#"get("/pages?n=1")"#, ";"),
            (r#"let x = get("a?")?;"#, "let x = ", r#"get("a?")"#, "?;"),
            ("split('?', '\\'', '\\\\');", "", "split('?', '\\'', '\\\\')", ";"),
            (r#"say("if {x}; \"await\"");"#, "", r#"say("if {x}; \"await\"")"#, ";"),
            (r##"find(r"\?\");"##, "", r##"find(r"\?\")"##, ";"),
            (r###"find(br#"a"?"b"#);"###, "", r###"find(br#"a"?"b"#)"###, ";"),
        ] {
            assert_eq!(
                wrapped(line, None),
                Some(format!("{before}{}{after}", around(expression))),
                "{line}"
            );
        }
    }

    #[test]
    fn lines_that_say_too_little() {
        for line in [
            ".read_to_string(&mut text)?;",
            "let text = std::fs::read_to_string(",
            "path);",
            "if let Ok(x) = rx.recv() {",
            "match lock.lock() {",
            "let x = read()?.more();",
            "let x = rx.recv().unwrap() else {",
            "handle.block_on(async { x.await });",
            "let x = get().await;",
            "for line in reader.lines() {",
            "}",
            "",
            "let s = \"open",
            "get(\"a?\", b?);",
            "get('?', b?.c);",
            "get(\"a\", b\"?\")?.c();",
            "x",
            "total += sum(x);",
            "tokio::spawn(async move { std::thread::sleep(nap) }).await.unwrap();",
        ] {
            assert_eq!(wrapped(line, None), None, "{line}");
        }
    }

    #[test]
    fn the_call_must_be_inside() {
        assert!(wrapped("  x = f();", Some(7)).is_some());
        assert_eq!(wrapped("  let S(x) = f();", Some(3)), None);
    }
}
