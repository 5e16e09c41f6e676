//! Kernels, and functions of a scan's last block, that work on one row a thread, by its number in the table.

use warpcube_column::ColumnReader;

use crate::arena::{Arena, Region};
use crate::codegen::filters::{Filters, Site};
use crate::codegen::memory::Operands;
use crate::codegen::params::{Argument, ParamList};
use crate::codegen::rows::{RowWriter, Statements};
use crate::error::Result;
use crate::plan::input::PipelineInput;

/// A kernel or function that works on single rows: its parameters, and how it reads columns.
pub(super) struct RowKernel<'a> {
    input: &'a PipelineInput<'a>,
    operands: Operands<'a>,
    pub(super) params: ParamList,
    readers: Vec<ColumnReader>,
    /// Parameters that the scan has too.
    pub(super) control: String,
    first_rows: String,
    chunk_rows: String,
    segments: String,
    chunks: String,
    /// What leaves out rows that are not there, where the device has counted them.
    held: String,
    /// What its filters wrote.
    filters: Vec<Site>,
}

impl<'a> RowKernel<'a> {
    pub(super) fn new(input: &'a PipelineInput<'a>, operands: Operands<'a>, first_rows: Region) -> RowKernel<'a> {
        let (mut params, scan) = (ParamList::default(), operands.scan);
        let control = params.add("uint64_t*", Argument::Region(operands.control.region));
        let first_rows = params.add("const uint64_t*", Argument::Region(first_rows));
        let chunk_rows = params.add("const uint32_t*", Argument::Region(scan.chunk_rows));
        let segments = params.add("const uint64_t*", Argument::Region(scan.segments));
        let chunks = params.add("uint64_t", Argument::U64(scan.chunks.into()));
        let readers = input.columns.iter().enumerate();
        let readers = readers
            .map(|(column, view)| {
                ColumnReader::new(column, view.layout.clone(), view.nullable, |c_type, constant| {
                    params.constant(c_type, constant)
                })
            })
            .collect();
        let filters = Vec::new();
        let leave_out = |test: String| test + "        if (number >= counted) continue;\n        (void)first_row;\n";
        let held = scan
            .count
            .map(|count| leave_out(count.declare(&mut params, Argument::Region(count.first_rows))))
            .unwrap_or_default();
        RowKernel { input, operands, params, readers, control, first_rows, chunk_rows, segments, chunks, held, filters }
    }

    /// The statements of one row.
    pub(super) fn rows(
        &mut self,
        arena: &mut Arena,
        write: impl FnOnce(&mut RowWriter) -> Result<()>,
    ) -> Result<String> {
        let mut next = 0;
        let of = (self.input, self.operands);
        let mut rows = RowWriter::new(of, &self.readers, &mut self.params, arena, &self.control, &mut next, &[]);
        write(&mut rows)?;
        let Statements { row, filters, .. } = rows.finish(false);
        self.filters.extend(filters);
        Ok(row)
    }

    /// What its filters wrote, once it is written.
    pub(super) fn filters(&mut self) -> Filters {
        let (sites, error_slot) = (std::mem::take(&mut self.filters), self.control.clone());
        Filters { sites, error_slot, overflow: self.input.overflow, ..Filters::default() }
    }

    /// The parameter struct and the kernel: `head` first, then for each `i` below `count` the row whose number `number`
    /// declares.
    pub(super) fn source(&self, name: &str, head: &str, count: &str, number: &str, statements: &str) -> String {
        let first = "(uint64_t)blockIdx.x * blockDim.x + threadIdx.x";
        let body = self.body((head, first, "(uint64_t)gridDim.x * blockDim.x"), count, number, statements);
        self.params.declaration(&format!("{name}_params")) + &format!("WC_KERNEL({name}, {name}_params, 256, 1) {body}")
    }

    /// The parameter struct and a function for the threads of one block, of a grid of `blocks`; otherwise as the
    /// kernel.
    pub(super) fn function(&self, name: &str, head: &str, count: &str, number: &str, statements: &str) -> String {
        let body = self.body((head, "threadIdx.x", "blockDim.x"), count, number, statements);
        let signature = format!("WC_DEVICE void {name}(const {name}_params& p, uint64_t blocks) ");
        self.params.declaration(&format!("{name}_params")) + &signature + &body
    }

    fn body(&self, (head, first, step): (&str, &str, &str), count: &str, number: &str, statements: &str) -> String {
        let RowKernel { first_rows, chunk_rows, segments, chunks, .. } = self;
        let columns: String = self.readers.iter().map(ColumnReader::pointers).collect();
        let held = &self.held;
        format!(
            "{{
{head}    const uint64_t step = {step};
    for (uint64_t i = {first}; i < {count}; i += step) {{
        {number}
        const uint32_t chunk = wc_chunk_of_row({first_rows}, (uint32_t){chunks}, number);
        const uint32_t row = (uint32_t)(number - wc_load_cached({first_rows} + chunk));
        const uint32_t rows_here = wc_load_cached({chunk_rows} + chunk);
        const uint64_t* const pointers = {segments} + (uint64_t)chunk * {};
        (void)rows_here;
        (void)pointers;
{held}{columns}        auto process = [&]() {{
(void)row;
{statements}        }};
        process();
    }}
}}
",
            self.input.columns.len() * 2
        )
    }
}
