//! Answers by a device.

use super::{Aggregator, CubeError};
use crate::aggregate::{AggregateError, Area, CellColumn, Cells, MeasureCells, Progress, Report};
use crate::device::{DeviceAggregation, DeviceAlgorithm, DeviceChoice, DeviceError};
use crate::facts::{Facts, Values};

impl Aggregator for DeviceAggregation {
    fn aggregate(
        &self,
        facts: &Facts,
        area: &Area,
        measures: &[usize],
        named: Option<DeviceAlgorithm>,
        progress: &Progress,
    ) -> Result<Result<Cells, String>, CubeError> {
        match cells(self, facts, area, measures, named, progress) {
            _ if progress.is_cancelled() => Err(CubeError::Aggregate(AggregateError::Cancelled)),
            Ok(cells) => Ok(Ok(cells)),
            Err(DeviceError::Unsupported { reason }) => Ok(Err(reason)),
            Err(error) => Err(CubeError::Device(error.to_string())),
        }
    }
}

/// Cells of all measures by one algorithm: the one named, or the one that suits the first measure. Stops between two
/// measures if it is to stop.
fn cells(
    device: &DeviceAggregation,
    facts: &Facts,
    area: &Area,
    measures: &[usize],
    named: Option<DeviceAlgorithm>,
    progress: &Progress,
) -> Result<Cells, DeviceError> {
    let cancelled = progress.switch();
    let choice = match named {
        Some(algorithm) => DeviceChoice::named(algorithm),
        None => device.choose(area, measures.first().copied().unwrap_or_default(), &cancelled)?,
    };
    let mut parts = Vec::new();
    for &measure in measures.iter().take_while(|_| !progress.is_cancelled()) {
        let found = device.sums_by(&choice, area, measure, &cancelled)?;
        let definition = &facts.columns()[measure].measure;
        let column = CellColumn {
            measure,
            name: definition.name.clone(),
            value_type: definition.value_type,
            values: Values::Decimals(found.sums),
            filled: None,
        };
        parts.push(MeasureCells { column, ranks: found.ranks });
    }
    let report = Report {
        algorithm: choice.algorithm.to_string(),
        device: Some(device.facts().device().info().name.clone()),
        reason: choice.reason,
        predictions: choice.predictions,
        arithmetic: vec!["64 bits"; measures.len()],
        targets: area.targets() as u64,
        filled_targets: 0,
        additions: None,
    };
    Ok(Cells::new(area.shape(), parts, report))
}
