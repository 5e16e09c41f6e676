//! Counts of statements, as a server's metrics have them.

use std::time::Duration;

/// How a statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All its rows were made.
    Done,
    /// With an error.
    Failed,
    /// It was cancelled, killed, or its rows were not read to their end.
    Cancelled,
    /// It took more time than it had.
    TimedOut,
}

impl Ending {
    /// Each with its name.
    pub const ALL: [(Ending, &'static str); 4] = [
        (Ending::Done, "done"),
        (Ending::Failed, "failed"),
        (Ending::Cancelled, "cancelled"),
        (Ending::TimedOut, "timed_out"),
    ];

    /// The ending with the code of an error, or without one.
    pub(super) fn of(code: Option<&str>) -> Ending {
        match code {
            None => Ending::Done,
            Some("SQL-007" | "SQL-016") => Ending::Cancelled,
            Some("SQL-008") => Ending::TimedOut,
            Some(_) => Ending::Failed,
        }
    }
}

/// Counts of the statements of a database since it was opened.
#[derive(Debug, Clone, Default)]
pub struct StatementCounts {
    /// Statements that wait for their turn.
    pub waiting: u64,
    /// Statements that run and are not cancelled.
    pub running: u64,
    /// Rows of results, of running statements too.
    pub rows: u64,
    /// Bytes of these rows in memory, as Arrow has them.
    pub bytes: u64,
    /// Time of all statements that had their turn and have ended.
    pub time: Duration,
    ended: [u64; Ending::ALL.len()],
    /// Statements that took no longer than each bound and longer than the one before; the last are longer than all.
    buckets: [u64; StatementCounts::BOUNDS.len() + 1],
}

impl StatementCounts {
    /// Upper bounds of the times that are told apart, in seconds.
    pub const BOUNDS: [f64; 11] = [0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 60.0, 600.0];

    /// A statement has ended, so long after its turn if that came, with so many rows and bytes.
    pub(super) fn end(&mut self, ending: Ending, time: Option<Duration>, (rows, bytes): (u64, u64)) {
        self.ended[ending as usize] += 1;
        self.rows += rows;
        self.bytes += bytes;
        if let Some(time) = time {
            let bucket = Self::BOUNDS.iter().position(|bound| time.as_secs_f64() <= *bound);
            self.buckets[bucket.unwrap_or(Self::BOUNDS.len())] += 1;
            self.time += time;
        }
    }

    /// Statements that have ended so.
    pub fn ended(&self, ending: Ending) -> u64 {
        self.ended[ending as usize]
    }

    /// Statements that had their turn and have ended.
    pub fn timed(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// How many of these took no longer than each of the bounds.
    pub fn within(&self) -> [(f64, u64); StatementCounts::BOUNDS.len()] {
        let mut sum = 0;
        let mut within = Self::BOUNDS.map(|bound| (bound, 0));
        for ((_, count), bucket) in within.iter_mut().zip(&self.buckets) {
            sum += bucket;
            *count = sum;
        }
        within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_by_their_bounds() {
        let mut counts = StatementCounts::default();
        for milliseconds in [1, 2, 700_000] {
            counts.end(Ending::Done, Some(Duration::from_millis(milliseconds)), (1, 8));
        }
        counts.end(Ending::Cancelled, None, (0, 0));
        assert_eq!(counts.within().map(|(_, count)| count), [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(
            (counts.timed(), counts.time, counts.rows, counts.bytes),
            (3, Duration::from_millis(700_003), 3, 24)
        );
        assert_eq!((counts.ended(Ending::Done), counts.ended(Ending::Cancelled)), (3, 1));
    }
}
