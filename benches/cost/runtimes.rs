//! What a runtime costs more when it is made, used once and dropped under watch: a suite with a
//! property test makes hundreds, and each of their threads is registered.
#![forbid(unsafe_code)]

use crate::child::{self, Talk, Watched};
use crate::stats::spread;
use crate::table::Table;
use crate::Effort;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};

/// What a runtime may cost more. One of several threads is not held to it: each thread costs.
const BOUND: f64 = 20.0;

const KINDS: &[(&str, &str, Option<f64>)] =
    &[("current", "current-thread", Some(BOUND)), ("multi", "two workers", None)];

pub fn measure(effort: Effort, table: &mut Table) {
    let mut armed = Talk::begin(&mut child::command("runtimes", Watched::Armed));
    let mut off = Talk::begin(&mut child::command("runtimes", Watched::Off));
    for (kind, name, bound) in KINDS {
        let (mut more, mut plain) = (Vec::new(), Vec::new());
        for round in 0..effort.rounds(61, 11) + 1 {
            let (with, without);
            if round % 2 == 0 {
                (with, without) = (armed.ask(kind)[0], off.ask(kind)[0]);
            } else {
                without = off.ask(kind)[0];
                with = armed.ask(kind)[0];
            }
            // The first round warms up.
            if round > 0 {
                more.push((with - without) / 1e3);
                plain.push(without / 1e3);
            }
        }
        table.amount(
            &format!("making a runtime, {name}, armed − off"),
            "µs",
            spread(&more),
            *bound,
        );
        table.amount("  off", "µs", spread(&plain), None);
    }
}

/// Answers with nanoseconds a runtime.
pub fn child(_: &[String]) {
    child::arm();
    child::listen(|kind| {
        let number = if kind == "multi" { 60 } else { 200 };
        let begun = Instant::now();
        for _ in 0..number {
            let runtime = make(kind).expect("a runtime");
            let sum = runtime.block_on(async {
                tokio::spawn(async { std::hint::black_box(20) + 1 }).await.expect("a task")
            });
            assert_eq!(sum, 21);
        }
        vec![begun.elapsed().as_nanos() as f64 / f64::from(number)]
    });
}

fn make(kind: &str) -> std::io::Result<Runtime> {
    match kind {
        "multi" => Builder::new_multi_thread().worker_threads(2).enable_all().build(),
        _ => Builder::new_current_thread().enable_all().build(),
    }
}
