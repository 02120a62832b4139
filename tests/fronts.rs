//! The front ends that hand their report out: `watch(future)` and `Detector`, each with settings of
//! its own; and allowances that follow a future.

use fixture::{line_of, pause, refresh, SleepsInDrop};
use stallhound::report::model::Context;
use stallhound::{Category, Detector, Finding, Level, Report, Watched};
use stallhound_fixture_library as fixture;
use std::future::{poll_fn, Future};
use std::pin::{pin, Pin};
use std::sync::{Arc, Barrier};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Builder;

const NAP: Duration = Duration::from_millis(20);

fn multi(workers: usize) -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).enable_all();
    builder
}

fn current() -> Builder {
    let mut builder = Builder::new_current_thread();
    builder.enable_all();
    builder
}

fn watched(runtime: &mut Builder) -> Watched {
    Detector::builder().build_runtime(runtime).unwrap()
}

#[track_caller]
fn silent(report: &Report) {
    assert!(report.findings().is_empty() && report.notes().is_empty(), "{report}");
}

/// One finding, of the nap at the marked line.
#[track_caller]
fn only_nap<'a>(report: &'a Report, marker: &str, context: Context) -> &'a Finding {
    assert!(report.findings().len() == 1 && report.notes().is_empty(), "{report}");
    let f = &report.findings()[0];
    assert_eq!((f.level, f.category, f.context), (Level::Deny, Category::Sleep, context));
    assert_eq!(f.call, Some("clock_nanosleep"), "{report}");
    let place = f.place.as_ref().unwrap_or_else(|| panic!("no place: {report}"));
    assert!(place.file.ends_with("fixtures/library/src/lib.rs"), "{report}");
    assert_eq!(place.line, line_of(marker), "{report}");
    assert!(f.time.wall.duration() >= NAP, "{report}");
    f
}

/// Works for so much time on a processor.
fn work(time: Duration) {
    let own_cpu = || {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a local.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    let until = own_cpu() + time;
    let mut n = 1u64;
    while own_cpu() < until {
        for _ in 0..1000 {
            n = std::hint::black_box(n.wrapping_mul(31).wrapping_add(7));
        }
    }
}

mod watch_a_future {
    use super::*;

    #[test]
    fn in_a_task_it_returns_output_and_findings() {
        for mut runtime in [current(), multi(2)] {
            let runtime = runtime.build().unwrap();
            let (answer, report) = runtime.block_on(async {
                let task = tokio::spawn(stallhound::watch(async {
                    refresh(NAP).await;
                    42
                }));
                task.await.unwrap()
            });
            assert_eq!(answer, 42);
            let f = only_nap(&report, "refresh", Context::Task);
            assert!(f.task.is_some(), "{report}");
            assert_eq!(f.tests, ["watch_a_future::in_a_task_it_returns_output_and_findings"]);
            assert_eq!(f.count, 1, "{report}");
        }
    }

    #[test]
    fn in_a_root_it_is_judged_as_a_root() {
        let root = |future: Pin<Box<dyn Future<Output = ()>>>| {
            current().build().unwrap().block_on(stallhound::watch(future)).1
        };
        only_nap(&root(Box::pin(refresh(NAP))), "refresh", Context::RootLoop);
        let report = root(Box::pin(async { std::thread::sleep(NAP) }));
        assert!(report.is_clean() && report.notes().len() == 1, "test code: {report}");
        let report = multi(1).build().unwrap().block_on(stallhound::watch(refresh(NAP))).1;
        silent(&report); // the root of a multi-thread runtime may block
    }

    #[test]
    fn each_has_its_own_and_what_it_spawns_is_not_its_own() {
        let runtime = watched(&mut current());
        let (one, two, spawns) = runtime.block_on(async {
            let one = stallhound::watch(async {
                refresh(NAP).await;
                tokio::task::yield_now().await;
                refresh(NAP).await;
            });
            let two = stallhound::watch(async {
                tokio::task::yield_now().await;
                pause(NAP);
            });
            let spawns = stallhound::watch(async {
                tokio::spawn(async { drop(SleepsInDrop(NAP)) }).await.unwrap();
            });
            tokio::join!(one, two, spawns)
        });
        assert_eq!(only_nap(&one.1, "refresh", Context::RootLoop).count, 2);
        assert_eq!(only_nap(&two.1, "pause", Context::RootLoop).count, 1);
        silent(&spawns.1);
        only_nap(&runtime.finish(), "drop", Context::Task);
    }

    #[test]
    fn settings_are_those_around_it_or_its_own() {
        let runtime =
            Detector::builder().allow(Category::Sleep).build_runtime(&mut current()).unwrap();
        let (around, own) = runtime.block_on(async {
            let around = stallhound::watch(refresh(NAP)).await.1;
            let own = Detector::builder().warn(Category::Sleep).watch(refresh(NAP)).await.1;
            (around, own)
        });
        silent(&around);
        assert!(own.is_clean() && own.notes().len() == 1, "{own}");
        assert_eq!(own.notes()[0].reason.as_deref(), Some("level is warn"), "{own}");
        silent(&runtime.finish());
    }

    #[test]
    fn its_polls_are_known_where_others_are_only_probable() {
        // One poll that uses its budget up as it goes: known to be one only where its ends are.
        async fn mixed() {
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
            for n in 0..60 {
                sender.send(n).unwrap();
            }
            for _ in 0..60 {
                receiver.recv().await.unwrap();
                work(Duration::from_millis(5));
            }
        }
        let settings = || Detector::builder().busy_threshold(Duration::from_millis(100));
        let runtime = settings().build_runtime(&mut multi(1)).unwrap();
        let report =
            runtime.block_on(async { tokio::spawn(settings().watch(mixed())).await.unwrap().1 });
        assert_eq!(report.findings().len(), 1, "{report}");
        let f = &report.findings()[0];
        assert_eq!((f.category, f.context, f.certain), (Category::Busy, Context::Task, true));
        assert!(f.time.wall.duration() <= Duration::from_millis(350), "{report}");
        silent(&runtime.finish());
    }

    #[test]
    fn a_panic_leaves_nothing_behind() {
        let runtime = watched(&mut current());
        runtime.block_on(async {
            let guilty = stallhound::watch(async {
                std::panic::resume_unwind(Box::new(()));
            });
            assert!(tokio::spawn(guilty).await.is_err());
            tokio::spawn(refresh(NAP)).await.unwrap();
        });
        only_nap(&runtime.finish(), "refresh", Context::Task);
    }
}

mod watch_a_runtime {
    use super::*;

    #[test]
    fn tasks_on_all_workers() {
        let runtime = watched(&mut multi(2));
        let task = runtime.handle().spawn(refresh(NAP));
        runtime.handle().block_on(task).unwrap();
        let report = runtime.finish();
        let f = only_nap(&report, "refresh", Context::Task);
        assert!(f.task.is_some() && f.workers == 2, "{report}");
    }

    #[test]
    fn roots_and_tasks_of_a_current_thread_runtime() {
        let runtime = watched(&mut current());
        runtime.block_on(refresh(NAP));
        only_nap(&runtime.finish(), "refresh", Context::RootLoop);
        let runtime = watched(&mut current());
        let answer = runtime.block_on(async { tokio::spawn(async { 42 }).await.unwrap() });
        assert_eq!(answer, 42);
        runtime.block_on(async { tokio::spawn(refresh(NAP)).await.unwrap() });
        let report = runtime.finish();
        assert_eq!(only_nap(&report, "refresh", Context::Task).workers, 1);
    }

    #[test]
    fn its_shutdown_too() {
        for mut runtime in [current(), multi(1)] {
            let runtime = watched(&mut runtime);
            runtime.block_on(async {
                let (up, is_up) = tokio::sync::oneshot::channel();
                tokio::spawn(async move {
                    let _slow = SleepsInDrop(NAP);
                    up.send(()).unwrap();
                    std::future::pending::<()>().await
                });
                is_up.await.unwrap();
            });
            let report = runtime.finish();
            assert!(report.is_clean() && report.notes().len() == 1, "{report}");
            assert_eq!(report.notes()[0].context, Context::Shutdown);
        }
    }

    #[test]
    fn nothing_of_others() {
        let runtime = watched(&mut multi(1));
        let other = watched(&mut multi(1));
        let task = other.handle().spawn(refresh(NAP));
        runtime.block_on(task).unwrap();
        current().build().unwrap().block_on(refresh(NAP));
        silent(&runtime.finish());
        only_nap(&other.finish(), "refresh", Context::Task);
    }

    #[test]
    fn levels_of_all_and_of_categories() {
        let report = |builder: stallhound::Builder| {
            let runtime = builder.build_runtime(&mut multi(1)).unwrap();
            let task = runtime.handle().spawn(refresh(NAP));
            runtime.block_on(task).unwrap();
            runtime.finish()
        };
        let new = Detector::builder;
        silent(&report(new().level(Level::Allow)));
        silent(&report(new().allow(Category::Sleep)));
        for noted in [new().level(Level::Warn), new().warn(Category::Sleep)] {
            let report = report(noted);
            assert!(report.is_clean() && report.notes().len() == 1, "{report}");
        }
        for denied in [
            new().level(Level::Warn).deny(Category::Sleep),
            new().allow(Category::File),
            new().allow(Category::Sleep).deny(Category::Sleep),
        ] {
            only_nap(&report(denied), "refresh", Context::Task);
        }
    }

    #[test]
    fn two_at_once_are_each_judged_by_their_own_settings() {
        let together = Arc::new(Barrier::new(2));
        let threads = [Category::Sleep, Category::File].map(|allowed| {
            let together = together.clone();
            std::thread::spawn(move || {
                let builder = Detector::builder().allow(allowed);
                let runtime = builder.build_runtime(&mut multi(1)).unwrap();
                together.wait();
                let task = runtime.handle().spawn(refresh(NAP));
                runtime.block_on(task).unwrap();
                together.wait();
                runtime.finish()
            })
        });
        let [sleep_allowed, file_allowed] = threads.map(|t| t.join().unwrap());
        silent(&sleep_allowed);
        only_nap(&file_allowed, "refresh", Context::Task);
    }

    #[test]
    fn a_task_is_judged_by_the_runtime_it_runs_on() {
        let lenient =
            Detector::builder().allow(Category::Sleep).build_runtime(&mut multi(1)).unwrap();
        let strict = watched(&mut multi(1));
        let (to_lenient, to_strict) = (lenient.handle().clone(), strict.handle().clone());
        strict.block_on(async {
            let task = async move { to_lenient.spawn(refresh(NAP)).await.unwrap() };
            tokio::spawn(task).await.unwrap();
        });
        silent(&strict.finish());
        let strict = watched(&mut multi(1));
        drop(to_strict);
        let to_strict = strict.handle().clone();
        lenient.block_on(async {
            let task = async move { to_strict.spawn(refresh(NAP)).await.unwrap() };
            tokio::spawn(task).await.unwrap();
        });
        silent(&lenient.finish());
        only_nap(&strict.finish(), "refresh", Context::Task);
    }
}

/// Where a panic says that it is, and what it says.
fn panic_of(f: impl FnOnce() + std::panic::UnwindSafe) -> (String, u32, String) {
    use std::sync::Mutex;
    thread_local!(static AT: Mutex<(String, u32)> = const { Mutex::new((String::new(), 0)) });
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if let Some(place) = info.location() {
            AT.with(|at| *at.lock().unwrap() = (place.file().to_owned(), place.line()));
        }
        before(info);
    }));
    let panic = std::panic::catch_unwind(f).expect_err("a panic");
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let (file, line) = AT.with(|at| at.lock().unwrap().clone());
    (file, line, text)
}

#[test]
fn what_is_refused_is_refused_at_the_callers_line() {
    const EMPTY: &str = "the reason is empty: say why this may block";
    const ZERO: &str = "a limit of zero would fail every poll";
    type Case = (fn(), u32, &'static str);
    let cases: [Case; 5] = [
        (|| stallhound::allow_blocking("", || ()), line!(), EMPTY),
        (|| stallhound::allow_blocking(" \n", || ()), line!(), EMPTY),
        (|| drop(stallhound::allow_blocking_async("", async {})), line!(), EMPTY),
        (|| drop(Detector::builder().threshold(Duration::ZERO)), line!(), ZERO),
        (|| drop(Detector::builder().busy_threshold(Duration::ZERO)), line!(), ZERO),
    ];
    for (case, line, text) in cases {
        assert_eq!(panic_of(case), (file!().to_owned(), line, text.to_owned()));
    }
}

mod allow_async {
    use super::*;
    use stallhound::allow_blocking_async;

    #[test]
    fn its_polls_are_silent_and_those_between_them_are_not() {
        let runtime = watched(&mut current());
        runtime.block_on(async {
            let allowed = tokio::spawn(allow_blocking_async("a test of it", async {
                for _ in 0..3 {
                    pause(NAP);
                    work(Duration::from_millis(5));
                    tokio::task::yield_now().await;
                }
                42
            }));
            let guilty = tokio::spawn(async {
                tokio::task::yield_now().await;
                refresh(NAP).await;
            });
            assert_eq!(allowed.await.unwrap(), 42);
            guilty.await.unwrap();
        });
        only_nap(&runtime.finish(), "refresh", Context::Task);
    }

    #[test]
    fn it_follows_its_future_to_another_worker() {
        let (one, two) = (watched(&mut multi(1)), watched(&mut multi(1)));
        let mut future: Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(allow_blocking_async("a test of it", async {
                pause(NAP);
                tokio::task::yield_now().await;
                pause(NAP);
            }));
        let first_poll = one.handle().spawn(async move {
            let pending = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await;
            assert!(pending);
            // Between polls its worker may not block.
            pause(NAP);
            (future,)
        });
        let (future,) = one.block_on(first_poll).unwrap();
        let rest = two.handle().spawn(async move {
            future.await;
            refresh(NAP).await;
        });
        two.block_on(rest).unwrap();
        only_nap(&one.finish(), "pause", Context::Task);
        only_nap(&two.finish(), "refresh", Context::Task);
    }

    #[test]
    fn it_ends_with_a_panic() {
        let runtime = watched(&mut current());
        runtime.block_on(async {
            let panics = allow_blocking_async("panics", async {
                std::panic::resume_unwind(Box::new(()));
            });
            assert!(tokio::spawn(panics).await.is_err());
            tokio::spawn(refresh(NAP)).await.unwrap();
        });
        only_nap(&runtime.finish(), "refresh", Context::Task);
    }

    #[test]
    fn outside_of_any_runtime_it_is_a_plain_future() {
        let mut future = pin!(allow_blocking_async("nothing to allow", async {
            pause(NAP);
            42
        }));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert_eq!(future.as_mut().poll(&mut cx), Poll::Ready(42));
    }
}

#[test]
fn a_report_says_what_it_has() {
    let runtime = watched(&mut multi(1));
    let task = runtime.handle().spawn(refresh(NAP));
    runtime.block_on(task).unwrap();
    let report = runtime.finish();
    assert!(!report.is_clean());
    let text = report.to_string();
    assert!(text.contains("error[sleep]: a task slept on its worker for 20 ms"), "{text}");
    let failed = std::panic::catch_unwind(|| report.assert_clean()).unwrap_err();
    assert_eq!(failed.downcast_ref::<String>(), Some(&text));
    Report::default().assert_clean();
}
