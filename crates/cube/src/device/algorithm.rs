//! All algorithms of the device by name, and one object that runs them over the facts of one cube.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::contract::{DeviceCells, DeviceContraction, DeviceError};
use super::cost::{DeviceChoice, choose};
use super::measure::DeviceReducer;
use super::plan::Wanted;
use super::resident::ResidentFacts;
use super::source_based::{SourceBased, SourceVariant, UnknownVariant};
use super::statement::RecordedRun;
use super::target_based::TargetBased;
use crate::aggregate::{Area, ByRank, Component, MeasureCells, measure_cells};
use crate::facts::{Precise, Rule};

/// An aggregation algorithm of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceAlgorithm {
    /// Contraction by sparse weight matrices: `gpu-contract`.
    Contract,
    /// Target-based: `gpu-target`.
    Target,
    /// A variant of the source-based algorithm, by the variant's name.
    Source(SourceVariant),
}

impl DeviceAlgorithm {
    /// Contraction, target-based, and for each number of hash functions every pair of preaggregation and expansion of
    /// the source-based algorithm.
    pub fn all_variants(hash_functions: &[u32]) -> Vec<DeviceAlgorithm> {
        let pairs = hash_functions.iter().flat_map(|functions| SourceVariant::pairs(*functions));
        [DeviceAlgorithm::Contract, DeviceAlgorithm::Target]
            .into_iter()
            .chain(pairs.map(DeviceAlgorithm::Source))
            .collect()
    }
}

impl fmt::Display for DeviceAlgorithm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceAlgorithm::Contract => out.write_str("gpu-contract"),
            DeviceAlgorithm::Target => out.write_str("gpu-target"),
            DeviceAlgorithm::Source(variant) => variant.fmt(out),
        }
    }
}

impl FromStr for DeviceAlgorithm {
    type Err = UnknownVariant;

    fn from_str(name: &str) -> Result<DeviceAlgorithm, UnknownVariant> {
        match name {
            "gpu-contract" => Ok(DeviceAlgorithm::Contract),
            "gpu-target" => Ok(DeviceAlgorithm::Target),
            _ if name.starts_with("gpu-source") => name.parse().map(DeviceAlgorithm::Source),
            _ => {
                let reason = "there are gpu-contract, gpu-target and the variants of gpu-source".to_string();
                Err(UnknownVariant { name: name.to_string(), reason })
            }
        }
    }
}

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

    pub(super) fn contraction(&self) -> &DeviceContraction {
        &self.contraction
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
        let wanted = Wanted::of(facts.columns()[measure].measure.rule);
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
        let by = |algorithm| {
            let mut reducer = DeviceReducer { device: self, algorithm, choice, area, cancelled };
            measure_cells(&mut reducer, self.facts().facts(), area, measure)
        };
        match by(choice.algorithm) {
            Err(DeviceError::Unsupported { .. })
                if choice.algorithm != DeviceAlgorithm::Contract && !choice.is_named() =>
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
        let rule = facts.columns()[measure].measure.rule;
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
        match algorithm {
            DeviceAlgorithm::Contract => self.contraction.sums(area, measure, cancelled),
            DeviceAlgorithm::Target => TargetBased::new(self.facts().clone()).sums(area, measure, cancelled),
            DeviceAlgorithm::Source(variant) => {
                SourceBased::new(self.facts().clone(), variant).sums(area, measure, cancelled)
            }
        }
    }

    /// Sums of doubles over an area by the source-based or the target-based algorithm: to the last bit those of the
    /// CPU.
    ///
    /// # Errors
    /// Those of the algorithm; [`DeviceError::Unsupported`] for doubles whose sums have more than 100 bits, and for
    /// contraction, whose sums of doubles are those of [`DeviceAggregation::measure`].
    pub(super) fn double_sums(
        &self,
        algorithm: DeviceAlgorithm,
        area: &Area,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<ByRank<Precise>, DeviceError> {
        let facts = self.facts().clone();
        match algorithm {
            DeviceAlgorithm::Contract => {
                Err(DeviceError::Unsupported { reason: "contraction adds up pairs of doubles".to_string() })
            }
            DeviceAlgorithm::Target => TargetBased::new(facts).double_sums(area, measure, cancelled),
            DeviceAlgorithm::Source(variant) => SourceBased::new(facts, variant).double_sums(area, measure, cancelled),
        }
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
        match algorithm {
            DeviceAlgorithm::Contract => self.contraction.record(area, measure, cancelled),
            DeviceAlgorithm::Target => TargetBased::new(self.facts().clone()).record(area, measure, cancelled),
            DeviceAlgorithm::Source(variant) => {
                SourceBased::new(self.facts().clone(), variant).record(area, measure, cancelled)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_as_they_print() {
        let all = DeviceAlgorithm::all_variants(&[1, 64]);
        assert_eq!(all.len(), 2 + 2 * 29);
        for algorithm in all {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        let error = "contract".parse::<DeviceAlgorithm>().unwrap_err().to_string();
        assert!(error.ends_with("there are gpu-contract, gpu-target and the variants of gpu-source"), "{error}");
    }
}
