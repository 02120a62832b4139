//! jemalloc as the C library's allocator, with its background threads: its constructor already
//! calls our functions, under its own locks.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::path::Path;
use std::process::Command;

#[test]
fn a_suite_under_unprefixed_jemalloc_starts_and_passes() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("jemalloc");
    let output = Command::new(env!("CARGO"))
        .args(["test", "--quiet"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/projects/jemalloc"))
        .env("CARGO_TARGET_DIR", target)
        .env("_RJEM_MALLOC_CONF", "background_thread:true")
        .env("MALLOC_CONF", "background_thread:true")
        .env_remove("STALLHOUND")
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("2 passed"), "{out}\n{err}");
}
