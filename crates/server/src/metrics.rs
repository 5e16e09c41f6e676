//! Counters of the server, as Prometheus reads them.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use warpcube_sql::{Ending, StatementCounts};

/// The counters of connections and requests; those of statements are the database's.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    connections: AtomicU64,
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
    /// A connection is open while this lives.
    pub(crate) fn connect(&self) -> Gauge<'_> {
        Gauge::new(&self.connections)
    }

    /// A request was refused by the guard.
    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// The text that Prometheus reads.
    pub(crate) fn text(&self, statements: &StatementCounts) -> String {
        let mut text = String::new();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, f64)]| {
            // Writing to a String does not fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (suffix, value) in samples {
                let _ = writeln!(text, "{name}{suffix} {value}");
            }
        };
        let ended = Ending::ALL.map(|(ending, name)| {
            let count = statements.ended(ending) as f64;
            (format!("{{outcome=\"{name}\"}}"), count)
        });
        family("warpcube_statements_total", "counter", "Statements that ended, by how they ended.", &ended);
        let gauges = [
            ("warpcube_statements_running", "Statements that run.", statements.running),
            ("warpcube_statements_waiting", "Statements that wait for their turn.", statements.waiting),
            ("warpcube_connections", "Connections that are open.", read(&self.connections)),
        ];
        for (name, help, value) in gauges {
            family(name, "gauge", help, &[(String::new(), value as f64)]);
        }
        let counters = [
            ("warpcube_result_rows_total", "Rows of results.", statements.rows),
            ("warpcube_result_bytes_total", "Bytes of results, as Arrow has them in memory.", statements.bytes),
            ("warpcube_requests_refused_total", "Requests without the token, or from elsewhere.", read(&self.refused)),
        ];
        for (name, help, value) in counters {
            family(name, "counter", help, &[(String::new(), value as f64)]);
        }
        let within = statements.within().map(|(bound, count)| (format!("_bucket{{le=\"{bound}\"}}"), count as f64));
        let all = statements.timed() as f64;
        let mut samples = within.to_vec();
        samples.push(("_bucket{le=\"+Inf\"}".into(), all));
        samples.push(("_sum".into(), statements.time.as_secs_f64()));
        samples.push(("_count".into(), all));
        family("warpcube_statement_seconds", "histogram", "Time from a statement's turn to its last row.", &samples);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_has_its_kind_and_its_samples() {
        let metrics = Metrics::default();
        let connected = metrics.connect();
        metrics.refused();
        let mut statements = StatementCounts::default();
        (statements.running, statements.waiting, statements.rows, statements.bytes) = (2, 3, 4, 5);
        let text = metrics.text(&statements);
        for line in [
            "# TYPE warpcube_statement_seconds histogram",
            "warpcube_statements_total{outcome=\"timed_out\"} 0",
            "warpcube_statements_running 2",
            "warpcube_statements_waiting 3",
            "warpcube_connections 1",
            "warpcube_result_rows_total 4",
            "warpcube_result_bytes_total 5",
            "warpcube_requests_refused_total 1",
            "warpcube_statement_seconds_bucket{le=\"0.001\"} 0",
            "warpcube_statement_seconds_bucket{le=\"+Inf\"} 0",
            "warpcube_statement_seconds_sum 0",
            "warpcube_statement_seconds_count 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        drop(connected);
        assert!(metrics.text(&statements).contains("warpcube_connections 0"));
    }
}
