//! Contraction on a device: what callers see of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use warpcube_column::{Relation, Residency};
use warpcube_gpu::Kernel;

use super::accumulation::DeviceMonoid;
use super::cells::{CellKernel, DeviceCells, FilledCells};
use super::contraction::{ContractionSteps, Kernels, PassKernel};
use super::error::DeviceError;
use super::expand::{compile_expand, compile_limbs};
use super::plan::{DevicePlan, Summed, Wanted, check_bound};
use super::resident::{FactBytes, ResidentFacts, present};
use super::scan::{ScanForm, ScanTuning, compile_total};
use super::source::FactsSource;
use super::statement::{Prepared, RecordedRun, Statement};
use super::sums::{DeviceSums, filled};
use crate::aggregate::{Area, Component};

/// Aggregates the facts of one cube on a device by contraction.
pub struct DeviceContraction {
    facts: Arc<ResidentFacts>,
    kernels: Mutex<KernelCache>,
    tuning: ScanTuning,
}

#[derive(Default)]
struct KernelCache {
    scans: HashMap<ScanForm, Kernel>,
    others: HashMap<&'static str, Kernel>,
    expansions: HashMap<DeviceMonoid, Kernel>,
    cells: HashMap<u64, CellKernel>,
}

impl DeviceContraction {
    /// Aggregations over facts whose columns `residency` keeps.
    pub fn new(residency: Arc<Residency>, source: FactsSource) -> DeviceContraction {
        DeviceContraction::over(Arc::new(ResidentFacts::new(residency, source)))
    }

    /// Aggregations over facts that other algorithms share.
    pub fn over(facts: Arc<ResidentFacts>) -> DeviceContraction {
        DeviceContraction { facts, kernels: Mutex::default(), tuning: ScanTuning::default() }
    }

    /// The facts.
    pub fn facts(&self) -> &Arc<ResidentFacts> {
        &self.facts
    }

    /// Sets how later statements cut the pass over facts.
    pub fn set_tuning(&mut self, tuning: ScanTuning) {
        self.tuning = tuning;
    }

    /// Sums of a measure over an area in 64 bits; [`super::DeviceAggregation::measure`] gives those of any other.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for measures other than sums of decimals, weights that are not whole, sums that may
    /// pass 64 bits, and areas whose sums have no room; what loading and launching give.
    pub fn sums(&self, area: &Area, measure: usize, cancelled: &Arc<AtomicBool>) -> Result<DeviceCells, DeviceError> {
        DeviceSums::sums(self, area, measure, cancelled)
    }

    /// The same work, recorded: it runs any number of times over the facts as they are, and tells its time on the
    /// device. `None` if no target is filled.
    ///
    /// # Errors
    /// As [`DeviceContraction::sums`].
    pub fn record(
        &self,
        area: &Area,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Box<dyn RecordedRun>>, DeviceError> {
        DeviceSums::record(self, area, measure, cancelled)
    }

    /// Records the contraction of a component; `None` if no target is filled.
    pub(super) fn record_component(
        &self,
        component: &Component<'_>,
        wanted: Wanted,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Box<dyn RecordedRun>>, DeviceError> {
        match self.plan(component, wanted, cancelled)? {
            Some(plan) => self.planned(&plan, cancelled)?.map(Prepared::recorded).transpose(),
            None => Ok(None),
        }
    }

    /// Device memory of the facts of a measure, which is loaded where it is not yet.
    ///
    /// # Errors
    /// Those of loading.
    pub fn bytes(&self, measure: usize, cancelled: &Arc<AtomicBool>) -> Result<FactBytes, DeviceError> {
        self.facts.bytes(measure, cancelled)
    }

    /// The plan of a contraction; `None` if no fact has a value.
    pub(super) fn plan(
        &self,
        component: &Component<'_>,
        wanted: Wanted,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<DevicePlan>, DeviceError> {
        if !self.facts.has_values(component.measure) {
            return Ok(None);
        }
        let keys = self.facts.keys(cancelled)?;
        DevicePlan::new(self.facts.source(), component, wanted, &present(&keys)).map(Some)
    }

    /// Filled targets with the sums of a plan, in words of its monoid.
    pub(super) fn cells_by(&self, plan: &DevicePlan, cancelled: &Arc<AtomicBool>) -> Result<FilledCells, DeviceError> {
        filled(self.planned(plan, cancelled)?, &self.facts)
    }

    fn planned(
        &self,
        plan: &DevicePlan,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Box<dyn Prepared>>, DeviceError> {
        plan.check_room()?;
        if plan.is_empty() {
            return Ok(None);
        }
        let (facts, kernels) = (self.facts.facts(), self.kernels(plan)?);
        let steps = |relations: &[Relation], _| ContractionSteps::new(kernels.clone(), plan, facts, relations);
        Ok(Some(Box::new(Statement::new(&self.facts, plan.accumulation.column, cancelled, steps)?)))
    }

    fn kernels(&self, plan: &DevicePlan) -> Result<Kernels, DeviceError> {
        let (device, accumulation) = (self.facts.device(), &plan.accumulation);
        let KernelCache { scans, others, expansions, cells } = &mut *self.kernels.lock();
        let pass = if plan.is_total() {
            PassKernel::Total(kept(others, "total", || compile_total(device))?)
        } else {
            let layout = self.facts.facts().layout();
            let form = ScanForm::of(plan, layout, self.has_nulls(plan), self.tuning, device.info());
            PassKernel::Scan(form, kept(scans, form, || form.compile(device))?)
        };
        let monoid = accumulation.monoid;
        let limbs = || kept(others, "limbs", || compile_limbs(device));
        let expand = || kept(expansions, monoid, || compile_expand(device, monoid));
        Ok(Kernels {
            pass,
            limbs: accumulation.has_pairs().then(limbs).transpose()?,
            expand: (!plan.products.is_empty()).then(expand).transpose()?,
            cells: kept(cells, monoid.words(), || CellKernel::compile(device, monoid.words()))?,
        })
    }

    /// True if not every fact has a value in the column of a plan.
    fn has_nulls(&self, plan: &DevicePlan) -> bool {
        self.facts.source().is_nullable(plan.accumulation.column)
    }
}

impl DeviceSums for DeviceContraction {
    fn facts(&self) -> &Arc<ResidentFacts> {
        &self.facts
    }

    /// Refuses columns other than the values of the measure, and sums of classes that have no room.
    fn ready(
        &self,
        area: &Area,
        measure: usize,
        summed: Summed,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Box<dyn Prepared>>, DeviceError> {
        if summed.column != measure {
            return Err(DeviceError::Unsupported { reason: "contraction adds up pairs of doubles".to_string() });
        }
        let component = Component::values(self.facts.facts(), area, measure);
        let Some(plan) = self.plan(&component, Wanted::Sums, cancelled)? else { return Ok(None) };
        match plan.accumulation.monoid {
            DeviceMonoid::Narrow => self.planned(&plan, cancelled),
            DeviceMonoid::Precise => {
                let is_whole = component.maps.iter().all(|map| map.is_whole());
                let reason = if is_whole { "a weight is too large" } else { "a weight is not whole" };
                Err(DeviceError::Unsupported { reason: reason.to_string() })
            }
            DeviceMonoid::Wide | DeviceMonoid::Greatest => {
                let magnitudes = plan.classes.iter().map(|classes| classes.magnitude);
                check_bound(component.facts, summed.most, magnitudes).map(|()| None)
            }
        }
    }
}

/// A kernel that is compiled once.
fn kept<K: Eq + Hash, V: Clone>(
    kernels: &mut HashMap<K, V>,
    key: K,
    compile: impl FnOnce() -> Result<V, DeviceError>,
) -> Result<V, DeviceError> {
    Ok(match kernels.entry(key) {
        Entry::Occupied(kernel) => kernel.get().clone(),
        Entry::Vacant(place) => place.insert(compile()?).clone(),
    })
}
