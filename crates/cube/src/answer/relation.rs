//! A cube as a relation: a row for each filled base cell.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef};
use rayon::prelude::*;

use super::{Cube, CubeError};
use crate::facts::{Facts, Segment};
use crate::model::{Dimension, Element, ElementId, ElementKind, Member, folded};

/// Rows of a batch.
const BATCH_ROWS: usize = 1 << 17;

/// A column of names: a dimension at base or at one of its levels.
struct NameColumn {
    dimension: usize,
    name: String,
    /// Code of each base element by coordinate; none where the base element has no element on the level.
    codes: Vec<Option<i32>>,
    names: Arc<StringArray>,
}

/// The columns of a cube as a relation.
///
/// A dimension whose base is a level of a level hierarchy has the values of the source, others have names of elements.
/// A level above has the values of the source, and the level's name, after the dimension's and a `_` if
/// another column has it; it is NULL for a base element below several elements of the level, or at a weight that is not
/// one. Level n of other hierarchies is `<dimension>_<n>`, if each base element lies below at most one element of it;
/// elements that weigh a base element otherwise than by 1 do not count.
pub struct Relation {
    columns: Vec<NameColumn>,
    schema: SchemaRef,
}

impl Relation {
    /// The columns of a cube: for each dimension the base element and its element on each level above, then a value of
    /// each measure; AVG has the average of the cell.
    pub fn of(cube: &Cube) -> Relation {
        let columns = name_columns(cube);
        Relation { schema: schema(cube, &columns), columns }
    }

    /// All columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The names that a column of names has, each once, and NULL behind them; nothing of a column of values.
    pub fn names(&self, column: usize) -> Option<ArrayRef> {
        let names = &self.columns.get(column)?.names;
        let codes: Int32Array = (0..names.len() as i32).map(Some).chain([None]).collect();
        let names = DictionaryArray::<Int32Type>::try_new(codes, names.clone()).ok()?;
        Some(Arc::new(names))
    }

    /// Some columns of the filled base cells, in the order of their places. `kept` marks the wanted ones of
    /// [`Relation::names`] of columns; pages without a wanted name are not read, nor are cells behind the first `most`.
    ///
    /// # Errors
    /// [`CubeError::Arrow`] if the arrays are refused.
    pub fn batches(
        &self,
        cube: &Cube,
        projection: &[usize],
        kept: &[(usize, Vec<bool>)],
        most: usize,
    ) -> Result<Vec<RecordBatch>, CubeError> {
        let schema = Arc::new(self.schema.project(projection)?);
        let cells = (!kept.is_empty() || !cube.facts.is_whole()).then(|| self.cells(cube, kept));
        let rows = cells.as_ref().map_or(cube.facts.len(), Vec::len).min(most);
        let starts: Vec<usize> = (0..rows).step_by(BATCH_ROWS).collect();
        let batch = |start: usize| {
            let range = start..rows.min(start + BATCH_ROWS);
            let arrays = match &cells {
                None => self.arrays(cube, projection, &range.clone().collect::<Vec<_>>()),
                Some(cells) => self.arrays(cube, projection, &cells[range.clone()]),
            };
            let options = RecordBatchOptions::new().with_row_count(Some(range.len()));
            Ok(RecordBatch::try_new_with_options(schema.clone(), arrays?, &options)?)
        };
        starts.into_par_iter().map(batch).collect()
    }

    /// The places of cells whose names are all marked.
    fn cells(&self, cube: &Cube, kept: &[(usize, Vec<bool>)]) -> Vec<usize> {
        let facts = &*cube.facts;
        let mut wanted: Vec<Option<Vec<bool>>> = vec![None; facts.layout().dimensions()];
        for (column, marks) in kept {
            let NameColumn { dimension, codes, names, .. } = &self.columns[*column];
            let wanted = wanted[*dimension].get_or_insert_with(|| vec![true; codes.len()]);
            for (wanted, code) in wanted.iter_mut().zip(codes) {
                *wanted &= marks[code.map_or(names.len(), |code| code as usize)];
            }
        }
        // Of each base element, the wanted ones before it.
        let before = |wanted: &Vec<bool>| {
            let counted = wanted.iter().scan(0_u32, |count, wanted| {
                *count += u32::from(*wanted);
                Some(*count)
            });
            std::iter::once(0).chain(counted).collect::<Vec<u32>>()
        };
        let filters: Vec<(usize, &Vec<bool>, Vec<u32>)> = wanted
            .iter()
            .enumerate()
            .filter_map(|(dimension, wanted)| wanted.as_ref().map(|wanted| (dimension, wanted, before(wanted))))
            .collect();
        let of_page = |(start, segment, page): (usize, &Segment, usize)| {
            let bounds = segment.pages().bounds(page);
            let is_relevant = filters.iter().all(|(dimension, _, before)| {
                let (least, greatest) = bounds[*dimension];
                before[greatest as usize + 1] > before[least as usize]
            });
            let cells = if is_relevant { segment.pages().cells(page) } else { 0..0 };
            let is_wanted = |cell: &usize| {
                let key = segment.keys().get(*cell);
                let is = |(dimension, wanted, _): &(usize, &Vec<bool>, _)| {
                    wanted[facts.layout().coordinate(key, *dimension) as usize]
                };
                segment.is_live(*cell) && filters.iter().all(is)
            };
            cells.filter(is_wanted).map(|cell| start + cell).collect::<Vec<_>>()
        };
        let pages = facts
            .placed()
            .flat_map(|(start, segment)| (0..segment.pages().len()).map(move |page| (start, segment, page)));
        pages.collect::<Vec<_>>().into_par_iter().flat_map_iter(of_page).collect()
    }

    /// Columns at some places, which ascend.
    fn arrays(&self, cube: &Cube, projection: &[usize], cells: &[usize]) -> Result<Vec<ArrayRef>, CubeError> {
        let mut coordinates = vec![0; cells.len()];
        let mut read = None;
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for &at in projection {
            let Some(column) = self.columns.get(at) else {
                let measure = at - self.columns.len();
                arrays.push(cube.facts.value_array(measure, cells, |_, value| value)?);
                continue;
            };
            if read != Some(column.dimension) {
                read_coordinates(&cube.facts, column.dimension, cells, &mut coordinates);
                read = Some(column.dimension);
            }
            let codes: Int32Array = coordinates.iter().map(|base| column.codes[*base as usize]).collect();
            arrays.push(Arc::new(DictionaryArray::<Int32Type>::try_new(codes, column.names.clone())?));
        }
        Ok(arrays)
    }
}

/// The coordinates of some places, which ascend, in a dimension.
fn read_coordinates(facts: &Facts, dimension: usize, places: &[usize], coordinates: &mut [u32]) {
    if let (Some(first), Some(last)) = (places.first(), places.last())
        && last - first + 1 == places.len()
    {
        let (segment, from) = facts.at(*first);
        if from + places.len() <= segment.len() {
            return segment.coordinates(from..from + places.len(), dimension, coordinates);
        }
    }
    for (coordinate, place) in coordinates.iter_mut().zip(places) {
        *coordinate = facts.layout().coordinate(facts.key(*place), dimension);
    }
}

fn schema(cube: &Cube, columns: &[NameColumn]) -> SchemaRef {
    let names = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
    let dimensions = columns.iter().map(|column| Field::new(&column.name, names.clone(), true));
    let measures = cube
        .facts
        .measures()
        .iter()
        .map(|measure| Field::new(measure_column(cube, &measure.name), measure.arrow_type(), true));
    Arc::new(Schema::new(dimensions.chain(measures).collect::<Vec<_>>()))
}

/// The column of a measure: its name, with a `_` at its end if a dimension has that name, as imported ones may.
fn measure_column(cube: &Cube, measure: &str) -> String {
    match cube.model.dimension_index(measure) {
        Some(_) => format!("{measure}_"),
        None => measure.to_string(),
    }
}

/// The columns of names in the order of the dimensions, each dimension's base first, then levels from the base up.
fn name_columns(cube: &Cube) -> Vec<NameColumn> {
    let mut taken: HashSet<String> = cube.model.dimensions().iter().map(|one| folded(one.name())).collect();
    taken.extend(cube.model.measures().iter().map(|measure| folded(&measure_column(cube, &measure.name))));
    let mut columns = Vec::new();
    for (number, dimension) in cube.model.dimensions().iter().enumerate() {
        let bases: Vec<Option<ElementId>> =
            (0..dimension.base_count() as u32).map(|at| dimension.at_base(at)).collect();
        columns.push(column(number, dimension, dimension.name().to_string(), &bases, Element::value));
        for (name, elements) in levels(dimension, &bases) {
            let mut free = name;
            if !taken.insert(folded(&free)) {
                free = format!("{}_{free}", dimension.name());
                while !taken.insert(folded(&free)) {
                    free.push('_');
                }
            }
            columns.push(column(number, dimension, free, &elements, Element::value));
        }
    }
    columns
}

/// A column of a text of elements; elements of one text have one code.
fn column(
    number: usize,
    dimension: &Dimension,
    name: String,
    elements: &[Option<ElementId>],
    text: impl Fn(&Element) -> &str,
) -> NameColumn {
    let mut codes: HashMap<&str, i32> = HashMap::new();
    let mut names: Vec<&str> = Vec::new();
    let code = |element: &Option<ElementId>| {
        element.map(|element| {
            let text = text(dimension.element(element));
            *codes.entry(text).or_insert_with(|| {
                names.push(text);
                names.len() as i32 - 1
            })
        })
    };
    let codes = elements.iter().map(code).collect();
    NameColumn { dimension: number, name, codes, names: Arc::new(StringArray::from(names)) }
}

/// The element of each base element on each level above base, with the level's name.
fn levels(dimension: &Dimension, bases: &[Option<ElementId>]) -> Vec<(String, Vec<Option<ElementId>>)> {
    if dimension.hierarchies().is_empty() {
        let highest = dimension.highest_level().unwrap_or(0);
        let of_level = |level| Some((format!("{}_{level}", dimension.name()), at_height(dimension, bases, level)?));
        return (1..=highest).filter_map(of_level).collect();
    }
    let mut levels = Vec::new();
    for (number, hierarchy) in dimension.hierarchies().iter().enumerate() {
        for (level, name) in hierarchy.levels.iter().enumerate().rev().skip(1) {
            levels.push((name.clone(), of_level(dimension, bases, number, level)));
        }
    }
    levels
}

/// The element of each base element on a level of a level hierarchy: the only one that it lies below, at weight 1.
fn of_level(
    dimension: &Dimension,
    bases: &[Option<ElementId>],
    hierarchy: usize,
    level: usize,
) -> Vec<Option<ElementId>> {
    let is_on_level = |id: &ElementId| {
        let element = dimension.element(*id);
        let is_member =
            |member: &Member| usize::from(member.hierarchy) == hierarchy && usize::from(member.level) == level;
        element.kind() == ElementKind::Consolidated && element.member().is_some_and(is_member)
    };
    let elements: Vec<ElementId> = dimension.elements().iter().copied().filter(is_on_level).collect();
    // Weights beyond the range of doubles are of no level.
    let Ok(map) = dimension.base_map(&elements) else { return vec![None; bases.len()] };
    let only = |base: usize| match map.by_base.row(base) {
        (&[element], &[1.0]) => Some(elements[element as usize]),
        _ => None,
    };
    (0..bases.len()).map(only).collect()
}

/// The element of each base element on a level, of those whose weights are all 1; nothing if one has several.
fn at_height(dimension: &Dimension, bases: &[Option<ElementId>], level: u32) -> Option<Vec<Option<ElementId>>> {
    let elements = dimension.of_level(level);
    let map = dimension.base_map(&elements).ok()?;
    // An element with a weight other than 1, such as a variance, is not taken for a level of its base elements.
    let is_plain = |element: usize| map.by_target.row(element).1.iter().all(|weight| *weight == 1.0);
    let plain: Vec<bool> = (0..elements.len()).map(is_plain).collect();
    let mut found = vec![None; bases.len()];
    for (base, found) in found.iter_mut().enumerate() {
        for element in map.by_base.row(base).0.iter().map(|element| *element as usize).filter(|at| plain[*at]) {
            if found.replace(elements[element]).is_some() {
                return None;
            }
        }
    }
    found.iter().any(Option::is_some).then_some(found)
}
