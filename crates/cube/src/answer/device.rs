//! Answers by a device.

use super::{Aggregator, CubeError};
use crate::aggregate::{AggregateError, AggregateReport, Area, Cells, Decision, Place, Progress};
use crate::algorithm::DeviceAlgorithm;
use crate::device::{DeviceAggregation, DeviceChoice, DeviceError};
use crate::facts::Facts;

impl Aggregator for DeviceAggregation {
    fn aggregate(
        &self,
        _: &Facts,
        area: &Area,
        measures: &[usize],
        named: Option<DeviceAlgorithm>,
        progress: &Progress,
    ) -> Result<Result<Cells, String>, CubeError> {
        outcome(cells(self, area, measures, named, progress), progress)
    }

    fn forecast(
        &self,
        _: &Facts,
        area: &Area,
        measures: &[usize],
        progress: &Progress,
    ) -> Result<Result<Decision, String>, CubeError> {
        outcome(DeviceAggregation::forecast(self, area, measures, &progress.switch()), progress)
    }

    fn device_name(&self) -> String {
        self.facts().device().info().name.clone()
    }
}

/// The outcome of a device: a result, or the reason why it refuses.
fn outcome<T>(result: Result<T, DeviceError>, progress: &Progress) -> Result<Result<T, String>, CubeError> {
    match result {
        _ if progress.is_cancelled() => Err(CubeError::Aggregate(AggregateError::Cancelled)),
        Ok(result) => Ok(Ok(result)),
        Err(DeviceError::Unsupported { reason }) => Ok(Err(reason)),
        Err(DeviceError::Aggregate(error)) => Err(CubeError::Aggregate(error)),
        Err(error) => Err(CubeError::Device(error.to_string())),
    }
}

/// Cells of all measures by one algorithm: the one named, or the one that suits the first measure and, where it does
/// not take another one, contraction for that. Stops between two measures if it is to stop.
fn cells(
    device: &DeviceAggregation,
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
    let (mut parts, mut arithmetic) = (Vec::new(), Vec::new());
    for &measure in measures.iter().take_while(|_| !progress.is_cancelled()) {
        let (part, of_sums) = device.measure(&choice, area, measure, &cancelled)?;
        parts.push(part);
        arithmetic.push(of_sums);
    }
    let place = Place::on(device.facts().device().info().name.clone());
    let decision = Decision { place, targets: area.targets(), ..choice.decision.by_name() };
    let report = AggregateReport { decision, arithmetic, filled_targets: 0, additions: None };
    Ok(Cells::new(area.shape(), parts, report))
}
