//! One object that runs all algorithms over the facts of one cube.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::cells::DeviceCells;
use super::contract::DeviceContraction;
use super::cost::{DeviceChoice, choose};
use super::error::DeviceError;
use super::measure::DeviceReducer;
use super::plan::Wanted;
use super::resident::ResidentFacts;
use super::source_based::SourceBased;
use super::statement::RecordedRun;
use super::sums::DeviceSums;
use super::target_based::TargetBased;
use crate::aggregate::{Area, Component, MeasureCells, measure_cells};
use crate::algorithm::DeviceAlgorithm;
use crate::facts::Rule;

/// All algorithms over the facts of one cube.
pub struct DeviceAggregation {
    contraction: DeviceContraction,
}

impl DeviceAggregation {
    /// Algorithms over resident facts.
    pub fn new(facts: Arc<ResidentFacts>) -> DeviceAggregation {
        DeviceAggregation { contraction: DeviceContraction::over(facts) }
    }

    /// The facts.
    pub fn facts(&self) -> &Arc<ResidentFacts> {
        self.contraction.facts()
    }

    /// The cost model's predictions for a measure of an area.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for what no algorithm of the device aggregates; what loading gives.
    pub fn choose(
        &self,
        area: &Area,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<DeviceChoice, DeviceError> {
        let facts = self.facts().facts();
        let wanted = Wanted::of(facts.measures()[measure].rule);
        let plan = self.contraction.plan(&Component::values(facts, area, measure), wanted, cancelled)?;
        choose(facts, area, measure, plan)
    }

    /// The cells of a measure of any rule and type, and the arithmetic of its sums. A measure that the algorithm does
    /// not aggregate is contracted, unless the algorithm was named.
    ///
    /// # Errors
    /// Those of the algorithm; a final value beyond its type.
    pub fn measure(
        &self,
        choice: &DeviceChoice,
        area: &Area,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<(MeasureCells, &'static str), DeviceError> {
        let by = |algorithm: DeviceAlgorithm| {
            self.by(algorithm, |sums| {
                let other = (algorithm != DeviceAlgorithm::Contract).then_some(sums);
                let mut reducer = DeviceReducer { contraction: &self.contraction, other, choice, area, cancelled };
                measure_cells(&mut reducer, self.facts().facts(), area, measure)
            })
        };
        match by(choice.decision.algorithm) {
            Err(DeviceError::Unsupported { .. })
                if choice.decision.algorithm != DeviceAlgorithm::Contract && !choice.is_named() =>
            {
                by(DeviceAlgorithm::Contract)
            }
            result => result,
        }
    }

    /// The contractions of a measure of any rule and type, recorded: two of an AVG, of its sums and of its rows. Their
    /// cells are words of sums, not yet final values.
    ///
    /// # Errors
    /// Those of contraction.
    pub fn record_measure(
        &self,
        area: &Area,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Vec<Box<dyn RecordedRun>>, DeviceError> {
        let facts = self.facts().facts();
        let rule = facts.measures()[measure].rule;
        let values = Component::values(facts, area, measure);
        let mut recorded = vec![self.contraction.record_component(&values, Wanted::of(rule), cancelled)?];
        if rule == Rule::Avg {
            let counts = Component::counts(facts, area, measure);
            recorded.push(self.contraction.record_component(&counts, Wanted::Sums, cancelled)?);
        }
        Ok(recorded.into_iter().flatten().collect())
    }

    /// Sums of decimals over an area by one algorithm, in 64 bits.
    ///
    /// # Errors
    /// Those of the algorithm.
    pub fn sums(
        &self,
        algorithm: DeviceAlgorithm,
        area: &Area,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<DeviceCells, DeviceError> {
        self.by(algorithm, |sums| sums.sums(area, measure, cancelled))
    }

    /// The same work, recorded; `None` if no target is filled.
    ///
    /// # Errors
    /// Those of the algorithm.
    pub fn record(
        &self,
        algorithm: DeviceAlgorithm,
        area: &Area,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Box<dyn RecordedRun>>, DeviceError> {
        self.by(algorithm, |sums| sums.record(area, measure, cancelled))
    }

    /// Does work by an algorithm.
    fn by<T>(&self, algorithm: DeviceAlgorithm, work: impl FnOnce(&dyn DeviceSums) -> T) -> T {
        let facts = || self.facts().clone();
        match algorithm {
            DeviceAlgorithm::Contract => work(&self.contraction),
            DeviceAlgorithm::Target => work(&TargetBased::new(facts())),
            DeviceAlgorithm::Source(variant) => work(&SourceBased::new(facts(), variant)),
        }
    }
}
