//! Where the time of a hold went: its samples merged by the heaviest path.
#![forbid(unsafe_code)]

use super::build::Names;
use crate::evidence::{Frame, HoldEvidence, Origin, Stack};

/// A path loses its name once fewer than this share of the samples are below it.
const HEAVY: f64 = 0.5;

/// The heaviest path, innermost first, and the share (percent) of how many samples that pass
/// through the innermost frame of somebody's own code on it.
///
/// From the thread's root inwards the heaviest child is followed as long as at least half of all
/// samples are below it; below that the first sample on the path speaks for the rest.
pub fn heaviest(hold: &HoldEvidence, names: &mut dyn Names) -> (Stack, Option<(u32, u32)>) {
    let stacks: Vec<(Stack, u32)> =
        hold.samples.iter().map(|s| (names.resolve(&s.stack), s.weight)).collect();
    let total: u32 = stacks.iter().map(|s| s.1).sum();
    if total == 0 {
        return (Stack::default(), None);
    }
    // Outermost first; frames of one function at different lines are one step.
    let from_root: Vec<Vec<&Frame>> =
        stacks.iter().map(|(s, _)| s.frames.iter().rev().collect()).collect();
    let mut alive: Vec<usize> = (0..stacks.len()).collect();
    let mut depth = 0;
    let mut path: Vec<&Frame> = Vec::new();
    loop {
        let mut steps: Vec<(&Frame, u32, Vec<usize>)> = Vec::new();
        for &i in &alive {
            let Some(frame) = from_root[i].get(depth) else { continue };
            match steps.iter_mut().find(|s| same_step(s.0, frame)) {
                Some(step) => {
                    step.1 += stacks[i].1;
                    step.2.push(i);
                }
                None => steps.push((frame, stacks[i].1, vec![i])),
            }
        }
        let Some(best) = steps.into_iter().max_by_key(|s| s.1) else { break };
        if (best.1 as f64) < HEAVY * total as f64 {
            break;
        }
        // Of the lines of this function, the heaviest.
        let line = best
            .2
            .iter()
            .map(|i| (from_root[*i][depth], stacks[*i].1))
            .fold(Vec::<(&Frame, u32)>::new(), |mut lines, (f, w)| {
                match lines.iter_mut().find(|l| l.0.line == f.line) {
                    Some(l) => l.1 += w,
                    None => lines.push((f, w)),
                }
                lines
            })
            .into_iter()
            .max_by_key(|l| l.1)
            .map_or(best.0, |l| l.0);
        path.push(line);
        alive = best.2;
        depth += 1;
    }
    let below: u32 = alive.iter().map(|i| stacks[*i].1).sum();
    let own = path.iter().rposition(|f| matches!(f.origin, Origin::Workspace { .. }));
    let share = own.map(|own| {
        let through: u32 = (0..stacks.len())
            .filter(|i| {
                path[..=own]
                    .iter()
                    .enumerate()
                    .all(|(d, f)| from_root[*i].get(d).is_some_and(|g| same_step(f, g)))
            })
            .map(|i| stacks[i].1)
            .sum();
        (percent(through.max(below), total), total)
    });
    let truncated = stacks.iter().any(|s| s.0.truncated);
    (Stack { frames: path.into_iter().rev().cloned().collect(), truncated }, share)
}

fn same_step(a: &Frame, b: &Frame) -> bool {
    a.symbol == b.symbol && a.file == b.file && a.inlined == b.inlined
}

fn percent(part: u32, whole: u32) -> u32 {
    ((part as f64 / whole as f64) * 100.0).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Flavor, Identity, RawStack, Sample, TokioFacts, Who};
    use crate::ids::{CodeAddress, CpuNanos, KernelTid, Nanos, ScopeId, ThreadNo};

    /// Addresses are indices into a list of names; the tens digit is the line.
    struct Fixed(&'static [&'static str]);

    impl Names for Fixed {
        fn resolve(&mut self, stack: &RawStack) -> Stack {
            let frame = |a: &CodeAddress| {
                let n = a.lookup().wrapping_add(1);
                let name = self.0[n % 10];
                Frame {
                    function: name.into(),
                    symbol: name.into(),
                    file: Some("f".into()),
                    line: Some((n / 10) as u32),
                    column: None,
                    inlined: false,
                    origin: match name.starts_with("app") {
                        true => Origin::Workspace { test_code: false },
                        false => Origin::Std,
                    },
                }
            };
            Stack { frames: stack.addresses.iter().map(frame).collect(), truncated: false }
        }
        fn plain_function(&mut self, frame: &Frame) -> Option<String> {
            Some(frame.function.clone())
        }
        fn source_line(&mut self, _: &str, _: u32) -> Option<String> {
            None
        }
        fn display_path(&self, file: &str) -> String {
            file.into()
        }
    }

    fn hold(samples: &[(&[usize], u32)]) -> HoldEvidence {
        HoldEvidence {
            who: Who {
                scope: ScopeId::PROCESS,
                thread: ThreadNo(1),
                tid: KernelTid(1),
                facts: TokioFacts {
                    constrained: true,
                    task: None,
                    worker: None,
                    worker_known: false,
                    flavor: Flavor::Unknown,
                    runtime: None,
                    workers: 0,
                },
                test: None,
            },
            identity: Identity::Same,
            at: Nanos(0),
            count: 1,
            total: Nanos(0),
            max: Nanos(0),
            cpu: CpuNanos(0),
            asleep: Nanos(0),
            excused: Nanos(0),
            in_calls: Nanos(0),
            samples: samples
                .iter()
                .map(|(a, weight)| Sample {
                    stack: RawStack {
                        addresses: a.iter().map(|n| CodeAddress::Return(*n)).collect(),
                        truncated: false,
                    },
                    weight: *weight,
                })
                .collect(),
            syscall: None,
            running: false,
        }
    }

    const NAMES: Fixed =
        Fixed(&["root", "app::task", "app::encode", "deflate", "crc", "app::other"]);

    #[test]
    fn the_heaviest_path_and_its_share() {
        let mut names = NAMES;
        let h = hold(&[(&[3, 12, 1, 0], 6), (&[4, 12, 1, 0], 2), (&[5, 1, 0], 2)]);
        let (stack, share) = heaviest(&h, &mut names);
        let path: Vec<_> = stack.frames.iter().map(|f| f.function.as_str()).collect();
        assert_eq!(path, ["deflate", "app::encode", "app::task", "root"]);
        assert_eq!(share, Some((80, 10)));
    }

    #[test]
    fn a_tie_steps_back_to_what_is_common() {
        let mut names = NAMES;
        let h = hold(&[(&[3, 2, 1, 0], 4), (&[4, 5, 1, 0], 4), (&[1, 0], 1)]);
        let (stack, share) = heaviest(&h, &mut names);
        assert_eq!(stack.frames[0].function, "app::task");
        assert_eq!(share, Some((100, 9)));
    }

    #[test]
    fn of_several_lines_the_heaviest_is_shown() {
        let mut names = NAMES;
        let h = hold(&[(&[11, 0], 1), (&[21, 0], 5), (&[31, 0], 2)]);
        let (stack, _) = heaviest(&h, &mut names);
        assert_eq!(stack.frames[0].line, Some(2));
        assert_eq!(heaviest(&hold(&[]), &mut names), (Stack::default(), None));
    }
}
