//! Answers by contraction on a device.

use super::{Aggregator, CubeError};
use crate::aggregate::{AggregateError, Algorithm, Area, CellColumn, Cells, MeasureCells, Progress, Report, Request};
use crate::device::{DeviceContraction, DeviceError};
use crate::facts::{Facts, Values};

impl Aggregator for DeviceContraction {
    fn aggregate(
        &self,
        facts: &Facts,
        area: &Area,
        measures: &[usize],
        request: &Request,
        progress: &Progress,
    ) -> Result<Result<Cells, String>, CubeError> {
        if let Some(named) = request.algorithm.filter(|algorithm| *algorithm != Algorithm::Contract) {
            return Ok(Err(format!("{named} is an algorithm of the CPU")));
        }
        let cancelled = progress.switch();
        let mut parts = Vec::new();
        for &measure in measures {
            if progress.is_cancelled() {
                return Err(CubeError::Aggregate(AggregateError::Cancelled));
            }
            let found = match self.sums(area, measure, &cancelled) {
                Ok(found) => found,
                Err(DeviceError::Unsupported { reason }) => return Ok(Err(reason)),
                Err(error) => return Err(CubeError::Device(error.to_string())),
            };
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
            algorithm: Algorithm::Contract,
            device: Some(self.device_name()),
            reason: "a device has the facts".to_string(),
            predictions: Vec::new(),
            arithmetic: vec!["64 bits"; measures.len()],
            targets: area.targets() as u64,
            filled_targets: 0,
            additions: 0,
        };
        Ok(Ok(Cells::new(area.shape(), parts, report)))
    }
}
