//! A cube as a relation: a row for each filled base cell.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef};

use super::{Cube, CubeError};
use crate::facts::{Rule, ValueType, Values};
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

/// The columns of [`relation_batches`].
pub fn relation_schema(cube: &Cube) -> SchemaRef {
    schema(cube, &name_columns(cube))
}

/// The filled base cells as rows, in the order of their keys: for each dimension the base element and its element on
/// each level above, then a value of each measure; AVG has the average of the cell.
///
/// A level of a level hierarchy has the values of the source, and the level's name, after the dimension's and a `_` if
/// another column has it; it is NULL for a base element below several elements of the level, or at another weight than
/// 1. Level n of other hierarchies is `<dimension>_<n>`, if each base element lies below at most one element of it;
/// elements that weigh a base element otherwise than by 1 do not count.
///
/// # Errors
/// [`CubeError::Arrow`] if the arrays are refused.
pub fn relation_batches(cube: &Cube) -> Result<Vec<RecordBatch>, CubeError> {
    let columns = name_columns(cube);
    let schema = schema(cube, &columns);
    let starts = (0..cube.facts.len()).step_by(BATCH_ROWS);
    let batch = |start: usize| batch(cube, &columns, &schema, start..cube.facts.len().min(start + BATCH_ROWS));
    starts.map(batch).collect()
}

fn schema(cube: &Cube, columns: &[NameColumn]) -> SchemaRef {
    let names = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
    let dimensions = columns.iter().map(|column| Field::new(&column.name, names.clone(), true));
    let measures = cube.facts.columns().iter().map(|column| {
        let data_type = match (column.measure.rule, column.measure.value_type) {
            (Rule::Avg, _) | (_, ValueType::Double) => DataType::Float64,
            (_, ValueType::Decimal { scale }) => DataType::Decimal128(19, scale as i8),
        };
        Field::new(measure_column(cube, &column.measure.name), data_type, true)
    });
    Arc::new(Schema::new(dimensions.chain(measures).collect::<Vec<_>>()))
}

/// The column of a measure: its name, with a `_` at its end if a dimension has that name, as imported ones may.
fn measure_column(cube: &Cube, measure: &str) -> String {
    match cube.model.dimension_index(measure) {
        Some(_) => format!("{measure}_"),
        None => measure.to_string(),
    }
}

fn batch(
    cube: &Cube,
    columns: &[NameColumn],
    schema: &SchemaRef,
    range: std::ops::Range<usize>,
) -> Result<RecordBatch, CubeError> {
    let mut coordinates = vec![0; range.len()];
    let mut arrays: Vec<ArrayRef> = Vec::new();
    let mut read = None;
    for column in columns {
        if read != Some(column.dimension) {
            cube.facts.coordinates(range.clone(), column.dimension, &mut coordinates);
            read = Some(column.dimension);
        }
        let codes: Int32Array = coordinates.iter().map(|base| column.codes[*base as usize]).collect();
        arrays.push(Arc::new(DictionaryArray::<Int32Type>::try_new(codes, column.names.clone())?));
    }
    for (number, (measure, field)) in cube.facts.columns().iter().zip(&schema.fields()[columns.len()..]).enumerate() {
        let cells = range.clone();
        if measure.measure.rule == Rule::Avg {
            let average = |cell: usize| measure.is_filled(cell).then(|| cube.facts.average(number, cell));
            arrays.push(Arc::new(cells.map(average).collect::<Float64Array>()));
            continue;
        }
        arrays.push(match (&measure.values, field.data_type()) {
            (Values::Decimals(values), DataType::Decimal128(precision, scale)) => {
                let values = cells.map(|cell| measure.is_filled(cell).then(|| i128::from(values[cell])));
                Arc::new(values.collect::<Decimal128Array>().with_precision_and_scale(*precision, *scale)?)
            }
            (Values::Decimals(values), _) => {
                let values = cells.map(|cell| measure.is_filled(cell).then(|| values[cell] as f64));
                Arc::new(values.collect::<Float64Array>())
            }
            (Values::Doubles(values), _) => {
                Arc::new(cells.map(|cell| measure.is_filled(cell).then(|| values[cell])).collect::<Float64Array>())
            }
        });
    }
    Ok(RecordBatch::try_new(schema.clone(), arrays)?)
}

/// The columns of names in the order of the dimensions, each dimension's base first, then levels from the base up.
fn name_columns(cube: &Cube) -> Vec<NameColumn> {
    let mut taken: HashSet<String> = cube.model.dimensions().iter().map(|one| folded(one.name())).collect();
    taken.extend(cube.model.measures().iter().map(|measure| folded(&measure_column(cube, &measure.name))));
    let mut columns = Vec::new();
    for (number, dimension) in cube.model.dimensions().iter().enumerate() {
        let bases: Vec<Option<ElementId>> =
            (0..dimension.base_count() as u32).map(|at| dimension.at_base(at)).collect();
        columns.push(column(number, dimension, dimension.name().to_string(), &bases, Element::name));
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
    // A difference is no level of what it is made of.
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
