//! Split: where segments begin, from a flag at each head; the kernel of select.

use crate::buffer::DeviceBuffer;
use crate::device::Device;
use crate::error::Result;
use crate::prims::select::{SelectForm, SelectKernel};
use crate::prims::tile::TileTuning;
use crate::prims::{DeviceSlice, Element, Moved, Predicate, Queue, SelectOperands, SelectOrder};

/// Splits on a device.
#[derive(Clone)]
pub struct Split(SelectKernel);

impl Split {
    /// Compiles the split of flags to offsets of 64 bits.
    ///
    /// # Errors
    /// As [`Device::compile`].
    pub fn new(device: &Device) -> Result<Split> {
        Split::with_tuning(device, form().tuning_on(device))
    }

    /// The same with tiles of another shape.
    ///
    /// # Errors
    /// As [`Device::compile`].
    pub fn with_tuning(device: &Device, tuning: TileTuning) -> Result<Split> {
        Ok(Split(SelectKernel::new(device, form(), tuning)?))
    }

    /// Scratch memory that a launch over `n` flags needs.
    pub fn scratch_bytes(&self, n: u64) -> usize {
        self.0.scratch_bytes(n)
    }

    /// Writes the first row of each segment and then the number of rows to `offsets` ([`Element::U64`]), and the number
    /// of segments to `count`. Row 0 begins a segment whatever its flag; no rows have no segments, and no offset is
    /// written. Offsets that do not fit are not written.
    ///
    /// # Errors
    /// [`crate::GpuError::Contract`] for other types or lengths, or too little scratch memory.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        heads: &DeviceSlice,
        offsets: &DeviceSlice,
        count: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let operands = SelectOperands { input: None, flags: Some(heads), bounds: [0; 2], out: offsets, count };
        self.0.launch(queue, &operands, None, scratch)
    }
}

/// The form of the kernel.
pub(crate) fn form() -> SelectForm {
    let (predicate, moved) = (Predicate::Flags, Moved::Rows(Element::U64));
    let (order, extra) = (SelectOrder::Stable, "#define WC_SPLIT\n");
    SelectForm { operation: "split", item: Element::U8, predicate, moved, order, extra }
}

/// The same on the host.
pub fn split(heads: &[u8]) -> Vec<u64> {
    let rows = heads.iter().enumerate();
    let mut offsets: Vec<u64> =
        rows.filter(|(row, head)| *row == 0 || **head != 0).map(|(row, _)| row as u64).collect();
    if !heads.is_empty() {
        offsets.push(heads.len() as u64);
    }
    offsets
}
