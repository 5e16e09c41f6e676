//! The line after a statement: rows, time, the share that ran on the GPU, and the time of loading and compiling in a
//! first run.

use std::time::Duration;

use warpcube_bench::render::text;
pub(crate) use warpcube_bench::render::text::grouped;
use warpcube_sql::{Place, Summary};

/// Loading and compiling shorter than this did not happen, as far as people care.
const WORTH_SAYING: Duration = Duration::from_micros(100);

/// The footer for a statement; `has_rows` is true if the statement has a result. Without a device the footer has no
/// share of it.
pub(crate) fn footer(summary: &Summary, has_rows: bool, with_times: bool, has_device: bool) -> String {
    let mut parts = Vec::new();
    match (has_rows, summary.rows) {
        (false, _) => parts.push("done".to_string()),
        (true, 1) => parts.push("1 row".to_string()),
        (true, rows) => parts.push(format!("{} rows", grouped(rows))),
    }
    if with_times {
        parts.push(time(summary.total));
    }
    if summary.fragments.iter().any(|fragment| fragment.place == Place::Columns) {
        parts.push("CPU, columns".to_string());
    } else if let Some(share) = summary.gpu_share().filter(|share| has_device || *share > 0.0) {
        parts.push(format!("{} % on the GPU", percent(share)));
    }
    if !with_times {
        return format!("({})", parts.join(", "));
    }
    if summary.device > Duration::ZERO {
        parts.push(format!("{} of device time", time(summary.device)));
    }
    let first: Vec<String> = [("loading", summary.loading), ("compiling", summary.compile)]
        .into_iter()
        .filter(|(_, spent)| *spent >= WORTH_SAYING)
        .map(|(what, spent)| format!("{what} {}", time(spent)))
        .collect();
    let restored = summary.restored_bytes as f64 / summary.loaded_bytes.max(1) as f64;
    if !first.is_empty() {
        parts.push(format!("of it {}", first.join(" and ")));
    }
    if restored > 0.0 {
        parts.push(format!("{:.0} % of the columns loaded as they were kept", restored * 100.0));
    }
    format!("({})", parts.join(", "))
}

/// A share in percent; 0 and 100 mean none and all.
fn percent(share: f64) -> u32 {
    match share {
        share if share <= 0.0 => 0,
        share if share >= 1.0 => 100,
        share => ((share * 100.0).round() as u32).clamp(1, 99),
    }
}

/// A time with three digits that count.
pub(crate) fn time(time: Duration) -> String {
    text::time(time.as_secs_f64() * 1e3)
}

/// A number of things: `1 row`, `2,000 rows`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{} {what}{end}", grouped(number))
}

#[cfg(test)]
mod tests {
    use warpcube_sql::StatementReport;

    use super::*;

    #[test]
    fn a_first_run_says_what_it_paid() {
        let report = StatementReport::new();
        report.add_rows(1234);
        report.add_device_rows(3);
        report.add_device_operators(3);
        report.add_host_operators(1);
        report.add_loading(Duration::from_millis(1500));
        report.add_compile(Duration::from_millis(97));
        let mut summary = report.summary();
        summary.total = Duration::from_millis(2000);
        let expected = "(1,234 rows, 2.00 s, 75 % on the GPU, of it loading 1.50 s and compiling 97.0 ms)";
        assert_eq!(footer(&summary, true, true, true), expected);
        assert_eq!(footer(&summary, true, false, true), "(1,234 rows, 75 % on the GPU)");
    }

    #[test]
    fn only_none_and_all_are_0_and_100_percent() {
        assert_eq!([0.0, 0.001, 2.0 / 3.0, 0.999, 1.0].map(percent), [0, 1, 67, 99, 100]);
    }

    #[test]
    fn without_a_device_no_share_is_named() {
        let report = StatementReport::new();
        report.add_host_rows(7);
        report.add_host_operators(1);
        let summary = report.summary();
        assert_eq!(footer(&summary, true, false, true), "(0 rows, 0 % on the GPU)");
        assert_eq!(footer(&summary, true, false, false), "(0 rows)");
    }

    #[test]
    fn columns_that_were_kept_are_told() {
        let mut summary = StatementReport::new().summary();
        summary.total = Duration::from_micros(1500);
        (summary.loading, summary.loaded_bytes, summary.restored_bytes) = (Duration::from_millis(1), 400, 300);
        let expected = "(done, 1.50 ms, of it loading 1.00 ms, 75 % of the columns loaded as they were kept)";
        assert_eq!(footer(&summary, false, true, true), expected);
    }

    #[test]
    fn a_statement_without_rows_is_done() {
        let mut summary = StatementReport::new().summary();
        summary.total = Duration::from_micros(1500);
        assert_eq!(footer(&summary, false, true, true), "(done, 1.50 ms)");
        assert_eq!(footer(&summary, false, false, true), "(done)");
    }
}
