//! Facts and texts of a cube as a cell file.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

use hashbrown::{HashMap, HashSet};
use rayon::prelude::*;

use super::error::{CatalogError, Result};
use super::facts::numbers;
use crate::{Cell, CellReader, CellValue, CellWriter, CubeHeader, PaloError};
use warpcube_cube::facts::Facts;
use warpcube_cube::model::{CubeModel, Dimension, ElementId};
use warpcube_cube::store::TextCell;
use warpcube_cube::store::{DimensionOrigin, LineEnd};

/// The cells of a cube with the server's numbers of all elements.
pub(super) struct CellFile<'a> {
    model: &'a CubeModel,
    origins: &'a [DimensionOrigin],
    facts: &'a Facts,
    texts: &'a [TextCell],
    header: CubeHeader,
    line_end: LineEnd,
    /// By dimension and coordinate, the server's number of the element.
    numbers: Vec<Vec<Option<u32>>>,
}

impl<'a> CellFile<'a> {
    /// The cell file of a cube whose facts lie in one segment.
    pub(super) fn new(
        (model, origins): (&'a CubeModel, &'a [DimensionOrigin]),
        (facts, texts): (&'a Facts, &'a [TextCell]),
        header: CubeHeader,
        line_end: LineEnd,
    ) -> CellFile<'a> {
        let number = |dimension: &Dimension, origin: &DimensionOrigin, base: u32| {
            dimension.at_base(base).and_then(|id| origin.palo_id(id))
        };
        let numbers = model.dimensions().iter().zip(origins).map(|(dimension, origin)| {
            (0..dimension.base_count() as u32).map(|base| number(dimension, origin, base)).collect()
        });
        CellFile { numbers: numbers.collect(), model, origins, facts, texts, header, line_end }
    }

    /// Writes numbers by ascending paths, and texts in their order.
    ///
    /// # Errors
    /// [`PaloError::Unwritable`] for a cell of an element without a number; [`PaloError::Write`].
    pub(super) fn write<W: Write>(&self, out: W) -> Result<W, PaloError> {
        let mut writer = CellWriter::new(out, &self.header, self.line_end)?;
        let mut path = Vec::new();
        for fact in self.by_path() {
            self.write_fact(&mut writer, fact, &mut path)?;
        }
        for text in self.texts {
            writer.write(&self.text_path(text)?, &CellValue::Text(text.text.clone()))?;
        }
        writer.finish()
    }

    /// Writes the cells in the order of a file that held former ones: cells that the file does not have come last,
    /// cells that the model never had stay as they are in the file, cells at elements that were removed go.
    ///
    /// # Errors
    /// As [`CellFile::write`], and the errors of the file.
    pub(super) fn write_like<W: Write>(&self, former: &Path, (out, target): (W, &Path)) -> Result<W> {
        let (of_file, written) = (CatalogError::palo, || CatalogError::palo(target));
        let open = || -> Result<_> {
            let file = File::open(former).map_err(CatalogError::io(former, "read"))?;
            CellReader::new(BufReader::new(file)).map_err(of_file(former))
        };
        let mut writer = CellWriter::new(out, &self.header, self.line_end).map_err(written())?;
        let (places, removed) = (self.places(), self.removed());
        let is_removed = |path: &[u32]| path.iter().zip(&removed).any(|(number, removed)| removed.contains(number));
        let mut is_written = vec![false; self.facts.len()];
        let mut path = Vec::new();
        for cell in open()? {
            let cell = cell.map_err(of_file(former))?;
            let CellValue::Number(_) = cell.value else { continue };
            if is_removed(&cell.path) {
                continue;
            }
            match self.coordinates(&places, &cell.path) {
                None => writer.write(&cell.path, &cell.value).map_err(written())?,
                Some(coordinates) => {
                    let fact = self.facts.find(&coordinates);
                    if let Some(fact) = fact.filter(|fact| !std::mem::replace(&mut is_written[*fact], true)) {
                        self.write_fact(&mut writer, fact, &mut path).map_err(written())?;
                    }
                }
            }
        }
        for fact in self.by_path().into_iter().filter(|fact| !is_written[*fact]) {
            self.write_fact(&mut writer, fact, &mut path).map_err(written())?;
        }
        let texts = self.texts.iter().map(|text| Ok((self.text_path(text)?, text.text.as_str())));
        let texts = texts.collect::<Result<Vec<_>, PaloError>>().map_err(written())?;
        let texts = Texts { is_written: vec![false; texts.len()], texts: &texts };
        let former = open()?.map(|cell| cell.map_err(of_file(former)));
        let former = former.filter(|cell| cell.as_ref().map_or(true, |cell| !is_removed(&cell.path)));
        texts.write_like(former, &places, &mut |path, text| {
            writer.write(path, &CellValue::Text(text.to_owned())).map_err(written())
        })?;
        writer.finish().map_err(written())
    }

    /// Facts by ascending paths.
    fn by_path(&self) -> Vec<usize> {
        let facts = 0..self.facts.len();
        if self.numbers.iter().all(|numbers| numbers.is_sorted()) {
            // Keys ascend like paths.
            return facts.collect();
        }
        let ranks: Vec<Vec<u32>> = self.numbers.iter().map(|numbers| ranks(numbers)).collect();
        let layout = self.facts.layout();
        let key = |fact: usize| {
            let cell = self.facts.cell(fact);
            let ranked = cell.iter().zip(&ranks).map(|(coordinate, ranks)| ranks[*coordinate as usize]);
            (layout.pack(&ranked.collect::<Vec<u32>>()), fact)
        };
        let mut keys: Vec<(u128, usize)> = facts.into_par_iter().map(key).collect();
        keys.par_sort_unstable();
        keys.into_iter().map(|(_, fact)| fact).collect()
    }

    fn write_fact<W: Write>(
        &self,
        writer: &mut CellWriter<W>,
        fact: usize,
        path: &mut Vec<u32>,
    ) -> Result<(), PaloError> {
        path.clear();
        for (numbers, (coordinate, dimension)) in
            self.numbers.iter().zip(self.facts.cell(fact).into_iter().zip(self.model.dimensions()))
        {
            let removed = || {
                let name = dimension.name();
                PaloError::Unwritable(format!("a cell lies at a removed element of dimension '{name}'"))
            };
            path.push(numbers[coordinate as usize].ok_or_else(removed)?);
        }
        writer.write(path, &CellValue::Number(numbers(self.facts)[fact]))
    }

    fn text_path(&self, text: &TextCell) -> Result<Vec<u32>, PaloError> {
        let numbers = text.elements.iter().zip(self.origins).map(|(id, origin)| origin.palo_id(*id));
        numbers.collect::<Option<Vec<u32>>>().ok_or_else(|| {
            PaloError::Unwritable(format!("a text of cube '{}' lies at an element without a number", self.model.name()))
        })
    }

    /// Elements of each dimension by the server's numbers.
    fn places(&self) -> Vec<HashMap<u32, ElementId>> {
        let of_dimension = |(dimension, origin): (&Dimension, &DimensionOrigin)| {
            dimension.elements().iter().filter_map(|id| Some((origin.palo_id(*id)?, *id))).collect()
        };
        self.model.dimensions().iter().zip(self.origins).map(of_dimension).collect()
    }

    /// The server's numbers of elements that were removed, by dimension.
    fn removed(&self) -> Vec<HashSet<u32>> {
        let of_dimension = |(dimension, origin): (&Dimension, &DimensionOrigin)| {
            let ids = (0..dimension.id_count() as u32).map(ElementId::new);
            ids.filter(|id| dimension.get(*id).is_none()).filter_map(|id| origin.palo_id(id)).collect()
        };
        self.model.dimensions().iter().zip(self.origins).map(of_dimension).collect()
    }

    /// Coordinates of a path of base elements; nothing for other paths.
    fn coordinates(&self, places: &[HashMap<u32, ElementId>], path: &[u32]) -> Option<Vec<u32>> {
        let elements = path.iter().zip(places).zip(self.model.dimensions());
        elements.map(|((number, places), dimension)| dimension.element(*places.get(number)?).base()).collect()
    }
}

/// Texts by path, and which of them are written.
struct Texts<'a> {
    texts: &'a [(Vec<u32>, &'a str)],
    is_written: Vec<bool>,
}

impl Texts<'_> {
    fn write_like(
        mut self,
        former: impl Iterator<Item = Result<Cell>>,
        places: &[HashMap<u32, ElementId>],
        write: &mut dyn FnMut(&[u32], &str) -> Result<()>,
    ) -> Result<()> {
        let by_path: HashMap<&[u32], usize> =
            self.texts.iter().enumerate().map(|(number, (path, _))| (path.as_slice(), number)).collect();
        for cell in former {
            let Cell { path, value, .. } = cell?;
            let CellValue::Text(text) = &value else { continue };
            let is_known = path.iter().zip(places).all(|(number, places)| places.contains_key(number));
            match by_path.get(path.as_slice()) {
                None if is_known => {}
                None => write(&path, text)?,
                Some(&number) if !std::mem::replace(&mut self.is_written[number], true) => {
                    write(&path, self.texts[number].1)?;
                }
                Some(_) => {}
            }
        }
        let others = self.texts.iter().zip(&self.is_written).filter(|(_, is_written)| !**is_written);
        others.map(|(text, _)| text).try_for_each(|(path, text)| write(path, text))
    }
}

/// The rank of each number among all.
fn ranks(numbers: &[Option<u32>]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by_key(|place| numbers[*place]);
    let mut ranks = vec![0; numbers.len()];
    order.into_iter().enumerate().for_each(|(rank, place)| ranks[place] = rank as u32);
    ranks
}
