//! Queries of cubes: a cross-tab for people, rows for programs.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use warpcube_cube::aggregate::{self, Decision};
use warpcube_cube::answer::CubeError;
use warpcube_cube::view::cross_tab_text;
use warpcube_sql::{Connection, CubeAnswer, CubeQueryOptions, FORMATS, Format, OpenCube, Progress, SqlError};

use super::args::QueryArgs;
use super::follow;
use crate::console::{self, tell};
use crate::error::{CliError, Result};
use crate::escape;
use crate::footer::{counted, time};
use crate::host::Host;
use crate::output::{Layout, Output, Target};

/// Rows that are made and written at once.
const BATCH_ROWS: usize = 1 << 15;
/// Terminals that say they are narrower than this many characters do not know their width.
const NARROWEST: u16 = 20;

/// Answers one query.
pub(super) fn run(arguments: &QueryArgs, connection: &Connection, host: &Host) -> Result<()> {
    let format = match &arguments.format {
        Some(name) => {
            name.parse().map_err(|_| CliError::Usage(format!("--format {name}: there are {}", format_names())))?
        }
        None => Format::Auto,
    };
    let cube = super::open(&arguments.cube, connection, host)?;
    let query = arguments.query.join(" ");
    let started = Instant::now();
    let answer = ask(&cube, &query, arguments, connection, host)?;
    let elapsed = started.elapsed();
    let warnings = match &answer {
        CubeAnswer::Table(table) => table.warnings.clone(),
        _ => cube.cube().warnings(&query),
    };
    warnings.iter().for_each(|warning| tell(format_args!("warning: {warning}")));
    let is_cross_tab = format == Format::Auto && arguments.output.is_none();
    let output = Target::new(arguments.output.clone());
    let layout = Layout::of(&connection.settings(), false, None);
    let rows = match answer {
        CubeAnswer::Table(table) => {
            if arguments.timing {
                let Decision { algorithm, place, .. } = &table.report().decision;
                let place = place.name();
                let cells = counted(table.cells.len() as u64, "cell");
                tell(format_args!("({cells}, {}, {algorithm} on {place})", time(elapsed)));
            }
            if is_cross_tab {
                let cross_tab = table.cross_tab(cube.cube()).map_err(of_cells)?;
                // Names have no control characters left; formats of measures may.
                return console::print(&escape::lines(&cross_tab_text(&cube.cube().model, &cross_tab, width())));
            }
            let table =
                if is_text(&output, format)? { table.without_rests(cube.cube()).map_err(of_cells)? } else { *table };
            let cells = table.long_form(cube.cube(), BATCH_ROWS);
            let schema = cells.schema();
            return write(schema, cells, format, output, layout, host);
        }
        CubeAnswer::Rows(rows) => {
            let rows = if is_text(&output, format)? { rows.without_rests() } else { rows };
            let schema = rows.schema(cube.cube()).map_err(of_cells)?;
            return write(schema, rows.batches(cube.cube(), BATCH_ROWS), format, output, layout, host);
        }
        CubeAnswer::Text(text) if is_cross_tab => return console::print(&escape::lines(&text)),
        CubeAnswer::Text(_) => {
            let reason = "explain at gives a text, which has no format and no file: leave --format and --output out";
            return Err(CliError::Usage(reason.into()));
        }
        CubeAnswer::Source(cell) => {
            let progress = Arc::new(aggregate::Progress::new());
            let (connection, followed) = (connection.clone(), progress.clone());
            let how_far = move || Progress { done: followed.done(), total: 0, loading: false };
            follow(host, "reading the source", how_far, async move {
                Ok(connection.cube_source(cube, cell, progress).await?)
            })?
        }
    };
    let schema = rows.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
    write(schema, rows.into_iter().map(Ok), format, output, layout, host)
}

fn ask(
    cube: &Arc<OpenCube>,
    query: &str,
    arguments: &QueryArgs,
    connection: &Connection,
    host: &Host,
) -> Result<CubeAnswer> {
    let options = CubeQueryOptions { algorithm: arguments.algorithm, targets_max: arguments.targets_max };
    let progress = Arc::new(aggregate::Progress::new());
    let followed = progress.clone();
    let how_far = move || Progress { done: followed.done(), total: followed.total(), loading: false };
    let (connection, cube, query) = (connection.clone(), cube.clone(), query.to_string());
    let answer =
        follow(
            host,
            "aggregating",
            how_far,
            async move { Ok(connection.ask_cube(cube, &query, options, progress).await?) },
        );
    answer.map_err(|error| match error {
        CliError::Sql(SqlError::CubeArea(reason)) => {
            CliError::Sql(SqlError::CubeArea(format!("{reason}, or raise --targets-max")))
        }
        error => error,
    })
}

/// Whether rows become a text for people.
fn is_text(output: &Target, format: Format) -> Result<bool> {
    use Format::{Box, Csv, Line, List, Markdown, Table, Tsv};
    Ok(matches!(output.resolve(format)?, Table | Box | Line | Markdown | Csv | Tsv | List))
}

/// The names of all formats, for an error.
fn format_names() -> String {
    let names: Vec<&str> = FORMATS.iter().map(|info| info.name).collect();
    let (last, others) = names.split_last().expect("there are formats");
    format!("{} and {last}", others.join(", "))
}

fn of_cells(error: CubeError) -> SqlError {
    SqlError::CubeCells(error.to_string())
}

/// Writes rows as results of statements are written.
fn write(
    schema: SchemaRef,
    batches: impl Iterator<Item = std::result::Result<RecordBatch, CubeError>>,
    format: Format,
    mut target: Target,
    layout: Layout,
    host: &Host,
) -> Result<()> {
    let mut output = Output::open(&mut target, format, schema, layout)?;
    for batch in batches {
        let batch = batch.map_err(of_cells)?;
        match host.block_on(async { output.write(host, batch).done().await })? {
            Some(rest) => output = rest,
            None => return Ok(()),
        }
    }
    host.block_on(async { output.finish(host).done().await }).map(drop)
}

/// The width of the terminal that is written to.
fn width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let width = comfy_table::Table::new().width().filter(|width| *width >= NARROWEST);
    width.map(usize::from)
}
