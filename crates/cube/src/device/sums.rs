//! What contraction, the source-based and the target-based algorithm have in common: each adds up a column of whole
//! numbers in 64 bits over the targets of an area.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::cells::{DeviceCells, FilledCells};
use super::error::DeviceError;
use super::limbs::LIMB_BITS;
use super::plan::Summed;
use super::resident::ResidentFacts;
use super::statement::{Prepared, RecordedRun};
use crate::aggregate::{Area, ByRank};
use crate::facts::{Precise, Rule};

/// An aggregation algorithm over the facts of one cube.
pub(super) trait DeviceSums {
    /// The facts.
    fn facts(&self) -> &Arc<ResidentFacts>;

    /// Plans the sums of a column over the targets of a measure, and makes room for them; `None` if no target is
    /// filled.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for weights that are not whole, sums that may pass 64 bits, and what the algorithm
    /// has no room for; what loading gives.
    fn ready(
        &self,
        area: &Area,
        measure: usize,
        summed: Summed,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Box<dyn Prepared>>, DeviceError>;

    /// As [`DeviceSums::ready`], for a sum of decimals.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for other measures, too.
    fn ready_decimals(
        &self,
        area: &Area,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Box<dyn Prepared>>, DeviceError> {
        self.facts().check_decimal_sum(measure)?;
        self.ready(area, measure, Summed::decimals(self.facts().facts(), measure), cancelled)
    }

    /// Sums of a measure of decimals over an area.
    ///
    /// # Errors
    /// Those of [`DeviceSums::ready_decimals`] and of launching.
    fn sums(&self, area: &Area, measure: usize, cancelled: &Arc<AtomicBool>) -> Result<DeviceCells, DeviceError> {
        filled(self.ready_decimals(area, measure, cancelled)?, self.facts()).map(DeviceCells::from)
    }

    /// The same work, recorded; `None` if no target is filled.
    ///
    /// # Errors
    /// Those of [`DeviceSums::ready_decimals`].
    fn record(
        &self,
        area: &Area,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Box<dyn RecordedRun>>, DeviceError> {
        self.ready_decimals(area, measure, cancelled)?.map(Prepared::recorded).transpose()
    }

    /// Sums of a measure's doubles over an area by those of their limbs: exact, rounded once, and to the last bit those
    /// of the CPU.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for measures other than sums of doubles, and doubles whose sums have more than 100
    /// bits; those of [`DeviceSums::ready`] and of launching.
    fn double_sums(
        &self,
        area: &Area,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<ByRank<Precise>, DeviceError> {
        let resident = self.facts();
        let of_facts = &resident.facts().measures()[measure];
        let refused =
            |reason: &str| Err(DeviceError::Unsupported { reason: format!("measure {} {reason}", of_facts.name) });
        if of_facts.rule != Rule::Sum {
            return refused("is no sum");
        }
        let Some((first, limbs)) = resident.source().limbs(measure) else {
            return refused("has doubles whose sums have more than 100 bits");
        };
        limbs.check(area.maps_of(measure).into_iter().map(|map| map.magnitude().max(1.0)).product())?;
        let sums = |limb| {
            let summed = Summed { column: first + limb, most: 1 << LIMB_BITS };
            filled(self.ready(area, measure, summed, cancelled)?, resident).map(DeviceCells::from)
        };
        let parts = (0..limbs.count).map(sums).collect::<Result<Vec<DeviceCells>, DeviceError>>()?;
        let ranks = parts[0].ranks.iter().enumerate();
        let sum = |at: usize| Precise::from_f64(limbs.sum(parts.iter().map(|part| part.sums[at])) + 0.0);
        Ok(ranks.map(|(at, rank)| (*rank, sum(at))).collect())
    }
}

/// Filled targets with their sums; without a statement none.
pub(super) fn filled(statement: Option<Box<dyn Prepared>>, facts: &ResidentFacts) -> Result<FilledCells, DeviceError> {
    statement.map_or_else(|| Ok(FilledCells::default()), |statement| statement.cells(facts))
}
