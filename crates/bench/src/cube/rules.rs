//! Contraction of measures other than sums of decimals in 64 bits: rules, doubles, fractional weights, 128 bits.
//!
//! A case draws the facts of its cube again, for a measure of its own. Every cell is compared with contraction on the
//! CPU: decimals to the bit where weights are whole, doubles within a share of the greater one.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use warpcube_column::Residency;
use warpcube_cube::aggregate::{
    Algorithm, Area, CellValue, Cells, MeasureCells, Progress, Request, TargetMap, aggregate,
};
use warpcube_cube::device::{DeviceAggregation, DeviceAlgorithm, DeviceChoice, FactsSource, ResidentFacts};
use warpcube_cube::facts::{FactMeasure, Rule, ValueType, Values};
use warpcube_gpu::Device;

use super::Draw;
use crate::report::Case;
use crate::stats::repeat;
use crate::suite::{Failure, Run};

/// Most that doubles of the CPU and the device differ by, as a share of the greater one: sums that cancel lose digits
/// of their terms.
const ROUNDING: f64 = 1e-9;
/// Factor of the weights of one dimension, of which no sum of decimals is whole.
const FRACTION: f64 = 0.3;
/// A value that sums of 64 bits are not proved for: times 4,096 facts 2⁶³, and times a weight of 1,000 below that.
const LARGE: i64 = 1 << 51;

/// The contracted measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleCase {
    Count,
    Avg,
    Min,
    Max,
    /// SUM of doubles.
    Double,
    /// SUM of decimals under weights that are not whole.
    Fractional,
    /// SUM of decimals whose bound takes more than 64 bits.
    Sum128,
}

impl RuleCase {
    pub(super) const ALL: [RuleCase; 7] = [
        RuleCase::Count,
        RuleCase::Avg,
        RuleCase::Min,
        RuleCase::Max,
        RuleCase::Double,
        RuleCase::Fractional,
        RuleCase::Sum128,
    ];

    fn name(self) -> &'static str {
        match self {
            RuleCase::Count => "count",
            RuleCase::Avg => "avg",
            RuleCase::Min => "min",
            RuleCase::Max => "max",
            RuleCase::Double => "double",
            RuleCase::Fractional => "fractional",
            RuleCase::Sum128 => "sum128",
        }
    }

    fn measure(self) -> FactMeasure {
        let (rule, value) = match self {
            RuleCase::Count => (Rule::Count, ValueType::Decimal { scale: 0 }),
            RuleCase::Avg => (Rule::Avg, ValueType::Decimal { scale: 2 }),
            RuleCase::Min => (Rule::Min, ValueType::Decimal { scale: 2 }),
            RuleCase::Max => (Rule::Max, ValueType::Decimal { scale: 2 }),
            RuleCase::Double => (Rule::Sum, ValueType::Double),
            RuleCase::Fractional | RuleCase::Sum128 => (Rule::Sum, ValueType::Decimal { scale: 2 }),
        };
        FactMeasure::new("Amount", rule, value)
    }

    /// The measure's values of the drawn ones.
    fn values(self, mut drawn: Vec<i64>) -> Values {
        match self {
            RuleCase::Count => drawn.fill(1),
            RuleCase::Double => return Values::Doubles(drawn.into_iter().map(|value| value as f64 / 100.0).collect()),
            RuleCase::Sum128 => drawn.iter_mut().take(1).for_each(|value| *value = LARGE),
            RuleCase::Avg | RuleCase::Min | RuleCase::Max | RuleCase::Fractional => {}
        }
        Values::Decimals(drawn)
    }

    /// The area under the weights of the case.
    fn weighted(self, area: &Area) -> Result<Area, String> {
        let mut maps = area.maps().to_vec();
        if let (RuleCase::Fractional, Some(last)) = (self, maps.last_mut()) {
            let mut lists = last.lists();
            lists.iter_mut().flatten().for_each(|entry| entry.1 *= FRACTION);
            *last = TargetMap::from_targets(last.bases(), &lists).map_err(|error| error.to_string())?;
        }
        Ok(Area::new(maps))
    }
}

/// Queries over the facts of one drawing.
pub(super) struct RuleCases<'a> {
    pub(super) device: &'a Device,
    pub(super) draw: &'a Draw,
    pub(super) runs: u32,
}

impl RuleCases<'_> {
    /// Measures one case of queries by name and area.
    pub(super) fn measure(&self, rule: RuleCase, queries: &[(&str, Area)], run: &mut Run) -> Result<(), Failure> {
        let facts = Arc::new(self.draw.facts_of(rule.measure(), |drawn| rule.values(drawn))?);
        let source = FactsSource::new(facts.clone(), rule.name(), "drawn");
        let resident = ResidentFacts::new(Arc::new(Residency::new(self.device.clone())), source);
        let aggregation = DeviceAggregation::new(Arc::new(resident));
        for (query, area) in queries {
            run.go_on()?;
            let name = format!("{query}/{}", rule.name());
            let measured = self.one(&aggregation, &name, &rule.weighted(area)?);
            run.add(measured.map_err(|error| format!("{name}: {error}"))?);
        }
        Ok(())
    }

    fn one(&self, aggregation: &DeviceAggregation, name: &str, area: &Area) -> Result<Case, String> {
        let (facts, never) = (aggregation.facts().facts(), Arc::default());
        let choice = DeviceChoice::named(DeviceAlgorithm::Contract);
        let mut last: Option<(MeasureCells, &str)> = None;
        let warm = repeat(self.runs, || {
            let begin = Instant::now();
            last = Some(aggregation.measure(&choice, area, 0, &never).map_err(|error| error.to_string())?);
            Ok::<f64, String>(begin.elapsed().as_secs_f64() * 1e3)
        })?;
        let (found, arithmetic) = last.ok_or("no run")?;
        let recorded = aggregation.record_measure(area, 0, &never).map_err(|error| error.to_string())?;
        let mut device_ms = 0.0;
        for mut recorded in recorded {
            device_ms += repeat(self.runs, || recorded.run()).map_err(|error| error.to_string())?.ms;
        }
        let request = Request::by(Algorithm::Contract);
        let expected = aggregate(facts, area, &[0], &request, &Progress::new()).map_err(|error| error.to_string())?;
        let result = json!({
            "device_ms": device_ms, "warm_ms": warm.ms, "arithmetic": arithmetic, "filled_targets": found.ranks.len(),
        });
        Ok(Case::new(name, result).verified(are_equal(&expected, &found)))
    }
}

/// True if cells of the device are those of the CPU.
fn are_equal(expected: &Cells, found: &MeasureCells) -> bool {
    let is_equal = |cell: usize| match (expected.columns()[0].value(cell), found.column.value(cell)) {
        (Some(CellValue::Double(expected)), Some(CellValue::Double(found))) => {
            (expected - found).abs() <= ROUNDING * expected.abs().max(found.abs())
        }
        (Some(CellValue::Decimal { units, .. }), Some(CellValue::Decimal { units: found, .. })) => {
            // Under weights that are not whole, one last digit.
            units.abs_diff(found) <= u64::from(expected.report().arithmetic[0].starts_with("doubles"))
        }
        (expected, found) => expected == found,
    };
    expected.ranks() == found.ranks && (0..expected.len()).all(is_equal)
}
