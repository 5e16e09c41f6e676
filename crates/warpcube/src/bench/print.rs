//! A benchmark's results for people: a line as each case is done, and for suites that ask for it where parts ran.

use std::time::Duration;

use warpcube_sql::{Place, Session};

use super::measure::{Loading, Measured};
use super::suite::Suite;
use crate::footer::time;

/// Prints as a benchmark goes on.
pub(super) struct Printer {
    shows_placement: bool,
}

impl Printer {
    /// Prints the head.
    pub(super) fn new(suite: &Suite, session: &Session) -> Printer {
        let device = session.device().get().map_or_else(|| "CPU".to_string(), |device| device.info().name.clone());
        println!("{} on {device}", suite.name);
        println!(
            "{:6} {:>8} {:>11} {:>11} {:>11} {:>10} {:>7} {:>7} {:>11}  verified",
            "query", "rows", "device", "warm", "first", "MB", "of peak", "on GPU", "CPU"
        );
        Printer { shows_placement: suite.shows_placement }
    }

    /// Prints one case.
    pub(super) fn case(&self, measured: &Measured) {
        let maybe = |value: Option<Duration>| value.map_or_else(|| "-".to_string(), time);
        let percent =
            |share: Option<f64>| share.map_or_else(|| "-".to_string(), |share| format!("{:.0} %", share * 100.0));
        println!(
            "{:6} {:>8} {:>11} {:>11} {:>11} {:>10} {:>7} {:>7} {:>11}  {}",
            measured.name,
            measured.rows,
            maybe(measured.device),
            time(measured.warm),
            time(measured.first),
            measured.bytes.map_or_else(|| "-".to_string(), |bytes| format!("{:.1}", bytes as f64 / 1e6)),
            percent(measured.share_of_peak()),
            percent(measured.share),
            maybe(measured.cpu),
            match measured.verified {
                Some(true) => "yes",
                Some(false) => "NO",
                None => "-",
            },
        );
    }

    /// Prints means, and the table of placements.
    pub(super) fn end(&self, results: &[Measured]) {
        let mean = |times: Vec<Duration>| {
            let logarithms: f64 = times.iter().map(|time| time.as_secs_f64().ln()).sum();
            Duration::from_secs_f64((logarithms / times.len() as f64).exp())
        };
        if !results.is_empty() {
            println!("geometric mean, warm: {}", time(mean(results.iter().map(|result| result.warm).collect())));
        }
        let device: Vec<Duration> = results.iter().filter_map(|result| result.device).collect();
        if !device.is_empty() && device.len() == results.len() {
            println!("geometric mean, device: {}", time(mean(device)));
        }
        if let Some(loading) = Loading::of(results) {
            println!(
                "loaded: {:.1} MB in {}, decoding and encoding at {:.2} GB/s a core",
                loading.bytes as f64 / 1e6,
                time(loading.time),
                loading.gigabytes_per_second_core(),
            );
        }
        if !self.shows_placement {
            return;
        }
        println!("\n{:6} {:>11} {:>11}  placement", "query", "time", "CPU");
        for result in results {
            let cpu = result.cpu.map_or_else(|| "-".to_string(), time);
            let share = result.share.unwrap_or(0.0) * 100.0;
            println!("{:6} {:>11} {:>11}  {share:.0} % of rows on the GPU", result.name, time(result.warm), cpu);
            for (place, what) in &result.placement {
                println!("{:32}{} {what}", "", if *place == Place::Gpu { "GPU" } else { "CPU" });
            }
        }
    }
}
