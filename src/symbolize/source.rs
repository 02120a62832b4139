//! Source files: the line to show, which function it belongs to, and whether it is test code.
//!
//! Test code is any file of a test target, a `#[cfg(test)]` item, a function with a test
//! attribute, and a module that its parent declares under `#[cfg(test)]`. The binary does not say
//! so; the source does.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Source files that were read, each once.
#[derive(Debug, Default)]
pub struct Sources {
    files: HashMap<PathBuf, Option<File>>,
    whole: HashMap<PathBuf, bool>,
}

#[derive(Debug)]
struct File {
    lines: Vec<String>,
    regions: Vec<Region>,
    functions: Vec<(String, Region)>,
    homes: Vec<Home>,
}

/// A block that gives the functions in it their name's middle.
#[derive(Debug)]
struct Home {
    kind: HomeKind,
    /// `None`: of a type that has no name, or one that only a macro knows.
    name: Option<String>,
    region: Region,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HomeKind {
    Module,
    /// `impl` or `trait`.
    Type,
}

/// What a source file is made of.
#[derive(Debug, Default)]
struct Items {
    /// Items that exist for tests only.
    tests: Vec<Region>,
    functions: Vec<(String, Region)>,
    homes: Vec<Home>,
}

/// Lines of an item that exists for tests only, first and last, counted from 1.
type Region = (u32, u32);

/// Nesting of modules that is followed upwards.
const PARENTS: u32 = 8;

impl Sources {
    fn file(&mut self, path: &Path) -> Option<&File> {
        if !self.files.contains_key(path) {
            let file = std::fs::read(path).ok().map(|bytes| {
                let text = String::from_utf8_lossy(&bytes);
                let Items { tests, functions, homes } = items(&text);
                let lines = text.lines().map(str::to_owned).collect();
                File { lines, regions: tests, functions, homes }
            });
            self.files.insert(path.to_owned(), file);
        }
        self.files[path].as_ref()
    }

    /// The text of a line, counted from 1.
    pub fn line(&mut self, path: &Path, line: u32) -> Option<String> {
        self.file(path)?.lines.get(line.checked_sub(1)? as usize).cloned()
    }

    /// The name of the innermost function whose text a line belongs to.
    pub fn function_at(&mut self, path: &Path, line: u32) -> Option<String> {
        Some(innermost(&self.file(path)?.functions, line)?.0.clone())
    }

    /// What stands between a file's module and the function at a line: modules with a body, and
    /// the type whose `impl` it is in, or the trait. `None`: another function, or none, is there.
    pub fn home_at(&mut self, path: &Path, line: u32, function: &str) -> Option<Vec<String>> {
        let file = self.file(path)?;
        let (_, own) = innermost(&file.functions, line).filter(|f| f.0 == function)?;
        let around = |kind: HomeKind| {
            let mut around: Vec<&Home> = file
                .homes
                .iter()
                .filter(|h| h.kind == kind && h.region.0 <= own.0 && own.1 <= h.region.1)
                .collect();
            around.sort_by_key(|h| std::cmp::Reverse(h.region.1 - h.region.0));
            around
        };
        let modules = around(HomeKind::Module).into_iter().map(|h| h.name.clone());
        let of = around(HomeKind::Type).pop().map(|h| h.name.clone());
        modules.chain(of).collect()
    }

    /// Whether a line is test code; `None` if the file cannot be read.
    pub fn is_test(&mut self, path: &Path, line: u32) -> Option<bool> {
        if self.is_test_file(path, PARENTS) {
            return Some(true);
        }
        let file = self.file(path)?;
        Some(file.regions.iter().any(|(first, last)| (*first..=*last).contains(&line)))
    }

    fn is_test_file(&mut self, path: &Path, levels: u32) -> bool {
        if let Some(known) = self.whole.get(path) {
            return *known;
        }
        let is = in_test_target(path) || (levels > 0 && self.is_test_module(path, levels - 1));
        self.whole.insert(path.to_owned(), is);
        is
    }

    /// Whether the file's module is declared for tests only, or inside of one that is.
    fn is_test_module(&mut self, path: &Path, levels: u32) -> bool {
        let Some((name, parents)) = declared_in(path) else { return false };
        for parent in parents {
            let Some(file) = self.file(&parent) else { continue };
            let declared = file.lines.iter().enumerate().find(|(_, l)| declares(l, &name));
            let Some((at, _)) = declared else { continue };
            let line = at as u32 + 1;
            let for_tests = file.regions.iter().any(|(a, b)| (*a..=*b).contains(&line));
            return for_tests || self.is_test_file(&parent, levels);
        }
        false
    }
}

fn innermost(functions: &[(String, Region)], line: u32) -> Option<&(String, Region)> {
    let around = functions.iter().filter(|(_, r)| (r.0..=r.1).contains(&line));
    around.min_by_key(|(_, r)| r.1 - r.0)
}

/// Whether a file lies in the `tests` or `benches` folder of a package.
fn in_test_target(path: &Path) -> bool {
    path.ancestors().skip(1).any(|dir| {
        matches!(dir.file_name().and_then(|n| n.to_str()), Some("tests" | "benches"))
            && dir.parent().is_some_and(|package| package.join("Cargo.toml").is_file())
    })
}

/// A module's name by its file, and the files that may declare it.
fn declared_in(path: &Path) -> Option<(String, Vec<PathBuf>)> {
    let stem = path.file_stem()?.to_str()?;
    let dir = path.parent()?;
    let (name, home) = match stem {
        "lib" | "main" => return None,
        "mod" => (dir.file_name()?.to_str()?.to_owned(), dir.parent()?),
        _ => (stem.to_owned(), dir),
    };
    let mut parents: Vec<PathBuf> =
        ["lib.rs", "main.rs", "mod.rs"].iter().map(|f| home.join(f)).collect();
    if let (Some(above), Some(folder)) = (home.parent(), home.file_name().and_then(|n| n.to_str()))
    {
        parents.push(above.join(format!("{folder}.rs")));
    }
    parents.retain(|p| p != path);
    Some((name, parents))
}

/// Whether a line declares the module of that name, without a body.
fn declares(line: &str, name: &str) -> bool {
    let Some((_, after)) = line.split_once("mod ") else { return false };
    let after = after.trim_start().trim_start_matches("r#");
    after.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(';'))
}

/// Whether an attribute's text makes its item test code.
fn is_test_attribute(text: &str) -> bool {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let end = text.find(['(', '=']).unwrap_or(text.len());
    let (path, rest) = text.split_at(end);
    if path == "cfg" {
        let mut words = rest.split(|c: char| !c.is_alphanumeric() && c != '_');
        return words.any(|w| w == "test") && !rest.contains("not(test)");
    }
    path != "cfg_attr" && path.rsplit("::").next().is_some_and(|last| last.contains("test"))
}

/// The items of a source text.
fn items(text: &str) -> Items {
    let mut scan = Scan { text: text.as_bytes(), at: 0, line: 1 };
    let mut regions = Vec::new();
    let mut functions = Vec::new();
    let mut homes = Vec::new();
    // Homes whose end is not reached, as below.
    let mut inside: Vec<(i32, HomeKind, Option<String>, u32, bool)> = Vec::new();
    // Functions whose end is not reached: depth outside of them, name, first line, body opened.
    let mut running: Vec<(i32, String, u32, bool)> = Vec::new();
    // Items whose end is not reached: depth outside of them, first line, whether a body opened.
    let mut open: Vec<(i32, u32, bool)> = Vec::new();
    let mut depth = 0i32;
    while let Some(token) = scan.next() {
        match token {
            Token::Attribute { text, inner, line } if is_test_attribute(text) => {
                if inner {
                    // The whole file, or the block it stands in.
                    open.push((depth - 1, line, true));
                } else if open.last().is_none_or(|o| o.0 != depth || o.2) {
                    open.push((depth, line, false));
                }
            }
            Token::Attribute { .. } => {}
            Token::Function { name, line } => {
                running.push((depth, String::from_utf8_lossy(name).into_owned(), line, false));
            }
            // In a signature it is no item: `-> impl Future`.
            Token::Home { .. } if running.last().is_some_and(|f| !f.3) => {}
            Token::Home { kind, name, line, end } => {
                inside.push((depth, kind, name, line, false));
                // Braces in its head are not its body.
                while scan.at < end {
                    scan.step();
                }
            }
            Token::Open(brace) => {
                if brace {
                    if let Some(home) = inside.last_mut().filter(|h| h.0 == depth) {
                        home.4 = true;
                    }
                    if let Some(function) = running.last_mut().filter(|f| f.0 == depth) {
                        function.3 = true;
                    }
                    if let Some(item) = open.last_mut().filter(|o| o.0 == depth) {
                        item.2 = true;
                    }
                }
                depth += 1;
            }
            Token::Close(brace) => {
                depth -= 1;
                while running.last().is_some_and(|f| f.0 > depth || (f.0 == depth && f.3 && brace))
                {
                    let (_, name, first, _) = running.pop().expect("just looked at");
                    functions.push((name, (first, scan.line)));
                }
                while inside.last().is_some_and(|h| h.0 > depth || (h.0 == depth && h.4 && brace)) {
                    let (_, kind, name, first, _) = inside.pop().expect("just looked at");
                    homes.push(Home { kind, name, region: (first, scan.line) });
                }
                while let Some(item) = open.last().copied() {
                    let ended = item.0 > depth || (item.0 == depth && item.2 && brace);
                    if !ended {
                        break;
                    }
                    open.pop();
                    regions.push((item.1, scan.line));
                }
            }
            Token::Semicolon => {
                // A function pointer's type or a declaration: no body.
                while running.last().is_some_and(|f| f.0 == depth && !f.3) {
                    running.pop();
                }
                while inside.last().is_some_and(|h| h.0 == depth && !h.4) {
                    inside.pop();
                }
                if let Some(item) = open.last().copied().filter(|o| o.0 == depth && !o.2) {
                    open.pop();
                    regions.push((item.1, scan.line));
                }
            }
        }
    }
    regions.extend(open.into_iter().map(|item| (item.1, u32::MAX)));
    Items { tests: regions, functions, homes }
}

enum Token<'t> {
    Attribute {
        text: &'t str,
        inner: bool,
        line: u32,
    },
    /// An opening bracket; `true` for braces.
    Open(bool),
    Close(bool),
    Semicolon,
    Function {
        name: &'t [u8],
        line: u32,
    },
    Home {
        kind: HomeKind,
        name: Option<String>,
        line: u32,
        /// Where its head ends.
        end: usize,
    },
}

/// The name of the type that an `impl` is for, by what stands between the word and the brace:
/// `<T: Copy> Pack for a::Zip<T> where T: Send` is `Zip`. `None` for what has no name, and where a
/// macro's argument stands.
fn implemented(head: &str) -> Option<String> {
    // Where words stand outside of any brackets.
    let mut depth = 0i32;
    let (mut begin, mut end) = (0, head.len());
    for (at, c) in head.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if head[..at].ends_with(['-', '=']) => {}
            '>' | ')' | ']' | '}' => {
                depth -= 1;
                if depth == 0 && begin == 0 && head.trim_start().starts_with('<') {
                    begin = at + 1;
                }
            }
            c if c.is_whitespace() && depth == 0 => {
                let rest = &head[at + 1..];
                let word = |word: &str| {
                    rest.strip_prefix(word)
                        .is_some_and(|after| after.starts_with(char::is_whitespace))
                };
                if word("for") {
                    begin = at + 4;
                } else if word("where") {
                    end = at;
                    break;
                }
            }
            _ => {}
        }
    }
    let mut of = head.get(begin..end)?.trim();
    loop {
        let next = of.trim_start_matches(['&', '*', '!', '(']).trim_start();
        let next = match next.strip_prefix('\'') {
            Some(lifetime) => {
                lifetime.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
            }
            None => next,
        };
        let next =
            ["mut ", "const ", "dyn "].iter().find_map(|w| next.strip_prefix(w)).unwrap_or(next);
        let next = next.trim_start();
        if next == of {
            break;
        }
        of = next;
    }
    let path = of.split(['<', ' ', '+', ')', ',']).next()?;
    let name = path.rsplit("::").next()?.trim().trim_start_matches("r#");
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_name && !name.is_empty()).then(|| name.to_owned())
}

fn named<'t>(word: &[u8], name: &'t [u8], line: u32) -> Token<'t> {
    let text = || Some(String::from_utf8_lossy(name).into_owned());
    match word {
        b"fn" => Token::Function { name, line },
        b"mod" => Token::Home { kind: HomeKind::Module, name: text(), line, end: 0 },
        _ => Token::Home { kind: HomeKind::Type, name: text(), line, end: 0 },
    }
}

/// Walks over Rust source, past comments and literals.
struct Scan<'t> {
    text: &'t [u8],
    at: usize,
    line: u32,
}

impl<'t> Scan<'t> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn step(&mut self) {
        if self.peek(0) == b'\n' {
            self.line += 1;
        }
        self.at += 1;
    }

    fn next(&mut self) -> Option<Token<'t>> {
        while self.at < self.text.len() {
            if self.skip_literal() {
                continue;
            }
            if self.peek(0).is_ascii_alphabetic() || self.peek(0) == b'_' {
                let line = self.line;
                let word = self.word();
                match word {
                    b"fn" | b"mod" | b"trait" => {
                        while self.peek(0).is_ascii_whitespace() {
                            self.step();
                        }
                        let name = self.word();
                        if !name.is_empty() {
                            return Some(named(word, name, line));
                        }
                    }
                    b"impl" => {
                        let head = self.head();
                        let name = implemented(&String::from_utf8_lossy(head));
                        let end = self.at + head.len();
                        return Some(Token::Home { kind: HomeKind::Type, name, line, end });
                    }
                    _ => {}
                }
                continue;
            }
            let token = match self.peek(0) {
                b'#' if self.peek(1) == b'[' => return Some(self.attribute(false)),
                b'#' if self.peek(1) == b'!' && self.peek(2) == b'[' => {
                    return Some(self.attribute(true))
                }
                b'{' => Some(Token::Open(true)),
                b'(' | b'[' => Some(Token::Open(false)),
                b'}' => Some(Token::Close(true)),
                b')' | b']' => Some(Token::Close(false)),
                b';' => Some(Token::Semicolon),
                _ => None,
            };
            self.step();
            if token.is_some() {
                return token;
            }
        }
        None
    }

    /// The identifier that begins here, if one does (`r#` left out).
    fn word(&mut self) -> &'t [u8] {
        if self.peek(0) == b'r' && self.peek(1) == b'#' {
            self.at += 2;
        }
        let begin = self.at.min(self.text.len());
        while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == b'_' || self.peek(0) >= 0x80 {
            self.at += 1;
        }
        &self.text[begin..self.at]
    }

    /// What stands before the next brace or semicolon outside of any other brackets. Nothing is
    /// taken: it may be a signature and no head of an `impl`.
    fn head(&self) -> &'t [u8] {
        let mut ahead = Scan { text: self.text, at: self.at, line: 0 };
        let mut depth = 0i32;
        while ahead.at < ahead.text.len() {
            if ahead.skip_literal() {
                continue;
            }
            match ahead.peek(0) {
                b'{' | b';' if depth <= 0 => break,
                b'<' | b'(' | b'[' | b'{' => depth += 1,
                b'>' if matches!(ahead.text[ahead.at - 1], b'-' | b'=') => {}
                b'>' | b')' | b']' | b'}' => depth -= 1,
                _ => {}
            }
            ahead.at += 1;
        }
        &self.text[self.at..ahead.at.min(self.text.len())]
    }

    fn attribute(&mut self, inner: bool) -> Token<'t> {
        let line = self.line;
        self.at += if inner { 3 } else { 2 };
        let begin = self.at;
        let mut depth = 1;
        while self.at < self.text.len() {
            if self.skip_literal() {
                continue;
            }
            match self.peek(0) {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            self.step();
        }
        let end = self.at.min(self.text.len());
        let text = core::str::from_utf8(&self.text[begin.min(end)..end]).unwrap_or("");
        self.step();
        Token::Attribute { text, inner, line }
    }

    /// Skips a comment, a string or a character. `false`: there is none here.
    fn skip_literal(&mut self) -> bool {
        let word_before = self.at > 0
            && (self.text[self.at - 1].is_ascii_alphanumeric() || self.text[self.at - 1] == b'_');
        match (self.peek(0), self.peek(1)) {
            (b'/', b'/') => {
                while self.at < self.text.len() && self.peek(0) != b'\n' {
                    self.at += 1;
                }
                true
            }
            (b'/', b'*') => {
                let mut depth = 0;
                while self.at < self.text.len() {
                    match (self.peek(0), self.peek(1)) {
                        (b'/', b'*') => (depth, self.at) = (depth + 1, self.at + 2),
                        (b'*', b'/') => (depth, self.at) = (depth - 1, self.at + 2),
                        _ => self.step(),
                    }
                    if depth == 0 {
                        break;
                    }
                }
                true
            }
            (b'"', _) => {
                self.string();
                true
            }
            (b'r', _) | (b'b', b'r') | (b'c', b'r') if !word_before => self.raw_string(),
            (b'\'', _) => self.character(),
            _ => false,
        }
    }

    fn string(&mut self) {
        self.at += 1;
        while self.at < self.text.len() {
            match self.peek(0) {
                b'\\' => {
                    self.step();
                    self.step();
                }
                b'"' => {
                    self.at += 1;
                    return;
                }
                _ => self.step(),
            }
        }
    }

    fn raw_string(&mut self) -> bool {
        let mut ahead = if self.peek(0) == b'r' { 1 } else { 2 };
        let mut hashes = 0;
        while self.peek(ahead) == b'#' {
            hashes += 1;
            ahead += 1;
        }
        if self.peek(ahead) != b'"' {
            return false;
        }
        self.at += ahead + 1;
        while self.at < self.text.len() {
            if self.peek(0) == b'"' && (1..=hashes).all(|i| self.peek(i) == b'#') {
                self.at += 1 + hashes;
                return true;
            }
            self.step();
        }
        true
    }

    /// A character literal, as against a lifetime.
    fn character(&mut self) -> bool {
        if self.peek(1) == b'\\' {
            self.at += 2;
            self.step(); // the escaped character
            while self.at < self.text.len() && self.peek(0) != b'\'' {
                self.step();
            }
            self.at += 1;
            return true;
        }
        // One character, of up to four bytes, and the closing quote.
        for len in 1..=4 {
            if self.peek(1 + len) == b'\'' && self.peek(1) != b'\'' {
                let inside = &self.text[self.at + 1..self.at + 1 + len];
                if core::str::from_utf8(inside).is_ok_and(|s| s.chars().count() == 1) {
                    self.at += len + 2;
                    return true;
                }
            }
        }
        self.at += 1; // a lifetime
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(text: &str) -> Vec<u32> {
        let regions = items(text).tests;
        (1..=text.lines().count() as u32)
            .filter(|l| regions.iter().any(|(a, b)| (*a..=*b).contains(l)))
            .collect()
    }

    #[test]
    fn attributes() {
        for (text, is) in [
            ("test", true),
            ("tokio::test", true),
            ("tokio :: test(flavor = \"multi_thread\")", true),
            ("rstest", true),
            ("test_case(1)", true),
            ("cfg(test)", true),
            ("cfg(all(test, feature = \"x\"))", true),
            ("cfg(not(test))", false),
            ("cfg(feature = \"testing\")", false),
            ("cfg_attr(test, derive(Debug))", false),
            ("derive(Debug)", false),
            ("inline", false),
        ] {
            assert_eq!(is_test_attribute(text), is, "{text}");
        }
    }

    #[test]
    fn items_end_where_their_body_does() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { if x { y } }\n}\nfn c() {}\n\
                    #[tokio::test]\nasync fn d() {\n}\n#[cfg(test)]\nuse x::{y, z};\nfn e() {}\n";
        assert_eq!(lines_of(text), [2, 3, 4, 5, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn literals_and_comments_are_no_braces() {
        let text = "#[test]\nfn a() { let s = \"}\"; let c = '}'; let l: &'static str = r#\"}\"}\"#; // }\n\
                    /* } /* } */ } */ let b = b'}'; let q = '\\''; let u = '\\u{7d}'; let n = 'ü';\n}\nfn b() {}\n";
        assert_eq!(lines_of(text), [1, 2, 3, 4]);
        let text = "fn a<'a>(x: &'a str) {}\n#[cfg(test)]\nmod t {\n fn r#fn() {}\n}\nfn c() {}\n";
        assert_eq!(lines_of(text), [2, 3, 4, 5]);
    }

    #[test]
    fn inner_attributes_cover_what_they_stand_in() {
        assert_eq!(lines_of("#![cfg(test)]\nfn a() {}\nfn b() {}\n"), [1, 2, 3]);
        assert_eq!(lines_of("mod a {\n#![cfg(test)]\nfn b() {}\n}\nfn c() {}\n"), [2, 3, 4]);
    }

    #[test]
    fn signatures_with_brackets_and_where_clauses() {
        let text = "#[test]\n#[ignore]\nfn a(x: [u8; 3]) -> Vec<u8>\nwhere [u8; 2]: Sized,\n{\n  b();\n}\nfn c() {}\n";
        assert_eq!(lines_of(text), [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn functions_are_found_by_line() {
        let text = "pub async fn outer<F: Fn(u8) -> u8>(f: F)\nwhere\n  F: Copy,\n{\n  fn inner(c: fn(u8) -> u8) { go(); }\n  \
                    let x: fn(u8);\n  more();\n}\ntrait T { fn declared(&self); fn given(&self) {\n } }\nstatic S: u8 = 1;\n";
        let functions = items(text).functions;
        let at = |line: u32| innermost(&functions, line).map(|(name, _)| name.as_str());
        assert_eq!(at(5), Some("inner"));
        assert_eq!(at(7), Some("outer"));
        assert_eq!(at(3), Some("outer"));
        assert_eq!(at(9), Some("given"));
        assert_eq!(at(11), None);
    }

    #[test]
    fn functions_have_homes() {
        let text = "fn free() { go(); }
mod outer {
    pub mod inner {
        pub fn f() -> impl Fn(u8) -> u8 { |x| x }
    }
    mod elsewhere;
    impl super::A { fn get(&self) { } }
}
impl<'a, T: Copy + Fn(u8) -> u8> Job for &'a mut crate::x::B<T, { 3 }>
where
    T: Send,
{
    async fn get(self) -> impl Sized {
        fn nested() { go(); }
        let done = async { 1 };
        done.await
    }
}
trait C { fn declared(&self, f: impl Fn()); fn get(&self) { } }
macro_rules! of { ($t:ty) => { impl D for $t { fn get(&self) { } } } }
impl<T> D for [T] { fn get(&self) { } }
impl D for dyn Send + Sync { fn get(&self) { } }
impl D for (A, A) { fn get(&self) { } }
fn last(x: impl Into<u8>) { }
";
        let path = std::env::temp_dir().join(format!("stallhound-homes-{}.rs", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let mut sources = Sources::default();
        for (line, function, home) in [
            (1, "free", Some("")),
            (4, "f", Some("outer::inner")),
            (7, "get", Some("outer::A")),
            (13, "get", Some("B")),
            (14, "nested", Some("B")),
            (16, "get", Some("B")),
            (16, "nested", None),
            (19, "get", Some("C")),
            (20, "get", None),
            (21, "get", None),
            (22, "get", Some("Send")),
            (24, "last", Some("")),
        ] {
            let found = sources.home_at(&path, line, function).map(|parts| parts.join("::"));
            assert_eq!(found.as_deref(), home, "line {line}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn own_sources_are_read_right() {
        // This very file, whose test module begins at a known line and ends with the file.
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/symbolize/source.rs");
        let mut sources = Sources::default();
        let text = std::fs::read_to_string(&path).unwrap();
        let first = text.lines().position(|l| l == "mod tests {").unwrap() as u32 + 1;
        assert_eq!(sources.is_test(&path, first), Some(true));
        assert_eq!(sources.is_test(&path, first - 3), Some(false));
        assert_eq!(sources.is_test(&path, text.lines().count() as u32), Some(true));
        assert_eq!(sources.line(&path, first).as_deref(), Some("mod tests {"));
        assert_eq!(sources.is_test(Path::new("/nowhere/x.rs"), 1), None);
        let test = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/architecture.rs");
        assert_eq!(sources.is_test(&test, 1), Some(true));
    }

    #[test]
    fn broken_sources_do_no_harm() {
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        let pieces = [
            "#[test]",
            "#![cfg(test)]",
            "{",
            "}",
            "\"",
            "'",
            "r#\"",
            "/*",
            "*/",
            "//",
            "\n",
            ";",
            "\\",
            "ü",
            "fn a",
            "impl A for",
            "mod m",
            "<",
            ">",
            "[",
            "]",
            "#[",
        ];
        for _ in 0..2000 {
            let mut text = String::new();
            for _ in 0..30 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                text.push_str(pieces[(random % pieces.len() as u64) as usize]);
            }
            for (first, last) in items(&text).tests {
                assert!(first >= 1 && last >= first, "{text:?}");
            }
        }
    }
}
