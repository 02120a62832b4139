//! Durations as people write them: `"5ms"`, `"1.5s"`.

/// Unit names and their length in nanoseconds. The micro sign and the Greek letter look alike.
const UNITS: &[(&str, u128)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
];

const UNIT_NAMES: &str = "`ns`, `us`, `\u{b5}s`, `ms`, `s`, `min`";

/// Reads a duration and gives its nanoseconds, never zero.
///
/// # Errors
///
/// A sentence that says what is wrong with the text and what is allowed.
pub fn nanos(text: &str) -> Result<u64, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    if number.is_empty() {
        return Err(format!("`{text}` is no duration: a number and a unit, such as \"5ms\""));
    }
    if unit.is_empty() {
        return Err(format!("`{text}` has no unit: add one of {UNIT_NAMES}"));
    }
    let Some(&(_, unit_nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("`{unit}` is no unit of time: one of {UNIT_NAMES}"));
    };
    let nanos = scale(number, unit_nanos)
        .ok_or_else(|| format!("`{number}` is not a number of whole nanoseconds"))?;
    match u64::try_from(nanos) {
        Ok(0) => Err("a limit of zero would fail every poll".into()),
        Ok(nanos) => Ok(nanos),
        Err(_) => Err(format!("`{text}` is too long: at most {} s", u64::MAX / 1_000_000_000)),
    }
}

/// `number × unit`, if `number` is a decimal number and the result a whole one.
fn scale(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (number, "0"),
    };
    let whole: u128 = whole.parse().ok()?;
    let parts: u128 = fraction.parse().ok()?;
    let parts_per_one = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let scaled = parts.checked_mul(unit)?;
    if scaled % parts_per_one != 0 {
        return None;
    }
    whole.checked_mul(unit)?.checked_add(scaled / parts_per_one)
}

#[cfg(test)]
mod tests {
    use super::nanos;

    #[test]
    fn reads_every_unit() {
        for (text, expected) in [
            ("7ns", 7),
            ("250us", 250_000),
            ("250\u{b5}s", 250_000),
            ("250\u{3bc}s", 250_000),
            ("5ms", 5_000_000),
            ("1.5s", 1_500_000_000),
            ("0.000000001s", 1),
            ("0.25ms", 250_000),
            ("2min", 120_000_000_000),
        ] {
            assert_eq!(nanos(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, part) in [
            ("", "is no duration"),
            ("ms", "is no duration"),
            ("-5ms", "is no duration"),
            ("5", "has no unit"),
            ("5m", "`m` is no unit"),
            ("5 ms", "is no unit"),
            ("5MS", "is no unit"),
            ("1h", "is no unit"),
            (".5ms", "is not a number of whole nanoseconds"),
            ("5.ms", "is not a number of whole nanoseconds"),
            ("1.2.3s", "is not a number of whole nanoseconds"),
            ("0.5ns", "is not a number of whole nanoseconds"),
            ("0ms", "zero"),
            ("18446744074s", "is too long"),
            ("999999999999999999999999999999999999min", "is not a number of whole nanoseconds"),
        ] {
            let said = nanos(text).expect_err(text);
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
