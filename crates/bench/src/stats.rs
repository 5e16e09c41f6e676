//! Medians, spreads and means: what becomes of the times of repeated runs.

/// The times of the runs of a case behind a first one that does not count, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// Their median.
    pub ms: f64,
    /// The distance of their quartiles, as a share of the median.
    pub spread: f64,
}

impl Sample {
    /// A sample of some times.
    pub fn of(times: &[f64]) -> Sample {
        let mut times = times.to_vec();
        times.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| times.get((times.len().saturating_sub(1) as f64 * share) as usize).copied();
        let [first, ms, last] = [0.25, 0.5, 0.75].map(|share| at(share).unwrap_or_default());
        Sample { ms, spread: if ms > 0.0 { (last - first) / ms } else { 0.0 } }
    }
}

/// Runs once, which does not count, and then `runs` times; each run gives its milliseconds.
///
/// # Errors
/// That of a run.
pub fn repeat<E>(runs: u32, mut once: impl FnMut() -> Result<f64, E>) -> Result<Sample, E> {
    once()?;
    let times = (0..runs.max(1)).map(|_| once()).collect::<Result<Vec<f64>, E>>()?;
    Ok(Sample::of(&times))
}

/// The middle value; of an even number the lower of the two in the middle.
pub fn median<T: Copy + PartialOrd>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_unstable_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    values.get(values.len().saturating_sub(1) / 2).copied()
}

/// The geometric mean of positive values; none without values, or if one is absent or not positive.
pub fn geometric_mean(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let logarithms = values.into_iter().map(|value| value.filter(|value| *value > 0.0).map(f64::ln));
    let logarithms = logarithms.collect::<Option<Vec<f64>>>().filter(|all| !all.is_empty())?;
    Some((logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn medians() {
        let times = |milliseconds: &[u64]| median(milliseconds.iter().map(|ms| Duration::from_millis(*ms)));
        assert_eq!(times(&[5, 1, 9]), Some(Duration::from_millis(5)));
        assert_eq!(times(&[4, 1]), Some(Duration::from_millis(1)));
        assert_eq!(times(&[]), None);
    }

    #[test]
    fn the_first_run_does_not_count() {
        let mut times = [90.0, 5.0, 4.0, 2.0, 4.0, 3.0].into_iter();
        let sample = repeat(5, || times.next().ok_or("more runs")).unwrap();
        assert_eq!(sample, Sample { ms: 4.0, spread: 0.25 });
        assert_eq!(repeat(2, || times.next().ok_or("more runs")), Err("more runs"));
    }

    #[test]
    fn means_are_of_values_that_are_all_there() {
        assert!(geometric_mean([Some(1.0), Some(4.0)]).is_some_and(|mean| (mean - 2.0).abs() < 1e-12));
        assert_eq!(geometric_mean([Some(1.0), None]), None);
        assert_eq!(geometric_mean([Some(1.0), Some(0.0)]), None);
        assert_eq!(geometric_mean([]), None);
    }
}
