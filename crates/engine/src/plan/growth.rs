//! How often the room of each sink has grown: eightfold each time.
//!
//! Sizes follow from it, decisions do not: a sink that grows keeps its form, so that its entries can be moved and its
//! scan resumed.

/// Slots it may grow to.
pub(crate) const GROUP_SLOTS_MAX: u64 = 1 << 30;

/// Bits of one count, and counts; pipelines past the last one share it.
const BITS: usize = 4;
const COUNTS: usize = 128 / BITS;
/// Most times that a sink grows: to the largest table, whatever the first one was.
const TIMES_MAX: u32 = GROUP_SLOTS_MAX.ilog2() / 3;

/// Counts by pipeline; branches of a union have that of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Growth(u128);

impl Growth {
    /// How often the sink of a pipeline has grown.
    pub(crate) fn times(self, pipeline: usize) -> u32 {
        (self.0 >> shift(pipeline)) as u32 & ((1 << BITS) - 1)
    }

    /// The counts after the sinks of these pipelines have grown once more; none if one has grown as often as any may.
    pub(crate) fn once_more(self, pipelines: impl IntoIterator<Item = usize>) -> Option<Growth> {
        let mut shifts: Vec<usize> = pipelines.into_iter().map(shift).collect();
        shifts.sort_unstable();
        shifts.dedup();
        let most = |shift: &usize| (self.0 >> shift) as u32 & ((1 << BITS) - 1) == TIMES_MAX;
        if shifts.is_empty() || shifts.iter().any(most) {
            return None;
        }
        Some(Growth(shifts.iter().fold(self.0, |counts, shift| counts + (1 << shift))))
    }

    /// Of each pipeline the larger count.
    pub(crate) fn or_more(self, other: Growth) -> Growth {
        let count = |pipeline| u128::from(self.times(pipeline).max(other.times(pipeline))) << shift(pipeline);
        Growth((0..COUNTS).map(count).sum())
    }
}

/// A size after so many times.
pub(crate) fn grown(size: u64, times: u32) -> u64 {
    size.saturating_mul(1 << (3 * times))
}

fn shift(pipeline: usize) -> usize {
    BITS * pipeline.min(COUNTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::GROUP_SLOTS;

    #[test]
    fn counts_are_by_pipeline_and_have_an_end() {
        let once = Growth::default().once_more([1, 30, 1]).unwrap();
        assert_eq!([0, 1, 2, 30, 31].map(|pipeline| once.times(pipeline)), [0, 1, 0, 1, 0]);
        let shared = once.once_more([31, 77]).unwrap();
        assert_eq!([30, 31, 77].map(|pipeline| shared.times(pipeline)), [1, 1, 1]);
        assert_eq!(once.once_more([]), None);
        let other = Growth::default().once_more([0, 30]).unwrap().once_more([30]).unwrap();
        let both = once.or_more(other);
        assert_eq!([0, 1, 2, 30, 31].map(|pipeline| both.times(pipeline)), [1, 1, 0, 2, 0]);
        let sizes = std::iter::successors(Some(Growth::default()), |growth| growth.once_more([0]));
        let sizes: Vec<u64> = sizes.map(|growth| grown(GROUP_SLOTS, growth.times(0))).collect();
        assert_eq!(sizes[..4], [1 << 20, 1 << 23, 1 << 26, 1 << 29]);
        assert_eq!((sizes.len(), grown(2, TIMES_MAX) >= GROUP_SLOTS_MAX), (TIMES_MAX as usize + 1, true));
    }
}
