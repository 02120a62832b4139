//! Medians with a bootstrap interval: the machine is shared, and a mean would believe its noise.
#![forbid(unsafe_code)]

/// A median and the 95 % interval that resampling gives it.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

/// Of what was measured once in each round.
pub fn spread(values: &[f64]) -> Spread {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut medians: Vec<f64> = (0..2000)
        .map(|_| {
            median(
                (0..values.len())
                    .map(|_| {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        values[(random % values.len() as u64) as usize]
                    })
                    .collect(),
            )
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let at = |share: f64| medians[((medians.len() - 1) as f64 * share).round() as usize];
    Spread { median: median(values.to_vec()), low: at(0.025), high: at(0.975) }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}
