//! Tables for people.
//!
//! On a terminal only the first rows are kept, and the last line says how many more there are; into a pipe or a file
//! go all. Numbers stand right and are never broken, NULL is written out, control characters are escaped; a cell may
//! have several lines.

use std::io::{self, Write};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions, array_value_to_string};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};

use super::ResultWriter;
use super::writers::with_days;
use crate::escape;

/// Terminals that say they are narrower than this many characters do not know their width.
const NARROWEST: u16 = 20;
/// Characters that a column has at least, if it has values or a name as long.
const COLUMN_LEAST: usize = 6;
/// Characters between columns.
const BETWEEN: usize = 3;
/// Characters of a column's width beside those of its cells.
const PADDING: usize = 2;
/// The text in the place of columns that are left out.
const LEFT_OUT: &str = "…";

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
            self.batches.push(with_days(&batch.slice(0, keep)).map_err(io::Error::other)?);
        }
        self.kept += keep;
        self.rows += batch.num_rows();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if is_plan(&self.schema) {
            write_plans(&mut self.sink, &self.batches)?;
        } else if !self.schema.fields().is_empty() {
            let (table, shown) = build(&self.schema, &self.batches, self.terminal).map_err(io::Error::other)?;
            writeln!(self.sink, "{table}")?;
            let columns = self.schema.fields().len();
            if shown < columns {
                writeln!(self.sink, "… {shown} of {columns} columns, as many as the terminal has room for")?;
            }
        }
        let more = self.rows - self.kept;
        if more > 0 {
            let all = "--max-rows 0, or SET warpcube.max_rows = 0, shows all";
            writeln!(self.sink, "… and {more} more rows of {} ({all})", self.rows)?;
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
            for line in escape::lines(&text(1, row)?).trim_end().lines() {
                writeln!(sink, "  {line}")?;
            }
        }
    }
    Ok(())
}

/// Whether the values of a column mean another thing when they are broken into lines.
fn is_unbroken(data_type: &DataType) -> bool {
    use DataType::{Boolean, Date32, Date64, Time32, Time64, Timestamp};
    data_type.is_numeric() || matches!(data_type, Boolean | Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..))
}

/// Characters of the longest line of a cell.
fn characters(cell: &str) -> usize {
    cell.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// The columns that are shown where `width` characters are to hold columns that need so many at least: all, or the
/// first and the last ones; and how many come before the gap.
fn shown(needed: &[usize], width: Option<usize>) -> (Vec<usize>, usize) {
    let count = needed.len();
    let least = |column: usize| needed[column] + BETWEEN;
    let fits = |taken: usize| width.is_none_or(|width| taken < width);
    if fits((0..count).map(least).sum()) {
        return ((0..count).collect(), count);
    }
    // One column shows how many are left out; at least one column is shown.
    let (mut first, mut last, mut taken) = (1, 0, least(0) + 1 + BETWEEN);
    loop {
        let is_front = first <= last;
        taken += least(if is_front { first } else { count - 1 - last });
        if !fits(taken) || first + last + 1 >= count {
            return ((0..first).chain(count - last..count).collect(), first);
        }
        if is_front { first += 1 } else { last += 1 }
    }
}

/// The table, and how many of its columns it shows.
fn build(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    terminal: bool,
) -> Result<(Table, usize), arrow::error::ArrowError> {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    // A table that is not for a terminal is as wide as its content, and so is one for a terminal that does not know
    // how wide it is.
    table.set_content_arrangement(ContentArrangement::Dynamic);
    let width = table.width().filter(|width| terminal && *width >= NARROWEST);
    if width.is_none() {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    let options = FormatOptions::default().with_null("NULL").with_display_error(false);
    let names = schema.fields().iter().map(|field| escape::line(field.name()).into_owned());
    let mut rows: Vec<Vec<String>> = vec![names.collect()];
    for batch in batches {
        let formatters = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref() as &dyn Array, &options))
            .collect::<Result<Vec<_>, _>>()?;
        let cell = |formatter: &ArrayFormatter<'_>, row| {
            formatter.value(row).try_to_string().map(|text| escape::lines(&text).into_owned())
        };
        for row in 0..batch.num_rows() {
            rows.push(formatters.iter().map(|formatter| cell(formatter, row)).collect::<Result<_, _>>()?);
        }
    }
    let longest = |column: usize, from: usize| rows[from..].iter().map(|row| characters(&row[column])).max();
    let unbroken = |column: usize| match is_unbroken(schema.field(column).data_type()) {
        true => longest(column, 1).unwrap_or(0),
        false => 0,
    };
    let needed = |column: usize| longest(column, 0).unwrap_or(0).min(COLUMN_LEAST).max(unbroken(column));
    let needed: Vec<usize> = (0..schema.fields().len()).map(needed).collect();
    let unbroken: Vec<usize> = (0..schema.fields().len()).map(unbroken).collect();
    let (columns, first) = shown(&needed, width.map(usize::from));
    let with_gap = |mut cells: Vec<Cell>| {
        if columns.len() < schema.fields().len() {
            cells.insert(first, Cell::new(LEFT_OUT));
        }
        cells
    };
    let aligned = |cell: Cell, column: usize| match schema.field(column).data_type().is_numeric() {
        true => cell.set_alignment(CellAlignment::Right),
        false => cell,
    };
    let mut rows = rows
        .iter()
        .map(|row| with_gap(columns.iter().map(|column| aligned(Cell::new(&row[*column]), *column)).collect()));
    table.set_header(rows.next().expect("the names"));
    for row in rows {
        table.add_row(row);
    }
    let is_gapped = columns.len() < schema.fields().len();
    for (place, column) in columns.iter().enumerate() {
        let place = place + usize::from(is_gapped && place >= first);
        let width = u16::try_from(unbroken[*column] + PADDING).unwrap_or(u16::MAX);
        if let Some(column) = table.column_mut(place).filter(|_| unbroken[*column] > 0) {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
        }
    }
    Ok((table, columns.len()))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use arrow::array::{ArrayRef, Int64Array};

    use super::*;

    #[test]
    fn wide_tables_leave_out_columns_in_the_middle() {
        assert_eq!(shown(&[6; 5], None), ((0..5).collect(), 5));
        assert_eq!(shown(&[6; 5], Some(46)), ((0..5).collect(), 5));
        assert_eq!(shown(&[6; 6], Some(46)), (vec![0, 1, 4, 5], 2));
        assert_eq!(shown(&[2; 9], Some(46)), ((0..9).collect(), 9), "short values need no more");
        assert_eq!(shown(&[6; 80], Some(20)), (vec![0], 1));
        assert_eq!(shown(&[19, 19, 6], Some(46)), (vec![0, 2], 1), "numbers need all their digits");
    }

    /// A sink whose content can still be read.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(terminal: bool, max_rows: usize) -> String {
        let sink = Shared::default();
        let batch = |from: i64| {
            let rows: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 150));
            RecordBatch::try_from_iter([("n", rows)]).unwrap()
        };
        let mut writer = TableWriter::new(Box::new(sink.clone()), batch(0).schema(), terminal, max_rows);
        writer.write(&batch(0)).unwrap();
        writer.write(&batch(150)).unwrap();
        writer.finish().unwrap();
        let text = sink.0.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_terminal_gets_the_first_rows_and_is_told_of_the_others() {
        let rows = |text: &str| text.lines().filter(|line| line.starts_with('│')).count() - 1;
        let capped = written(true, 100);
        assert_eq!(rows(&capped), 100);
        assert_eq!(
            capped.lines().last(),
            Some("… and 200 more rows of 300 (--max-rows 0, or SET warpcube.max_rows = 0, shows all)")
        );
        let crossing = written(true, 200);
        assert_eq!(rows(&crossing), 200);
        assert!(crossing.contains("│ 199 │") && crossing.contains("… and 100 more rows of 300"), "{crossing}");
        for whole in [written(true, 0), written(true, 300), written(false, 100)] {
            assert_eq!(rows(&whole), 300);
            assert!(!whole.contains("more rows"));
        }
    }
}
