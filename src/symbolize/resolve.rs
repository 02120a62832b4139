//! Raw stacks to stacks with names.
#![forbid(unsafe_code)]

use super::modules::Modules;
use super::source::Sources;
use super::{names, origin, origin::Package};
use crate::evidence::{Frame, Harness, Origin, RawStack, Stack};
use crate::ids::CodeAddress;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What the arming lines said about the program.
#[derive(Clone, Debug, Default)]
pub struct Grounds {
    pub packages: Vec<Package>,
}

/// Looks up names, each address once.
#[derive(Debug)]
pub struct Symbolizer {
    grounds: Grounds,
    root: Option<PathBuf>,
    modules: Modules,
    sources: Sources,
    known: HashMap<CodeAddress, Vec<Frame>>,
}

impl Symbolizer {
    pub fn new(grounds: Grounds) -> Symbolizer {
        Symbolizer {
            root: origin::root(&grounds.packages),
            grounds,
            modules: Modules::default(),
            sources: Sources::default(),
            known: HashMap::new(),
        }
    }

    /// A stack with names. Addresses without any become a frame that shows the address.
    pub fn resolve(&mut self, raw: &RawStack) -> Stack {
        Stack { frames: without_own(self.all_frames(raw)), truncated: raw.truncated }
    }

    fn all_frames(&mut self, raw: &RawStack) -> Vec<Frame> {
        let mut frames = Vec::with_capacity(raw.addresses.len());
        for address in &raw.addresses {
            if !self.known.contains_key(address) {
                let looked_up = self.look_up(*address);
                self.known.insert(*address, looked_up);
            }
            frames.extend(self.known[address].iter().cloned());
        }
        frames
    }

    fn look_up(&mut self, address: CodeAddress) -> Vec<Frame> {
        let at = address.lookup();
        if self.modules.path(at).is_none() {
            // The first look, or loaded since.
            self.modules = Modules::read();
        }
        if let Some(name) = self.modules.system(at) {
            return vec![nameless(name.to_owned())];
        }
        let mut frames = Vec::new();
        // `resolve` takes a return address and looks at the byte before it.
        backtrace::resolve(at.wrapping_add(1) as *mut core::ffi::c_void, |symbol| {
            let Some(name) = symbol.name() else { return };
            let file = symbol.filename().map(|f| f.to_string_lossy().into_owned());
            let name = format!("{name:#}");
            frames.push(Frame {
                function: String::new(),
                symbol: names::without_hash(&name).to_owned(),
                file,
                line: symbol.lineno(),
                column: symbol.colno(),
                inlined: true,
                origin: Origin::Foreign,
            });
        });
        let Some(last) = frames.last_mut() else {
            let file = self.modules.path(at).and_then(|p| p.rsplit('/').next()).unwrap_or("?");
            return vec![nameless(format!("{at:#x} in {file}"))];
        };
        last.inlined = false;
        self.complete(&mut frames);
        frames
    }

    /// Readable names, absolute files, and whose code it is.
    fn complete(&mut self, frames: &mut [Frame]) {
        for frame in frames.iter_mut() {
            let packages = &self.grounds.packages;
            frame.origin = origin::of(&frame.symbol, frame.file.as_deref(), packages);
            let path = frame.file.as_deref().and_then(|f| origin::absolute(f, packages));
            let own = matches!(frame.origin, Origin::Workspace { .. });
            if own {
                let test_code = self.is_test_code(frame, path.as_deref());
                frame.origin = Origin::Workspace { test_code };
            }
            if names::is_short(&frame.symbol) {
                frame.symbol = self.full_name(frame, path.as_deref());
            }
            frame.function = names::readable(&frame.symbol);
            if own {
                if let Some(path) = path {
                    frame.file = Some(path.to_string_lossy().into_owned());
                }
            }
        }
    }

    /// A path for a name that has none (line tables only): package and module by the file, and
    /// where the name is the compiler's own, the function by the source.
    fn full_name(&mut self, frame: &Frame, path: Option<&Path>) -> String {
        let Some(file) = frame.file.as_deref() else { return frame.symbol.clone() };
        let package = match &frame.origin {
            Origin::Tokio { .. } => "tokio".to_owned(),
            Origin::Dependency { name, .. } => name.replace('-', "_"),
            Origin::Std => match file.split("/library/").nth(1).and_then(|f| f.split('/').next()) {
                Some(library) => library.to_owned(),
                None => "std".to_owned(),
            },
            Origin::Workspace { .. } => origin::crate_by_file(path),
            Origin::Harness | Origin::Stallhound | Origin::Foreign => return frame.symbol.clone(),
        };
        let name = names::without_generics(&frame.symbol);
        let function = match (names::is_nameless(name), path, frame.line) {
            (true, Some(path), Some(line)) => self.sources.function_at(path, line),
            _ => None,
        };
        let module = names::module_of(file);
        let last = function.as_deref().unwrap_or(name);
        [package.as_str(), module.as_str(), last]
            .into_iter()
            .filter(|p| !p.is_empty())
            .collect::<Vec<_>>()
            .join("::")
    }

    /// A function as every build names it: package and module by the file, then the modules and
    /// the type that its source says it is in, and the function's bare name. Where the source is
    /// not at hand, the build's own name has to do, which line tables do not have.
    pub fn plain_function(&mut self, frame: &Frame) -> Option<String> {
        let function = names::bare(&frame.function)?;
        let packages = &self.grounds.packages;
        let path = frame.file.as_deref().and_then(|file| origin::absolute(file, packages));
        let home = match (&frame.origin, frame.file.as_deref()) {
            (Origin::Workspace { .. }, Some(file)) => {
                let path = path.as_deref().unwrap_or(Path::new(file));
                origin::home(path, &frame.symbol, packages)
            }
            (Origin::Dependency { name, .. }, Some(file)) => {
                [name.replace('-', "_"), names::module_of(file)].join("::")
            }
            // All there is to go by is the name.
            _ => names::modules_in(&frame.function),
        };
        let by_source = path
            .zip(frame.line)
            .and_then(|(path, line)| self.sources.home_at(&path, line, function));
        let (home, inner) = match (by_source, names::type_in(&frame.function)) {
            (Some(inner), _) => (home, inner),
            (None, Some(of)) => (home, vec![of.to_owned()]),
            (None, None) => {
                let modules = names::modules_in(&frame.function);
                let deeper = modules.strip_prefix(&home).is_some_and(|rest| rest.starts_with("::"));
                (if deeper { modules } else { home }, Vec::new())
            }
        };
        let parts = home.split("::").chain(inner.iter().map(String::as_str)).chain([function]);
        Some(parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("::"))
    }

    fn is_test_code(&mut self, frame: &Frame, path: Option<&Path>) -> bool {
        let owner = names::crate_of(&frame.symbol);
        let in_target = self
            .grounds
            .packages
            .iter()
            .any(|p| p.test_target && owner == Some(p.crate_name.as_str()));
        if in_target {
            return true;
        }
        match path.zip(frame.line).and_then(|(path, line)| self.sources.is_test(path, line)) {
            Some(is) => is,
            // No source at hand: the module's name has to do.
            None => names::parts(&frame.symbol).iter().any(|p| *p == "tests" || *p == "test"),
        }
    }

    /// The text of a source line.
    pub fn source_line(&mut self, file: &str, line: u32) -> Option<String> {
        let path = origin::absolute(file, &self.grounds.packages)?;
        self.sources.line(&path, line)
    }

    /// A file as people name it: relative to the workspace, or to the registry.
    pub fn display_path(&self, file: &str) -> String {
        if let Some(relative) =
            self.root.as_ref().and_then(|r| Path::new(file).strip_prefix(r).ok())
        {
            return relative.to_string_lossy().into_owned();
        }
        for mark in ["/registry/src/", "/git/checkouts/"] {
            if let Some((_, rest)) = file.split_once(mark) {
                return rest.split_once('/').map_or(rest, |(_, inside)| inside).to_owned();
            }
        }
        match file.strip_prefix("/rustc/").and_then(|rest| rest.split_once('/')) {
            Some((_, inside)) => inside.to_owned(),
            None => file.to_owned(),
        }
    }
}

/// Our own frames at the inner end, down to the interposed function, are nobody's business.
fn without_own(frames: Vec<Frame>) -> Vec<Frame> {
    const DEEPEST: usize = 24;
    let own = |f: &Frame| {
        f.origin == Origin::Stallhound && !f.symbol.ends_with("trampoline") && !calls_the_user(f)
    };
    match frames.iter().take(DEEPEST).rposition(own) {
        Some(last) => frames.into_iter().skip(last + 1).collect(),
        None => frames,
    }
}

/// Whether a frame of ours is one that the program's own code runs below: a wrapped future's poll,
/// a mark.
fn calls_the_user(frame: &Frame) -> bool {
    const FILES: &[&str] =
        &["/src/watch.rs", "/src/scope.rs", "/src/builder.rs", "/src/private.rs"];
    const MODULES: &[&str] =
        &["stallhound::watch::", "stallhound::scope::", "stallhound::builder::", "::__private::"];
    match &frame.file {
        Some(file) => FILES.iter().any(|end| file.ends_with(end)),
        None => MODULES.iter().any(|module| frame.symbol.contains(module)),
    }
}

fn nameless(function: String) -> Frame {
    Frame {
        symbol: function.clone(),
        function,
        file: None,
        line: None,
        column: None,
        inlined: false,
        origin: Origin::Foreign,
    }
}

/// Which test harness a test thread's stack shows.
pub fn harness_of(stack: &Stack) -> Harness {
    let libtest = stack.frames.iter().any(|f| {
        f.symbol.starts_with("test::__rust_begin_short_backtrace")
            || f.symbol.starts_with("test::run_test")
    });
    if libtest {
        Harness::Libtest
    } else {
        Harness::Process
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This crate's own frames included: these tests are its own code.
    fn whole(symbolizer: &mut Symbolizer, raw: &RawStack) -> Stack {
        Stack { frames: symbolizer.all_frames(raw), truncated: raw.truncated }
    }

    #[inline(never)]
    fn here() -> RawStack {
        let mut addresses = Vec::new();
        backtrace::trace(|frame| {
            addresses.push(CodeAddress::Return(frame.ip() as usize));
            true
        });
        RawStack { addresses, truncated: false }
    }

    #[inline(never)]
    async fn inner() -> RawStack {
        let stack = here();
        std::hint::black_box(&stack);
        stack
    }

    struct Generic<T>(T);

    impl<T: Copy> Generic<T> {
        #[inline(never)]
        fn through(&self, f: impl Fn() -> RawStack) -> RawStack {
            let _ = std::hint::black_box(self.0);
            f()
        }
    }

    #[test]
    fn real_stacks_get_their_names() {
        let package = Package {
            crate_name: "stallhound".into(),
            manifest_dir: env!("CARGO_MANIFEST_DIR").into(),
            test_target: false,
        };
        let mut symbolizer = Symbolizer::new(Grounds { packages: vec![package] });
        let rt = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let raw = rt.block_on(async { inner().await });
        let stack = whole(&mut symbolizer, &raw);
        let find = |name: &str| stack.frames.iter().find(|f| f.function.ends_with(name));
        let frame = find("tests::inner").expect("the async fn under its own name");
        if let Some((file, line)) = frame.file.clone().zip(frame.line) {
            assert!(file.ends_with("src/symbolize/resolve.rs"));
            let line = symbolizer.source_line(&file, line);
            assert_eq!(line.as_deref().map(str::trim), Some("let stack = here();"));
        }
        assert!(stack.frames.iter().any(|f| matches!(f.origin, Origin::Tokio { .. })));
        assert!(stack.frames.iter().any(|f| f.origin == Origin::Std));
        assert_eq!(harness_of(&stack), Harness::Libtest);

        let raw = Generic(3u8).through(here);
        let stack = whole(&mut symbolizer, &raw);
        assert!(
            stack.frames.iter().any(|f| f.function.contains("Generic<T>>::through")
                || f.function.contains("Generic<T>::through")
                || f.function.contains("Generic<u8>>::through")),
            "{:#?}",
            stack.frames
        );
    }

    #[test]
    fn our_frames_go_up_to_the_call_and_no_further() {
        let frame = |symbol: &str, file: Option<&str>, origin: Origin| Frame {
            file: file.map(str::to_owned),
            origin,
            ..nameless(symbol.into())
        };
        let own = |symbol, file| frame(symbol, file, Origin::Stallhound);
        let user = || frame("app::f", None, Origin::Workspace { test_code: false });
        let left =
            |frames| without_own(frames).iter().map(|f| f.symbol.clone()).collect::<Vec<_>>();
        let poll = "<stallhound::watch::Watch<F> as core::future::future::Future>::poll";
        let hook = || own("stallhound::hooks::libc::observe::always", None);
        assert_eq!(left(vec![hook(), user(), own(poll, None)]), ["app::f", poll]);
        let at = Some("/w/stallhound/src/watch.rs");
        assert_eq!(left(vec![hook(), user(), own("poll<F>", at)]), ["app::f", "poll<F>"]);
        let at = Some("/w/stallhound/src/watchdog/watch.rs");
        assert_eq!(left(vec![hook(), own("close", at), user()]), ["app::f"]);
    }

    #[test]
    fn an_instruction_at_a_functions_first_byte_is_that_function() {
        let mut symbolizer = Symbolizer::new(Grounds::default());
        let at = here as fn() -> RawStack as usize;
        let raw = RawStack { addresses: vec![CodeAddress::Instruction(at)], truncated: false };
        let stack = whole(&mut symbolizer, &raw);
        assert!(stack.frames.last().unwrap().function.ends_with("tests::here"), "{stack:?}");
    }

    #[test]
    fn nonsense_gets_a_frame_that_shows_the_address() {
        let mut symbolizer = Symbolizer::new(Grounds::default());
        let raw = RawStack { addresses: vec![CodeAddress::Return(0x10)], truncated: false };
        let stack = whole(&mut symbolizer, &raw);
        assert_eq!(stack.frames.len(), 1);
        assert!(stack.frames[0].function.starts_with("0xf in"), "{stack:?}");
    }

    #[test]
    fn paths_are_shown_short() {
        let package = Package {
            crate_name: "stallhound".into(),
            manifest_dir: env!("CARGO_MANIFEST_DIR").into(),
            test_target: false,
        };
        let s = Symbolizer::new(Grounds { packages: vec![package] });
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs");
        assert_eq!(s.display_path(own), "src/lib.rs");
        assert_eq!(s.display_path("/c/registry/src/idx-1/a-1.0/src/x.rs"), "a-1.0/src/x.rs");
        assert_eq!(s.display_path("/rustc/abc/library/std/src/x.rs"), "library/std/src/x.rs");
        assert_eq!(s.display_path("/elsewhere/x.rs"), "/elsewhere/x.rs");
    }
}
