use super::model::Report;
use crate::config::*;
use crate::evidence::*;
use crate::ids::*;
use crate::symbolize::*;
pub fn build(e: &Evidence, s: &mut Symbolizer, _l: &dyn Fn(ScopeId) -> Limits, _c: u32) -> Report {
    eprintln!(
        "EVIDENCE {:?} seen {} allowed {} lost {} tests {} harness {:?}",
        e.capabilities, e.calls_in_polls, e.allowed, e.lost, e.tests_seen, e.harness
    );
    let show = |s: &mut Symbolizer, r: &RawStack| {
        for f in s
            .resolve(r)
            .frames
            .iter()
            .filter(|f| !f.function.starts_with("core::") && !f.function.starts_with("std::"))
            .take(if std::env::var("FULL").is_ok() { 200 } else { 9 })
        {
            eprintln!(
                "      {} {}:{}",
                f.function,
                f.file.as_deref().unwrap_or(""),
                f.line.unwrap_or(0)
            );
        }
    };
    for c in &e.calls {
        eprintln!("CALL {:?} {} x{} max {:.2} total {:.2} exc {:.2} cpu {:?} req {:?} sum {:?} {:?} {:?} running {}", c.category,c.function,c.count,c.max.as_millis_f64(),c.total.as_millis_f64(),c.excused.as_millis_f64(),c.cpu,c.requested,c.summed,c.object,c.who,c.running);
        show(s, &c.stack);
    }
    for h in &e.holds {
        eprintln!("HOLD {:?} wall {:.2} cpu {:.2} asleep {:.2} exc {:.2} incalls {:.2} samples {} {:?} {:?} running {}", h.identity,h.max.as_millis_f64(),h.cpu.as_millis_f64(),h.asleep.as_millis_f64(),h.excused.as_millis_f64(),h.in_calls.as_millis_f64(),h.samples.iter().map(|s|s.weight).sum::<u32>(),h.syscall,h.who,h.running);
        if let Some(m) = h.samples.iter().max_by_key(|s| s.weight) {
            show(s, &m.stack);
        }
    }
    Report::default()
}
