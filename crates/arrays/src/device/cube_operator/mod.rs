//! The CUBE operator on a device.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, section 5.4, which sorts on the device and aggregates on the
//! host; here all groups stay on the device. A run reorders the keys of its source, sorts them with the numbers of
//! their rows, marks where groups of each cuboid of the path begin in one pass, and joins components by segments: those
//! of the longest cuboid from rows, each further one from the groups of the cuboid in front of it. The host waits once
//! a run, for the numbers of groups.
//!
//! Plans are those of the CPU with [`Costs::H200`], which has neither dense nor hash tables.
//!
//! [`Costs::H200`]: crate::cube_operator::Costs::H200

mod iceberg;
mod kernels;
mod levels;

use std::collections::HashMap;

use warpcube_gpu::Stream;
use warpcube_gpu::prims::{self, DeviceSlice, Element};

pub use kernels::CubeKernels;
pub use levels::DeviceCuboid;

use super::array::DeviceValue;
use super::error::{DeviceSchemeError, Result};
use crate::SchemeError;
use crate::cube_operator::{Components, Plan, Rows, Run, Source};
use crate::key::{Key, KeyLayout};
use levels::{Columns, Sorted};

/// A key that host and device have, with room for the number of a group and a coordinate.
pub trait DeviceKey: Key + prims::Key {}

impl DeviceKey for u64 {}
impl DeviceKey for u128 {}

/// Rows in device memory.
pub struct DeviceRows<'a, K, V> {
    kernels: &'a CubeKernels<K, V>,
    layout: KeyLayout,
    keys: DeviceSlice,
    values: DeviceSlice,
    counts: Option<DeviceSlice>,
    /// Sum of the magnitudes of the values, if it may exceed 64 bits.
    excess: Option<u128>,
}

impl<'a, K: DeviceKey, V: DeviceValue> DeviceRows<'a, K, V> {
    /// Copies rows to the device.
    ///
    /// # Errors
    /// No room on the device.
    pub fn new(kernels: &'a CubeKernels<K, V>, stream: &mut Stream, rows: &Rows<'_, K, V>) -> Result<Self> {
        let mut copied = |element: Element, bytes: &[u8]| -> Result<DeviceSlice> {
            let slice = kernels.room(element, (bytes.len() / element.bytes()) as u64)?;
            stream.upload(slice.buffer(), 0, bytes)?;
            Ok(slice)
        };
        let keys = copied(K::ELEMENT, bytemuck::cast_slice(rows.keys()))?;
        let values = copied(V::ELEMENT, bytemuck::cast_slice(rows.values()))?;
        let counts = rows.counts().map(|counts| copied(Element::U64, bytemuck::cast_slice(counts))).transpose()?;
        Ok(DeviceRows {
            kernels,
            layout: rows.layout().clone(),
            keys,
            values,
            counts,
            excess: V::excess(rows.values()),
        })
    }

    /// Gives the cuboids of the rows to `sink`, one after the other, as `cube_operator::cube` does on the CPU.
    ///
    /// # Errors
    /// [`DeviceSchemeError::Sums`] for integers whose sums may pass 64 bits, if sums are asked for; a plan for another
    /// layout or with dense or hash tables; a device that fails; that of the sink, which ends the work.
    pub fn cube<E: From<DeviceSchemeError>>(
        &self,
        stream: &mut Stream,
        plan: &Plan,
        sink: impl FnMut(&mut Stream, &DeviceCuboid<K, V>) -> Result<(), E>,
    ) -> Result<(), E> {
        if plan.layout != self.layout {
            return Err(DeviceSchemeError::from(SchemeError::OtherLayout).into());
        }
        self.check_sums(plan.components)?;
        if self.keys.is_empty() {
            return Ok(());
        }
        let mut runs: HashMap<&Source, Vec<&Run>> = HashMap::new();
        plan.runs().iter().for_each(|run| runs.entry(&run.source).or_default().push(run));
        Operator { kernels: self.kernels, runs, sink }.expand(stream, &Source::Rows, &self.whole(plan.components))
    }

    /// The rows as items of a grouping.
    fn whole(&self, components: Components) -> DeviceCuboid<K, V> {
        let order: Vec<usize> = (0..self.layout.dimensions()).collect();
        let columns = Columns::of_rows(components, &self.values, self.counts.as_ref());
        DeviceCuboid::new(&order, order.len(), self.layout.clone(), self.keys.clone(), columns)
    }

    /// Refuses sums that may pass 64 bits.
    fn check_sums(&self, components: Components) -> Result<()> {
        match self.excess.filter(|_| components.sum) {
            Some(magnitude) => Err(DeviceSchemeError::Sums { magnitude }),
            None => Ok(()),
        }
    }
}

struct Operator<'a, K, V, F> {
    kernels: &'a CubeKernels<K, V>,
    runs: HashMap<&'a Source, Vec<&'a Run>>,
    sink: F,
}

impl<K: DeviceKey, V: DeviceValue, F> Operator<'_, K, V, F> {
    /// Makes all cuboids that are made from a source, and those made from them.
    fn expand<E: From<DeviceSchemeError>>(
        &mut self,
        stream: &mut Stream,
        source: &Source,
        from: &DeviceCuboid<K, V>,
    ) -> Result<(), E>
    where
        F: FnMut(&mut Stream, &DeviceCuboid<K, V>) -> Result<(), E>,
    {
        let mut sorted = Sorted::as_it_is(from);
        for run in self.runs.remove(source).unwrap_or_default() {
            let levels = self.kernels.levels(stream, from, run, &mut sorted)?;
            levels.iter().try_for_each(|level| (self.sink)(stream, level))?;
            let sources = levels.into_iter().map(|level| (Source::Cuboid(level.dimensions().to_vec()), level));
            let sources: Vec<_> = sources.filter(|(source, _)| self.runs.contains_key(source)).collect();
            for (source, level) in sources {
                self.expand(stream, &source, &level)?;
            }
        }
        Ok(())
    }
}
