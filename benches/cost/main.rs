//! What watching costs, held to its bounds: `cargo bench`.
//!
//! Every figure is a difference or a ratio of pairs that ran in turns in one run, with the 95 %
//! interval of its median, because clocks of different runs on a shared machine cannot be
//! compared. Arming a process cannot be undone, so armed and unarmed are two processes that live
//! at the same time and work in turns. criterion measures one thing after the other in one
//! process and can do neither; so this is a harness of its own.
//!
//! What is counted and not timed (instructions by valgrind's callgrind, wake-ups) fails the run
//! when it is over its bound; what is timed is only called so.
//!
//! `STALLHOUND_BENCH_QUICK=1` takes fewer rounds. Other arguments than flags choose parts by name:
//! `cargo bench -- calls polls`.

mod arming;
mod arming_child;
mod calls;
mod child;
mod counted;
mod idle;
mod polls;
mod runtimes;
mod stats;
mod suite;
mod table;

use std::time::Instant;

/// How thorough to be.
#[derive(Clone, Copy)]
pub struct Effort {
    pub quick: bool,
}

impl Effort {
    pub fn rounds(self, full: usize, quick: usize) -> usize {
        if self.quick {
            quick
        } else {
            full
        }
    }
}

type Part = (&'static str, fn(Effort, &mut table::Table));

const PARTS: &[Part] = &[
    ("calls", calls::measure),
    ("polls", polls::measure),
    ("counted", counted::measure),
    ("arming", arming::measure),
    ("runtimes", runtimes::measure),
    ("idle", idle::measure),
    ("suite", suite::measure),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, what, rest @ ..] = &arguments[..] {
        if role == child::ROLE {
            return child::run(what, rest);
        }
    }
    if !arguments.iter().any(|a| a == "--bench") {
        println!("measured by `cargo bench`");
        return;
    }
    let chosen: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let effort = Effort { quick: std::env::var_os("STALLHOUND_BENCH_QUICK").is_some() };
    let mut table = table::Table::default();
    for (name, measure) in PARTS {
        if chosen.is_empty() || chosen.iter().any(|c| c == name) {
            let begun = Instant::now();
            measure(effort, &mut table);
            eprintln!("{name}: {:.1} s", begun.elapsed().as_secs_f64());
        }
    }
    if table.print() > 0 {
        std::process::exit(1);
    }
}
