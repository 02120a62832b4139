//! We run inside of somebody else's program: what must stay as it was.
//!
//! Each test runs in a process of its own: the test binary again, with one test and an environment
//! variable that tells it to do the thing.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
// All of it calls libc with locals of the right types; only what is special is said.
#![allow(clippy::undocumented_unsafe_blocks)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use libc::{c_int, c_void};
use stallhound::__private::{begin_recording, settings, snapshot, Settings};

static SETTINGS: Settings = settings!();

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts what each thread asks for.
struct Counting;

// SAFETY: passes everything on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CHILD: &str = "STALLHOUND_HYGIENE_CHILD";

/// How a child process ended, and what it said.
struct Ended {
    status: std::process::ExitStatus,
    out: String,
    err: String,
}

/// Runs `body` in a process of its own; in that process it does not return.
fn run(test: &str, env: &[(&str, &str)], body: fn()) -> Option<Ended> {
    if std::env::var_os(CHILD).is_some() {
        body();
        return None;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env_remove("STALLHOUND")
        .envs(env.iter().copied())
        .output()
        .unwrap();
    let text = |b: Vec<u8>| String::from_utf8_lossy(&b).into_owned();
    Some(Ended { status: output.status, out: text(output.stdout), err: text(output.stderr) })
}

/// The same, for a body that must simply pass.
fn alone(test: &str, body: fn()) {
    if let Some(e) = run(test, &[], body) {
        assert!(
            e.status.success() && e.out.contains("1 passed"),
            "{}\n{}\n{}",
            e.status,
            e.out,
            e.err
        );
    }
}

fn recorded<R>(body: impl FnOnce() -> R) -> R {
    let recording = begin_recording(&SETTINGS, "hygiene");
    let result = body();
    drop(recording.finish());
    result
}

fn in_a_task<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::spawn(async { f() }).await.unwrap() })
}

fn nap(millis: i64) -> c_int {
    let t = libc::timespec { tv_sec: 0, tv_nsec: millis * 1_000_000 };
    unsafe { libc::nanosleep(&t, null_mut()) }
}

fn spin(time: Duration) -> u64 {
    let began = Instant::now();
    let mut x = 1u64;
    while began.elapsed() < time {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
    }
    x
}

#[test]
fn intercepted_calls_allocate_nothing() {
    alone("intercepted_calls_allocate_nothing", || {
        recorded(|| {
            in_a_task(|| {
                let (mut a, mut fds) = ([0u8; 4], [0; 2]);
                unsafe {
                    libc::socketpair(
                        libc::AF_UNIX,
                        libc::SOCK_STREAM | libc::SOCK_CLOEXEC,
                        0,
                        fds.as_mut_ptr(),
                    );
                    for round in 0..3 {
                        let before = ALLOCATIONS.get();
                        for _ in 0..20 {
                            nap(2);
                            nap(0);
                            libc::usleep(10);
                            libc::write(fds[0], c"abcd".as_ptr().cast(), 4);
                            libc::read(fds[1], a.as_mut_ptr().cast(), 4);
                            libc::poll(null_mut(), 0, 1);
                            libc::fsync(2);
                            libc::close(libc::open(c"/etc/passwd".as_ptr(), libc::O_RDONLY, 0));
                            let word = 1u32;
                            libc::syscall(libc::SYS_futex, &word, libc::FUTEX_WAKE, 1);
                            let mut t = libc::timespec { tv_sec: 0, tv_nsec: 11_000_000 };
                            libc::syscall(libc::SYS_futex, &word, libc::FUTEX_WAIT, 1, &mut t);
                            libc::close(libc::epoll_create1(0));
                            let mut ends = [0; 2];
                            libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC);
                            libc::write(ends[1], c"abcd".as_ptr().cast(), 4);
                            libc::read(ends[0], a.as_mut_ptr().cast(), 4);
                            libc::close(ends[0]);
                            libc::close(ends[1]);
                            let mut seen: libc::stat = std::mem::zeroed();
                            libc::stat(c"/etc/passwd".as_ptr(), &mut seen);
                            libc::access(c"/nonexistent".as_ptr(), libc::R_OK);
                            libc::flock(fds[0], libc::LOCK_SH | libc::LOCK_NB);
                            let lock = libc::open(c"/etc/passwd".as_ptr(), libc::O_RDONLY, 0);
                            libc::flock(lock, libc::LOCK_SH);
                            libc::close(lock);
                        }
                        // A read from a pipe that is long enough to be recorded.
                        let timer = libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC);
                        let mut soon: libc::itimerspec = std::mem::zeroed();
                        soon.it_value.tv_nsec = 12_000_000;
                        libc::timerfd_settime(timer, 0, &soon, null_mut());
                        let mut count = 0u64;
                        libc::read(timer, (&mut count as *mut u64).cast(), 8);
                        assert_eq!(count, 1);
                        libc::close(timer);
                        assert_eq!(ALLOCATIONS.get(), before, "round {round}");
                    }
                    libc::close(fds[0]);
                    libc::close(fds[1]);
                }
            });
        });
    });
}

#[test]
fn samples_allocate_nothing_and_change_nothing() {
    alone("samples_allocate_nothing_and_change_nothing", || {
        recorded(|| {
            in_a_task(|| {
                // A signal of somebody else arrives all the time too.
                static DONE: AtomicBool = AtomicBool::new(false);
                let tid = unsafe { libc::syscall(libc::SYS_gettid) };
                let storm = std::thread::spawn(move || {
                    while !DONE.load(Ordering::Relaxed) {
                        unsafe {
                            libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGURG)
                        };
                    }
                });
                let before = ALLOCATIONS.get();
                unsafe { *libc::__errno_location() = 77 };
                let began = Instant::now();
                let (mut x, mut y, mut n) = (1.0f64, 1.0f64, 0u64);
                while began.elapsed() < Duration::from_millis(600) {
                    // Twice the same sum, whatever interrupts it.
                    for (sum, _) in [(&mut x, 0), (&mut y, 1)] {
                        for i in 0..1000 {
                            *sum = std::hint::black_box((*sum * 1.000_1 + i as f64).sqrt() + 1.0);
                        }
                    }
                    assert_eq!(x.to_bits(), y.to_bits());
                    n += 1;
                    assert_eq!(unsafe { *libc::__errno_location() }, 77);
                }
                assert!(n > 0);
                assert_eq!(ALLOCATIONS.get(), before);
                DONE.store(true, Ordering::Relaxed);
                storm.join().unwrap();
            });
        });
    });
}

#[test]
fn a_fork_child_is_inert() {
    let Some(e) = run("a_fork_child_is_inert", &[], || {
        let recording = begin_recording(&SETTINGS, "fork");
        let code = in_a_task(|| unsafe {
            let pid = libc::fork();
            if pid == 0 {
                nap(5);
                let thread = std::thread::spawn(|| nap(2));
                thread.join().unwrap();
                // Our front ends too.
                drop(begin_recording(&SETTINGS, "child").finish());
                drop(snapshot());
                libc::exit(7);
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
            status
        });
        assert_eq!(libc::WEXITSTATUS(code), 7, "{code:x}");
        // A child that ends at once, and one that fails.
        for (code, how) in [(0, true), (9, false)] {
            let status = unsafe {
                let pid = libc::fork();
                if pid == 0 {
                    if how {
                        libc::exit(code)
                    } else {
                        libc::_exit(code)
                    }
                }
                let mut status = 0;
                libc::waitpid(pid, &mut status, 0);
                status
            };
            assert_eq!(libc::WEXITSTATUS(status), code);
        }
        drop(recording.finish());
    }) else {
        return;
    };
    assert!(e.status.success(), "{}\n{}\n{}", e.status, e.out, e.err);
    assert_eq!(e.out.matches("1 passed").count(), 1, "{}", e.out);
}

#[test]
fn commands_run_and_their_pre_exec_too() {
    alone("commands_run_and_their_pre_exec_too", || {
        recorded(|| {
            in_a_task(|| {
                use std::os::unix::process::CommandExt as _;
                use std::process::Command;
                assert!(Command::new("true").status().unwrap().success());
                let output = Command::new("sh")
                    .args(["-c", "echo out; echo err >&2; exit 4"])
                    .output()
                    .unwrap();
                assert_eq!(
                    (output.status.code(), &output.stdout[..], &output.stderr[..]),
                    (Some(4), &b"out\n"[..], &b"err\n"[..])
                );
                let mut command = Command::new("sh");
                command.args(["-c", "echo $0 $(umask)"]);
                // SAFETY: naps and sets a mask.
                unsafe {
                    command.pre_exec(|| {
                        nap(2);
                        libc::umask(0o123);
                        Ok(())
                    })
                };
                let output = command.output().unwrap();
                assert!(String::from_utf8(output.stdout).unwrap().ends_with("0123\n"));
                let mut command = Command::new("true");
                // SAFETY: does nothing.
                unsafe { command.pre_exec(|| Err(std::io::Error::from_raw_os_error(libc::EXDEV))) };
                assert_eq!(command.status().unwrap_err().raw_os_error(), Some(libc::EXDEV));
                assert!(Command::new("/no/such").status().is_err());
            });
        });
    });
}

// Rust cannot call `sigsetjmp`, which returns twice; this can.
std::arch::global_asm!(
    ".globl stallhound_test_catch",
    "stallhound_test_catch:",
    "push rbx",
    "mov rbx, rsi",
    "mov esi, 1",
    "call __sigsetjmp@PLT",
    "test eax, eax",
    "jne 1f",
    "call rbx",
    "xor eax, eax",
    "1: pop rbx",
    "ret",
);

#[repr(C, align(16))]
struct JumpBuffer([u64; 64]);
static mut TARGET: JumpBuffer = JumpBuffer([0; 64]);

extern "C" {
    /// Runs `f`; 0 if it returned, otherwise the value that was jumped with.
    fn stallhound_test_catch(to: *mut JumpBuffer, f: extern "C" fn()) -> c_int;
    fn siglongjmp(to: *mut JumpBuffer, value: c_int) -> !;
}

extern "C" fn jump(_: c_int) {
    unsafe { siglongjmp(&raw mut TARGET, 5) }
}

extern "C" fn sleep_long() {
    let t = libc::timespec { tv_sec: 1000, tv_nsec: 0 };
    unsafe { libc::nanosleep(&t, null_mut()) };
}

extern "C" fn wait_long() {
    let word = 1u32;
    unsafe { libc::syscall(libc::SYS_futex, &word, libc::FUTEX_WAIT, 1, null::<c_void>()) };
}

fn install(signal: c_int, handler: extern "C" fn(c_int), flags: c_int) {
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(signal, &action, null_mut()), 0);
    }
}

/// Signals this thread once it sleeps.
fn signal_when_asleep(signal: c_int) -> std::thread::JoinHandle<()> {
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    std::thread::spawn(move || {
        let path = format!("/proc/self/task/{tid}/syscall");
        loop {
            let doing = std::fs::read_to_string(&path).unwrap();
            let number: Option<i64> = doing.split(' ').next().unwrap().parse().ok();
            let sleeps = [libc::SYS_clock_nanosleep, libc::SYS_futex];
            if number.is_some_and(|n| sleeps.contains(&n)) {
                break;
            }
            std::thread::yield_now();
        }
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal) };
    })
}

#[test]
fn a_jump_out_of_a_call_ends_it() {
    alone("a_jump_out_of_a_call_ends_it", || {
        recorded(|| {
            in_a_task(|| {
                install(libc::SIGALRM, jump, 0);
                for f in [sleep_long as extern "C" fn(), wait_long, sleep_long] {
                    let other = signal_when_asleep(libc::SIGALRM);
                    let value = unsafe { stallhound_test_catch(&raw mut TARGET, f) };
                    assert_eq!(value, 5);
                    other.join().unwrap();
                    assert_eq!(nap(2), 0);
                }
            });
        });
    });
}

extern "C" fn cancelled_in_a_call(_: *mut c_void) -> *mut c_void {
    sleep_long();
    null_mut()
}

extern "C" {
    fn pthread_cancel(thread: libc::pthread_t) -> c_int;
}

#[test]
fn threads_can_be_cancelled_in_calls() {
    alone("threads_can_be_cancelled_in_calls", || {
        recorded(|| {
            in_a_task(|| unsafe {
                for _ in 0..20 {
                    let mut thread = 0;
                    assert_eq!(
                        libc::pthread_create(&mut thread, null(), cancelled_in_a_call, null_mut()),
                        0
                    );
                    nap(1);
                    assert_eq!(pthread_cancel(thread), 0);
                    let mut value = null_mut();
                    assert_eq!(libc::pthread_join(thread, &mut value), 0);
                    assert_eq!(value as isize, -1, "PTHREAD_CANCELED");
                }
            });
        });
    });
}

static URGENT: AtomicU32 = AtomicU32::new(0);

extern "C" fn urgent(_: c_int) {
    URGENT.fetch_add(1, Ordering::SeqCst);
}

fn urgent_arrives_and_nothing_else() {
    in_a_task(|| {
        let before = URGENT.load(Ordering::SeqCst);
        spin(Duration::from_millis(150));
        assert_eq!(URGENT.load(Ordering::SeqCst), before, "our samples are not the program's");
        unsafe { libc::raise(libc::SIGURG) };
        assert_eq!(URGENT.load(Ordering::SeqCst), before + 1);
    });
}

#[test]
fn a_handler_that_was_there_before_is_chained() {
    alone("a_handler_that_was_there_before_is_chained", || {
        install(libc::SIGURG, urgent, 0);
        recorded(urgent_arrives_and_nothing_else);
    });
}

#[test]
fn a_handler_that_comes_later_has_its_signal_to_itself() {
    alone("a_handler_that_comes_later_has_its_signal_to_itself", || {
        recorded(|| {
            in_a_task(|| spin(Duration::from_millis(50)));
            install(libc::SIGURG, urgent, 0);
            urgent_arrives_and_nothing_else();
        });
    });
}

fn entries(directory: &str) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

#[test]
fn threads_come_and_go() {
    alone("threads_come_and_go", || {
        recorded(|| {
            // More than there are slots, never more than a few at a time.
            for _ in 0..2500 {
                let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| nap(0))).collect();
                for thread in threads {
                    thread.join().unwrap();
                }
            }
        });
    });
}

#[test]
fn runtimes_come_and_go() {
    alone("runtimes_come_and_go", || {
        recorded(|| {
            in_a_task(|| nap(1));
            let before = (entries("/proc/self/fd"), entries("/proc/self/task"));
            for i in 0..100 {
                if i % 2 == 0 {
                    in_a_task(|| nap(0));
                } else {
                    let runtime =
                        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    runtime.block_on(async { tokio::spawn(async { nap(0) }).await.unwrap() });
                }
            }
            // A joined thread is gone from the kernel's list a moment later.
            let until = Instant::now() + Duration::from_secs(20);
            loop {
                let now = (entries("/proc/self/fd"), entries("/proc/self/task"));
                if now == before {
                    break;
                }
                assert!(Instant::now() < until, "{before:?} became {now:?}");
                std::thread::yield_now();
            }
        });
    });
}

#[test]
fn libraries_come_and_go_while_sampled() {
    alone("libraries_come_and_go_while_sampled", || {
        recorded(|| {
            in_a_task(|| {
                let until = Instant::now() + Duration::from_millis(500);
                let names =
                    [c"libz.so.1", c"libresolv.so.2", c"libnss_dns.so.2", c"libBrokenLocale.so.1"];
                let mut loaded = 0;
                while Instant::now() < until {
                    for name in names {
                        unsafe {
                            let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW);
                            if !handle.is_null() {
                                loaded += 1;
                                libc::dlclose(handle);
                            }
                        }
                    }
                }
                assert!(loaded > 0);
            });
        });
    });
}

// Ends of the process. Whether findings turn 0 into 101 is for the tests of the front ends.

extern "C" fn goodbye() {
    unsafe { libc::puts(c"atexit ran".as_ptr()) };
}

fn ends_with(test: &str, code: c_int, flushed: bool, body: fn()) {
    let Some(e) = run(test, &[], body) else { return };
    assert_eq!(e.status.code(), Some(code), "{}\n{}", e.out, e.err);
    assert_eq!(e.out.contains("buffered"), flushed, "{}", e.out);
    assert_eq!(e.out.contains("atexit ran"), flushed, "{}", e.out);
}

fn armed_in_a_task(f: impl FnOnce() + Send + 'static) {
    // It stays open to the end.
    let _ = begin_recording(&SETTINGS, "exit");
    unsafe {
        libc::atexit(goodbye);
        libc::printf(c"buffered".as_ptr());
    }
    in_a_task(f);
}

#[test]
fn exit_runs_everybodys_handlers() {
    ends_with("exit_runs_everybodys_handlers", 0, true, || {
        armed_in_a_task(|| std::process::exit(0));
    });
}

#[test]
fn a_code_of_the_programs_own_is_kept() {
    ends_with("a_code_of_the_programs_own_is_kept", 3, true, || {
        armed_in_a_task(|| std::process::exit(3));
    });
}

#[test]
fn an_immediate_exit_is_immediate() {
    ends_with("an_immediate_exit_is_immediate", 5, false, || {
        armed_in_a_task(|| unsafe { libc::_exit(5) });
    });
}

extern "C" fn leave(_: c_int) {
    unsafe { libc::_exit(6) }
}

/// Whoever is interrupted may hold the allocator's lock, and stand on a small stack.
#[test]
fn a_handler_may_exit_whatever_it_interrupted() {
    ends_with("a_handler_may_exit_whatever_it_interrupted", 6, false, || {
        armed_in_a_task(|| {
            let mut small = vec![0u8; libc::SIGSTKSZ]; // 8 KiB, as std's own
            let stack = libc::stack_t {
                ss_sp: small.as_mut_ptr().cast(),
                ss_flags: 0,
                ss_size: small.len(),
            };
            assert_eq!(unsafe { libc::sigaltstack(&stack, null_mut()) }, 0);
            install(libc::SIGTERM, leave, libc::SA_ONSTACK);
            let tid = unsafe { libc::syscall(libc::SYS_gettid) };
            std::thread::spawn(move || unsafe {
                nap(20);
                libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGTERM);
            });
            loop {
                drop(std::hint::black_box(vec![0u8; 100_000]));
            }
        });
    });
}

#[test]
fn a_wrong_switch_is_named() {
    let Some(e) = run("a_wrong_switch_is_named", &[("STALLHOUND", "bogus")], || recorded(|| {}))
    else {
        return;
    };
    assert!(e.status.success(), "{}", e.err);
    for part in ["STALLHOUND", "bogus", "off", "warn", "deny"] {
        assert!(e.err.contains(part), "{part} is missing in {}", e.err);
    }
    assert_eq!(e.err.matches("bogus").count(), 1, "said once: {}", e.err);
    assert!(!e.out.contains("bogus"));
}

#[test]
fn switched_off_means_off() {
    let Some(e) = run("switched_off_means_off", &[("STALLHOUND", "off")], || {
        recorded(|| {
            in_a_task(|| nap(30));
            let names: Vec<_> = std::fs::read_dir("/proc/self/task")
                .unwrap()
                .map(|t| std::fs::read_to_string(t.unwrap().path().join("comm")).unwrap())
                .collect();
            assert!(!names.iter().any(|n| n.trim() == "stallhound"), "{names:?}");
        });
    }) else {
        return;
    };
    assert!(e.status.success() && !e.err.contains("stallhound"), "{}\n{}", e.out, e.err);
}
