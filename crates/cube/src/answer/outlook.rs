//! How a query would be aggregated, before it is: for EXPLAIN.

use super::{AlgorithmName, AskOptions, Cube, CubeError};
use crate::aggregate::{self, Decision, Place, Progress};
use crate::ask::{Asked, asked};
use crate::query::BoundTable;

impl Cube {
    /// How a cross-tab would be aggregated under these options; nothing is aggregated or loaded for it.
    ///
    /// # Errors
    /// An area beyond the limit, weights beyond the range of doubles, a wish to stop, a device that fails.
    pub fn outlook(
        &self,
        table: &BoundTable,
        options: &AskOptions<'_>,
        progress: &Progress,
    ) -> Result<Decision, CubeError> {
        let asked = asked(&self.model, table)?;
        let Asked { area, measures, .. } = &asked;
        let failed = |error| CubeError::aggregate(error, &self.model, &asked);
        area.check(&self.facts, options.targets_max).map_err(failed)?;
        if let Some(algorithm) = options.algorithm {
            let device = options.device.filter(|_| matches!(algorithm, AlgorithmName::Device(_)));
            let place = Place { device: device.map(|device| device.device_name()), ..Place::default() };
            let decision = Decision::asked_for(algorithm, area.targets());
            return Ok(Decision { place, reason: "it was asked for".to_string(), ..decision });
        }
        let mut place = options.device.map(|device| self.place(&asked, device)).unwrap_or_default();
        if let Some(device) = options.device.filter(|_| place.device.is_some()) {
            match device.forecast(&self.facts, area, measures, progress)? {
                Ok(decision) => return Ok(Decision { place, ..decision }),
                Err(reason) => place = Place { device: None, refused: Some(reason), ..place },
            }
        }
        let decision = aggregate::forecast(&self.facts, area, measures).map_err(failed)?;
        Ok(Decision { place, ..decision })
    }
}
