//! Tables for people.
//!
//! On a terminal only the first rows are kept, and the last line says how many more there are; into a pipe or a file
//! go all. Numbers stand right and are never broken, NULL is written out, control characters are escaped; a cell may
//! have several lines. What is larger than the screen of a shell with a pager is left to that, with all columns.

use std::io::{self, Write};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions, array_value_to_string};
use comfy_table::presets::{ASCII_MARKDOWN, UTF8_FULL_CONDENSED};
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};
use warpcube_door::writers::ResultWriter;
use warpcube_sql::{Expanded, Format, shown_values};

use super::Layout;
use crate::escape;

/// Terminals that say they are narrower than this many characters do not know their width.
const NARROWEST: u16 = 20;
/// Characters that a column has at least, if it has values or a name as long.
const COLUMN_LEAST: usize = 6;
/// Characters between columns.
const BETWEEN: usize = 3;
/// Characters of a column's width beside those of its cells.
const PADDING: usize = 2;
/// [`UTF8_FULL_CONDENSED`] with whole lines between columns.
const SOLID: &str = "││──╞═╪╡│    ┬┴┌┐└┘";
/// The text in the place of columns that are left out.
const LEFT_OUT: &str = "…";

/// The form of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// As wide as the terminal.
    Table,
    /// [`Style::Table`], or [`Style::Line`] where that is too narrow.
    Auto,
    /// All rows and columns.
    Box,
    /// One line a value.
    Line,
    /// A table of Markdown.
    Markdown,
}

impl Style {
    /// The style of a format; none if that is not for people.
    pub(super) fn of(format: Format, layout: &Layout) -> Option<Style> {
        match format {
            Format::Auto | Format::Table | Format::Box if layout.expanded == Expanded::On => Some(Style::Line),
            Format::Auto | Format::Table if layout.expanded == Expanded::Auto => Some(Style::Auto),
            Format::Auto | Format::Table => Some(Style::Table),
            Format::Box => Some(Style::Box),
            Format::Line => Some(Style::Line),
            Format::Markdown => Some(Style::Markdown),
            _ => None,
        }
    }
}

/// Collects rows and writes them as one table.
pub(super) struct TableWriter {
    sink: Box<dyn Write + Send>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    kept: usize,
    rows: usize,
    style: Style,
    terminal: bool,
    layout: Layout,
    /// Most rows to write.
    cap: usize,
}

impl TableWriter {
    /// A table; one for a terminal has as many rows as the layout says.
    pub(super) fn new(
        sink: Box<dyn Write + Send>,
        schema: SchemaRef,
        style: Style,
        terminal: bool,
        layout: Layout,
    ) -> Self {
        let is_capped = terminal && layout.rows_max > 0 && style != Style::Box;
        let cap = if is_capped { layout.rows_max } else { usize::MAX };
        TableWriter { sink, schema, batches: Vec::new(), kept: 0, rows: 0, style, terminal, layout, cap }
    }

    /// The table of these rows, with lines of at most `width` characters.
    pub(super) fn text_of(mut self, batches: Vec<RecordBatch>, width: Option<usize>) -> Result<String, ArrowError> {
        self.batches = batches;
        Ok(self.text(width)?.0)
    }

    /// The table where lines have at most `width` characters, and whether columns are left out for that.
    fn text(&self, width: Option<usize>) -> Result<(String, bool), ArrowError> {
        if is_plan(&self.schema) {
            return Ok((plans(&self.batches)?, false));
        }
        if self.schema.fields().is_empty() {
            return Ok((String::new(), false));
        }
        let rows = self.cells()?;
        match self.style {
            Style::Table | Style::Box => Ok(self.grid(&rows, width.filter(|_| self.style == Style::Table))),
            Style::Auto => {
                let (text, is_cut) = self.grid(&rows, None);
                let widest = text.lines().map(|line| line.chars().count()).max();
                match width.is_some_and(|width| widest > Some(width)) {
                    true => Ok((lines(&rows), false)),
                    false => Ok((text, is_cut)),
                }
            }
            Style::Line => Ok((lines(&rows), false)),
            Style::Markdown => Ok((self.markdown(&rows), false)),
        }
    }

    /// The names of the columns and the texts of all cells.
    fn cells(&self) -> Result<Vec<Vec<String>>, ArrowError> {
        let options = FormatOptions::default().with_null(self.layout.shown_null()).with_display_error(false);
        let names = self.schema.fields().iter().map(|field| escape::line(field.name()).into_owned());
        let mut rows: Vec<Vec<String>> = vec![names.collect()];
        for batch in &self.batches {
            let shown = |column: &ArrayRef| shown_values(column).unwrap_or_else(|| column.clone());
            let columns: Vec<ArrayRef> = batch.columns().iter().map(shown).collect();
            let formatters = columns
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
        Ok(rows)
    }

    /// A table with borders, and whether columns are left out.
    fn grid(&self, rows: &[Vec<String>], width: Option<usize>) -> (String, bool) {
        let count = self.schema.fields().len();
        let (mut table, shown) = build(&self.schema, rows, width);
        if self.style == Style::Box {
            table.load_preset(SOLID);
        }
        let mut text = format!("{table}\n");
        if shown < count {
            text.push_str(&format!(
                "… {shown} of {count} columns, as many as the terminal has room for (format box or line, or \\x in the \
                 shell, shows all)\n"
            ));
        }
        (text, shown < count)
    }

    /// A table of Markdown: bars and line ends of cells are written otherwise.
    fn markdown(&self, rows: &[Vec<String>]) -> String {
        let mut table = Table::new();
        table.load_preset(ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Disabled);
        let is_number: Vec<bool> = self.schema.fields().iter().map(|field| field.data_type().is_numeric()).collect();
        let cell = |(text, is_number): (&String, &bool)| {
            let cell = Cell::new(text.replace('|', "\\|").replace('\n', "<br>"));
            if *is_number { cell.set_alignment(CellAlignment::Right) } else { cell }
        };
        let mut rows = rows.iter().map(|row| row.iter().zip(&is_number).map(cell).collect::<Vec<_>>());
        table.set_header(rows.next().expect("the names"));
        table.add_rows(rows);
        let text = table.to_string();
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        // The second line says which columns stand right.
        let dashes: Vec<&str> = lines[1].trim_matches('|').split('|').collect();
        let dashes = dashes.iter().zip(&is_number).map(|(dashes, is_number)| match is_number {
            true => format!("{}:", &dashes[1..]),
            false => dashes.to_string(),
        });
        lines[1] = format!("|{}|", dashes.collect::<Vec<_>>().join("|"));
        lines.join("\n") + "\n"
    }
}

/// One line a value, with an empty line between rows; further lines of a value stand under its first.
fn lines(rows: &[Vec<String>]) -> String {
    let (names, rows) = rows.split_first().expect("the names");
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let below = format!("\n{}", " ".repeat(width + BETWEEN));
    let value = |(name, text): (&String, &String)| format!("{name:>width$} = {}\n", text.replace('\n', &below));
    let row = |row: &Vec<String>| names.iter().zip(row).map(value).collect::<String>();
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
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
        // A terminal that does not know how wide it is gets a table as wide as its content, and so does a file.
        let width = Table::new().width().filter(|width| self.terminal && *width >= NARROWEST).map(usize::from);
        let (mut text, is_cut) = self.text(width).map_err(io::Error::other)?;
        let more = match self.rows - self.kept {
            0 => String::new(),
            more => {
                let all = "--max-rows 0, or SET warpcube.max_rows = 0, shows all";
                format!("… and {more} more rows of {} ({all})\n", self.rows)
            }
        };
        if let Some(screen) = self.layout.screen.as_ref().filter(|_| self.terminal) {
            let is_long = text.lines().count() + more.lines().count() > screen.lines;
            let is_wide = || text.lines().any(|line| line.chars().count() > screen.columns);
            if is_cut || is_long || is_wide() {
                let (whole, _) =
                    self.text(if self.style == Style::Auto { width } else { None }).map_err(io::Error::other)?;
                // A result is finished once.
                let _ = screen.page.set(whole + &more);
                return Ok(());
            }
        }
        text.push_str(&more);
        self.sink.write_all(text.as_bytes())?;
        self.sink.flush()
    }
}

/// Whether the rows are plans, as EXPLAIN gives them.
fn is_plan(schema: &SchemaRef) -> bool {
    schema.fields().iter().map(|field| field.name().as_str()).eq(["plan_type", "plan"])
}

/// Plans are text of many long lines, which columns would only tear apart.
fn plans(batches: &[RecordBatch]) -> Result<String, ArrowError> {
    let mut plans = String::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            plans.push_str(&format!("{}:\n", array_value_to_string(batch.column(0), row)?));
            for line in escape::lines(&array_value_to_string(batch.column(1), row)?).trim_end().lines() {
                plans.push_str(&format!("  {line}\n"));
            }
        }
    }
    Ok(plans)
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

/// The table of these names and cells, and how many of its columns it shows.
fn build(schema: &SchemaRef, rows: &[Vec<String>], width: Option<usize>) -> (Table, usize) {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_content_arrangement(match width {
        Some(_) => ContentArrangement::Dynamic,
        None => ContentArrangement::Disabled,
    });
    let longest = |column: usize, from: usize| rows[from..].iter().map(|row| characters(&row[column])).max();
    let unbroken = |column: usize| match is_unbroken(schema.field(column).data_type()) {
        true => longest(column, 1).unwrap_or(0),
        false => 0,
    };
    let needed = |column: usize| longest(column, 0).unwrap_or(0).min(COLUMN_LEAST).max(unbroken(column));
    let needed: Vec<usize> = (0..schema.fields().len()).map(needed).collect();
    let unbroken: Vec<usize> = (0..schema.fields().len()).map(unbroken).collect();
    let (columns, first) = shown(&needed, width);
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
    (table, columns.len())
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
        let (null, separator) = (None, None);
        let layout =
            Layout { rows_max: max_rows, expanded: Expanded::Off, null, has_header: true, separator, screen: None };
        let mut writer = TableWriter::new(Box::new(sink.clone()), batch(0).schema(), Style::Table, terminal, layout);
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
