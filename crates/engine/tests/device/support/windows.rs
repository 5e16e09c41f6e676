//! Windows row by row: for each row a look at all rows of its partition.

use warpcube_engine::{AggregateKind, Frame, FrameBound, Literal, Sink, TopK, Ty, WindowCall, WindowFunction};

use super::interpret::order as compare;
use super::scalar::Scalar;

/// A row of a sort: its keys and its outputs.
pub(super) type Ranked = (Vec<Option<Scalar>>, Vec<Option<Scalar>>);

/// Types of the columns that windows add to a sort.
pub(super) fn types(sink: &Sink) -> impl Iterator<Item = Ty> {
    let windows = if let Sink::TopK(top) = sink { top.windows.as_slice() } else { &[] };
    windows.iter().map(|call| Ty::of(&call.data_type).unwrap())
}

/// The columns of windows over sorted rows, a row after the other.
pub(super) fn columns(rows: &[Ranked], top: &TopK) -> Vec<Vec<Option<Scalar>>> {
    let key = |key: &Option<Scalar>| key.as_ref().map(Scalar::join_key);
    let keys: Vec<Vec<Option<String>>> = rows.iter().map(|(keys, _)| keys.iter().map(key).collect()).collect();
    let rows = Rows { rows, keys };
    (0..rows.keys.len()).map(|row| top.windows.iter().map(|call| value(&rows, row, call)).collect()).collect()
}

/// Sorted rows, with their keys as text that is equal for equal keys.
struct Rows<'a> {
    rows: &'a [Ranked],
    keys: Vec<Vec<Option<String>>>,
}

/// Whether two rows agree in the first so many keys.
fn agree(rows: &Rows, keys: usize, one: usize, other: usize) -> bool {
    rows.keys[one][..keys] == rows.keys[other][..keys]
}

fn value(rows: &Rows, row: usize, call: &WindowCall) -> Option<Scalar> {
    let order = call.order.max(call.partition);
    let is_in = |other: &usize| agree(rows, call.partition, row, *other);
    let first = row - (0..row).rev().take_while(is_in).count();
    let partition: Vec<usize> = (first..rows.keys.len()).take_while(is_in).collect();
    let place = partition.iter().position(|other| *other == row).unwrap();
    // The groups of peers of the partition, in order.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, other) in partition.iter().enumerate() {
        match groups.last_mut() {
            Some(group) if agree(rows, order, partition[group[0]], *other) => group.push(at),
            _ => groups.push(vec![at]),
        }
    }
    let group = groups.iter().position(|group| group.contains(&place)).unwrap();
    let (first_peer, last_peer) = (groups[group][0], *groups[group].last().unwrap());
    let count = partition.len();
    let int = |value: usize| Some(Scalar::Int(value as i128));
    let output = |at: usize, output: usize| rows.rows[partition[at]].1[output].clone();
    let framed = |frame: &Frame| -> Vec<usize> {
        let peers = |offset: i64| usize::try_from(group as i64 + offset).ok().and_then(|at| groups.get(at));
        let is_in = |at: &usize| {
            let starts = match frame.start {
                FrameBound::Unbounded => true,
                FrameBound::Rows(offset) => *at as i64 >= place as i64 + offset,
                FrameBound::Peers(offset) => match peers(offset) {
                    Some(group) => *at >= group[0],
                    None => offset < 0,
                },
            };
            let ends = match frame.end {
                FrameBound::Unbounded => true,
                FrameBound::Rows(offset) => *at as i64 <= place as i64 + offset,
                FrameBound::Peers(offset) => match peers(offset) {
                    Some(group) => *at <= *group.last().unwrap(),
                    None => offset > 0,
                },
            };
            starts && ends
        };
        (0..count).filter(is_in).collect()
    };
    match &call.function {
        WindowFunction::RowNumber => int(place + 1),
        WindowFunction::Rank => int(first_peer + 1),
        WindowFunction::DenseRank => int(group + 1),
        WindowFunction::PercentRank if count == 1 => Some(Scalar::Float(0.0)),
        WindowFunction::PercentRank => Some(Scalar::Float(first_peer as f64 / (count - 1) as f64)),
        WindowFunction::CumeDist => Some(Scalar::Float((last_peer + 1) as f64 / count as f64)),
        WindowFunction::Tile(parts) => {
            // Rows are dealt to parts, the first ones of which are longer.
            let mut lengths = vec![count / *parts as usize; *parts as usize];
            lengths.iter_mut().take(count % *parts as usize).for_each(|length| *length += 1);
            let mut ends = lengths.iter().scan(0, |end, length| {
                *end += length;
                Some(*end)
            });
            int(ends.position(|end| place < end).unwrap() + 1)
        }
        WindowFunction::Shift { output: of, rows: by, default, skips_nulls } => {
            let found = if *skips_nulls {
                let others: Vec<usize> = match *by > 0 {
                    true => (0..place).rev().collect(),
                    false => (place + 1..count).collect(),
                };
                let mut others = others.into_iter().filter(|at| output(*at, *of).is_some());
                others.nth(by.unsigned_abs() as usize - 1)
            } else {
                usize::try_from(place as i64 - by).ok().filter(|at| *at < count)
            };
            match (found, default) {
                (Some(at), _) => output(at, *of),
                (None, Literal::Int(value)) => Some(Scalar::Int(*value)),
                (None, Literal::Float(value)) => Some(Scalar::Float(*value)),
                (None, _) => None,
            }
        }
        WindowFunction::Nth { output: of, place: nth, skips_nulls, frame } => {
            let rows = framed(frame).into_iter().filter(|at| !skips_nulls || output(*at, *of).is_some());
            let rows: Vec<usize> = rows.collect();
            let number = nth.unsigned_abs() as usize - 1;
            let at = if *nth > 0 { rows.get(number) } else { rows.iter().rev().nth(number) };
            at.and_then(|at| output(*at, *of))
        }
        WindowFunction::Aggregate { kind, output: of, filter, frame } => {
            let passes =
                |at: &usize| filter.is_none_or(|filter| output(*at, filter).is_some_and(|value| value.int() != 0));
            let rows = framed(frame).into_iter().filter(passes);
            let values: Vec<Scalar> = match of {
                None => return int(rows.count()),
                Some(of) => rows.filter_map(|at| output(at, *of)).collect(),
            };
            let is_float = Ty::of(&call.data_type).unwrap().is_float();
            match kind {
                AggregateKind::Count => int(values.len()),
                AggregateKind::Min => values.into_iter().min_by(compare),
                AggregateKind::Max => values.into_iter().max_by(compare),
                _ => {
                    let sum = values.iter().map(Scalar::int).reduce(|one, other| one + other)?;
                    Some(if is_float { Scalar::Float(sum as f64) } else { Scalar::Int(sum) })
                }
            }
        }
    }
}
