//! Cells of a cube file as facts and texts.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use hashbrown::{HashMap, HashSet};

use super::error::{CatalogError, Result};
use crate::{CellImport, CellValue, ImportedCell, ImportedCube, Skipped, VALUE_MEASURE};
use warpcube_cube::facts::{
    FactColumn, FactMeasure, Facts, FactsError, InputColumn, InputValues, Loader, PAGE_CELLS, Rule, ValueType, Values,
};
use warpcube_cube::model::ElementId;
use warpcube_cube::store::TextCell;

/// Cells that are handed to the loader at once.
const BATCH_CELLS: usize = 1 << 16;

/// The cells of a cube.
#[derive(Debug)]
pub(super) struct PaloCells {
    pub(super) facts: Facts,
    /// In the order of the file, one a cell.
    pub(super) texts: Vec<TextCell>,
    /// Cells of the file that the server would skip, too.
    pub(super) skipped: Skipped,
    pub(super) findings: Vec<Finding>,
}

/// What a cell file says twice or otherwise than `database.csv`, which counts; its import goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The cell file.
    pub file: String,
    /// The first line that it is about, from 1.
    pub line: u64,
    /// What is there, and what the import took.
    pub text: String,
}

/// Reads a cell file. Of several values of one cell the last one stays, as on the server, which is a finding.
///
/// # Errors
/// [`CatalogError::Palo`] with line and field, [`CatalogError::Io`], [`CatalogError::Facts`].
pub(super) fn read(cube: &ImportedCube, path: &Path) -> Result<PaloCells> {
    let mut import = open(cube, path)?;
    let mut texts = Texts::default();
    let mut rows = Rows::new(cube);
    let mut repeated = Repeated::default();
    for cell in &mut import {
        let ImportedCell { line, elements, value } = cell.map_err(CatalogError::palo(path))?;
        match value {
            CellValue::Number(number) => rows.push(&elements, number).map_err(refused(path))?,
            CellValue::Text(text) => {
                if texts.push(elements, text) {
                    repeated.add(line);
                }
            }
        }
    }
    let skipped = import.skipped().clone();
    let size = import.other_size().map(|(line, dimension, said, found)| {
        let text = format!("[CUBE] says {said} elements of '{dimension}', the database has {found}, which counts");
        (line, text)
    });
    let folded = rows.finish().map_err(refused(path))?;
    let mut values = numbers(&folded).to_vec();
    if let Some(counts) = folded.base().row_counts() {
        let is_repeated = |index: &usize| counts[*index] > 1;
        let mut seen = HashSet::new();
        for cell in open(cube, path)? {
            let ImportedCell { line, elements, value } = cell.map_err(CatalogError::palo(path))?;
            if let CellValue::Number(number) = value
                && let Some(index) = folded.find(&coordinates(cube, &elements)).filter(is_repeated)
            {
                // The facts hold no −0.0.
                values[index] = number + 0.0;
                if !seen.insert(index) {
                    repeated.add(line);
                }
            }
        }
    }
    let facts = summed(&folded, values).map_err(refused(path))?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let finding = |(line, text)| Finding { file: file.to_string(), line, text };
    let findings = size.into_iter().chain(repeated.told()).map(finding).collect();
    Ok(PaloCells { facts, texts: texts.cells, skipped, findings })
}

/// Cells that a file writes again.
#[derive(Default)]
struct Repeated {
    count: u64,
    /// The least line of one.
    line: Option<u64>,
}

impl Repeated {
    fn add(&mut self, line: u64) {
        self.count += 1;
        self.line = Some(self.line.map_or(line, |least| least.min(line)));
    }

    fn told(self) -> Option<(u64, String)> {
        let text = match self.count {
            1 => "the cell was written before; this value counts".to_string(),
            count => format!("{count} cells from here on were written before; their last values count"),
        };
        self.line.map(|line| (line, text))
    }
}

/// The facts of a cube without cells.
pub(super) fn none(cube: &ImportedCube) -> Result<Facts, FactsError> {
    let folded = Rows::new(cube).finish()?;
    summed(&folded, Vec::new())
}

fn refused(path: &Path) -> impl Fn(FactsError) -> CatalogError {
    let path = path.to_path_buf();
    move |source| CatalogError::Facts { path: path.clone(), source }
}

fn open<'a>(cube: &'a ImportedCube, path: &Path) -> Result<CellImport<'a, BufReader<File>>> {
    let file = File::open(path).map_err(CatalogError::io(path, "read"))?;
    CellImport::new(cube, BufReader::new(file)).map_err(CatalogError::palo(path))
}

/// Coordinates of a cell of base elements.
fn coordinates(cube: &ImportedCube, elements: &[ElementId]) -> Vec<u32> {
    let pairs = cube.model.dimensions().iter().zip(elements);
    pairs.map(|(dimension, id)| dimension.element(*id).base().expect("numbers lie at base elements")).collect()
}

/// The values of facts in one segment of one measure of doubles.
pub(super) fn numbers(facts: &Facts) -> &[f64] {
    match facts.base().columns() {
        [FactColumn { values: Values::Doubles(values), .. }] => values,
        _ => unreachable!("an imported cube has one measure of doubles"),
    }
}

/// The facts with the values and the rule of an imported cube.
fn summed(folded: &Facts, values: Vec<f64>) -> Result<Facts, FactsError> {
    let measure = FactMeasure::new(VALUE_MEASURE, Rule::Sum, ValueType::Double);
    let column = FactColumn { measure, values: Values::Doubles(values), filled: None, counts: None };
    Facts::from_parts(folded.layout().clone(), folded.base().keys().clone(), vec![column], None, PAGE_CELLS)
}

/// Cells on their way to the loader, which keeps the greatest of several values of a cell: a sum might overflow.
struct Rows<'a> {
    cube: &'a ImportedCube,
    loader: Loader,
    coordinates: Vec<Vec<u32>>,
    values: Vec<f64>,
}

impl<'a> Rows<'a> {
    fn new(cube: &'a ImportedCube) -> Rows<'a> {
        let measure = FactMeasure::new(VALUE_MEASURE, Rule::Max, ValueType::Double);
        let loader = Loader::new(cube.model.layout().clone(), vec![measure]);
        Rows { cube, loader, coordinates: vec![Vec::new(); cube.model.dimensions().len()], values: Vec::new() }
    }

    fn push(&mut self, elements: &[ElementId], value: f64) -> Result<(), FactsError> {
        let cell = coordinates(self.cube, elements);
        self.coordinates.iter_mut().zip(cell).for_each(|(column, coordinate)| column.push(coordinate));
        self.values.push(value);
        if self.values.len() == BATCH_CELLS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), FactsError> {
        let columns: Vec<&[u32]> = self.coordinates.iter().map(Vec::as_slice).collect();
        let values = InputColumn { values: InputValues::Doubles(&self.values), filled: None };
        self.loader.append(&columns, &[values])?;
        self.coordinates.iter_mut().for_each(Vec::clear);
        self.values.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Facts, FactsError> {
        self.flush()?;
        self.loader.finish(PAGE_CELLS)
    }
}

#[derive(Default)]
struct Texts {
    cells: Vec<TextCell>,
    places: HashMap<Vec<ElementId>, usize>,
}

impl Texts {
    /// Adds a text; true if its cell had one, which it replaces.
    fn push(&mut self, elements: Vec<ElementId>, text: String) -> bool {
        match self.places.get(&elements) {
            Some(place) => {
                self.cells[*place].text = text;
                true
            }
            None => {
                self.places.insert(elements.clone(), self.cells.len());
                self.cells.push(TextCell { elements, text });
                false
            }
        }
    }
}
