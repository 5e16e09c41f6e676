//! Counters of the server, as Prometheus reads them.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the histogram's buckets, in seconds.
const BUCKETS: [f64; 11] = [0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 60.0, 600.0];

/// How a statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All its rows were sent.
    Done,
    /// With an error.
    Failed,
    /// Its client went away, or the server ended.
    Cancelled,
    /// It took more time than it had.
    TimedOut,
}

impl Outcome {
    const ALL: [(Outcome, &'static str); 4] = [
        (Outcome::Done, "done"),
        (Outcome::Failed, "failed"),
        (Outcome::Cancelled, "cancelled"),
        (Outcome::TimedOut, "timed_out"),
    ];
}

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    outcomes: [AtomicU64; Outcome::ALL.len()],
    buckets: [AtomicU64; BUCKETS.len()],
    nanoseconds: AtomicU64,
    running: AtomicU64,
    waiting: AtomicU64,
    connections: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
    refused: AtomicU64,
}

/// Counts one more until it is dropped.
pub(crate) struct Gauge<'m>(&'m AtomicU64);

impl<'m> Gauge<'m> {
    fn new(counter: &'m AtomicU64) -> Gauge<'m> {
        counter.fetch_add(1, Ordering::Relaxed);
        Gauge(counter)
    }
}

impl Drop for Gauge<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// A statement begins to run.
    pub(crate) fn begun(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    /// A statement that had begun has ended, after so long.
    pub(crate) fn ended(&self, outcome: Outcome, time: Duration) {
        self.running.fetch_sub(1, Ordering::Relaxed);
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        if let Some(bucket) = BUCKETS.iter().position(|bound| time.as_secs_f64() <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A statement waits for its turn while this lives.
    pub(crate) fn wait(&self) -> Gauge<'_> {
        Gauge::new(&self.waiting)
    }

    /// Statements that wait for their turn.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A connection is open while this lives.
    pub(crate) fn connect(&self) -> Gauge<'_> {
        Gauge::new(&self.connections)
    }

    /// Rows of a result that were made ready to be sent.
    pub(crate) fn add_rows(&self, rows: usize) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Bytes of a result.
    pub(crate) fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A request was refused by the guard.
    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// The text that Prometheus reads.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut family = |name: &str, kind: &str, help: &str, samples: &[(&str, f64)]| {
            // Writing to a String does not fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (suffix, value) in samples {
                let _ = writeln!(text, "{name}{suffix} {value}");
            }
        };
        let labels = Outcome::ALL.map(|(_, name)| format!("{{outcome=\"{name}\"}}"));
        let outcomes = Outcome::ALL.map(|(outcome, _)| read(&self.outcomes[outcome as usize]) as f64);
        let samples: Vec<_> = labels.iter().map(String::as_str).zip(outcomes).collect();
        family("warpcube_statements_total", "counter", "Statements that ended, by how they ended.", &samples);
        let gauges = [
            ("warpcube_statements_running", "Statements that run.", &self.running),
            ("warpcube_statements_waiting", "Statements that wait for their turn.", &self.waiting),
            ("warpcube_connections", "Connections that are open.", &self.connections),
        ];
        for (name, help, counter) in gauges {
            family(name, "gauge", help, &[("", read(counter) as f64)]);
        }
        let counters = [
            ("warpcube_result_rows_total", "Rows of results.", &self.rows),
            ("warpcube_result_bytes_total", "Bytes of results.", &self.bytes),
            ("warpcube_requests_refused_total", "Requests without the token, or from elsewhere.", &self.refused),
        ];
        for (name, help, counter) in counters {
            family(name, "counter", help, &[("", read(counter) as f64)]);
        }
        let mut sum = 0;
        let mut samples: Vec<(String, f64)> = Vec::new();
        for (bound, bucket) in BUCKETS.iter().zip(&self.buckets) {
            sum += read(bucket);
            samples.push((format!("_bucket{{le=\"{bound}\"}}"), sum as f64));
        }
        let all: f64 = outcomes.iter().sum();
        samples.push(("_bucket{le=\"+Inf\"}".into(), all.max(sum as f64)));
        samples.push(("_sum".into(), read(&self.nanoseconds) as f64 / 1e9));
        samples.push(("_count".into(), all.max(sum as f64)));
        let samples: Vec<_> = samples.iter().map(|(suffix, value)| (suffix.as_str(), *value)).collect();
        family("warpcube_statement_seconds", "histogram", "Time from a statement's turn to its end.", &samples);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_counted_by_outcome_and_time() {
        let metrics = Metrics::default();
        for (outcome, milliseconds) in [(Outcome::Done, 1), (Outcome::Done, 2), (Outcome::TimedOut, 700_000)] {
            metrics.begun();
            metrics.ended(outcome, Duration::from_millis(milliseconds));
        }
        metrics.begun();
        let waiting = metrics.wait();
        let text = metrics.text();
        for line in [
            "# TYPE warpcube_statement_seconds histogram",
            "warpcube_statements_total{outcome=\"done\"} 2",
            "warpcube_statements_total{outcome=\"failed\"} 0",
            "warpcube_statements_total{outcome=\"timed_out\"} 1",
            "warpcube_statements_running 1",
            "warpcube_statements_waiting 1",
            "warpcube_statement_seconds_bucket{le=\"0.001\"} 1",
            "warpcube_statement_seconds_bucket{le=\"600\"} 2",
            "warpcube_statement_seconds_bucket{le=\"+Inf\"} 3",
            "warpcube_statement_seconds_sum 700.003",
            "warpcube_statement_seconds_count 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        drop(waiting);
        assert!(metrics.text().contains("warpcube_statements_waiting 0"));
    }
}
