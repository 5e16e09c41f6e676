//! Contraction on a device: the pass over facts, then a dimension at a time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warpcube_column::{ColumnError, EncodingChoice, LoadLimits, Pinned, Residency, TableRequest};
use warpcube_gpu::{DeviceBuffer, GpuError, Stream};

use super::classes::Classes;
use super::expand::Expand;
use super::gather::{Gather, Sums};
use super::source::FactsSource;
use crate::aggregate::Area;
use crate::facts::{Facts, Rule, Values};

/// Places of the largest array of sums: 4 GiB of words, and a byte each.
const PLACES_MAX: u64 = 1 << 29;
/// Bytes of a place.
const PLACE_BYTES: u64 = 9;

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

/// Aggregates the facts of one cube on a device.
pub struct DeviceContraction {
    residency: Arc<Residency>,
    source: Arc<FactsSource>,
}

impl DeviceContraction {
    /// Aggregations over facts whose columns `residency` keeps.
    pub fn new(residency: Arc<Residency>, source: FactsSource) -> DeviceContraction {
        DeviceContraction { residency, source: Arc::new(source) }
    }

    /// The name of the device.
    pub fn device_name(&self) -> String {
        self.residency.device().info().name.clone()
    }

    /// Sums of a measure over an area.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for measures other than sums of decimals, weights that are not whole, areas beyond
    /// 2^29 targets and sums that may pass 64 bits; what loading and launching give.
    pub fn sums(&self, area: &Area, measure: usize, cancelled: &Arc<AtomicBool>) -> Result<DeviceCells, DeviceError> {
        let facts = self.source.facts();
        let plan = Plan::new(facts, area, measure)?;
        if facts.is_empty() || plan.classes.iter().any(|classes| classes.count == 0) {
            return Ok(DeviceCells { ranks: Vec::new(), sums: Vec::new() });
        }
        let pinned = self.admit(measure, &plan, cancelled)?;
        let device = self.residency.device().clone();
        let mut stream = device.stream()?;
        let mut sums = self.room(plan.places(&plan.counts()))?;
        stream.fill(&sums.sums, 0, 0, sums.sums.bytes())?;
        stream.fill(&sums.filled, 0, 0, sums.filled.bytes())?;
        let strides = strides(&plan.counts());
        let relation = &pinned.tables[0];
        let layout = facts.layout();
        Gather { relation, layout, classes: &plan.classes, strides: &strides }.launch(&device, &mut stream, &sums)?;
        let mut shape = plan.counts();
        for dimension in plan.order() {
            let outer = shape[..dimension].iter().product();
            let inner = shape[dimension + 1..].iter().product();
            let expand = Expand { classes: &plan.classes[dimension], outer, inner };
            let output = self.room(expand.places())?;
            expand.launch(&device, &mut stream, &sums, &output)?;
            shape[dimension] = plan.classes[dimension].targets().into();
            sums = output;
        }
        read(&mut stream, &sums, plan.places(&shape))
    }

    fn admit(&self, measure: usize, plan: &Plan, cancelled: &Arc<AtomicBool>) -> Result<Pinned, DeviceError> {
        let words = self.source.key_words();
        let columns = (0..words).chain([words + measure]).collect();
        let request = TableRequest { source: self.source.clone(), columns };
        let limits = LoadLimits {
            dictionary_values: 0,
            threads: rayon::current_num_threads(),
            cancelled: cancelled.clone(),
            rows_done: Arc::default(),
            encoding: EncodingChoice::Auto,
            host_bytes: 0,
            in_background: false,
            pool: None,
        };
        let bytes = plan.peak_places() * PLACE_BYTES + (1 << 20);
        self.residency.admit(&[request], &limits, |_| Ok::<u64, DeviceError>(bytes))
    }

    fn room(&self, places: u64) -> Result<Sums, DeviceError> {
        let device = self.residency.device();
        let sums = device.buffer(places as usize * size_of::<u64>(), "sums of a cube")?;
        Ok(Sums { sums, filled: device.buffer(places as usize, "filled cells of a cube")? })
    }
}

/// The classes of an area's dimensions.
struct Plan {
    classes: Vec<Classes>,
}

impl Plan {
    fn new(facts: &Facts, area: &Area, measure: usize) -> Result<Plan, DeviceError> {
        let unsupported = |reason: String| Err(DeviceError::Unsupported { reason });
        let column = &facts.columns()[measure];
        if column.measure.rule != Rule::Sum {
            return unsupported(format!("measure {} is no sum", column.measure.name));
        }
        if !matches!(column.values, Values::Decimals(_)) {
            return unsupported(format!("measure {} has doubles", column.measure.name));
        }
        let classes = area.maps_of(measure).into_iter().map(Classes::of).collect::<Option<Vec<_>>>();
        let Some(classes) = classes else {
            return unsupported("a weight is not whole".to_string());
        };
        let plan = Plan { classes };
        if plan.peak_places() > PLACES_MAX {
            return unsupported(format!("{} sums would be kept at once, at most {PLACES_MAX}", plan.peak_places()));
        }
        // No sum passes the largest magnitude times the number of facts times the largest weights.
        let all = (facts.magnitude(measure).ceil() as u128).saturating_mul(facts.len() as u128);
        let bound = plan
            .classes
            .iter()
            .fold(all, |bound, classes| bound.saturating_mul(u128::from(classes.growth().unsigned_abs().max(1))));
        if bound > i64::MAX as u128 {
            return unsupported(format!("sums may pass 64 bits: {bound} is their bound"));
        }
        Ok(plan)
    }

    /// Classes of each dimension.
    fn counts(&self) -> Vec<u64> {
        self.classes.iter().map(|classes| u64::from(classes.count)).collect()
    }

    fn places(&self, shape: &[u64]) -> u64 {
        shape.iter().fold(1, |places: u64, size| places.saturating_mul(*size))
    }

    /// Dimensions whose classes become targets, the one that grows least first.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.classes.len()).filter(|at| !self.classes[*at].is_identity()).collect();
        let growth = |at: &usize| f64::from(self.classes[*at].targets()) / f64::from(self.classes[*at].count.max(1));
        order.sort_by(|one, other| growth(one).total_cmp(&growth(other)));
        order
    }

    /// Places of the largest input and output together.
    fn peak_places(&self) -> u64 {
        let mut shape = self.counts();
        let mut before = self.places(&shape);
        let mut peak = before;
        for dimension in self.order() {
            shape[dimension] = self.classes[dimension].targets().into();
            let after = self.places(&shape);
            peak = peak.max(before.saturating_add(after));
            before = after;
        }
        peak
    }
}

/// Distance of neighbours in each dimension, the last one's being 1.
fn strides(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for dimension in (1..shape.len()).rev() {
        strides[dimension - 1] = strides[dimension] * shape[dimension];
    }
    strides
}

/// The filled places.
fn read(stream: &mut Stream, sums: &Sums, places: u64) -> Result<DeviceCells, DeviceError> {
    let download = |stream: &mut Stream, buffer: &DeviceBuffer, bytes: u64| {
        let mut target = vec![0_u8; bytes as usize];
        stream.download(buffer, 0, &mut target).map(|()| target)
    };
    let filled = download(stream, &sums.filled, places)?;
    let words = download(stream, &sums.sums, places * size_of::<u64>() as u64)?;
    let mut cells = DeviceCells { ranks: Vec::new(), sums: Vec::new() };
    for (rank, word) in words.chunks_exact(size_of::<u64>()).enumerate().filter(|(rank, _)| filled[*rank] != 0) {
        cells.ranks.push(rank as u64);
        cells.sums.push(i64::from_le_bytes(word.try_into().expect("eight bytes")));
    }
    Ok(cells)
}
