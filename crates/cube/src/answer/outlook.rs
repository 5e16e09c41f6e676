//! How a query would be aggregated, before it is: for EXPLAIN.

use std::fmt;

use super::{AlgorithmName, AskOptions, Cube, CubeError};
use crate::aggregate::{self, Forecast, Progress};
use crate::ask::{Asked, asked};
use crate::query::BoundTable;

/// The algorithm that a query would take, with the reason; nothing is aggregated or loaded for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryOutlook {
    /// Name of the algorithm.
    pub algorithm: String,
    /// The device; none is the CPU.
    pub device: Option<String>,
    /// Why.
    pub reason: String,
    /// Targets of the area, filled or not.
    pub targets: u128,
    /// Why a device would leave it to the CPU.
    pub refused: Option<String>,
}

impl fmt::Display for QueryOutlook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.device.as_deref().unwrap_or("the CPU");
        write!(out, "{} on {place}, {} targets ({})", self.algorithm, self.targets, self.reason)
    }
}

impl Cube {
    /// How a cross-tab would be aggregated under these options.
    ///
    /// # Errors
    /// An area beyond the limit, weights beyond the range of doubles, a wish to stop, a device that fails.
    pub fn outlook(
        &self,
        table: &BoundTable,
        options: &AskOptions<'_>,
        progress: &Progress,
    ) -> Result<QueryOutlook, CubeError> {
        let asked = asked(&self.model, table)?;
        let Asked { area, measures, .. } = &asked;
        let failed = |error| CubeError::aggregate(error, &self.model, &asked);
        area.check(&self.facts, options.targets_max).map_err(failed)?;
        let targets = area.targets();
        if let Some(algorithm) = options.algorithm {
            let device = options.device.filter(|_| matches!(algorithm, AlgorithmName::Device(_)));
            let (device, reason) = (device.map(|device| device.device_name()), "it was asked for".to_string());
            return Ok(QueryOutlook { algorithm: algorithm.to_string(), device, reason, targets, refused: None });
        }
        let (mut reasons, mut refused) = (Vec::new(), None);
        if let Some(device) = options.device {
            let placed = self.place(&asked, device);
            reasons.extend(placed.reason);
            if placed.on_device {
                match device.forecast(&self.facts, area, measures, progress)? {
                    Ok(Forecast { algorithm, reason, .. }) => {
                        reasons.insert(0, reason);
                        let (device, reason) = (Some(device.device_name()), reasons.join("; "));
                        return Ok(QueryOutlook { algorithm, device, reason, targets, refused: None });
                    }
                    Err(reason) => {
                        reasons.push(format!("not on the device: {reason}"));
                        refused = Some(reason);
                    }
                }
            }
        }
        let Forecast { algorithm, reason, .. } = aggregate::forecast(&self.facts, area, measures).map_err(failed)?;
        reasons.insert(0, reason);
        Ok(QueryOutlook { algorithm, device: None, reason: reasons.join("; "), targets, refused })
    }
}
