//! Lists of any elements: what they have, and parts of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Builder, ListArray, ListBuilder, MapArray, StructArray, UInt32Array, UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{SortOptions, cast, concat, sort_to_indices, take};
use arrow::datatypes::{DataType, Field, Fields, Float64Type, Int64Type};
use datafusion::error::{DataFusionError, Result};

use super::{Any, Arguments, Double, Histogram, List, Long, Longs, Mapped, Own, Text, raised};
use crate::canonical_floats::canonical;
use crate::nested_keys::{KEY_TWICE, has_keys, keys, repeating, rows_of};
use crate::words::sql_name;

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
            let rows = rows_of(&elements)?;
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
    Own::new("list_median", &[List], Double, |args| args.floats(|row| Ok(median(&numbers(args, row)?)))),
    Own::new("list_stddev_pop", &[List], Double, |args| {
        args.floats(|row| Ok(variance(args, row, 0.0)?.map(f64::sqrt)))
    }),
    Own::new("list_stddev_samp", &[List], Double, |args| {
        args.floats(|row| Ok(variance(args, row, 1.0)?.map(f64::sqrt)))
    }),
    Own::new("list_var_pop", &[List], Double, |args| args.floats(|row| variance(args, row, 0.0))),
    Own::new("list_var_samp", &[List], Double, |args| args.floats(|row| variance(args, row, 1.0))),
    Own::new("map_concat", &[Any, Any], Mapped, concatenated).repeating_last(),
    Own::new("map_from_entries", &[List], Mapped, |args| {
        let lists = args.columns[0].as_list::<i32>();
        let pairs = lists.values().as_struct();
        mapped(&args.columns[0], lists.offsets().clone(), pairs.columns().to_vec(), lists.nulls().cloned())
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
            let rows = rows_of(&elements)?;
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

/// The variance of the elements of a list that are no NULL, among so many more than there are degrees of freedom.
fn variance(args: &Arguments, row: usize, fewer: f64) -> Result<Option<f64>> {
    Ok(moments(args, row)?.filter(|[count, ..]| *count > fewer).map(|[count, m2, ..]| m2 * count / (count - fewer)))
}

/// The type of the map that another map, or a list of pairs, becomes.
///
/// # Errors
/// A type that is neither.
pub(super) fn map_type(from: &DataType) -> Result<DataType> {
    match from {
        DataType::Map(..) => Ok(from.clone()),
        DataType::List(pairs) => match pairs.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                let key = fields[0].as_ref().clone().with_name("key").with_nullable(false);
                let value = fields[1].as_ref().clone().with_name("value").with_nullable(true);
                let entries = Field::new("entries", DataType::Struct(Fields::from(vec![key, value])), false);
                Ok(DataType::Map(Arc::new(entries), false))
            }
            other => Err(raised(format!("{} is no pair of a key and a value", sql_name(other)))),
        },
        other => Err(raised(format!("{} is no map", sql_name(other)))),
    }
}

/// Maps of keys and values.
///
/// # Errors
/// A NULL among the keys, or a key twice in one map.
fn mapped(
    like: &ArrayRef,
    offsets: OffsetBuffer<i32>,
    columns: Vec<ArrayRef>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let DataType::Map(entries, is_sorted) = map_type(like.data_type())? else {
        return Err(DataFusionError::Internal("a map of another type".into()));
    };
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(DataFusionError::Internal("a map without pairs".into()));
    };
    let is_used = |place: usize| (offsets[0] as usize..offsets[offsets.len() - 1] as usize).contains(&place);
    if (0..columns[0].len()).any(|place| columns[0].is_null(place) && is_used(place)) {
        return Err(raised("a key of a map is NULL".into()));
    }
    if !repeating(&columns[0], &offsets)?.is_empty() {
        return Err(raised(KEY_TWICE.into()));
    }
    let pairs = StructArray::try_new(fields.clone(), columns, None)?;
    Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, pairs, nulls, is_sorted)?))
}

/// The pairs of several maps; of a key that several have, the value of the last one.
fn concatenated(args: &Arguments) -> Result<ArrayRef> {
    let columns: Vec<&ArrayRef> = args.columns.iter().filter(|column| !column.data_type().is_null()).collect();
    let [first, others @ ..] = columns.as_slice() else { return Ok(args.columns[0].clone()) };
    if let Some(other) = others.iter().find(|column| column.data_type() != first.data_type()) {
        let types = [first.data_type(), other.data_type()].map(sql_name);
        return Err(raised(format!("map_concat of {} and {}; a CAST may be missing", types[0], types[1])));
    }
    let DataType::Map(..) = first.data_type() else {
        return Err(raised(format!("{} is no map", sql_name(first.data_type()))));
    };
    let maps: Vec<&MapArray> = columns.iter().map(|column| column.as_map()).collect();
    let keys: Vec<&dyn Array> = maps.iter().map(|map| map.keys().as_ref()).collect();
    let values: Vec<&dyn Array> = maps.iter().map(|map| map.values().as_ref()).collect();
    let (keys, values) = (concat(&keys)?, concat(&values)?);
    let rows = rows_of(&keys)?;
    let mut starts = vec![0];
    maps.iter().for_each(|map| starts.push(starts[starts.len() - 1] + map.keys().len()));
    let (mut offsets, mut taken_keys, mut taken_values) = (vec![0_i32], Vec::new(), Vec::new());
    for row in 0..args.rows {
        let mut at: HashMap<_, usize> = HashMap::new();
        for (map, start) in maps.iter().zip(&starts).filter(|(map, _)| map.is_valid(row)) {
            let (from, to) = (map.value_offsets()[row] as usize, map.value_offsets()[row + 1] as usize);
            for place in (start + from..start + to).map(|place| place as u32) {
                match at.get(&rows.row(place as usize)) {
                    Some(known) => taken_values[*known] = place,
                    None => {
                        at.insert(rows.row(place as usize), taken_keys.len());
                        taken_keys.push(place);
                        taken_values.push(place);
                    }
                }
            }
        }
        offsets.push(taken_keys.len() as i32);
    }
    let take = |values: &ArrayRef, places: Vec<u32>| take(values, &UInt32Array::from(places), None);
    let pairs = vec![take(&keys, taken_keys)?, take(&values, taken_values)?];
    // A map that is NULL has no pairs; all of them are none.
    let nulls = NullBuffer::from_iter((0..args.rows).map(|row| maps.iter().any(|map| map.is_valid(row))));
    mapped(first, OffsetBuffer::new(offsets.into()), pairs, Some(nulls))
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
        let sorted = if has_keys(elements.data_type()) { Arc::new(keys(&elements)?) } else { canonical(&elements) };
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
    let rows = rows_of(values)?;
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
