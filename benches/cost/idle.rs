//! With every worker parked the watchdog sleeps.
#![forbid(unsafe_code)]

use crate::child::{self, Watched};
use crate::table::Table;
use crate::Effort;
use std::time::Duration;

const KINDS: &[(&str, &str)] = &[
    ("4-workers", "4 parked workers, the main thread asleep"),
    ("root", "a root future of a current-thread runtime, waiting"),
];

pub fn measure(effort: Effort, table: &mut Table) {
    let seconds = effort.rounds(2, 1);
    for (kind, what) in KINDS {
        let mut command = child::command("idle", Watched::Armed);
        let seen = child::numbers(command.arg(kind).arg(seconds.to_string()));
        let per_second = |n: f64| n / seconds as f64;
        table.count(&format!("watchdog's wake-ups, {what}"), "/s", per_second(seen[0]), 0.0);
        table.count(&format!("  its context switches, {what}"), "/s", per_second(seen[1]), 0.0);
    }
}

/// Says how often the watchdog woke up, and was switched to, in so many idle seconds.
pub fn child(rest: &[String]) {
    child::arm();
    let time = Duration::from_secs(rest[1].parse().expect("seconds"));
    let settle = Duration::from_millis(700);
    match &rest[0][..] {
        "4-workers" => {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(4)
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let tasks: Vec<_> =
                    (0..16).map(|_| tokio::spawn(tokio::task::yield_now())).collect();
                for task in tasks {
                    task.await.expect("the task to end");
                }
            });
            std::thread::sleep(settle);
            let before = Seen::now();
            std::thread::sleep(time);
            before.say();
        }
        _ => {
            let looker = std::thread::spawn(move || {
                std::thread::sleep(settle);
                let before = Seen::now();
                std::thread::sleep(time);
                before.say();
                std::process::exit(0);
            });
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(std::future::pending::<()>());
            drop(looker);
        }
    }
}

struct Seen {
    wakeups: u64,
    switches: u64,
}

impl Seen {
    fn now() -> Seen {
        Seen { wakeups: stallhound::__private::watchdog_wakeups(), switches: switches() }
    }

    fn say(&self) {
        let now = Seen::now();
        println!("{} {}", now.wakeups - self.wakeups, now.switches - self.switches);
    }
}

/// Context switches of the watchdog's thread.
fn switches() -> u64 {
    std::fs::read_dir("/proc/self/task")
        .expect("/proc")
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok())
        .filter(|status| status.starts_with("Name:\tstallhound\n"))
        .flat_map(|status| {
            let of =
                |line: &str| line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
            status
                .lines()
                .filter(|l| l.contains("_ctxt_switches:"))
                .filter_map(of)
                .collect::<Vec<_>>()
        })
        .sum()
}
