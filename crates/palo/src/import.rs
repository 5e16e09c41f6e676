//! Cells of a cube file as cells of a model. Cells that the server would skip are skipped, counted and shown.

use std::fmt;
use std::io::BufRead;

use hashbrown::HashMap;

use super::cells::{Cell, CellReader, CellValue};
use super::convert::ImportedCube;
use super::error::{PaloError, Result};
use warpcube_cube::model::{ElementId, ElementKind};

/// Skipped cells that a warning shows.
const SHOWN_MAX: usize = 5;

/// A cell by elements of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedCell {
    /// Line in the file, from 1.
    pub line: u64,
    /// Its element in each dimension: base elements for numbers, any element for texts.
    pub elements: Vec<ElementId>,
    /// Its value.
    pub value: CellValue,
}

/// Why a cell was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The dimension has no element of the number.
    Unknown,
    /// A number stands at a consolidated element.
    Consolidated,
    /// A number stands at a text element.
    Text,
}

/// A cell that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedCell {
    /// Line in the file, from 1.
    pub line: u64,
    /// Name of the dimension that the reason lies in.
    pub dimension: String,
    /// The server's number of the element there.
    pub element: u32,
    /// The reason.
    pub reason: Reason,
}

/// The cells that an import skipped; prints as a warning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Number of them.
    pub count: u64,
    /// The first of them, at most 5.
    pub first: Vec<SkippedCell>,
}

impl fmt::Display for SkippedCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            Reason::Unknown => "does not exist",
            Reason::Consolidated => "is consolidated",
            Reason::Text => "holds texts alone",
        };
        write!(f, "line {}: element {} of dimension '{}' {reason}", self.line, self.element, self.dimension)
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cell{} skipped", self.count, if self.count == 1 { " was" } else { "s were" })?;
        for (at, cell) in self.first.iter().enumerate() {
            write!(f, "{} {cell}", if at == 0 { ":" } else { ";" })?;
        }
        match self.count - self.first.len() as u64 {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// Maps the cells of a cube file to a model's elements; an iterator that ends after its first error.
#[derive(Debug)]
pub struct CellImport<'a, R> {
    cells: CellReader<R>,
    header_line: u64,
    cube: &'a ImportedCube,
    ids: Vec<HashMap<u32, ElementId>>,
    skipped: Skipped,
    failed: bool,
}

impl<'a, R: BufRead> CellImport<'a, R> {
    /// An import of the file that holds the cells of `cube`.
    ///
    /// # Errors
    /// [`PaloError::Line`] if the file is that of another cube or of another number of dimensions; the errors of
    /// [`CellReader::new`].
    pub fn new(cube: &'a ImportedCube, input: R) -> Result<Self> {
        let cells = CellReader::new(input)?;
        let (header, name) = (cells.header(), cube.model.name());
        let problem = if header.cube != cube.id {
            Some(format!("the file holds cube {}, cube '{name}' has number {}", header.cube, cube.id))
        } else if header.sizes.len() != cube.origins.len() {
            Some(format!("the file has {} dimensions, cube '{name}' {}", header.sizes.len(), cube.origins.len()))
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(PaloError::Line { line: cells.line(), problem });
        }
        let pairs = cube.origins.iter().zip(cube.model.dimensions());
        let ids = pairs.map(|(origin, dimension)| origin.by_palo_id(dimension)).collect();
        let header_line = cells.line();
        Ok(Self { cells, header_line, cube, ids, skipped: Skipped::default(), failed: false })
    }

    /// Where the file says a number of elements of a dimension that the database cannot have had: the line of its
    /// header, the dimension, the number of the file and that of the database. Numbers of elements that were deleted
    /// may count.
    pub fn other_size(&self) -> Option<(u64, &str, u32, usize)> {
        let sizes = self.cells.header().sizes.iter().zip(self.cube.model.dimensions()).zip(&self.ids);
        let mut others = sizes.filter(|((size, dimension), ids)| {
            let (count, numbers) = (dimension.elements().len() as u32, ids.keys().max().map_or(0, |most| most + 1));
            !(count..=numbers.max(count)).contains(*size)
        });
        let ((size, dimension), _) = others.next()?;
        Some((self.header_line, dimension.name(), *size, dimension.elements().len()))
    }

    /// The cells skipped so far.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// The elements of a cell; `None` if it was skipped.
    fn map(&mut self, cell: &Cell) -> Option<Vec<ElementId>> {
        let mut elements = Vec::with_capacity(cell.path.len());
        for (at, palo_id) in cell.path.iter().enumerate() {
            let dimension = &self.cube.model.dimensions()[at];
            let id = self.ids[at].get(palo_id).copied();
            let kind = id.map(|id| dimension.element(id).kind());
            let reason = match (kind, &cell.value) {
                (None, _) => Reason::Unknown,
                (Some(ElementKind::Consolidated), CellValue::Number(_)) => Reason::Consolidated,
                (Some(ElementKind::Text), CellValue::Number(_)) => Reason::Text,
                (Some(_), _) => {
                    elements.extend(id);
                    continue;
                }
            };
            self.skipped.count += 1;
            if self.skipped.first.len() < SHOWN_MAX {
                let dimension = dimension.name().to_owned();
                self.skipped.first.push(SkippedCell { line: cell.line, dimension, element: *palo_id, reason });
            }
            return None;
        }
        Some(elements)
    }
}

impl<R: BufRead> Iterator for CellImport<'_, R> {
    type Item = Result<ImportedCell>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut cell = Cell { line: 0, path: Vec::new(), value: CellValue::Number(0.0) };
        while !self.failed {
            match self.cells.read(&mut cell) {
                Ok(false) => return None,
                Ok(true) => {
                    if let Some(elements) = self.map(&cell) {
                        return Some(Ok(ImportedCell { line: cell.line, elements, value: cell.value }));
                    }
                }
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
