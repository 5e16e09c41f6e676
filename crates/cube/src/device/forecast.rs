//! The estimated time of an aggregation on a device, and whether the CPU is quicker.
//!
//! Estimates load nothing. Facts that are not on the device have to be packed and copied first, which takes longer than
//! most aggregations of the CPU. One query seldom pays for that, but many do: the milliseconds that the device would
//! have saved so far are counted against loading, so that a cube that is asked again and again is loaded when both are
//! equal. A load thus never takes longer than it could have saved before.
//!
//! The rates are those of whole loads on the host of an H100, 2026-11-25: 41 million facts of 6 dimensions in 1,005 ms
//! on one core and 165 ms on 16, 20 million of 8 dimensions in 457 ms on one, 148 on 4 and 96 on 16. Estimates are
//! within 20 % of these. Keys and values were not measured apart.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::aggregation::DeviceAggregation;
use super::cost::{Sample, contraction_ms, segments_ms};
use super::error::DeviceError;
use crate::aggregate::{Area, Decision, Place, in_segments, rounded};
use crate::algorithm::DeviceAlgorithm;
use crate::facts::Facts;

/// Nanoseconds of a key that is packed on one core; the number of dimensions hardly matters.
const PACK_NS: f64 = 16.0;
/// Nanoseconds of a value that one core puts into a buffer for the device.
const COPY_NS: f64 = 4.0;
/// Nanoseconds of a byte that one thread hands to the device through pinned memory: 5 GB/s.
const SEND_NS: f64 = 0.2;
/// Milliseconds of a load of nothing: its streams and its pinned memory.
const LOAD_MS: f64 = 35.0;
/// Bytes of a packed key with its part of the miniblock: 1.4 and 2.3 in the benchmark cubes.
const KEY_BYTES: f64 = 2.0;
/// Bytes of a value.
const VALUE_BYTES: f64 = 8.0;

/// Times of an aggregation by estimate, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlaceTimes {
    /// On the CPU.
    pub cpu: f64,
    /// On the device, once everything is there.
    pub device: f64,
    /// Before that: opening the device, loading facts, compiling.
    pub before: f64,
    /// The time that the device would have saved so far.
    pub saved: f64,
}

impl PlaceTimes {
    /// The quicker place; the device is taken if it saves the time before it, over this query and those so far.
    pub fn place(self, device_name: &str) -> Place {
        let PlaceTimes { cpu, device, before, saved } = self;
        let saves = cpu - device;
        let on_device = saves > 0.0 && saves + saved >= before;
        let mut reason = format!("the CPU is estimated at {}, the device at {}", ms_text(cpu), ms_text(device));
        if before > 0.0 {
            reason.push_str(&format!(" and {} to load the facts", ms_text(before)));
        }
        if before > 0.0 && saved > 0.0 {
            reason.push_str(&format!(", where it would have saved {} so far", ms_text(saved)));
        }
        let saved_ms = if on_device { 0.0 } else { saves.max(0.0) };
        Place { device: on_device.then(|| device_name.to_string()), reason: Some(reason), refused: None, saved_ms }
    }
}

/// Milliseconds in words.
fn ms_text(ms: f64) -> String {
    match ms {
        short if short < 10.0 => format!("{short:.2} ms"),
        ms if ms < 1e4 => format!("{ms:.0} ms"),
        long => format!("{:.1} s", long / 1e3),
    }
}

/// Estimates measures of an area over facts of which nothing is on a device.
pub fn forecast(facts: &Facts, area: &Area, measures: &[usize]) -> Decision {
    unplanned(facts, area, measures, load_ms_predicted(facts, measures))
}

/// Milliseconds that keys and the values of measures are estimated to take to a device that has nothing of them.
pub fn load_ms_predicted(facts: &Facts, measures: &[usize]) -> f64 {
    load_ms(facts, false, &vec![false; measures.len()])
}

/// Contraction by the facts that it reads. The classes that have facts are not known before keys are packed: sums of
/// classes are left out.
fn unplanned(facts: &Facts, area: &Area, measures: &[usize], load_ms: f64) -> Decision {
    let sample = Sample::of(facts, &area.maps_of(measures.first().copied().unwrap_or_default()));
    let ms = (contraction_ms(sample.touched, false, 0.0) + segments_ms(facts)) * passes(facts, measures);
    let reason = format!(
        "contraction takes about {} for {} facts by the pass over them alone; the algorithm is chosen once they are \
         on the device",
        ms_text(ms),
        rounded(facts.len() as f64)
    ) + &in_segments(facts);
    let (place, algorithm, targets) = (Place::default(), DeviceAlgorithm::Contract.into(), area.targets());
    Decision { place, algorithm, predicted: Vec::new(), reason, ms, load_ms, targets }
}

fn passes(facts: &Facts, measures: &[usize]) -> f64 {
    measures.iter().map(|&measure| facts.measures()[measure].rule.passes()).sum()
}

/// Milliseconds of loading keys and the values of measures that are not on the device.
fn load_ms(facts: &Facts, keys: bool, values: &[bool]) -> f64 {
    let missing = values.iter().filter(|is_there| !**is_there).count() as f64;
    if keys && missing == 0.0 {
        return 0.0;
    }
    let cores = rayon::current_num_threads().max(1) as f64;
    let pack = PACK_NS / cores + KEY_BYTES * SEND_NS;
    let values = missing * (COPY_NS / cores + VALUE_BYTES * SEND_NS);
    LOAD_MS + facts.len() as f64 * (if keys { 0.0 } else { pack } + values) / 1e6
}

impl DeviceAggregation {
    /// Estimates measures of an area; nothing is loaded.
    pub fn estimate(&self, area: &Area, measures: &[usize]) -> Decision {
        let (keys, values) = self.facts().residence(measures);
        unplanned(self.facts().facts(), area, measures, load_ms(self.facts().facts(), keys, &values))
    }

    /// The cost model's prediction if the keys are on the device, or else the estimate without them.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for what no algorithm of the device aggregates.
    pub fn forecast(
        &self,
        area: &Area,
        measures: &[usize],
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Decision, DeviceError> {
        let (keys, values) = self.facts().residence(measures);
        let facts = self.facts().facts();
        let load_ms = load_ms(facts, keys, &values);
        if !keys {
            return Ok(unplanned(facts, area, measures, load_ms));
        }
        let choice = self.choose(area, measures.first().copied().unwrap_or_default(), cancelled)?;
        let decision = choice.decision.by_name();
        Ok(Decision { ms: decision.ms * measures.len() as f64, load_ms, ..decision })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(cpu: f64, device: f64, before: f64, saved: f64) -> Place {
        PlaceTimes { cpu, device, before, saved }.place("gpu")
    }

    #[test]
    fn the_quicker_place_is_taken_once_loading_pays() {
        let placed = times(5.0, 0.2, 0.0, 0.0);
        assert_eq!(placed.device.as_deref(), Some("gpu"));
        assert_eq!(placed.reason.as_deref(), Some("the CPU is estimated at 5.00 ms, the device at 0.20 ms"));
        assert!(times(0.1, 0.2, 0.0, 9.0).device.is_none(), "the CPU is quicker, whatever was saved before");
        assert_eq!(times(0.1, 0.2, 0.0, 9.0).saved_ms, 0.0);
        assert!(times(12_500.0, 0.2, 800.0, 0.0).device.is_some(), "one query pays for loading");
        let placed = times(50.0, 1.0, 400.0, 98.0);
        assert_eq!(placed.device, None);
        assert_eq!(placed.saved_ms, 49.0);
        let reason = "the CPU is estimated at 50 ms, the device at 1.00 ms and 400 ms to load the facts, where it \
                      would have saved 98 ms so far";
        assert_eq!(placed.reason.as_deref(), Some(reason));
    }

    #[test]
    fn a_cube_that_is_asked_again_is_loaded_when_that_would_have_paid() {
        let (mut saved, mut queries) = (0.0, 0);
        loop {
            let placed = times(50.0, 1.0, 400.0, saved);
            queries += 1;
            if placed.device.is_some() {
                break;
            }
            saved += placed.saved_ms;
        }
        assert_eq!(queries, 9, "eight times 49 ms are less than 400 ms, nine times are more");
    }
}
