//! Lists of any elements: what they have, and parts of them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Builder, ListArray, ListBuilder, MapArray, StructArray, UInt32Array, UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{SortOptions, cast, sort_to_indices, take};
use arrow::datatypes::{DataType, Field, Fields, Float64Type, Int64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::error::{DataFusionError, Result};

use super::{Arguments, Double, Histogram, List, Long, Longs, Own, Text, raised};
use crate::nested_keys::{has_keys, keys};

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("list_count", &[List], Long, |args| {
        args.integers(|row| {
            let elements = elements(args, 0, row);
            Ok(Some((elements.len() - elements.null_count()) as i64))
        })
    }),
    Own::new("list_entropy", &[List], Double, |args| {
        args.floats(|row| {
            let elements = elements(args, 0, row);
            let rows = converter(&elements)?.convert_columns(std::slice::from_ref(&elements))?;
            let mut counts: BTreeMap<_, u64> = BTreeMap::new();
            let valid = (0..elements.len()).filter(|place| elements.is_valid(*place));
            valid.for_each(|place| *counts.entry(rows.row(place)).or_default() += 1);
            let all = counts.values().sum::<u64>() as f64;
            Ok((all > 0.0).then(|| {
                // A sum of negative zeros is the entropy of equal values.
                counts.values().map(|count| *count as f64 / all).map(|share| share * -share.log2()).sum::<f64>() + 0.0
            }))
        })
    }),
    Own::new("list_kurtosis_pop", &[List], Double, |args| {
        args.floats(|row| Ok(moments(args, row)?.and_then(|[_, m2, _, m4]| (m2 != 0.0).then(|| m4 / (m2 * m2) - 3.0))))
    }),
    Own::new("list_mad", &[List], Double, |args| {
        args.floats(|row| {
            let values = numbers(args, row)?;
            let distances = median(&values).map(|middle| values.iter().map(|value| (value - middle).abs()).collect());
            Ok(distances.and_then(|distances: Vec<f64>| median(&distances)))
        })
    }),
    Own::new("list_skewness", &[List], Double, |args| {
        args.floats(|row| {
            Ok(moments(args, row)?
                .filter(|[n, m2, ..]| *n > 2.0 && *m2 != 0.0)
                .map(|[n, m2, m3, _]| (n * (n - 1.0)).sqrt() / (n - 2.0) * m3 / m2.powf(1.5)))
        })
    }),
    Own::new("list_grade_up", &[List], Longs, graded),
    Own::new("list_grade_up", &[List, Text], Longs, graded),
    Own::new("list_grade_up", &[List, Text, Text], Longs, graded),
    Own::new("list_histogram", &[List], Histogram, histogram),
    Own::new("list_select", &[List, List], List, select),
    Own::new("list_where", &[List, List], List, masked),
    Own::new("list_unique", &[List], Long, |args| {
        args.integers(|row| {
            let elements = elements(args, 0, row);
            let rows = converter(&elements)?.convert_columns(std::slice::from_ref(&elements))?;
            let valid = (0..elements.len()).filter(|place| elements.is_valid(*place));
            Ok(Some(valid.map(|place| rows.row(place)).collect::<HashSet<_>>().len() as i64))
        })
    }),
];

fn elements(args: &Arguments, place: usize, row: usize) -> ArrayRef {
    args.columns[place].as_list::<i32>().value(row)
}

/// The number of elements that are no NULL, and the means of the second, third and fourth powers of their distances
/// from the mean; none for no numbers.
fn moments(args: &Arguments, row: usize) -> Result<Option<[f64; 4]>> {
    let values = numbers(args, row)?;
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let of = |power: i32| values.iter().map(|value| (value - mean).powi(power)).sum::<f64>() / count;
    Ok((!values.is_empty()).then(|| [count, of(2), of(3), of(4)]))
}

/// The elements of a list that are no NULL, as doubles.
fn numbers(args: &Arguments, row: usize) -> Result<Vec<f64>> {
    let numbers = cast(&elements(args, 0, row), &DataType::Float64)?;
    Ok(numbers.as_primitive::<Float64Type>().iter().flatten().collect())
}

/// The value in the middle, or the mean of the two there; none of no values.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 0 { (sorted[middle - 1] + upper) / 2.0 } else { upper })
}

fn converter(elements: &ArrayRef) -> Result<RowConverter> {
    Ok(RowConverter::new(vec![SortField::new(elements.data_type().clone())])?)
}

/// The places of the elements of a list in their order, NULL last unless it is said to be first.
fn graded(args: &Arguments) -> Result<ArrayRef> {
    let says = |place: usize, row: usize, word: &str| {
        args.columns.len() > place && args.text(place).value(row).trim().eq_ignore_ascii_case(word)
    };
    let mut lists = ListBuilder::new(Int64Builder::new());
    let places = args.each(|row| {
        let options = SortOptions { descending: says(1, row, "DESC"), nulls_first: says(2, row, "NULLS FIRST") };
        let elements = elements(args, 0, row);
        let sorted = if has_keys(elements.data_type()) { Arc::new(keys(&elements)?) } else { elements };
        Ok(Some(sort_to_indices(&sorted, Some(options), None)?))
    })?;
    for places in places {
        lists.append_option(
            places.map(|places| places.values().iter().map(|place| Some(i64::from(*place) + 1)).collect::<Vec<_>>()),
        );
    }
    Ok(Arc::new(lists.finish()))
}

/// The elements whose place in a list of truth values is true; NULL for a place without an element.
fn masked(args: &Arguments) -> Result<ArrayRef> {
    taken(args, |mask| {
        let mask = cast(mask, &DataType::Boolean)?;
        let mask = mask.as_boolean();
        if mask.null_count() > 0 {
            return Err(raised("list_where with a NULL among its truth values".into()));
        }
        Ok((1..).zip(mask.values()).filter(|(_, is_taken)| *is_taken).map(|(place, _)| Some(place)).collect())
    })
}

/// The elements at places from 1 on; NULL for a place without one.
fn select(args: &Arguments) -> Result<ArrayRef> {
    taken(args, |places| Ok(cast(places, &DataType::Int64)?.as_primitive::<Int64Type>().iter().collect()))
}

/// The elements of a list at the places that another tells.
fn taken(args: &Arguments, places: impl Fn(&ArrayRef) -> Result<Vec<Option<i64>>>) -> Result<ArrayRef> {
    let lists = args.columns[0].as_list::<i32>();
    let (mut offsets, mut taken, mut nulls) = (vec![0_i32], Vec::new(), Vec::new());
    for row in 0..args.rows {
        let is_valid = args.columns.iter().all(|column| column.is_valid(row));
        nulls.push(is_valid);
        if is_valid {
            let (start, end) = (lists.value_offsets()[row], lists.value_offsets()[row + 1]);
            let at = |place: Option<i64>| {
                let place = place.filter(|place| (1..=i64::from(end - start)).contains(place))?;
                u32::try_from(i64::from(start) + place - 1).ok()
            };
            taken.extend(places(&elements(args, 1, row))?.into_iter().map(at));
        }
        let end = i32::try_from(taken.len()).map_err(|_| raised("lists of a batch are too long together".into()))?;
        offsets.push(end);
    }
    let values = take(lists.values(), &UInt32Array::from(taken), None)?;
    let DataType::List(field) = lists.data_type() else {
        return Err(DataFusionError::Internal("a list of another type".into()));
    };
    let field = Arc::new(field.as_ref().clone().with_nullable(true));
    Ok(Arc::new(ListArray::try_new(field, OffsetBuffer::new(offsets.into()), values, Some(NullBuffer::from(nulls)))?))
}

/// The type of a histogram over elements.
pub(super) fn histogram_type(elements: &DataType) -> DataType {
    let fields =
        Fields::from(vec![Field::new("key", elements.clone(), false), Field::new("value", DataType::UInt64, true)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(fields), false)), false)
}

/// How often each element that is not NULL is in a list, as a map in the order of the elements.
fn histogram(args: &Arguments) -> Result<ArrayRef> {
    let lists = args.columns[0].as_list::<i32>();
    let (mut offsets, mut places, mut counts, mut nulls) = (vec![0_i32], Vec::new(), Vec::new(), Vec::new());
    let values = lists.values();
    let rows = converter(values)?.convert_columns(std::slice::from_ref(values))?;
    for row in 0..args.rows {
        nulls.push(lists.is_valid(row));
        let (start, end) = (lists.value_offsets()[row], lists.value_offsets()[row + 1]);
        let mut found: BTreeMap<_, (u32, u64)> = BTreeMap::new();
        for place in (start..end).filter(|_| lists.is_valid(row)).map(|place| place as usize) {
            if values.is_valid(place) {
                found.entry(rows.row(place)).or_insert((place as u32, 0)).1 += 1;
            }
        }
        for (place, count) in found.into_values() {
            places.push(place);
            counts.push(count);
        }
        offsets.push(places.len() as i32);
    }
    let DataType::Map(entries, _) = histogram_type(values.data_type()) else {
        return Err(DataFusionError::Internal("a histogram that is no map".into()));
    };
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(DataFusionError::Internal("a map without entries".into()));
    };
    let columns: Vec<ArrayRef> =
        vec![take(values, &UInt32Array::from(places), None)?, Arc::new(UInt64Array::from(counts))];
    let pairs = StructArray::try_new(fields.clone(), columns, None)?;
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, pairs, Some(NullBuffer::from(nulls)), false)?))
}
