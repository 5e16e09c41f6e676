//! Partition: marked items to one output and all others to another, each in their order; the kernel of select.

use crate::buffer::DeviceBuffer;
use crate::device::Device;
use crate::error::Result;
use crate::prims::select::{SelectForm, SelectKernel};
use crate::prims::tile::TileTuning;
use crate::prims::{DeviceSlice, Element, Moved, Predicate, Queue, SelectOperands, SelectOrder, check_length};

const NAME: &str = "partition";

/// Partitions of one kind on a device.
#[derive(Clone)]
pub struct Partition(SelectKernel);

impl Partition {
    /// Compiles a partition of items of one type.
    ///
    /// # Errors
    /// [`crate::GpuError::Compile`] for a predicate that is no expression.
    pub fn new(device: &Device, item: Element, predicate: Predicate) -> Result<Partition> {
        let tuning = form(item, predicate.clone()).tuning_on(device);
        Partition::with_tuning(device, item, predicate, tuning)
    }

    /// The same with tiles of another shape.
    ///
    /// # Errors
    /// As [`Partition::new`].
    pub fn with_tuning(device: &Device, item: Element, predicate: Predicate, tuning: TileTuning) -> Result<Partition> {
        Ok(Partition(SelectKernel::new(device, form(item, predicate), tuning)?))
    }

    /// Scratch memory that a launch over `n` items needs.
    pub fn scratch_bytes(&self, n: u64) -> usize {
        self.0.scratch_bytes(n)
    }

    /// Moves what is marked to the operands' output and all else to `others`; both have room for all items.
    ///
    /// # Errors
    /// As [`crate::prims::Select::launch`], and for outputs that are not as long as the input.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        operands: &SelectOperands<'_>,
        others: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        check_length(NAME, "the first output", operands.out, others.len())?;
        self.0.launch(queue, operands, Some(others), scratch)
    }
}

/// The form of the kernel.
pub(crate) fn form(item: Element, predicate: Predicate) -> SelectForm {
    let (moved, order) = (Moved::Values, SelectOrder::Stable);
    SelectForm { operation: NAME, item, predicate, moved, order, extra: "#define WC_PARTITION\n" }
}

/// The same on the host.
pub fn partition<T: Copy>(input: &[T], is_marked: impl Fn(usize, T) -> bool) -> [Vec<T>; 2] {
    let mut parts = [Vec::new(), Vec::new()];
    for (row, item) in input.iter().enumerate() {
        parts[usize::from(!is_marked(row, *item))].push(*item);
    }
    parts
}
