//! What the tuner found, for planning: the fastest plan by device, aggregate and data.
//!
//! Findings are data, each with device, date and figure. Those of [`OrderedFindings::known`] were measured by
//! `warpcube-bench primitives --cases ordered/forms --findings FILE`, which marks the algorithm that they plan among
//! those it measures; [`OrderedFindings::from_json`] reads such a file, and [`OrderedFindings::add`] puts newer
//! findings in the place of older ones.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use warpcube_gpu::{GpuError, Result};

use super::fused::ROWS_MAX;
use super::{FusedTuning, OrderedAlgorithm, OrderedForm, OrderedPlan};

/// Findings that come with the library.
const KNOWN: &str = include_str!("findings.json");

/// What is aggregated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aggregate {
    /// Rows of runs, without a value column.
    Count,
    /// A value column, with or without counts.
    Sum,
}

/// How rows are spread over runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataShape {
    /// Less than two rows a run: few additions meet.
    Unique,
    /// Runs of about the same length.
    Reduced,
    /// A run much longer than the others: many additions meet in it, and few elsewhere.
    Skewed,
}

/// Sizes of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderedData {
    /// Rows.
    pub rows: u64,
    /// Runs of equal neighbours.
    pub runs: u64,
    /// Rows of the longest run.
    pub longest: u64,
}

/// The fastest plan on one input.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderedFinding {
    /// Name of the device.
    pub device: String,
    /// Day of the measurement, as in 2026-01-31.
    pub date: String,
    /// What was aggregated.
    pub aggregate: Aggregate,
    /// The input.
    pub data: OrderedData,
    /// The plan.
    pub plan: OrderedPlan,
    /// Milliseconds it took.
    pub ms: f64,
}

/// Findings on any number of devices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OrderedFindings(Vec<OrderedFinding>);

impl Aggregate {
    /// What a form aggregates.
    pub fn of(form: OrderedForm) -> Aggregate {
        if form.sum.is_some() { Aggregate::Sum } else { Aggregate::Count }
    }
}

impl OrderedData {
    /// Rows of the longest run over those of the mean one that make data skewed. Of runs whose ends are random the
    /// longest has ln(runs) times the rows of the mean, 21 times at 2^31 runs.
    const SKEW: u64 = 32;

    /// The shape.
    pub fn shape(&self) -> DataShape {
        let OrderedData { rows, runs, longest } = *self;
        if rows < 2 * runs {
            DataShape::Unique
        } else if u128::from(longest) * u128::from(runs) > u128::from(rows) * u128::from(OrderedData::SKEW) {
            DataShape::Skewed
        } else {
            DataShape::Reduced
        }
    }

    /// How far sizes are from each other, in doublings of rows and of rows a run.
    fn distance(&self, other: &OrderedData) -> f64 {
        let log = |numerator: u64, denominator: u64| (numerator.max(1) as f64 / denominator.max(1) as f64).log2();
        log(self.rows, other.rows).abs() + (log(self.rows, self.runs) - log(other.rows, other.runs)).abs()
    }
}

impl OrderedFindings {
    /// Those that come with the library.
    ///
    /// # Errors
    /// [`GpuError::Contract`] if they cannot be read; a test holds that they can.
    pub fn known() -> Result<OrderedFindings> {
        OrderedFindings::from_json(KNOWN)
    }

    /// All of them.
    pub fn all(&self) -> &[OrderedFinding] {
        &self.0
    }

    /// Adds a finding, in the place of one of the same device, aggregate and data.
    pub fn add(&mut self, finding: OrderedFinding) {
        self.0
            .retain(|old| (&old.device, old.aggregate, old.data) != (&finding.device, finding.aggregate, finding.data));
        self.0.push(finding);
    }

    /// The plan for a form and an input: that of the nearest data of its shape on the device, or the single pass. It is
    /// one that the form and the number of rows can take.
    pub fn plan(&self, device: &str, form: OrderedForm, data: &OrderedData) -> OrderedPlan {
        let aggregate = Aggregate::of(form);
        let has_aggregate = form.count.is_some() || form.sum.is_some();
        let may_be_fused = has_aggregate && data.rows <= ROWS_MAX;
        let fits = |finding: &&OrderedFinding| {
            finding.device == device
                && finding.aggregate == aggregate
                && finding.data.shape() == data.shape()
                && (may_be_fused || finding.plan.algorithm == OrderedAlgorithm::SinglePass)
        };
        let distance = |finding: &OrderedFinding| finding.data.distance(data);
        let nearest = self.0.iter().filter(fits).min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.map_or(OrderedPlan::new(OrderedAlgorithm::SinglePass), |finding| finding.plan)
    }

    /// A list of objects.
    pub fn to_json(&self) -> String {
        let list: Vec<Value> = self.0.iter().map(OrderedFinding::to_json).collect();
        format!("{:#}\n", Value::Array(list))
    }

    /// Reads what [`OrderedFindings::to_json`] wrote.
    ///
    /// # Errors
    /// [`GpuError::Contract`] with the finding and the field that cannot be read.
    pub fn from_json(text: &str) -> Result<OrderedFindings> {
        let refused = |reason: String| GpuError::Contract(format!("findings of ordered aggregation: {reason}"));
        let list: Vec<Value> = serde_json::from_str(text).map_err(|error| refused(error.to_string()))?;
        let read = |(at, value): (usize, &Value)| {
            OrderedFinding::from_json(value).map_err(|reason| refused(format!("number {at}: {reason}")))
        };
        list.iter().enumerate().map(read).collect::<Result<Vec<_>>>().map(OrderedFindings)
    }
}

impl OrderedFinding {
    fn to_json(&self) -> Value {
        let OrderedFinding { device, date, aggregate, data, plan, ms } = self;
        json!({
            "device": device, "date": date, "aggregate": aggregate.to_string(), "shape": data.shape().to_string(),
            "rows": data.rows, "runs": data.runs, "longest": data.longest, "algorithm": plan.algorithm.to_string(),
            "chunk": plan.tuning.chunk, "local": plan.tuning.local, "ms": ms,
        })
    }

    fn from_json(value: &Value) -> std::result::Result<OrderedFinding, String> {
        let text = |field: &str| value[field].as_str().ok_or_else(|| format!("no {field}, a text"));
        let number = |field: &str| value[field].as_u64().ok_or_else(|| format!("no {field}, a whole number"));
        let word = |field| number(field).and_then(|found| u32::try_from(found).map_err(|_| format!("{field} {found}")));
        let data = OrderedData { rows: number("rows")?, runs: number("runs")?, longest: number("longest")? };
        if text("shape")? != data.shape().to_string() {
            return Err(format!("shape {}, and sizes are {}", text("shape")?, data.shape()));
        }
        let tuning = FusedTuning { chunk: word("chunk")?, local: word("local")? };
        Ok(OrderedFinding {
            device: text("device")?.into(),
            date: text("date")?.into(),
            aggregate: text("aggregate")?.parse()?,
            data,
            plan: OrderedPlan { algorithm: text("algorithm")?.parse()?, tuning },
            ms: value["ms"].as_f64().ok_or("no ms, a number")?,
        })
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Aggregate::Count => "count",
            Aggregate::Sum => "sum",
        })
    }
}

impl FromStr for Aggregate {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Aggregate, String> {
        let mut all = [Aggregate::Count, Aggregate::Sum].into_iter();
        all.find(|aggregate| aggregate.to_string() == name).ok_or_else(|| format!("no aggregate is named {name}"))
    }
}

impl fmt::Display for DataShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataShape::Unique => "unique",
            DataShape::Reduced => "reduced",
            DataShape::Skewed => "skewed",
        })
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::prims::Element;

    use super::*;
    use crate::operators::ordered::{Fusion, Variant};

    const COUNT: OrderedForm = OrderedForm { key: Element::U32, count: Some(Element::U64), sum: None };
    const SUM: OrderedForm = OrderedForm { count: None, sum: Some((Element::U32, Element::U64)), ..COUNT };
    const KEYS: OrderedForm = OrderedForm { count: None, ..COUNT };

    fn finding(rows: u64, runs: u64, algorithm: OrderedAlgorithm) -> OrderedFinding {
        OrderedFinding {
            device: "a device".into(),
            date: "2026-01-31".into(),
            aggregate: Aggregate::Count,
            data: OrderedData { rows, runs, longest: rows.div_ceil(runs) },
            plan: OrderedPlan { algorithm, tuning: FusedTuning { chunk: 8, local: 64 } },
            ms: 0.125,
        }
    }

    #[test]
    fn shapes_are_those_of_sizes() {
        let shape = |rows, runs, longest| OrderedData { rows, runs, longest }.shape();
        assert_eq!(shape(1000, 1000, 1), DataShape::Unique);
        assert_eq!(shape(1000, 500, 2), DataShape::Reduced);
        assert_eq!(shape(1 << 28, 1 << 24, 300), DataShape::Reduced);
        assert_eq!(shape(1 << 28, 65_536, 1 << 24), DataShape::Skewed);
        assert_eq!(shape(0, 0, 0), DataShape::Reduced);
    }

    #[test]
    fn the_nearest_finding_of_a_shape_plans() {
        let [one, two] = [Variant::PrivateVariable, Variant::PrivateArray]
            .map(|variant| OrderedAlgorithm::Fused(Fusion::OneKernel, variant));
        let mut findings = OrderedFindings::default();
        findings.add(finding(1 << 20, 16, one));
        findings.add(finding(1 << 20, 1 << 16, one));
        findings.add(finding(1 << 20, 1 << 16, two));
        assert_eq!(findings.all().len(), 2);
        let plan = |device, form, rows: u64, runs| {
            let data = OrderedData { rows, runs, longest: rows.div_ceil(runs) };
            findings.plan(device, form, &data).algorithm
        };
        assert_eq!(plan("a device", COUNT, 1 << 22, 1 << 17), two);
        assert_eq!(plan("a device", COUNT, 1 << 22, 100), one);
        // Other devices, aggregates and shapes have none.
        assert_eq!(plan("another", COUNT, 1 << 22, 100), OrderedAlgorithm::SinglePass);
        assert_eq!(plan("a device", SUM, 1 << 22, 100), OrderedAlgorithm::SinglePass);
        assert_eq!(plan("a device", COUNT, 1 << 20, 1 << 20), OrderedAlgorithm::SinglePass);
        // Keys alone and more rows than positions tell apart are for the single pass.
        assert_eq!(plan("a device", KEYS, 1 << 22, 100), OrderedAlgorithm::SinglePass);
        assert_eq!(plan("a device", COUNT, 1 << 32, 100), one);
        assert_eq!(plan("a device", COUNT, (1 << 32) + 1, 100), OrderedAlgorithm::SinglePass);
    }

    #[test]
    fn findings_are_written_and_read_back() {
        let mut findings = OrderedFindings::default();
        for (at, algorithm) in OrderedAlgorithm::all().enumerate() {
            findings.add(finding(1 << 20, 1 << at, algorithm));
        }
        let text = findings.to_json();
        assert_eq!(OrderedFindings::from_json(&text).unwrap(), findings);
        for (from, to, word) in
            [("\"count\"", "\"mean\"", "mean"), ("\"reduced\"", "\"unique\"", "shape"), ("64", "-1", "local")]
        {
            let error = OrderedFindings::from_json(&text.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("number 0"), "{error}");
        }
        assert!(OrderedFindings::from_json("{}").is_err());
    }

    #[test]
    fn known_findings_are_read() {
        let known = OrderedFindings::known().unwrap();
        assert!(known.all().iter().all(|finding| finding.ms > 0.0));
        // Distinct keys on the measured device: many go to the single pass, few to one kernel with atomics.
        let plan = |rows| {
            let data = OrderedData { rows, runs: rows, longest: 1 };
            known.plan("NVIDIA H200", COUNT, &data).algorithm
        };
        assert_eq!(plan(1 << 29), OrderedAlgorithm::SinglePass);
        assert_eq!(plan(1 << 14), OrderedAlgorithm::Fused(Fusion::OneKernel, Variant::DirectAtomics));
    }
}
