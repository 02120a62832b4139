//! Every row of the table of contexts (docs/architecture.md, "May this thread block?"): the same
//! 20 ms thread sleep, everywhere tokio can run code. Run with the oldest and the newest tokio.

use fixture::{line_of, pause, read_nothing, refresh, refresh_inlined, SleepsInDrop};
use stallhound::__private::{begin_recording, Settings};
use stallhound::config::Level;
use stallhound::evidence::Category;
use stallhound::report::model::{Context, Finding, Report};
use stallhound_fixture_library as fixture;
use std::future::Future;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

static SETTINGS: Settings = stallhound::__private::settings!();
const NAP: Duration = Duration::from_millis(20);

fn multi(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}

fn current() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Records what happens in `f`, on a thread of its own so that nothing is left behind.
fn recorded(name: &'static str, f: impl FnOnce() + Send + 'static) -> Report {
    std::thread::spawn(move || {
        let recording = begin_recording(&SETTINGS, name);
        f();
        recording.finish()
    })
    .join()
    .unwrap()
}

fn in_task(rt: Runtime, f: impl Future<Output = ()> + Send + 'static) {
    rt.block_on(async { tokio::spawn(f).await.unwrap() });
}

/// One finding or note, about the marked line of the library.
#[track_caller]
fn only(report: &Report, level: Level, marker: &str, context: Context) -> Finding {
    let all: Vec<&Finding> = report.findings.iter().chain(&report.notes).collect();
    assert_eq!(all.len(), 1, "{report}");
    let f = all[0];
    assert_eq!(f.level, level, "{report}");
    assert_eq!(f.category, Category::Sleep, "{report}");
    assert_eq!(f.call, Some("clock_nanosleep"), "{report}");
    assert_eq!(f.context, context, "{report}");
    assert_eq!(f.count, 1, "{report}");
    assert!(f.time.wall.duration() >= NAP, "{report}");
    if debug_info() {
        let place = f.place.as_ref().unwrap_or_else(|| panic!("no place: {report}"));
        assert!(place.file.ends_with("fixtures/library/src/lib.rs"), "{report}");
        assert_eq!(place.line, line_of(marker), "{report}");
        assert!(place.source.as_ref().unwrap().contains("std::thread::sleep"), "{report}");
    }
    f.clone()
}

/// This workspace's profiles have lines, unless the environment says no.
fn debug_info() -> bool {
    let variable = match cfg!(debug_assertions) {
        true => option_env!("CARGO_PROFILE_DEV_DEBUG"),
        false => option_env!("CARGO_PROFILE_RELEASE_DEBUG"),
    };
    variable != Some("0")
}

#[track_caller]
fn silent(report: &Report) {
    assert!(report.findings.is_empty() && report.notes.is_empty(), "{report}");
}

/// tokio can tell the worker since 1.54.
fn worker_is_known(f: &Finding) -> bool {
    f.worker.is_some()
}

#[test]
fn spawned_task_on_multi_thread() {
    for workers in [1, 2] {
        let r = recorded("task_mt", move || in_task(multi(workers), refresh(NAP)));
        let f = only(&r, Level::Deny, "refresh", Context::Task);
        assert!(f.task.is_some(), "{r}");
        assert_eq!(f.tests, ["task_mt"]);
        if worker_is_known(&f) {
            assert!(f.worker.unwrap().0 < workers as u32, "{r}");
        }
        assert_eq!(f.workers, workers as u32, "{r}");
        assert!(
            f.function.as_deref().is_some_and(|n| n.ends_with("refresh")) || !debug_info(),
            "{r}"
        );
    }
}

#[test]
fn spawned_task_on_current_thread() {
    let r = recorded("task_ct", || in_task(current(), refresh(NAP)));
    let f = only(&r, Level::Deny, "refresh", Context::Task);
    assert!(f.task.is_some(), "{r}");
    assert_eq!(f.workers, 1, "{r}");
}

#[test]
fn local_set_task() {
    let local = |rt: Runtime| {
        let set = tokio::task::LocalSet::new();
        rt.block_on(set.run_until(async {
            tokio::task::spawn_local(refresh(NAP)).await.unwrap();
        }));
    };
    let r = recorded("local_ct", move || local(current()));
    only(&r, Level::Deny, "refresh", Context::Task);
    let r = recorded("local_mt", move || local(multi(2)));
    only(&r, Level::Deny, "refresh", Context::Task);
}

#[test]
fn root_of_current_thread_is_judged_by_whose_code_blocks() {
    let r = recorded("root_library", || current().block_on(refresh(NAP)));
    if debug_info() {
        let f = only(&r, Level::Deny, "refresh", Context::RootLoop);
        assert_eq!(f.task, None);
        let r = recorded("root_inlined", || current().block_on(refresh_inlined(NAP)));
        only(&r, Level::Deny, "pause_inlined", Context::RootLoop);
    } else {
        // Inlined without debug information: nobody's code can be named, so it is a note.
        assert!(r.findings.len() + r.notes.len() == 1, "{r}");
    }
}

#[test]
fn test_code_in_the_root_is_a_note() {
    let r = recorded("root_test", || current().block_on(async { std::thread::sleep(NAP) }));
    assert!(r.findings.is_empty(), "{r}");
    assert_eq!(r.notes.len(), 1, "{r}");
    assert_eq!(r.notes[0].context, Context::RootLoop);
    if debug_info() {
        assert!(r.notes[0].reason.as_deref().unwrap().contains("test code"), "{r}");
    }
    // Other tasks being alive changes nothing.
    let r = recorded("root_test_tasks", || {
        current().block_on(async {
            let other = tokio::spawn(std::future::pending::<()>());
            std::thread::sleep(NAP);
            other.abort();
        })
    });
    assert!(r.findings.is_empty() && r.notes.len() == 1, "{r}");
}

#[test]
fn root_of_multi_thread_may_block() {
    silent(&recorded("root_mt", || multi(2).block_on(refresh(NAP))));
}

#[test]
fn block_in_place_may_block() {
    for workers in [1, 2] {
        silent(&recorded("in_place", move || {
            in_task(multi(workers), async { tokio::task::block_in_place(|| pause(NAP)) })
        }));
        silent(&recorded("in_place_block_on", move || {
            in_task(multi(workers), async {
                tokio::task::block_in_place(|| Handle::current().block_on(refresh(NAP)))
            })
        }));
    }
}

#[test]
fn the_blocking_pool_may_block() {
    for rt in [current as fn() -> Runtime, || multi(1)] {
        silent(&recorded("pool", move || {
            rt().block_on(async { tokio::task::spawn_blocking(|| pause(NAP)).await.unwrap() })
        }));
        silent(&recorded("pool_block_on", move || {
            rt().block_on(async {
                let work = || Handle::current().block_on(refresh(NAP));
                tokio::task::spawn_blocking(work).await.unwrap()
            })
        }));
    }
}

#[test]
fn a_task_after_block_in_place_is_a_task_again() {
    let r = recorded("after_in_place", || {
        in_task(multi(2), async {
            tokio::task::block_in_place(|| pause(NAP));
            tokio::task::yield_now().await;
            refresh(NAP).await;
        })
    });
    only(&r, Level::Deny, "refresh", Context::Task);
}

#[test]
fn tasks_dropped_at_shutdown_are_a_note() {
    for rt in [current as fn() -> Runtime, || multi(1)] {
        let r = recorded("shutdown", move || {
            rt().block_on(async {
                let (up, is_up) = tokio::sync::oneshot::channel();
                tokio::spawn(async move {
                    let _slow = SleepsInDrop(NAP);
                    up.send(()).unwrap();
                    std::future::pending::<()>().await
                });
                is_up.await.unwrap();
            })
        });
        only(&r, Level::Warn, "drop", Context::Shutdown);
    }
}

#[test]
fn unconstrained_in_a_task_is_a_task() {
    for rt in [current as fn() -> Runtime, || multi(2)] {
        let r = recorded("unconstrained", move || {
            in_task(rt(), tokio::task::unconstrained(refresh(NAP)))
        });
        only(&r, Level::Deny, "refresh", Context::Task);
    }
}

#[test]
fn unconstrained_root_of_current_thread_is_a_known_miss() {
    let r = recorded("unconstrained_root", || {
        current().block_on(tokio::task::unconstrained(refresh(NAP)))
    });
    silent(&r);
}

#[test]
fn a_plain_thread_may_block() {
    silent(&recorded("plain", || pause(NAP)));
    // Also one that knows a runtime's handle.
    silent(&recorded("entered", || {
        let rt = current();
        let _inside = rt.enter();
        pause(NAP);
    }));
}

#[test]
fn a_runtime_inside_of_the_blocking_pool() {
    let nested = |f: fn()| {
        multi(1).block_on(async move { tokio::task::spawn_blocking(f).await.unwrap() });
    };
    let r = recorded("nested_task", move || nested(|| in_task(current(), refresh(NAP))));
    only(&r, Level::Deny, "refresh", Context::Task);
    if debug_info() {
        let r = recorded("nested_root", move || nested(|| current().block_on(refresh(NAP))));
        only(&r, Level::Deny, "refresh", Context::RootLoop);
    }
}

/// Nothing of such a runtime reaches libc before its first poll.
#[test]
fn a_runtime_without_drivers_is_seen_from_its_first_poll() {
    let bare = || Builder::new_current_thread().build().unwrap();
    let r = recorded("bare_task", move || in_task(bare(), refresh(NAP)));
    only(&r, Level::Deny, "refresh", Context::Task);
    if debug_info() {
        let r = recorded("bare_root", move || bare().block_on(refresh(NAP)));
        only(&r, Level::Deny, "refresh", Context::RootLoop);
        let r = recorded("bare_read", move || bare().block_on(read_nothing(NAP)));
        let f = r.findings.first().unwrap_or_else(|| panic!("{r}"));
        assert_eq!((f.category, f.call), (Category::Net, Some("recv")), "{r}");
        assert_eq!(f.context, Context::RootLoop, "{r}");
    }
}

/// Threads of their own, none of which descends from the one that built the runtime.
#[test]
fn a_runtime_that_was_handed_over() {
    fn handed(name: &'static str, work: fn(Runtime)) -> Report {
        recorded(name, move || {
            let (tx, rx) = std::sync::mpsc::channel();
            let other = std::thread::spawn(move || work(rx.recv().unwrap()));
            std::thread::spawn(move || tx.send(current()).unwrap()).join().unwrap();
            other.join().unwrap();
        })
    }
    let r = handed("handed_task", |rt| in_task(rt, refresh(NAP)));
    only(&r, Level::Deny, "refresh", Context::Task);
    if debug_info() {
        let r = handed("handed_root", |rt| rt.block_on(refresh(NAP)));
        only(&r, Level::Deny, "refresh", Context::RootLoop);
        // A hot call is certain to be seen once the thread has parked in it.
        let r = handed("handed_read", |rt| {
            rt.block_on(async {
                tokio::time::sleep(Duration::from_millis(1)).await;
                read_nothing(NAP).await
            });
        });
        let f = r.findings.first().unwrap_or_else(|| panic!("{r}"));
        assert_eq!((f.category, f.call), (Category::Net, Some("recv")), "{r}");
    }
}

#[test]
fn two_runtimes_at_once_keep_their_own() {
    let r = recorded("two_runtimes", || {
        let (one, two) = (multi(1), multi(2));
        let clean = one.spawn(async { tokio::time::sleep(NAP).await });
        let guilty = two.spawn(refresh(NAP));
        one.block_on(clean).unwrap();
        two.block_on(guilty).unwrap();
    });
    let f = only(&r, Level::Deny, "refresh", Context::Task);
    assert_eq!(f.workers, 2, "{r}");
}

#[test]
fn after_a_runtime_was_dropped() {
    let r = recorded("dropped", || {
        in_task(current(), async {});
        in_task(multi(2), async {});
        pause(NAP); // outside of any
        in_task(current(), refresh(NAP));
    });
    only(&r, Level::Deny, "refresh", Context::Task);
}

#[test]
fn allow_blocking_is_counted_and_silent() {
    let r = recorded("allowed", || {
        in_task(current(), async {
            stallhound::allow_blocking("a test of it", || pause(NAP));
            let caught = std::panic::catch_unwind(|| {
                stallhound::allow_blocking("panics", || std::panic::resume_unwind(Box::new(())))
            });
            assert!(caught.is_err());
        })
    });
    silent(&r);
    let r = recorded("allowed_is_over", || {
        in_task(current(), async {
            let _ = std::panic::catch_unwind(|| {
                stallhound::allow_blocking("panics", || std::panic::resume_unwind(Box::new(())))
            });
            refresh(NAP).await
        })
    });
    only(&r, Level::Deny, "refresh", Context::Task);
}
