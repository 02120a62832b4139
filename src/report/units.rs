//! Numbers with units, at most three digits that matter.
#![forbid(unsafe_code)]

use crate::ids::Nanos;

/// A length of time: `840 µs`, `2.61 ms`, `103 ms`, `1.24 s`.
pub fn time(t: Nanos) -> String {
    let (value, unit) = match t.0 {
        0..=999 => return format!("{} ns", t.0),
        1_000..=999_499 => (t.0 as f64 / 1e3, "µs"),
        999_500..=999_499_999 => (t.0 as f64 / 1e6, "ms"),
        _ => (t.0 as f64 / 1e9, "s"),
    };
    format!("{} {unit}", digits(value))
}

/// Three digits that matter, without empty decimals.
pub fn digits(value: f64) -> String {
    let places = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// `1 finding`, `2 findings`.
pub fn count(n: u64, one: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{n} {one}s")
    }
}

/// A rate a second, rounded down to what is safe to claim.
pub fn rate(per_second: f64) -> String {
    if per_second >= 10.0 {
        format!("{}", per_second.floor())
    } else {
        digits(per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_that_matter() {
        for (nanos, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1 µs"),
            (84_000, "84 µs"),
            (999_499, "999 µs"),
            (999_500, "1 ms"),
            (2_610_000, "2.61 ms"),
            (9_996_000, "10 ms"),
            (23_450_000, "23.4 ms"),
            (103_400_000, "103 ms"),
            (999_600_000, "1 s"),
            (1_240_000_000, "1.24 s"),
            (120_000_000_000, "120 s"),
        ] {
            assert_eq!(time(Nanos(nanos)), text, "{nanos}");
        }
        assert_eq!(count(1, "test"), "1 test");
        assert_eq!(count(0, "test"), "0 tests");
        assert_eq!(rate(38.8), "38");
        assert_eq!(rate(3.333), "3.33");
    }
}
