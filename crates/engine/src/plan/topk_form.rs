//! How a top-k is found: which form, how many samples, how many candidates.
//!
//! The *threshold form* draws rows, ranks those that pass the steps, and takes a rank of the sample that all but
//! certainly no row of the result is below; one scan appends the rows at or above it, of which the best k are selected.
//! Ranks with their tails are distinct, so that no distribution of keys makes candidates many. A run that finds too few
//! or has no room is run again with rows drawn by another seed, twice the deviations and twice the room. One that fails
//! again is run in the *whole form*, for that run alone: the scan writes the rank of each row to its place and an
//! algorithm of `gpu::prims` selects among all, in 8 or 16 bytes a row. Named algorithms take the whole form too. Ranks
//! with a tail have no whole form, which would take more memory than their columns: they draw rows once more. The
//! smallest tables have no sample: all rows that pass are candidates.
//!
//! A sort has no k. All rows that pass are its candidates, for which there is room for a guessed number; where more
//! come, the run is repeated with more; of groups as many are expected as one block sorts. Up to
//! [`Tuning::selected_rows_max`] of them are put in order by the selection of a top-k, more in the *sort form*, by the
//! radix sort of `gpu::prims`: stable, so that row numbers are no part of the keys where there is room for all rows.

use warpcube_gpu::prims::topk::{Algorithm, BLOCK_SORT_MAX, K_MAX, Machine, TopKSpec, finish_ms, predict_ms};
use warpcube_gpu::prims::{DeviceRates, Element};
use warpcube_gpu::{DeviceInfo, GpuError};

use super::topk_rank::Ranks;
use crate::error::{Result, unsupported};
use crate::format::in_bytes;
use crate::tuning::Tuning;

/// Fewest and most rows that are drawn.
const SAMPLES_MIN: u64 = 1 << 11;
const SAMPLES_MAX: u64 = 1 << 18;
/// One row of so many is drawn at most; where ranks have tails, whose sort takes 56 bytes for each drawn.
const ROWS_PER_SAMPLE_MIN: u64 = 16;
const ROWS_PER_TAIL_MIN: u64 = 64;
/// Deviations and room of later runs; tunings do not change them.
const LATER_DEVIATIONS: f64 = 12.0;
const LATER_ROOM: f64 = 2.0;
/// Candidates that there is room for beyond any estimate.
const ROOM_MIN: u64 = 1024;
/// Kernels of the threshold form without the ordering of its result: sample, its selection, scan, selection, gathering.
const THRESHOLD_LAUNCHES: f64 = 13.0;
/// The same where the last block of the scan selects.
const BLOCK_SORT_LAUNCHES: f64 = 1.0;
/// Bits of a rank that a pass of a radix sort orders, and its launches beside passes: scan, histogram, gathering.
const RADIX_BITS: u32 = 8;
const SORT_LAUNCHES: u32 = 4;

/// Bits of the widest rank of each type, and of a tail.
const WIDTHS: [(u32, Option<u32>); 4] = [(32, None), (64, None), (128, None), (128, Some(64))];

/// The sample of the threshold form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Rows drawn, with repeats.
    pub(crate) rows: u64,
    /// The threshold is the sample's best rank but so many less one.
    pub(crate) place: u64,
}

/// How ranks are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Candidates at or above a threshold, of which there is room for so many; all rows that pass where there is no
    /// sample.
    Threshold { sample: Option<Sample>, room: u64 },
    /// An algorithm among the ranks of all rows.
    Whole(Algorithm),
    /// The radix sort of all rows that pass, of which there is room for so many.
    Sort { room: u64 },
}

/// A form with what is expected of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decision {
    pub(crate) form: Form,
    /// The reason, for EXPLAIN.
    pub(crate) reason: String,
}

/// What a top-k is decided by.
pub(crate) struct Question<'a> {
    pub(crate) info: &'a DeviceInfo,
    pub(crate) tuning: &'a Tuning,
    pub(crate) ranks: &'a Ranks,
    /// Rows of the table, and of the result at most.
    pub(crate) rows: u64,
    pub(crate) k: u64,
    /// Whether all rows are wanted, of which there is room for k.
    pub(crate) is_sort: bool,
    /// The algorithm that was asked for.
    pub(crate) named: Option<Algorithm>,
    /// Thresholds that have failed.
    pub(crate) failed: u32,
    /// Bytes that the scan reads.
    pub(crate) scan_bytes: f64,
}

impl Sample {
    /// The sample and the room for candidates. The place lies six standard deviations and eight above the number of
    /// draws expected among the best k, so that a threshold is too high once in some 10⁹ runs; the room is eight
    /// standard deviations above the number of candidates. None if all rows are candidates.
    fn new(
        rows: u64,
        k: u64,
        rows_per_sample: u64,
        (deviations, room): (f64, f64),
        tuning: &Tuning,
    ) -> Option<(Sample, u64)> {
        if rows < tuning.sampled_rows.max(1) || k == 0 {
            return None;
        }
        let wanted = (rows / rows_per_sample).min(rows.saturating_mul(tuning.better_samples) / k);
        let samples = wanted.clamp(SAMPLES_MIN, SAMPLES_MAX);
        let better = k as f64 * samples as f64 / rows as f64;
        let place = (better + deviations * better.sqrt() + 8.0).ceil().max(1.0);
        if place >= samples as f64 / 2.0 {
            return None;
        }
        let candidates = place * rows as f64 / samples as f64;
        let room = (candidates * (1.0 + 8.0 / place.sqrt()) + ROOM_MIN as f64) * room;
        Some((Sample { rows: samples, place: place as u64 }, (room as u64).clamp(k, rows)))
    }
}

impl Form {
    /// How so many rows, or fewer, are put in order.
    pub(crate) fn of_all(room: u64, tuning: &Tuning) -> Form {
        match room <= tuning.selected_rows_max.min(K_MAX) {
            true => Form::Threshold { sample: None, room },
            false => Form::Sort { room },
        }
    }

    /// Ranks that are selected from.
    pub(crate) fn candidates(self, rows: u64) -> u64 {
        match self {
            Form::Threshold { room, .. } | Form::Sort { room } => room,
            Form::Whole(_) => rows,
        }
    }

    /// The room that candidates are appended to; none where each of so many rows has a place of its own.
    pub(crate) fn appends(self, rows: u64) -> Option<u64> {
        match self {
            Form::Threshold { room, .. } => Some(room),
            Form::Sort { room } => (room < rows).then_some(room),
            Form::Whole(_) => None,
        }
    }

    /// Whether all candidates are sorted, instead of the best being selected.
    pub(crate) fn sorts(self, ranks: &Ranks) -> bool {
        matches!(self, Form::Sort { .. }) || ranks.tail_bits.is_some()
    }

    /// The selection among them, where ranks have no tail; of the sample's, the same program with another k.
    pub(crate) fn spec(self, ranks: &Ranks, rows: u64, k: u64) -> TopKSpec {
        let algorithm = match self {
            // A sort has the row numbers of a selection, and none of its kernels.
            Form::Threshold { .. } | Form::Sort { .. } => Algorithm::Threshold,
            Form::Whole(algorithm) => algorithm,
        };
        spec(ranks.element(), rows, k, algorithm)
    }
}

fn spec(element: Element, rows: u64, k: u64, algorithm: Algorithm) -> TopKSpec {
    let numbers = if rows < 1 << 32 { Element::U32 } else { Element::U64 };
    // Ranks are distinct and above zero: ties of any rows are those of places without one.
    TopKSpec { rows: numbers, skips_smallest: true, ..TopKSpec::new(element, k, algorithm) }
}

/// The algorithm of a top-k whose keys have no known bounds yet, for EXPLAIN: the decision for ranks of every width, or
/// the algorithms among which the width will decide.
pub(crate) fn forecast(info: &DeviceInfo, tuning: &Tuning, rows: u64, (k, named): (u64, Option<Algorithm>)) -> String {
    if let Some(algorithm) = named {
        return format!("{algorithm}: it was asked for");
    }
    let mut algorithms: Vec<Algorithm> = Vec::new();
    for (bits, tail_bits) in WIDTHS {
        let row_bits = u64::BITS - rows.leading_zeros();
        let key_bits = if tail_bits.is_some() { bits } else { bits.saturating_sub(row_bits) };
        let ranks = Ranks { key_bits, tail_bits, row_bits, ..Ranks::default() };
        let (k, ranks, is_sort) = (k.min(rows), &ranks, false);
        let question = Question { info, tuning, ranks, rows, k, is_sort, named: None, failed: 0, scan_bytes: 0.0 };
        let algorithm = question.algorithm(question.cheapest().0);
        if !algorithms.contains(&algorithm) {
            algorithms.push(algorithm);
        }
    }
    match algorithms.as_slice() {
        [one] => format!("{one}: the fastest of {rows} rows by ranks of any width"),
        several => {
            let several: Vec<String> = several.iter().map(Algorithm::to_string).collect();
            format!("{}: the width of ranks decides, which loaded columns tell", several.join(" or "))
        }
    }
}

/// Why an algorithm that was asked for does not give the first `k` rows, whatever their keys; none if it may.
pub(crate) fn refused(info: &DeviceInfo, k: u64, named: Option<Algorithm>) -> Option<String> {
    match TopKSpec::new(Element::U32, k, named?).check(info) {
        Err(GpuError::Contract(limit)) => Some(limit),
        _ => None,
    }
}

impl Question<'_> {
    /// The form to take.
    ///
    /// # Errors
    /// Unsupported if k is too large, for the device or for the algorithm that was asked for.
    pub(crate) fn decide(&self) -> Result<Decision> {
        if self.is_sort {
            let form = Form::of_all(self.k, self.tuning);
            return Ok(Decision { form, reason: self.words(form) });
        }
        if self.k > K_MAX {
            return unsupported(format!("the first {} rows of an order, where {K_MAX} are the most", self.k));
        }
        let (form, why) = match (self.failed, self.named) {
            (1.., _) => (self.later_form(), "a threshold let too few or too many rows pass".into()),
            (_, Some(Algorithm::Threshold)) => (self.threshold(), "it was asked for".into()),
            (_, Some(algorithm)) => (Form::Whole(algorithm), "it was asked for".into()),
            (_, None) => self.cheapest(),
        };
        if let (Form::Whole(algorithm), Some(tail)) = (form, self.ranks.tail_bits) {
            let bits = self.ranks.key_bits + tail;
            return unsupported(format!("{algorithm} of keys of {bits} bits: with rows they have 128 at most"));
        }
        match form.spec(self.ranks, self.rows, self.k).check(self.info) {
            Err(GpuError::Contract(limit)) => return unsupported(limit),
            checked => checked?,
        }
        Ok(Decision { form, reason: format!("{}: {why}", self.words(form)) })
    }

    fn threshold(&self) -> Form {
        self.sampled(self.tuning.top_deviations, self.tuning.top_room)
    }

    /// The threshold form with so many deviations and times the room.
    fn sampled(&self, deviations: f64, room: f64) -> Form {
        let rows_per_sample = if self.ranks.tail_bits.is_some() { ROWS_PER_TAIL_MIN } else { ROWS_PER_SAMPLE_MIN };
        match Sample::new(self.rows, self.k, rows_per_sample, (deviations, room), self.tuning) {
            Some((sample, room)) => Form::Threshold { sample: Some(sample), room },
            None => Form::Threshold { sample: None, room: self.rows },
        }
    }

    /// The form behind thresholds that have failed.
    fn later_form(&self) -> Form {
        match self.ranks.tail_bits {
            None if self.failed > 1 => Form::Whole(Algorithm::RadixSelect),
            _ => self.sampled(LATER_DEVIATIONS, LATER_ROOM),
        }
    }

    /// The form of the least predicted time; the threshold form unless another one saves [`Tuning::saved_ms`]. Heaps
    /// are taken by name alone: ascending keys slow them down beyond any prediction.
    fn cheapest(&self) -> (Form, String) {
        let robust = |algorithm: &Algorithm| {
            !matches!(algorithm, Algorithm::Threshold | Algorithm::HeapShared | Algorithm::HeapRegisters)
        };
        let whole = Algorithm::ALL.into_iter().filter(robust).map(Form::Whole);
        let fits = |form: &Form| form.spec(self.ranks, self.rows, self.k).check(self.info).is_ok();
        let whole = whole.filter(|_| self.ranks.tail_bits.is_none());
        let forms = std::iter::once(self.threshold()).chain(whole).filter(fits);
        let mut ranked: Vec<(Form, f64)> = forms.filter_map(|form| Some((form, self.predicted_ms(form)?))).collect();
        let worth = |(form, ms): &(Form, f64)| match form {
            Form::Threshold { .. } | Form::Sort { .. } => *ms,
            Form::Whole(_) => ms + self.tuning.saved_ms,
        };
        ranked.sort_by(|a, b| worth(a).total_cmp(&worth(b)));
        let why = match ranked.as_slice() {
            [(_, own), (next, ms), ..] => {
                let remark = if ms < own { ", which saves too little" } else { "" };
                format!("next {}, {ms:.3} ms{remark}", self.algorithm(*next))
            }
            _ => "the only one".into(),
        };
        (ranked.first().map_or_else(|| self.threshold(), |(form, _)| *form), why)
    }

    fn machine(&self) -> Machine {
        Machine::of(&DeviceRates::of(self.info))
    }

    /// Milliseconds: the scan, for whole forms the ranks that it clears and writes, and the selection among them; few
    /// candidates are selected from in the time of the launches, the result is ordered.
    fn predicted_ms(&self, form: Form) -> Option<f64> {
        let machine = self.machine();
        let ms = |bytes: f64| bytes / machine.read_bandwidth * 1e3;
        let bytes = self.bytes(form);
        match form {
            Form::Threshold { sample, room } => {
                let has_tails = self.ranks.tail_bits.is_some();
                let is_block_sorted = sample.is_none() && room <= BLOCK_SORT_MAX && !has_tails;
                let launches = if is_block_sorted { BLOCK_SORT_LAUNCHES } else { THRESHOLD_LAUNCHES };
                let ordered = finish_ms(&machine, &form.spec(self.ranks, self.rows, self.k), self.k.min(self.rows));
                Some(ms(bytes) + launches * machine.launch_ms + ordered)
            }
            Form::Whole(_) => {
                let selection = predict_ms(&machine, &form.spec(self.ranks, self.rows, self.k), self.rows)?;
                Some(ms(bytes) + 2.0 * machine.launch_ms + selection)
            }
            Form::Sort { room } => {
                // Each pass reads and writes a key and a row number.
                let passes = self.ranks.bits().div_ceil(RADIX_BITS);
                let key_bytes = self.ranks.element().bytes().min(8);
                let row_bytes = form.spec(self.ranks, self.rows, self.k).rows.bytes();
                let pass_bytes = 2 * room * (key_bytes + row_bytes) as u64;
                let launches = f64::from(passes + SORT_LAUNCHES) * machine.launch_ms;
                Some(ms(bytes + f64::from(passes) * pass_bytes as f64) + launches)
            }
        }
    }

    /// Bytes that are read and written before the selection.
    fn bytes(&self, form: Form) -> f64 {
        let tail_bytes = if self.ranks.tail_bits.is_some() { 16 } else { 0 };
        let rank_bytes = (self.ranks.element().bytes() + tail_bytes) as f64;
        let ranks = match form {
            Form::Threshold { sample, room } => room.min(self.rows) + 2 * sample.map_or(0, |sample| sample.rows),
            Form::Whole(_) => 2 * self.rows,
            Form::Sort { room } => 2 * room,
        };
        self.scan_bytes + ranks as f64 * rank_bytes
    }

    fn algorithm(&self, form: Form) -> Algorithm {
        form.spec(self.ranks, self.rows, self.k).algorithm
    }

    fn words(&self, form: Form) -> String {
        let ms = self.predicted_ms(form).map_or_else(String::new, |ms| format!(", {ms:.3} ms"));
        let (bits, bytes) = (self.ranks.bits(), in_bytes(self.bytes(form) as u64));
        if self.is_sort {
            let name = if matches!(form, Form::Sort { .. }) { "radix_sort" } else { "selection" };
            let (k, rows) = (self.k, self.rows);
            return format!("{name}: room for {k} of {rows} rows by ranks of {bits} bits, {bytes}{ms} predicted");
        }
        let candidates = match form {
            Form::Threshold { sample: Some(sample), room } => {
                format!("{} rows drawn, room for {room} candidates", sample.rows)
            }
            Form::Threshold { sample: None, .. } => "all rows are candidates".into(),
            Form::Whole(_) | Form::Sort { .. } => "the ranks of all rows are written first".into(),
        };
        format!(
            "{}: {} of {} rows by ranks of {bits} bits, {candidates}, {bytes}{ms} predicted",
            self.algorithm(form),
            self.k,
            self.rows
        )
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::{Device, EmulatorOptions};

    use super::*;

    #[test]
    fn a_threshold_that_fails_is_drawn_again_before_all_ranks_are_written() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 20).unwrap();
        let (tuning, rows, k) = (Tuning::default(), 1 << 22, 100);
        let form = |failed: u32, tail_bits: Option<u32>| {
            let ranks = Ranks { key_bits: 32, tail_bits, row_bits: 23, ..Ranks::default() };
            let (info, ranks, named, scan_bytes) = (device.info(), &ranks, None, 4.0 * rows as f64);
            let question =
                Question { info, tuning: &tuning, ranks, rows, k, is_sort: false, named, failed, scan_bytes };
            question.decide().unwrap().form
        };
        let drawn = |form: Form| match form {
            Form::Threshold { sample: Some(sample), room } => (sample.place, room),
            other => panic!("{other:?}"),
        };
        for tail_bits in [None, Some(40)] {
            let [(place, room), (later_place, later_room)] = [0, 1].map(|failed| drawn(form(failed, tail_bits)));
            assert!(place < later_place && room < later_room, "{room} and {later_room}");
            assert!(later_room * 8 < rows, "{later_room}");
        }
        assert_eq!(form(2, None), Form::Whole(Algorithm::RadixSelect));
        assert_eq!(form(2, Some(40)), form(1, Some(40)));
    }

    #[test]
    fn a_forecast_names_what_ranks_of_any_width_take() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 20).unwrap();
        let (info, tuning) = (device.info(), &Tuning::default());
        let mut sure = 0;
        for (rows, k) in [(3000, 6), (1 << 20, 100), (1 << 24, 1 << 20), (1 << 29, 1 << 20), (1 << 29, 10)] {
            let told = forecast(info, tuning, rows, (k, None));
            let row_bits = u64::BITS - rows.leading_zeros();
            for bits in row_bits + 1..=128 {
                let key_bits = bits - row_bits;
                let ranks = Ranks { key_bits, row_bits, ..Ranks::default() };
                let (ranks, named, failed, is_sort) = (&ranks, None, 0, false);
                let scan_bytes = 4.0 * rows as f64;
                let question = Question { info, tuning, ranks, rows, k, is_sort, named, failed, scan_bytes };
                let algorithm = question.algorithm(question.decide().unwrap().form).to_string();
                let names = told.split(':').next().unwrap();
                assert!(names.split(" or ").any(|name| name == algorithm), "{algorithm} for {bits} bits: {told}");
            }
            sure += u32::from(!told.contains(" or "));
        }
        assert!(sure > 0);
        assert_eq!(forecast(info, tuning, 5, (2, Some(Algorithm::RadixSelect))), "radix_select: it was asked for");
        for (k, is_refused) in [(64, false), (65, true)] {
            assert_eq!(refused(info, k, Some(Algorithm::HeapRegisters)).is_some(), is_refused, "{k}");
            assert_eq!(refused(info, k, None), None);
        }
    }

    #[test]
    fn samples_leave_few_candidates_and_room_for_more() {
        let tuning = Tuning::default();
        let by = (tuning.top_deviations, tuning.top_room);
        let of = |rows, k| Sample::new(rows, k, ROWS_PER_SAMPLE_MIN, by, &tuning);
        assert_eq!(of(tuning.sampled_rows - 1, 10), None);
        assert_eq!(of(1 << 20, 1 << 19), None, "half of all rows");
        for (rows, k) in [(1 << 15, 1), (1 << 20, 100), (1 << 29, 256), (1 << 29, 1 << 20), (1 << 22, 1 << 20)] {
            let (sample, room) = of(rows, k).unwrap();
            let candidates = sample.place * rows / sample.rows;
            assert!(candidates >= k && room >= candidates && room <= rows, "{rows} {k}: {sample:?} {room}");
            assert!(rows < 1 << 29 || room * 8 < rows, "{rows} {k}: {room}");
        }
    }
}
