//! What a cube is made of.

use std::fmt::Write;
use std::path::Path;

use warpcube_cube::store::{Role, SchemeSize};
use warpcube_sql::{Connection, Progress, cube_info};

use crate::console;
use crate::error::Result;
use crate::footer::{counted, grouped};
use crate::host::Host;

/// Prints the dimensions, measures and sizes of a cube.
pub(super) fn run(folder: &Path, json: bool, storage: bool, connection: &Connection, host: &Host) -> Result<()> {
    let open = super::open(folder, connection, host)?;
    let manifest = cube_info(open.folder())?;
    if json {
        let text = serde_json::to_string_pretty(&manifest).unwrap_or_default();
        return console::print(&(text + "\n"));
    }
    let model = &open.cube().model;
    let mut text = format!("Cube {}, generation {}\n\n", model.name(), manifest.generation);
    let longest = model.dimensions().iter().map(|dimension| dimension.name().chars().count()).max().unwrap_or(0);
    for (dimension, summary) in model.dimensions().iter().zip(&manifest.dimensions) {
        let bases = (0..dimension.base_count() as u32).filter(|base| dimension.at_base(*base).is_some()).count();
        let default = dimension.default_element().map_or("", |element| dimension.element(element).name());
        let _ = writeln!(
            text,
            "  {:longest$}  {:>9} elements, {:>9} base, {}, {:>2} bits, default {default}",
            dimension.name(),
            grouped(summary.elements),
            grouped(bases as u64),
            counted(u64::from(dimension.highest_level().unwrap_or(0)) + 1, "level"),
            summary.bits,
        );
    }
    text.push('\n');
    for measure in model.measures() {
        let over = measure.over.as_ref().map(|over| format!(", {} over {}", over.span, over.dimension));
        let _ = writeln!(text, "  {}: {} of {}{}", measure.name, measure.rule, measure.value, over.unwrap_or_default());
    }
    let columns = || manifest.facts.columns.iter().chain(&manifest.facts.pointers);
    let bytes: u64 = columns().map(|column| column.bytes).sum();
    let cells = manifest.facts.cells;
    let _ = write!(
        text,
        "\n  {} in {} bytes ({:.2} a cell), scheme {}, keys of {} bits\n",
        counted(cells, "cell"),
        grouped(bytes),
        bytes as f64 / cells.max(1) as f64,
        manifest.facts.scheme.to_lowercase(),
        manifest.facts.key_bits,
    );
    for column in columns() {
        let _ = writeln!(text, "    {}: {}, {} bytes", column.name, column.encoding, grouped(column.bytes));
    }
    let segments = &manifest.facts.segments;
    if !segments.is_empty() {
        let removed = counted(segments.iter().map(|segment| segment.removed).sum(), "cell");
        let _ = writeln!(text, "    in {}; later ones replaced {removed}", counted(segments.len() as u64, "segment"));
    }
    if manifest.texts > 0 {
        let _ = writeln!(text, "  {}", counted(manifest.texts, "text"));
    }
    if manifest.aside > 0 {
        let aside = manifest.files.iter().filter(|file| file.role == Role::Aside);
        let files: Vec<String> = aside.map(|file| format!("'{}'", folder.join(&file.name).display())).collect();
        let rows = counted(manifest.aside, "row");
        let _ = writeln!(text, "  {rows} of the source kept aside, in {}", files.join(", "));
    }
    if storage {
        let (connection, folder) = (connection.clone(), open.folder().to_path_buf());
        let work = async move { Ok(connection.cube_scheme_sizes(&folder).await?) };
        let sizes = super::follow(host, "measuring schemes", Progress::default, work)?;
        text.push_str("\n  index of the facts by storage scheme, in bytes:\n");
        for SchemeSize { scheme, bytes } in sizes {
            let _ = match bytes {
                Ok(bytes) => {
                    let each = bytes as f64 / cells.max(1) as f64;
                    writeln!(text, "    {scheme:<14}{:>15}  {each:>8.3} a cell", grouped(bytes))
                }
                Err(reason) => writeln!(text, "    {scheme:<14}{:>15}  {reason}", "none"),
            };
        }
    }
    console::print(&text)
}
