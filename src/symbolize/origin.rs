//! Whose code a frame is, by its file and, where there is none, by its name.
#![forbid(unsafe_code)]

use super::names;
use crate::evidence::Origin;
use std::path::{Path, PathBuf};

/// The crate in whose code an arming line stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// As the compiler calls the crate.
    pub crate_name: String,
    /// The folder of its manifest.
    pub manifest_dir: PathBuf,
    /// It is an integration test or a bench: all of its code is test code.
    pub test_target: bool,
}

/// Files of this crate itself.
fn is_own_file(file: &str) -> bool {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/src/");
    file.starts_with(own)
}

/// Whose code this is. `test_code` is left false: [`super::source`] decides it.
pub fn of(symbol: &str, file: Option<&str>, packages: &[Package]) -> Origin {
    if let Some(file) = file {
        if let Some(origin) = by_file(symbol, file) {
            return origin;
        }
    }
    by_name(symbol, packages)
}

fn by_file(symbol: &str, file: &str) -> Option<Origin> {
    if let Some((_, inside)) = file.split_once("/library/").filter(|(before, _)| {
        before.starts_with("/rustc/") || before.ends_with("/rustlib/src/rust")
    }) {
        let harness = inside.starts_with("test/") || inside.starts_with("rtstartup/");
        return Some(if harness { Origin::Harness } else { Origin::Std });
    }
    // std's own dependencies (hashbrown, backtrace, gimli, …).
    if file.starts_with("/rustc/") || file.starts_with("/rust/deps/") {
        return Some(Origin::Std);
    }
    if let Some((_, rest)) = file.split_once("/registry/src/") {
        let folder = rest.split('/').nth(1)?;
        let (name, version) = split_version(folder);
        return Some(package(name, version));
    }
    if let Some((_, rest)) = file.split_once("/git/checkouts/") {
        let mut parts = rest.split('/');
        let (name, _) = parts.next()?.rsplit_once('-')?;
        return Some(package(name, parts.next().unwrap_or("")));
    }
    if let Some((_, rest)) = file.split_once("/vendor/") {
        let (name, version) = split_version(rest.split('/').next()?);
        return Some(package(name, version));
    }
    if is_own_file(file) || names::crate_of(symbol) == Some("stallhound") {
        return Some(Origin::Stallhound);
    }
    if !file.ends_with(".rs") {
        return Some(Origin::Foreign);
    }
    Some(Origin::Workspace { test_code: false })
}

fn package(name: &str, version: &str) -> Origin {
    match name {
        "tokio" => Origin::Tokio { version: version.to_owned() },
        "stallhound" => Origin::Stallhound,
        _ => Origin::Dependency { name: name.to_owned(), version: version.to_owned() },
    }
}

/// `futures-util-0.3.31` → name and version: the version begins at the first `-` before a digit
/// that is followed by a dot further on.
pub fn split_version(folder: &str) -> (&str, &str) {
    for (at, _) in folder.match_indices('-') {
        let version = &folder[at + 1..];
        let number = version.split('.').next().unwrap_or("");
        if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) && version.contains('.')
        {
            return (&folder[..at], version);
        }
    }
    (folder, "")
}

fn by_name(symbol: &str, packages: &[Package]) -> Origin {
    let Some(owner) = names::crate_of(symbol) else {
        return match symbol {
            "main" | "_start" => Origin::Harness,
            "__rust_try" => Origin::Std,
            _ => Origin::Foreign,
        };
    };
    match owner {
        "std" | "core" | "alloc" | "proc_macro" | "__rustc" | "hashbrown" => Origin::Std,
        "test" => Origin::Harness,
        "tokio" => Origin::Tokio { version: String::new() },
        "stallhound" => Origin::Stallhound,
        _ if packages.iter().any(|p| p.crate_name == owner || names_package(p, owner)) => {
            Origin::Workspace { test_code: false }
        }
        _ => Origin::Dependency { name: owner.to_owned(), version: String::new() },
    }
}

/// Whether a crate is the library beside the test target, by its folder's name: all there is to
/// go by without debug information.
fn names_package(package: &Package, owner: &str) -> bool {
    package
        .manifest_dir
        .file_name()
        .and_then(|n| n.to_str())
        .is_some_and(|n| n.replace('-', "_") == owner)
}

/// The name of the crate a file of the workspace belongs to, by its place and its manifest: the
/// file's own in `tests/`, `benches/`, `examples/` and `src/bin/`, else the package's.
pub fn crate_by_file(path: Option<&Path>) -> String {
    let Some(path) = path else { return String::new() };
    let folder = path.ancestors().skip(1).find(|dir| dir.join("Cargo.toml").is_file());
    let Some(folder) = folder else { return String::new() };
    let inside = path.strip_prefix(folder).unwrap_or(path);
    let mut parts = inside.iter().filter_map(|p| p.to_str());
    let target = match (parts.next(), parts.next()) {
        (Some("tests" | "benches" | "examples"), Some(file)) => Some(file),
        (Some("src"), Some("bin")) => parts.next(),
        _ => None,
    };
    let name = match target {
        Some(target) => target.trim_end_matches(".rs").to_owned(),
        None => package_name(&folder.join("Cargo.toml")).unwrap_or_default(),
    };
    name.replace('-', "_")
}

/// Package and module of a file of the workspace: `app::handlers`. Nothing of where the folder
/// lies on this machine is in it.
pub fn home(path: &Path, symbol: &str, packages: &[Package]) -> String {
    let mut above = path.ancestors().skip(1).filter(|dir| dir.is_absolute());
    let folder = above.find(|dir| dir.join("Cargo.toml").is_file());
    let (owner, inside) = match folder {
        Some(folder) => (crate_by_file(Some(path)), path.strip_prefix(folder).unwrap_or(path)),
        None => {
            // No sources on this machine: what the folder of an arming line has above it is cut
            // off, as far as the file has it too.
            let above = packages.iter().flat_map(|p| p.manifest_dir.ancestors());
            let inside = above
                .filter_map(|dir| path.strip_prefix(dir).ok())
                .min_by_key(|rest| rest.components().count())
                .unwrap_or(path);
            let owner = names::crate_of(symbol).unwrap_or_default().to_owned();
            (owner, inside)
        }
    };
    let mut module = names::module_of(&inside.to_string_lossy());
    let target = ["tests", "benches", "examples", "src/bin"].iter().any(|d| inside.starts_with(d));
    if target && module.replace('-', "_") == owner {
        // `tests/api.rs` is the root of the crate `api`.
        module.clear();
    }
    [owner, module].into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("::")
}

/// The name in a manifest's `[package]` table.
fn package_name(manifest: &Path) -> Option<String> {
    let text = std::fs::read_to_string(manifest).ok()?;
    let mut in_package = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            in_package = line == "[package]";
        } else if let (true, Some(value)) = (in_package, line.strip_prefix("name")) {
            let value = value.trim_start().strip_prefix('=')?.trim();
            return Some(value.trim_matches(['"', '\'']).to_owned());
        }
    }
    None
}

/// The file as an absolute path, if it can be found: rustc names files of workspace members
/// relative to the workspace's root.
pub fn absolute(file: &str, packages: &[Package]) -> Option<PathBuf> {
    let path = Path::new(file);
    if path.is_absolute() {
        return Some(path.to_owned());
    }
    packages
        .iter()
        .flat_map(|p| p.manifest_dir.ancestors())
        .map(|dir| dir.join(path))
        .find(|candidate| candidate.is_file())
}

/// The workspace's root: the nearest folder above a package that holds a lock file.
pub fn root(packages: &[Package]) -> Option<PathBuf> {
    packages
        .iter()
        .flat_map(|p| p.manifest_dir.ancestors())
        .find(|dir| dir.join("Cargo.lock").is_file())
        .map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependency(name: &str, version: &str) -> Origin {
        Origin::Dependency { name: name.into(), version: version.into() }
    }

    #[test]
    fn files_tell_whose_code_it_is() {
        let registry = "/home/u/.cargo/registry/src/index-0123456789abcdef/";
        for (symbol, file, origin) in [
            (
                "std::thread::sleep",
                "/rustc/abc/library/std/src/thread/mod.rs".to_owned(),
                Origin::Std,
            ),
            ("test::run_test", "/rustc/abc/library/test/src/lib.rs".into(), Origin::Harness),
            ("axum::f", format!("{registry}axum-0.8.4/src/lib.rs"), dependency("axum", "0.8.4")),
            (
                "a::f",
                format!("{registry}rand-chacha-0.3.1/src/lib.rs"),
                dependency("rand-chacha", "0.3.1"),
            ),
            (
                "a::f",
                format!("{registry}x-1.0.0-alpha.5+b2/src/lib.rs"),
                dependency("x", "1.0.0-alpha.5+b2"),
            ),
            (
                "tokio::f",
                format!("{registry}tokio-1.54.1/src/lib.rs"),
                Origin::Tokio { version: "1.54.1".into() },
            ),
            (
                "a::f",
                "/home/u/.cargo/git/checkouts/foo-bar-0123456789abcdef/1a2b3c4/src/lib.rs".into(),
                dependency("foo-bar", "1a2b3c4"),
            ),
            ("a::f", "/w/vendor/serde-1.0.1/src/lib.rs".into(), dependency("serde", "1.0.1")),
            ("app::f", "/w/app/src/lib.rs".into(), Origin::Workspace { test_code: false }),
            ("app::f", "src/lib.rs".into(), Origin::Workspace { test_code: false }),
            ("sqlite3_step", "/w/sqlite3.c".into(), Origin::Foreign),
            ("stallhound::hooks::f", "/elsewhere/src/hooks.rs".into(), Origin::Stallhound),
        ] {
            assert_eq!(of(symbol, Some(&file), &[]), origin, "{file}");
        }
    }

    #[test]
    fn crates_by_file() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (file, name) in [
            ("src/sys/clock.rs", "stallhound"),
            ("tests/architecture.rs", "architecture"),
            ("fixtures/library/src/lib.rs", "stallhound_fixture_library"),
            ("fixtures/servers/src/bin/event-loop/main.rs", "event_loop"),
        ] {
            assert_eq!(crate_by_file(Some(&root.join(file))), name, "{file}");
        }
        assert_eq!(crate_by_file(Some(Path::new("/nowhere/x.rs"))), "");
    }

    #[test]
    fn names_tell_it_where_there_is_no_file() {
        let app = Package {
            crate_name: "api".into(),
            manifest_dir: "/w/my-app".into(),
            test_target: true,
        };
        for (symbol, origin) in [
            ("api::slow", Origin::Workspace { test_code: false }),
            ("my_app::slow", Origin::Workspace { test_code: false }),
            ("<my_app::S as axum::H>::call", Origin::Workspace { test_code: false }),
            ("axum::f", dependency("axum", "")),
            ("core::ops::f", Origin::Std),
            ("nanosleep", Origin::Foreign),
            ("main", Origin::Harness),
        ] {
            assert_eq!(of(symbol, None, std::slice::from_ref(&app)), origin, "{symbol}");
        }
    }

    #[test]
    fn the_home_of_a_file_is_the_same_on_every_machine() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (file, home_is) in [
            ("src/symbolize/origin.rs", "stallhound::symbolize::origin"),
            ("src/lib.rs", "stallhound"),
            ("tests/suite.rs", "suite"),
            ("tests/projects/mod.rs", "projects"),
            ("fixtures/programs/src/bin/trial.rs", "trial"),
        ] {
            assert_eq!(home(&own.join(file), "", &[]), home_is, "{file}");
        }
        // Built elsewhere, and the sources are not here.
        let app = Package {
            crate_name: "api".into(),
            manifest_dir: "/nowhere/src/ws/crates/api".into(),
            test_target: true,
        };
        for (file, home_is) in [
            ("/nowhere/src/ws/crates/app/src/handlers.rs", "app::handlers"),
            ("/nowhere/src/ws/crates/api/src/lib.rs", "app"),
            ("crates/app/src/handlers/mod.rs", "app::handlers"),
        ] {
            let packages = std::slice::from_ref(&app);
            assert_eq!(home(Path::new(file), "app::slow", packages), home_is, "{file}");
        }
    }
}
