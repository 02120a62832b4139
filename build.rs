//! Decides whether this target can be watched; the rest of the crate asks `cfg(stallhound_hooks)`.
//!
//! It exists, too, so that `links = "stallhound"` is allowed: two copies of this crate in one program
//! would define the same libc symbols twice, and cargo refuses that with a clear message.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(stallhound_hooks)");
    match why_not() {
        None => println!("cargo::rustc-cfg=stallhound_hooks"),
        Some(why) => println!("cargo::rustc-env=STALLHOUND_WHY_NOT={why}"),
    }
}

/// What is in the way of interception, if anything is.
fn why_not() -> Option<String> {
    let var = |name: &str| env::var(name).unwrap_or_default();
    let (arch, os, abi) =
        (var("CARGO_CFG_TARGET_ARCH"), var("CARGO_CFG_TARGET_OS"), var("CARGO_CFG_TARGET_ENV"));
    if (arch.as_str(), os.as_str(), abi.as_str()) != ("x86_64", "linux", "gnu") {
        return Some(format!("this was built for {}", var("TARGET")));
    }
    // Miri has no libc; cargo tells of it as of any other cfg.
    if env::var_os("CARGO_CFG_MIRI").is_some() {
        return Some("this runs in Miri".into());
    }
    // Definitions of ours and libc's own would be the same symbols twice.
    if var("CARGO_CFG_TARGET_FEATURE").split(',').any(|f| f == "crt-static") {
        return Some("this was built with a static libc (`-C target-feature=+crt-static`)".into());
    }
    // A sanitizer's runtime defines the same functions, and needs to be asked first. The cfg is
    // told on nightly only, and so are sanitizers.
    let flags = var("CARGO_ENCODED_RUSTFLAGS");
    let by_flag = flags.split('\x1f').any(|flag| flag.contains("sanitizer="));
    let sanitizer = var("CARGO_CFG_SANITIZE");
    (by_flag || !sanitizer.is_empty()).then(|| "this was built with a sanitizer".into())
}
