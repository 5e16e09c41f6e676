//! Tables for people.
//!
//! On a terminal only the first rows are kept, and the last line says how many more there are; into a pipe or a file
//! go all. Numbers stand right, NULL is written out.

use std::io::{self, Write};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::util::display::{ArrayFormatter, FormatOptions, array_value_to_string};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use super::ResultWriter;

/// Terminals that say they are narrower than this many characters do not know their width.
const NARROWEST: u16 = 20;

/// Collects rows and writes them as one table.
pub(super) struct TableWriter {
    sink: Box<dyn Write + Send>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    kept: usize,
    rows: usize,
    terminal: bool,
    /// Most rows to write.
    cap: usize,
}

impl TableWriter {
    /// A table of at most `max_rows` rows if it is for a terminal; 0 means all.
    pub(super) fn new(sink: Box<dyn Write + Send>, schema: SchemaRef, terminal: bool, max_rows: usize) -> Self {
        let cap = if terminal && max_rows > 0 { max_rows } else { usize::MAX };
        TableWriter { sink, schema, batches: Vec::new(), kept: 0, rows: 0, terminal, cap }
    }
}

impl ResultWriter for TableWriter {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let keep = batch.num_rows().min(self.cap - self.kept);
        if keep > 0 {
            self.batches.push(batch.slice(0, keep));
        }
        self.kept += keep;
        self.rows += batch.num_rows();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if is_plan(&self.schema) {
            write_plans(&mut self.sink, &self.batches)?;
        } else if !self.schema.fields().is_empty() {
            let table = build(&self.schema, &self.batches, self.terminal).map_err(io::Error::other)?;
            writeln!(self.sink, "{table}")?;
        }
        let more = self.rows - self.kept;
        if more > 0 {
            writeln!(self.sink, "… and {more} more rows of {} (--max-rows 0 shows all)", self.rows)?;
        }
        self.sink.flush()
    }
}

/// Whether the rows are plans, as EXPLAIN gives them.
fn is_plan(schema: &SchemaRef) -> bool {
    schema.fields().iter().map(|field| field.name().as_str()).eq(["plan_type", "plan"])
}

/// Plans are text of many long lines, which columns would only tear apart.
fn write_plans(sink: &mut impl Write, batches: &[RecordBatch]) -> io::Result<()> {
    for batch in batches {
        let text =
            |column: usize, row: usize| array_value_to_string(batch.column(column), row).map_err(io::Error::other);
        for row in 0..batch.num_rows() {
            writeln!(sink, "{}:", text(0, row)?)?;
            for line in text(1, row)?.trim_end().lines() {
                writeln!(sink, "  {line}")?;
            }
        }
    }
    Ok(())
}

fn build(schema: &SchemaRef, batches: &[RecordBatch], terminal: bool) -> Result<Table, arrow::error::ArrowError> {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    // A table that is not for a terminal is as wide as its content, and so is one for a terminal that does not know
    // how wide it is.
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if !terminal || table.width().is_none_or(|width| width < NARROWEST) {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    let aligned = |cell: Cell, column: usize| match schema.field(column).data_type().is_numeric() {
        true => cell.set_alignment(CellAlignment::Right),
        false => cell,
    };
    let names = schema.fields().iter().enumerate();
    table.set_header(names.map(|(column, field)| aligned(Cell::new(field.name()), column)));
    let options = FormatOptions::default().with_null("NULL").with_display_error(true);
    for batch in batches {
        let formatters = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref() as &dyn Array, &options))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let cells = formatters.iter().enumerate();
            table.add_row(cells.map(|(column, formatter)| aligned(Cell::new(formatter.value(row)), column)));
        }
    }
    Ok(table)
}
