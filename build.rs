//! Exists so that `links = "stallhound"` is allowed: two copies of this crate in one program would
//! define the same libc symbols twice, and cargo refuses that with a clear message.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(stallhound_hooks)");
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let supported = var("CARGO_CFG_TARGET_OS") == "linux"
        && var("CARGO_CFG_TARGET_ARCH") == "x86_64"
        && var("CARGO_CFG_TARGET_ENV") == "gnu";
    // With a static libc our definitions and libc's would be duplicate symbols.
    let static_libc = var("CARGO_CFG_TARGET_FEATURE").split(',').any(|f| f == "crt-static");
    let miri = std::env::var_os("CARGO_CFG_MIRI").is_some();
    if supported && !static_libc && !miri {
        println!("cargo::rustc-cfg=stallhound_hooks");
    }
}
