//! The source-based algorithm: every relevant base cell adds its value to all its targets.
//!
//! Steps: the prefilter takes pages, then cells, that have a target (`prefilter.cuh`); relevant cells add their values
//! in hash tables of as many parallel hash functions as a variant has (`source.cuh`); the tables are added up by target
//! (`merge_tables.cuh`), and the filled targets written in order (`cells.cuh`). The host waits once, for the cells.
//!
//! The variants are those of Meinke, *In-memory OLAP aggregation on GPUs using CUDA Dynamic Parallelism*, 4.2 and 4.3;
//! [`SourceVariant`] names them. What differs from 2015: a page is a miniblock of 128 facts, since keys lie packed in
//! those; sums are whole numbers of 64 bits; a hash function has a table of its own; constant memory holds 32,764 bytes
//! with the other parameters, in words of 16 bits where they suffice. Parents cannot wait for children any more: the
//! host launches parents in batches of 2,048, and a batch ends when its children have. A map for children that kernels
//! launch lies in shared or global memory. The emulated device refuses such variants; the same children launched by the
//! host are variants of their own.

mod kernels;
mod map;
mod steps;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::error::DeviceError;
use super::plan::Summed;
use super::resident::{ResidentFacts, present};
use super::statement::{Prepared, Statement};
use super::sums::{DeviceSums, filled};
use crate::aggregate::Area;
use crate::algorithm::SourceVariant;
use kernels::SourceForm;
use map::AggregationMap;
use steps::{SourceInputs, SourceSteps};

pub use steps::{BATCH_PARENTS, CHILD_THREADS, PARENT_CELLS};

/// Sums by one variant of the source-based algorithm.
pub struct SourceBased {
    facts: Arc<ResidentFacts>,
    variant: SourceVariant,
}

impl SourceBased {
    /// A variant over resident facts.
    pub fn new(facts: Arc<ResidentFacts>, variant: SourceVariant) -> SourceBased {
        SourceBased { facts, variant }
    }

    /// Atomic additions to sums of hash tables that the variant does, as Meinke counts them (table 5.2): every addition
    /// adds 1 in place of the value.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for measures other than sums of decimals, weights that are not whole, areas beyond
    /// 2^29 targets, cubes of 2^32 facts and sums that may pass 64 bits; what loading and launching give.
    pub fn additions(&self, area: &Area, measure: usize, cancelled: &Arc<AtomicBool>) -> Result<u64, DeviceError> {
        self.facts.check_decimal_sum(measure)?;
        let summed = Summed::decimals(self.facts.facts(), measure);
        let counts = filled(self.prepared(area, (measure, summed), cancelled, true)?, &self.facts)?;
        Ok(counts.sums.iter().map(|sum| sum[0]).sum())
    }

    fn prepared(
        &self,
        area: &Area,
        (measure, summed): (usize, Summed),
        cancelled: &Arc<AtomicBool>,
        is_counted: bool,
    ) -> Result<Option<Box<dyn Prepared>>, DeviceError> {
        let (resident, variant) = (&self.facts, self.variant);
        if !resident.has_values(measure) {
            return Ok(None);
        }
        let facts = resident.facts();
        let segments: Vec<u64> = facts.segments().iter().map(|segment| segment.len() as u64).collect();
        if let Some(cells) = segments.iter().find(|cells| **cells >= 1 << 32) {
            return Err(DeviceError::Unsupported { reason: format!("{cells} facts, fewer than 2^32") });
        }
        let keys = resident.keys(cancelled)?;
        let map = AggregationMap::new(facts, area, (measure, summed), &present(&keys))?;
        if map.is_empty() {
            return Ok(None);
        }
        if variant.expansion.launches() {
            resident.device().check_device_launches()?;
        }
        let place = map.place(variant, resident.device().info());
        let form = SourceForm {
            key_words: if facts.layout().is_narrow() { 1 } else { 2 },
            preaggregation: variant.preaggregation,
            expansion: variant.expansion,
            map: place.0,
            map_longs: place.1,
            is_narrow: map.is_narrow,
            has_weights: map.has_weights,
            is_counted,
        };
        let (map, kernels) = (Arc::new(map), Arc::new(form.compile(resident.device())?));
        let statement = Statement::new(resident, summed.column, cancelled, |relations, available| {
            let inputs = SourceInputs { variant, layout: facts.layout(), keys: &keys, facts: &segments, available };
            SourceSteps::new(map.clone(), kernels.clone(), place, &inputs, relations)
        })?;
        Ok(Some(Box::new(statement)))
    }
}

impl DeviceSums for SourceBased {
    fn facts(&self) -> &Arc<ResidentFacts> {
        &self.facts
    }

    /// Refuses areas beyond 2^29 targets and cubes of 2^32 facts.
    fn ready(
        &self,
        area: &Area,
        measure: usize,
        summed: Summed,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Box<dyn Prepared>>, DeviceError> {
        self.prepared(area, (measure, summed), cancelled, false)
    }
}
