//! Arming: time and memory of a process, optimised and as tests are built.
#![forbid(unsafe_code)]

use crate::child::{self, Watched};
use crate::stats::spread;
use crate::table::Table;
use crate::{suite, Effort};
use std::process::Command;

pub fn measure(effort: Effort, table: &mut Table) {
    let program = suite::build(suite::Watching::Linked).program;
    pairs(effort, table, "optimised", || child::command("arming", Watched::Off));
    pairs(effort, table, "as tests are built", || Command::new(&program));
}

fn pairs(effort: Effort, table: &mut Table, build: &str, command: impl Fn() -> Command) {
    let mut times = Vec::new();
    let mut constructor = Vec::new();
    let mut memory = Vec::new();
    for round in 0..effort.rounds(21, 5) {
        let once = |watched| {
            let mut command = command();
            child::set(&mut command, watched);
            child::numbers(&mut command)
        };
        let (on, off);
        if round % 2 == 0 {
            (on, off) = (once(Watched::Armed), once(Watched::Off));
        } else {
            off = once(Watched::Off);
            on = once(Watched::Armed);
        }
        constructor.push(on[0] / 1e6);
        times.push((on[0] + on[1]) / 1e6);
        memory.push((on[2] - off[2]) / 1024.0);
    }
    table.amount(&format!("arming, {build}"), "ms", spread(&times), Some(2.0));
    let of_it = format!("  of it the constructor, linked alone, {build}");
    table.amount(&of_it, "ms", spread(&constructor), None);
    table.amount(&format!("resident, armed − off, {build}"), "MiB", spread(&memory), Some(4.0));
}
