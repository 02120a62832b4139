//! When the watchdog looks, and how late it was. Pure.
#![forbid(unsafe_code)]

use crate::ids::Nanos;

/// Time between two looks, for a limit on busy polls.
///
/// Five samples in a row must find the same poll before it counts, the first of them comes two
/// ticks after the poll began, and all that must fit into the limit: an eighth of it. 4 ms at
/// most, 1 ms at least.
pub fn tick(busy_limit: Nanos) -> Nanos {
    Nanos((busy_limit.0 / 8).clamp(1_000_000, 4_000_000))
}

/// A tick later than this is the machine's stall (suspended, stopped, starved), not ours.
pub const STALL: Nanos = Nanos::from_millis(25);

/// Plans ticks and measures how late each one is.
#[derive(Debug)]
pub struct Cadence {
    tick: Nanos,
    planned: Nanos,
    last: Nanos,
}

/// One look's time and lateness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub now: Nanos,
    /// Time by which the machine kept the watchdog from looking, if it is a stall.
    pub stalled: Nanos,
}

impl Cadence {
    pub fn new(tick: Nanos, now: Nanos) -> Cadence {
        Cadence { tick, planned: now + tick, last: now }
    }

    pub fn tick(&self) -> Nanos {
        self.tick
    }

    pub fn set_tick(&mut self, tick: Nanos) {
        self.tick = tick;
    }

    /// How long to sleep before the next look.
    pub fn pause(&self, now: Nanos) -> Nanos {
        self.planned.saturating_sub(now)
    }

    /// The watchdog is awake: how late is it, and when next?
    pub fn look(&mut self, now: Nanos) -> Look {
        let late = now.saturating_sub(self.planned);
        self.last = now;
        self.planned = now + self.tick;
        Look { now, stalled: if late > STALL { late } else { Nanos::ZERO } }
    }

    /// The watchdog slept of its own will: no look was missed.
    pub fn resume(&mut self, now: Nanos) {
        self.last = now;
        self.planned = now + self.tick;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_samples_fit_into_every_limit() {
        for ms in 9..2000 {
            let limit = Nanos::from_millis(ms);
            assert!(Nanos(tick(limit).0 * 7) < limit, "{ms} ms");
        }
    }

    #[test]
    fn lateness_counts_from_the_plan_and_only_as_a_stall() {
        let ms = Nanos::from_millis;
        let mut c = Cadence::new(ms(4), ms(100));
        assert_eq!(c.pause(ms(100)), ms(4));
        assert_eq!(c.look(ms(110)), Look { now: ms(110), stalled: Nanos::ZERO });
        assert_eq!(c.pause(ms(111)), ms(3));
        assert_eq!(c.look(ms(114) + STALL), Look { now: ms(114) + STALL, stalled: Nanos::ZERO });
        let at = ms(114) + STALL + ms(4) + STALL + ms(1);
        assert_eq!(c.look(at), Look { now: at, stalled: STALL + ms(1) });
        c.resume(ms(5000));
        assert_eq!(c.look(ms(5004)), Look { now: ms(5004), stalled: Nanos::ZERO });
    }
}
