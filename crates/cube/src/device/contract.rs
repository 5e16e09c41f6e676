//! Contraction on a device: what callers see of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use warpcube_column::{ColumnError, Relation, Residency};
use warpcube_gpu::{GpuError, Kernel};

use super::cells::compile_cells;
use super::contraction::{ContractionSteps, Kernels};
use super::expand::compile_expand;
use super::plan::Plan;
use super::resident::{FactBytes, ResidentFacts};
use super::scan::{ScanForm, ScanTuning, compile_total};
use super::source::FactsSource;
use super::statement::{self, RecordedRun, Statement};
use crate::aggregate::Area;

/// An aggregation that a device does not do.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The aggregation is one for the CPU.
    #[error("the aggregation runs on the CPU: {reason}")]
    Unsupported {
        /// Why.
        reason: String,
    },
    /// Facts that cannot be loaded, or no room for them.
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// A device that fails.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

/// Filled targets of an area with their sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceCells {
    /// Row-major numbers of the filled targets within the area, ascending.
    pub ranks: Vec<u64>,
    /// Their sums, in units of the measure's last digit.
    pub sums: Vec<i64>,
}

/// Aggregates the facts of one cube on a device by contraction.
pub struct DeviceContraction {
    facts: Arc<ResidentFacts>,
    kernels: Mutex<KernelCache>,
    tuning: ScanTuning,
}

#[derive(Default)]
struct KernelCache {
    scans: HashMap<ScanForm, Kernel>,
    others: Option<[Kernel; 3]>,
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

    /// Cuts the pass over facts of later statements as told.
    pub fn set_tuning(&mut self, tuning: ScanTuning) {
        self.tuning = tuning;
    }

    /// Sums of a measure over an area.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for measures other than sums of decimals, weights that are not whole, areas beyond
    /// 2^29 targets and sums that may pass 64 bits; what loading and launching give.
    pub fn sums(&self, area: &Area, measure: usize, cancelled: &Arc<AtomicBool>) -> Result<DeviceCells, DeviceError> {
        statement::sums(self.ready(area, measure, cancelled)?, &self.facts)
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
        statement::record(self.ready(area, measure, cancelled)?)
    }

    /// Device memory of the facts of a measure, which is loaded where it is not yet.
    ///
    /// # Errors
    /// What loading gives.
    pub fn bytes(&self, measure: usize, cancelled: &Arc<AtomicBool>) -> Result<FactBytes, DeviceError> {
        self.facts.bytes(measure, cancelled)
    }

    /// Plans a contraction and makes room for it; `None` if no target is filled.
    fn ready(
        &self,
        area: &Area,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Statement<ContractionSteps>>, DeviceError> {
        match self.plan(area, measure, cancelled)? {
            Some(plan) => self.planned(&plan, measure, cancelled),
            None => Ok(None),
        }
    }

    /// What a contraction does; `None` if no fact has a value.
    pub(super) fn plan(
        &self,
        area: &Area,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Plan>, DeviceError> {
        if !self.facts.has_values(measure)? {
            return Ok(None);
        }
        let keys = self.facts.keys(cancelled)?;
        Plan::new(self.facts.facts(), area, measure, &keys.present).map(Some)
    }

    /// Sums of a measure by a plan.
    pub(super) fn sums_by(
        &self,
        plan: &Plan,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<DeviceCells, DeviceError> {
        statement::sums(self.planned(plan, measure, cancelled)?, &self.facts)
    }

    fn planned(
        &self,
        plan: &Plan,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Statement<ContractionSteps>>, DeviceError> {
        plan.check_room()?;
        if plan.is_empty() {
            return Ok(None);
        }
        let facts = self.facts.facts();
        let has_nulls = facts.columns()[measure].filled.is_some();
        let info = self.facts.device().info();
        let is_total = plan.looked_up.is_empty();
        let form = (!is_total).then(|| ScanForm::of(plan, facts.layout(), has_nulls, self.tuning, info));
        let kernels = self.kernels(form)?;
        let steps = |relation: &Relation, _| ContractionSteps::new(kernels.clone(), plan, facts, relation);
        Ok(Some(Statement::new(&self.facts, measure, cancelled, steps)?))
    }

    fn kernels(&self, form: Option<ScanForm>) -> Result<Kernels, DeviceError> {
        let device = self.facts.device();
        let mut cache = self.kernels.lock();
        let others = match &cache.others {
            Some(others) => others.clone(),
            None => [compile_total(device)?, compile_expand(device)?, compile_cells(device)?],
        };
        cache.others = Some(others.clone());
        let scan = match form {
            Some(form) => {
                let kernel = match cache.scans.get(&form) {
                    Some(kernel) => kernel.clone(),
                    None => form.compile(device)?,
                };
                cache.scans.insert(form, kernel.clone());
                Some((form, kernel))
            }
            None => None,
        };
        let [total, expand, cells] = others;
        Ok(Kernels { scan, total, expand, cells })
    }
}
