//! The index of the facts in a storage scheme: which arrays its file has, and the keys that they stand for.
//!
//! The arrays are those of [`warpcube_arrays`], all in words of 64 bits, which pages pack. Arrays with an entry a cell
//! are columns of the facts' file; pointers, bitmaps and directories have lengths of their own and a file each. Rank
//! tables are not stored, since they follow from the bitmap. BESS has no index of this kind: its array is the keys.
//! PTCS is no scheme of files: a trie of the same keys costs its links, and they serve changes in memory alone.

use std::borrow::Cow;

use warpcube_arrays::key::KeyLayout;
use warpcube_arrays::restore::{HIGH, Words, restore};
use warpcube_arrays::{ArrayData, Cells, Limits, Scheme, SchemeError, Shape};

use crate::facts::{FactColumn, Keys, Segment};
use crate::model::CubeModel;

/// Arrays that have an entry for each cell; names of coordinates have a number behind them.
const OF_CELLS: [&str; 5] = ["ind", "offset", "bei", "cind", "rind"];
/// Arrays that are not stored: values, and what follows from others.
const LEFT_OUT: [&str; 2] = ["val", "count1"];

/// An array and its name.
pub(super) type Named = (String, Vec<u64>);

/// The arrays of the facts in a scheme.
#[derive(Default)]
pub(super) struct Index {
    /// Those with an entry a cell, in the order of the scheme.
    pub(super) of_cells: Vec<Named>,
    /// Others.
    pub(super) pointers: Vec<Named>,
    /// The facts in the order of the scheme, by their places; absent in the order of keys.
    pub(super) order: Option<Vec<usize>>,
}

/// The shape of a cube's array: coordinates of each dimension.
pub(super) fn shape(model: &CubeModel) -> Result<Shape, SchemeError> {
    // A dimension without base elements has no cell, and one place.
    let sizes = model.dimensions().iter().map(|dimension| dimension.base_count().max(1) as u32);
    Shape::new(sizes.collect::<Vec<u32>>())
}

/// The index of facts; nothing for BESS.
///
/// # Errors
/// The size of pointers above the limit; a scheme that the shape does not fit, or that no file has.
pub(super) fn of(scheme: Scheme, model: &CubeModel, facts: &Segment) -> Result<Option<Index>, SchemeError> {
    match scheme {
        Scheme::Bess => return Ok(None),
        Scheme::Ptcs => return Err(SchemeError::NoFile { scheme }),
        _ => {}
    }
    let shape = shape(model)?;
    let dimensions = shape.dimensions();
    let mut tuples = vec![0; facts.len() * dimensions];
    let mut column = vec![0; facts.len()];
    for dimension in 0..dimensions {
        facts.coordinates(0..facts.len(), dimension, &mut column);
        tuples.iter_mut().skip(dimension).step_by(dimensions).zip(&column).for_each(|(at, from)| *at = *from);
    }
    let places = (0..facts.len() as i64).collect();
    let stored = scheme.build(&Cells::new(shape, tuples, places)?, &Limits::default())?;
    let mut index = Index::default();
    for array in stored.arrays() {
        if let ("val", ArrayData::Values(places)) = (array.name, &array.data)
            && !places.is_sorted()
        {
            index.order = Some(places.iter().map(|place| *place as usize).collect());
        }
        if LEFT_OUT.contains(&array.name) {
            continue;
        }
        let is_of_cells =
            OF_CELLS.iter().any(|name| array.name.trim_end_matches(|c: char| c.is_ascii_digit()) == *name);
        let list = if is_of_cells { &mut index.of_cells } else { &mut index.pointers };
        match array.data {
            ArrayData::Words32(words) => {
                list.push((array.name.to_owned(), words.iter().map(|it| u64::from(*it)).collect()))
            }
            ArrayData::Words64(words) => list.push((array.name.to_owned(), words.to_vec())),
            ArrayData::Pairs64(pairs) => {
                list.push((array.name.to_owned(), pairs.iter().map(|[_, low]| *low).collect()));
                list.push((format!("{}{HIGH}", array.name), pairs.iter().map(|[high, _]| *high).collect()));
            }
            ArrayData::Values(_) => {}
        }
    }
    Ok(Some(index))
}

/// Names of the arrays that have an entry a cell and that a file of this scheme holds.
pub(super) fn names_of_cells(scheme: Scheme, shape: &Shape) -> Vec<String> {
    let dimensions = shape.dimensions();
    let key = |name: &str, split: usize| match shape.bits(split..dimensions) {
        0..=64 => vec![name.to_owned()],
        _ => vec![name.to_owned(), format!("{name}{HIGH}")],
    };
    match scheme {
        Scheme::Coordinate => (1..=dimensions).map(|number| format!("ind{number}")).collect(),
        Scheme::OffsetValue => vec!["offset".to_owned()],
        Scheme::Xcrs | Scheme::Bxcrs => vec!["cind".to_owned()],
        Scheme::Xccs => vec!["rind".to_owned()],
        Scheme::Hybrid { r } => key("bei", (dimensions + 1).saturating_sub(r).min(dimensions)),
        Scheme::Bess | Scheme::Ptcs => Vec::new(),
    }
}

/// The keys of arrays, ascending, and the place of each in the file; no places where the file has their order.
///
/// # Errors
/// The contradiction to the scheme, as a sentence.
pub(super) fn keys(
    scheme: Scheme,
    model: &CubeModel,
    cells: usize,
    words: &Words,
) -> Result<(Keys, Option<Vec<usize>>), String> {
    let layout: &KeyLayout = model.layout();
    let shape = shape(model).map_err(|error| error.to_string())?;
    let mut keys = Vec::with_capacity(cells);
    restore(scheme, &shape, cells, words, &mut |tuple| keys.push(layout.pack(tuple)))?;
    if keys.len() != cells {
        return Err(format!("the index has {} cells, the facts have {cells}", keys.len()));
    }
    let mut places = None;
    if !keys.is_sorted() {
        let mut order: Vec<usize> = (0..cells).collect();
        order.sort_unstable_by_key(|place| keys[*place]);
        keys = order.iter().map(|place| keys[*place]).collect();
        places = Some(order);
    }
    let keys = match layout.is_narrow() {
        true => Keys::Narrow(keys.into_iter().map(|key| key as u64).collect()),
        false => Keys::Wide(keys),
    };
    Ok((keys, places))
}

/// Values of cells in the order of the places, if there are any.
pub(super) fn ordered_values<'a, T: Copy>(values: &'a [T], places: Option<&[usize]>) -> Cow<'a, [T]> {
    match places {
        None => Cow::Borrowed(values),
        Some(places) => Cow::Owned(places.iter().map(|place| values[*place]).collect()),
    }
}

/// Columns and row counts in the order of places.
pub(super) fn ordered(
    columns: Vec<FactColumn>,
    rows: Option<Vec<u64>>,
    places: Option<&[usize]>,
) -> (Vec<FactColumn>, Option<Vec<u64>>) {
    match places {
        None => (columns, rows),
        Some(places) => {
            let columns = columns.iter().map(|column| column.at(places)).collect();
            (columns, rows.map(|rows| places.iter().map(|place| rows[*place]).collect()))
        }
    }
}
