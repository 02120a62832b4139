//! The one table this bench prints.
#![forbid(unsafe_code)]

use crate::stats::Spread;

/// What a row means for the exit code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No bound: there to compare with.
    Shown,
    Ok,
    /// Over its bound, by a clock: the machine may be to blame.
    Over,
    /// Over its bound, by counting: nothing but the code is to blame.
    Broken,
}

/// Rows in the order in which they were measured.
#[derive(Default)]
pub struct Table {
    rows: Vec<[String; 4]>,
    broken: usize,
}

impl Table {
    pub fn row(&mut self, measure: &str, measured: String, bound: &str, verdict: Verdict) {
        let word = match verdict {
            Verdict::Shown => "",
            Verdict::Ok => "ok",
            Verdict::Over => "over",
            Verdict::Broken => "BROKEN",
        };
        self.broken += usize::from(verdict == Verdict::Broken);
        eprintln!("  {measure}: {measured} {word}");
        self.rows.push([measure.into(), measured, bound.into(), word.into()]);
    }

    /// A time or size whose median has a bound.
    pub fn amount(&mut self, measure: &str, unit: &str, s: Spread, bound: Option<f64>) {
        let measured = format!("{:.1} {unit} ({:.1} to {:.1})", s.median, s.low, s.high);
        match bound {
            Some(bound) => {
                let verdict = if s.median <= bound { Verdict::Ok } else { Verdict::Over };
                self.row(measure, measured, &format!("≤ {bound} {unit}"), verdict);
            }
            None => self.row(measure, measured, "", Verdict::Shown),
        }
    }

    /// A ratio: its median has the bound, or the upper end of its interval.
    pub fn ratio(&mut self, measure: &str, s: Spread, bound: Option<f64>, upper: bool) {
        let measured = format!("{:.3} ({:.3} to {:.3})", s.median, s.low, s.high);
        match bound {
            Some(bound) => {
                let judged = if upper { s.high } else { s.median };
                let verdict = if judged <= bound { Verdict::Ok } else { Verdict::Over };
                let what = if upper { "upper ≤" } else { "median ≤" };
                self.row(measure, measured, &format!("{what} {bound}"), verdict);
            }
            None => self.row(measure, measured, "", Verdict::Shown),
        }
    }

    /// A count, which nothing but the code can change.
    pub fn count(&mut self, measure: &str, unit: &str, count: f64, bound: f64) {
        let verdict = if count <= bound { Verdict::Ok } else { Verdict::Broken };
        self.row(measure, format!("{count:.2} {unit}"), &format!("≤ {bound} {unit}"), verdict);
    }

    /// A count that is only shown.
    pub fn shown(&mut self, measure: &str, measured: String) {
        self.row(measure, measured, "", Verdict::Shown);
    }

    /// Prints it all. Returns how many bounds are broken beyond doubt.
    pub fn print(&self) -> usize {
        let head = ["measure", "measured (95 % interval)", "bound", ""].map(String::from);
        let width = |i: usize| {
            self.rows.iter().chain([&head]).map(|r| r[i].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..4).map(width).collect();
        let line = |row: &[String; 4]| {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:<width$}", width = *width))
                .collect();
            println!("| {} |", cells.join(" | "));
        };
        line(&head);
        line(&[0, 1, 2, 3].map(|i| "-".repeat(widths[i])));
        self.rows.iter().for_each(line);
        self.broken
    }
}
