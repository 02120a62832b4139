//! A poll under watch, to the same poll in a process that is not armed.
//!
//! An armed and an unarmed process live side by side and work in turns of some milliseconds, the
//! other one idle meanwhile. Each pair of processes gives one ratio for each load (of the medians
//! of its turns), so that what differs from process to process (layout, pages) is in the spread.
#![forbid(unsafe_code)]

use crate::child::{self, Talk, Watched};
use crate::stats::{median, spread};
use crate::table::Table;
use crate::Effort;
use std::future::Future;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

/// Loads, by the words a child understands.
const LOADS: &[(&str, &str)] = &[
    ("current-thread yield", "yield loop, current thread"),
    ("multi-thread yield", "yield loop, 2 workers"),
    ("current-thread ping-pong", "channel ping-pong, current thread"),
    ("multi-thread ping-pong", "channel ping-pong, 2 workers"),
];

pub fn measure(effort: Effort, table: &mut Table) {
    let turns = effort.rounds(12, 6);
    let mut wall = vec![Vec::new(); LOADS.len()];
    let mut cpu = vec![Vec::new(); LOADS.len()];
    let mut peer = vec![Vec::new(); LOADS.len()];
    for _ in 0..effort.rounds(15, 5) {
        let mut armed = Talk::begin(&mut child::command("polls", Watched::Armed));
        let mut off = Talk::begin(&mut child::command("polls", Watched::Off));
        for (at, (load, _)) in LOADS.iter().enumerate() {
            let plain = format!("{load} plain");
            let mut seen = [const { (Vec::new(), Vec::new()) }; 2];
            for turn in 0..turns {
                // A B, B A, …: a drift of the machine's speed meets both alike.
                for which in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
                    let answer = [&mut armed, &mut off][which].ask(&plain);
                    // The first turn of a load warms up.
                    if turn > 0 {
                        seen[which].0.push(answer[0]);
                        seen[which].1.push(answer[1]);
                    }
                }
            }
            let [(on_wall, on_cpu), (off_wall, off_cpu)] =
                seen.map(|(w, c)| (median(w), median(c)));
            wall[at].push(on_wall / off_wall);
            cpu[at].push(on_cpu / off_cpu);
            let monitored = format!("{load} monitored");
            off.ask(&monitored);
            let times: Vec<f64> = (0..3).map(|_| off.ask(&monitored)[0]).collect();
            peer[at].push(median(times) / off_wall);
        }
    }
    for (at, (_, name)) in LOADS.iter().enumerate() {
        table.ratio(&format!("poll, {name}: wall"), spread(&wall[at]), Some(1.03), true);
        table.ratio("  the process' CPU time, watchdog included", spread(&cpu[at]), None, true);
        table.ratio("  peer: tokio-metrics' TaskMonitor, wall", spread(&peer[at]), None, true);
    }
}

/// Runs the load it is told, again and again, and says wall and CPU time in nanoseconds.
pub fn child() {
    child::arm();
    let mut current = Builder::new_current_thread();
    let mut multi = Builder::new_multi_thread();
    let current = current.enable_all().build().expect("a runtime");
    let multi = multi.worker_threads(2).enable_all().build().expect("a runtime");
    child::listen(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let runtime = if words[0] == "current-thread" { &current } else { &multi };
        let monitored = words[2] == "monitored";
        let (cpu, wall) = (own_cpu(), Instant::now());
        match words[1] {
            "yield" => yields(runtime, 64, 3000, monitored),
            _ => ping_pong(runtime, 16, 3000, monitored),
        }
        vec![wall.elapsed().as_nanos() as f64, (own_cpu() - cpu) as f64]
    });
}

/// Tasks that yield so often.
pub fn yields(runtime: &Runtime, tasks: usize, times: usize, monitored: bool) {
    run(
        runtime,
        monitored,
        (0..tasks).map(|_| async move {
            for _ in 0..times {
                tokio::task::yield_now().await;
            }
        }),
    );
}

/// Pairs of tasks that hand a number to and fro.
fn ping_pong(runtime: &Runtime, pairs: usize, times: usize, monitored: bool) {
    let tasks = (0..pairs).flat_map(|_| {
        let (to, mut from) = mpsc::channel::<usize>(1);
        let (back, mut answer) = mpsc::channel::<usize>(1);
        let server = async move {
            while let Some(n) = from.recv().await {
                if back.send(n).await.is_err() {
                    break;
                }
            }
        };
        let client = async move {
            for n in 0..times {
                to.send(n).await.expect("the other side");
                answer.recv().await.expect("the other side");
            }
        };
        [futures_of(server), futures_of(client)]
    });
    run(runtime, monitored, tasks);
}

type Boxed = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

fn futures_of(future: impl Future<Output = ()> + Send + 'static) -> Boxed {
    Box::pin(future)
}

fn run<F>(runtime: &Runtime, monitored: bool, tasks: impl Iterator<Item = F>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let monitor = tokio_metrics::TaskMonitor::new();
    runtime.block_on(async {
        let handles: Vec<_> = tasks
            .map(|task| match monitored {
                true => tokio::spawn(monitor.instrument(task)),
                false => tokio::spawn(task),
            })
            .collect();
        for handle in handles {
            handle.await.expect("the task to end");
        }
    });
}

/// What this process spent on processors so far, in nanoseconds.
fn own_cpu() -> u64 {
    crate::calls::clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}
