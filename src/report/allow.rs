//! A source line as it is to be written so that what it does is allowed.
#![forbid(unsafe_code)]

/// The line with its expression inside of `allow_blocking`. `None` where one line does not say
/// enough: it is part of a longer statement, it leaves the function, or it awaits.
///
/// `column` (counted from 1, in bytes) is where the call stands; it must lie in what is wrapped.
pub fn wrapped(source: &str, column: Option<u32>) -> Option<String> {
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
    let mut names = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    begins
        && code.ends_with([')', ']', '!'])
        && code.contains('(')
        && brackets(code) == Some(0)
        && !code.contains(['?', '{', '}', ';'])
        && !names.any(|name| words.contains(&name))
}

/// How many brackets are open at the end; `None` if they do not match, or a literal is not closed.
fn brackets(code: &str) -> Option<usize> {
    let mut open = Vec::new();
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '(' | '[' => open.push(c),
            ')' => (open.pop()? == '(').then_some(())?,
            ']' => (open.pop()? == '[').then_some(())?,
            '"' => loop {
                match chars.next()? {
                    '\\' => {
                        chars.next();
                    }
                    '"' => break,
                    _ => {}
                }
            },
            '\'' => {
                // A character, or a lifetime.
                let mut ahead = chars.clone();
                let first = ahead.next()?;
                if first == '\\' {
                    chars.next();
                    chars.next();
                    while chars.next()? != '\'' {}
                } else if ahead.next() == Some('\'') {
                    chars.next();
                    chars.next();
                }
            }
            _ => {}
        }
    }
    Some(open.len())
}

/// The line up to a `//` that is not in a text.
fn without_comment(source: &str) -> &str {
    let comment = source.match_indices("//").map(|(at, _)| at);
    let mut comment = comment.filter(|at| brackets(&source[..*at]).is_some());
    comment.next().map_or(source, |at| &source[..at])
}

#[cfg(test)]
mod tests {
    use super::wrapped;

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
