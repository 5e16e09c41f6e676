//! Select: items that a flag or a predicate marks move together, in their order or in any; single pass. Partition and
//! split are other uses of its kernel.

use crate::buffer::DeviceBuffer;
use crate::device::{Device, Kernel};
use crate::error::{GpuError, Result};
use crate::launch::Params;
use crate::prims::lookback::{self, LOOKBACK};
use crate::prims::tile::{TILE, TileTuning, are_aligned, vector_items};
use crate::prims::{DeviceSlice, Element, KEYS, Queue, check_element, check_length};
use crate::program::Program;

/// Items of a lane, a bit each in a word of marks.
const LANE_ITEMS_MAX: u32 = 32;

/// What marks an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Predicate {
    /// A byte beside each item that is not zero.
    Flags,
    /// CUDA text that is true for the item `x`; it may name the bounds `a` and `b` of a launch, which have the type of
    /// items. For example `x < a`.
    Text(String),
}

/// What of a marked item moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moved {
    /// The item.
    Values,
    /// Its row number, as [`Element::U32`] or [`Element::U64`].
    Rows(Element),
}

/// The order in which marked items come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SelectOrder {
    /// That of the input.
    Stable,
    /// Any, another in each run.
    Any,
}

/// Which variant of the kernel a program has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelectForm {
    pub(crate) operation: &'static str,
    pub(crate) item: Element,
    pub(crate) predicate: Predicate,
    pub(crate) moved: Moved,
    pub(crate) order: SelectOrder,
    /// Definitions of `partition` and `split`.
    pub(crate) extra: &'static str,
}

impl SelectForm {
    /// Whether the kernel reads items.
    fn reads_items(&self) -> bool {
        self.moved == Moved::Values || self.predicate != Predicate::Flags
    }

    /// Bytes of the widest operand of a row.
    fn widest_bytes(&self) -> usize {
        if self.reads_items() { self.item.bytes() } else { Element::U8.bytes() }
    }

    fn output(&self) -> Element {
        match self.moved {
            Moved::Values => self.item,
            Moved::Rows(rows) => rows,
        }
    }

    /// The tuning. 2^29 f32, half of them selected, on an H200 (2026-11-23, with a launch; floor 0.75 ms): stable 1.027
    /// and 1.035 ms in two runs (512 threads 1.128, 256 threads 1.250; with prefetches to the L2 cache 0.98 to 1.03,
    /// but 0.79 instead of 0.75 where a tenth is selected), in any order 0.788 ms with half the rows (256 threads
    /// 0.808).
    pub(crate) fn tuning(&self) -> TileTuning {
        let rows = (LANE_ITEMS_MAX / vector_items(self.widest_bytes())).min(8);
        let rows = if self.order == SelectOrder::Stable { rows } else { rows.div_ceil(2) };
        match self.order {
            SelectOrder::Stable => TileTuning { threads: 1024, rows, blocks: 1 },
            SelectOrder::Any => TileTuning { threads: 512, rows, blocks: 2 },
        }
    }

    /// The tuning, or one whose tiles fit into the shared memory of the device.
    pub(crate) fn tuning_on(&self, device: &Device) -> TileTuning {
        self.tuning().fitting(device.info().shared_memory_per_block, |tuning| self.shared_bytes(tuning))
    }

    /// Size of `SelectShared` and the items behind it.
    fn shared_bytes(&self, tuning: TileTuning) -> usize {
        let head = (16 + tuning.threads as usize / 32 * 4).next_multiple_of(16);
        let staged = if self.moved == Moved::Values { self.item.bytes() } else { size_of::<u32>() };
        head + staged * tuning.items(vector_items(self.widest_bytes())) as usize
    }

    pub(crate) fn program(&self, tuning: TileTuning) -> Result<Program> {
        let vector = vector_items(self.widest_bytes());
        if vector * tuning.rows > LANE_ITEMS_MAX {
            let message = format!("{}: {} rows of {vector} items a lane, and 32 fit", self.operation, tuning.rows);
            return Err(GpuError::Contract(message));
        }
        let mut text = tuning.text(vector) + self.extra;
        if self.reads_items() {
            text += &format!("#define WC_ITEM {}\n", self.item.c_type());
        }
        if let Moved::Rows(rows) = self.moved {
            if !matches!(rows, Element::U32 | Element::U64) {
                return Err(GpuError::Contract(format!("{}: no row numbers of {rows}", self.operation)));
            }
            text += &format!("#define WC_ROW {}\n", rows.c_type());
        }
        if let Predicate::Text(predicate) = &self.predicate {
            text += &format!("#define WC_KEEPS ({})\n", predicate.replace('\n', " "));
        }
        if self.order == SelectOrder::Stable {
            text += "#define WC_STABLE\n";
        }
        let kernel = include_str!("../../kernels/prims/select.cuh");
        Ok(Program::new(self.operation, [&text, KEYS, TILE, LOOKBACK, kernel].concat()))
    }
}

/// A compiled form.
#[derive(Clone)]
pub(crate) struct SelectKernel {
    form: SelectForm,
    tuning: TileTuning,
    kernel: Kernel,
}

/// Operands of a launch.
#[derive(Debug, Clone, Copy)]
pub struct SelectOperands<'a> {
    /// The items; not read where flags choose row numbers.
    pub input: Option<&'a DeviceSlice>,
    /// The flags, as many as items, where there is no predicate.
    pub flags: Option<&'a DeviceSlice>,
    /// Bits of the bounds `a` and `b` of the predicate, in as many low bytes as items have, 8 at most. For items of 16
    /// bytes the 64 bits of a bound are extended: by its sign for [`Element::I128`], by zeros for [`Element::U128`].
    pub bounds: [u64; 2],
    /// Room for what moves. It may be shorter than the input: what does not fit is counted and not written.
    pub out: &'a DeviceSlice,
    /// One [`Element::U64`]: how many items were marked.
    pub count: &'a DeviceSlice,
}

impl SelectKernel {
    pub(crate) fn new(device: &Device, form: SelectForm, tuning: TileTuning) -> Result<SelectKernel> {
        let kernel = device.compile(&form.program(tuning)?)?.kernel("wc_select")?;
        Ok(SelectKernel { form, tuning, kernel })
    }

    fn vector(&self) -> u32 {
        vector_items(self.form.widest_bytes())
    }

    /// Tiles that look back over `n` items.
    fn scratch_tiles(&self, n: u64) -> u64 {
        match self.form.order {
            SelectOrder::Stable => self.tuning.tiles(self.vector(), n),
            SelectOrder::Any => 0,
        }
    }

    pub(crate) fn scratch_bytes(&self, n: u64) -> usize {
        lookback::scratch_bytes(self.scratch_tiles(n), 1)
    }

    /// Checks the operands and launches; `others` takes what is not marked.
    pub(crate) fn launch(
        &self,
        queue: &mut impl Queue,
        operands: &SelectOperands<'_>,
        others: Option<&DeviceSlice>,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let (form, vector) = (&self.form, self.vector());
        let missing = |what: &str| GpuError::Contract(format!("{}: {what} is missing", form.operation));
        let input = operands.input.filter(|_| form.reads_items());
        let flags = operands.flags.filter(|_| form.predicate == Predicate::Flags);
        if form.reads_items() && input.is_none() {
            return Err(missing("the input"));
        }
        if form.predicate == Predicate::Flags && flags.is_none() {
            return Err(missing("the slice of flags"));
        }
        let n = input.or(flags).map_or(0, DeviceSlice::len);
        if let Some(input) = input {
            check_element(form.operation, "the input", input, form.item)?;
        }
        if let Some(flags) = flags {
            check_element(form.operation, "the slice of flags", flags, Element::U8)?;
            check_length(form.operation, "the slice of flags", flags, n)?;
        }
        let (out, count) = (operands.out, operands.count);
        check_element(form.operation, "the output", out, form.output())?;
        check_element(form.operation, "the count", count, Element::U64)?;
        check_length(form.operation, "the count", count, 1)?;
        if form.moved == Moved::Rows(Element::U32) && n > u64::from(u32::MAX) {
            return Err(GpuError::Contract(format!("{}: {n} rows have no numbers of u32", form.operation)));
        }
        if let Some(others) = others {
            check_element(form.operation, "the second output", others, form.output())?;
            check_length(form.operation, "the second output", others, n)?;
        }
        let tiles = self.tuning.tiles(vector, n);
        let shape = self.tuning.shape(form.operation, tiles, form.shared_bytes(self.tuning))?;
        lookback::reset(form.operation, queue, scratch, self.scratch_tiles(n), 1)?;
        if n == 0 || form.order == SelectOrder::Any {
            queue.fill(count.buffer(), count.offset(), 0, size_of::<u64>())?;
        }
        if n == 0 {
            return Ok(());
        }
        let operand = |params: Params, slice: Option<&DeviceSlice>| match slice {
            Some(slice) => params.slice(slice),
            None => params.null(),
        };
        let read: Vec<&DeviceSlice> = [input, flags].into_iter().flatten().collect();
        let params = operand(operand(Params::new(), input), flags).u64(operands.bounds[0]).u64(operands.bounds[1]);
        let params = operand(params.slice(out), others).slice(count).u64(out.len());
        let params = params.buffer(scratch).u64(n).u64(are_aligned(&read, vector).into());
        queue.launch(&self.kernel, shape, &params)
    }
}

/// Selections of one kind on a device.
#[derive(Clone)]
pub struct Select(SelectKernel);

impl Select {
    /// The tuning of a selection.
    pub fn tuning(item: Element, predicate: &Predicate, moved: Moved, order: SelectOrder) -> TileTuning {
        form(item, predicate.clone(), moved, order).tuning()
    }

    /// Compiles a selection from items of one type.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for row numbers of other types than u32 and u64; [`GpuError::Compile`] for a predicate
    /// that is no expression.
    pub fn new(
        device: &Device,
        item: Element,
        predicate: Predicate,
        moved: Moved,
        order: SelectOrder,
    ) -> Result<Select> {
        let form = form(item, predicate, moved, order);
        let tuning = form.tuning_on(device);
        Ok(Select(SelectKernel::new(device, form, tuning)?))
    }

    /// The same with tiles of another shape.
    ///
    /// # Errors
    /// As [`Select::new`].
    pub fn with_tuning(
        device: &Device,
        item: Element,
        predicate: Predicate,
        moved: Moved,
        order: SelectOrder,
        tuning: TileTuning,
    ) -> Result<Select> {
        Ok(Select(SelectKernel::new(device, form(item, predicate, moved, order), tuning)?))
    }

    /// Scratch memory that a launch over `n` items needs.
    pub fn scratch_bytes(&self, n: u64) -> usize {
        self.0.scratch_bytes(n)
    }

    /// Moves what is marked to the output and writes its number.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for missing operands, other types or lengths, or too little scratch memory.
    pub fn launch(&self, queue: &mut impl Queue, operands: &SelectOperands<'_>, scratch: &DeviceBuffer) -> Result<()> {
        self.0.launch(queue, operands, None, scratch)
    }
}

/// The form of a plain selection.
pub(crate) fn form(item: Element, predicate: Predicate, moved: Moved, order: SelectOrder) -> SelectForm {
    SelectForm { operation: "select", item, predicate, moved, order, extra: "" }
}

/// The items that are marked, on the host.
pub fn select<T: Copy>(input: &[T], is_marked: impl Fn(usize, T) -> bool) -> Vec<T> {
    let items = input.iter().copied().enumerate();
    items.filter(|(row, item)| is_marked(*row, *item)).map(|(_, item)| item).collect()
}
