//! What arming costs a process, measured from inside of it. Also built into `tiny-suite`, without
//! optimisation, as tests are.

use std::time::{Duration, Instant};

/// Nanoseconds of the constructor that is linked in, and of arming; resident KiB in the end.
pub fn run() {
    let constructed = at(&AFTER).saturating_sub(at(&BEFORE));
    let begun = Instant::now();
    static SETTINGS: stallhound::__private::Settings = stallhound::__private::settings!();
    stallhound::__private::arm(&SETTINGS);
    let armed = begun.elapsed().as_nanos();
    // Something to watch, and time for the watchdog to have looked at it.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        for _ in 0..20 {
            let task = tokio::spawn(tokio::time::sleep(Duration::from_millis(5)));
            task.await.expect("the task to end");
        }
    });
    println!("{constructed} {armed} {}", resident());
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("VmRSS");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number of KiB")
}

// The linker sorts constructors by their numbers; stallhound's has 00001.
#[used]
#[link_section = ".init_array.00000"]
static FIRST: extern "C" fn() = first;
#[used]
#[link_section = ".init_array.00002"]
static SECOND: extern "C" fn() = second;

use std::sync::atomic::{AtomicU64, Ordering};

static BEFORE: AtomicU64 = AtomicU64::new(0);
static AFTER: AtomicU64 = AtomicU64::new(0);

extern "C" fn first() {
    BEFORE.store(now(), Ordering::Relaxed);
}

extern "C" fn second() {
    AFTER.store(now(), Ordering::Relaxed);
}

fn at(when: &AtomicU64) -> u64 {
    when.load(Ordering::Relaxed)
}

fn now() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
