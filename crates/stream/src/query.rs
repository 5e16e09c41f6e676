//! What a stream cube is asked, and what it answers.
//!
//! A query names a condition a dimension and has one cell. It is on the popular path if its conditions are single
//! values of the first levels, which one node answers; else it is aggregated from nodes of the lowest level that a
//! condition names (online cubing). A sub-cube has a cell for each combination of values of its inquired dimensions.

use std::borrow::Cow;

use crate::error::{Result, StreamError};
use crate::schema::Schema;

/// What a query asks of a dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Nothing: all values are aggregated.
    Any,
    /// One value.
    Is(u32),
    /// Values from the first to the second, both included; none if they are in the other order.
    Between(u32, u32),
    /// Values of a set.
    In(Vec<u32>),
}

impl Condition {
    /// True if the value meets it.
    pub fn holds(&self, value: u32) -> bool {
        match self {
            Condition::Any => true,
            Condition::Is(one) => *one == value,
            Condition::Between(low, high) => (*low..=*high).contains(&value),
            Condition::In(set) => set.contains(&value),
        }
    }
}

/// A query for one cell: a condition a dimension, in the schema's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The conditions.
    pub conditions: Vec<Condition>,
}

/// Cells by the values of inquired dimensions, aggregated over tuples that meet the conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubCube {
    /// A condition a dimension, in the schema's order.
    pub conditions: Vec<Condition>,
    /// Numbers of the inquired dimensions.
    pub inquired: Vec<usize>,
}

/// Answers to a batch of queries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Whether a tuple meets the conditions of a query.
    pub(crate) found: Vec<bool>,
    /// Measures of all queries, query after query; 0 where there is no tuple.
    pub(crate) values: Vec<i64>,
    pub(crate) measures: usize,
}

impl Answers {
    /// Number of queries.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// True if there was no query.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The measures of a query's cell; none if no tuple meets its conditions.
    pub fn get(&self, query: usize) -> Option<&[i64]> {
        let cell = query * self.measures..(query + 1) * self.measures;
        self.found.get(query).filter(|found| **found).map(|_| &self.values[cell])
    }
}

/// Cells of a sub-cube, by columns, in ascending order of the inquired values as the sub-cube names them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// A column an inquired dimension.
    pub keys: Vec<Vec<u32>>,
    /// A column a measure.
    pub measures: Vec<Vec<i64>>,
}

/// The values that meet a condition of a level: a range, and a set within it if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound<'a> {
    pub(crate) low: u32,
    pub(crate) high: u32,
    /// Ascending and distinct.
    pub(crate) set: Option<Cow<'a, [u32]>>,
}

impl Bound<'_> {
    /// The bound of a condition; none for a condition that all values meet.
    pub(crate) fn of(condition: &Condition) -> Option<Bound<'_>> {
        let bound = |low, high| Bound { low, high, set: None };
        match condition {
            Condition::Any => None,
            Condition::Is(value) => Some(bound(*value, *value)),
            Condition::Between(low, high) => Some(bound(*low, *high)),
            Condition::In(values) => {
                let mut set = values.clone();
                set.sort_unstable();
                set.dedup();
                match set[..] {
                    // A range without values.
                    [] => Some(bound(1, 0)),
                    [one] => Some(bound(one, one)),
                    [low, .., high] => Some(Bound { low, high, set: Some(set.into()) }),
                }
            }
        }
    }

    pub(crate) fn is_point(&self) -> bool {
        self.low == self.high
    }

    pub(crate) fn holds(&self, value: u32) -> bool {
        let in_set = |set: &Cow<'_, [u32]>| set.binary_search(&value).is_ok();
        (self.low..=self.high).contains(&value) && self.set.as_ref().is_none_or(in_set)
    }
}

/// The bounds of a query by levels, the root's first, which has none.
///
/// # Errors
/// More or fewer conditions than dimensions.
pub(crate) fn bounds<'a>(schema: &Schema, query: usize, conditions: &'a [Condition]) -> Result<Vec<Option<Bound<'a>>>> {
    let (given, dimensions) = (conditions.len(), schema.dimensions().len());
    if given != dimensions {
        return Err(StreamError::Conditions { query, given, dimensions });
    }
    let of_path = schema.path().iter().map(|dimension| Bound::of(&conditions[*dimension]));
    Ok(std::iter::once(None).chain(of_path).collect())
}

/// The lowest level that has a bound; the root's without any.
pub(crate) fn lowest(bounds: &[Option<Bound<'_>>]) -> usize {
    bounds.iter().rposition(Option::is_some).unwrap_or(0)
}

/// Whether one node answers: all levels from the first to the lowest bound have a single value.
pub(crate) fn is_on_path(bounds: &[Option<Bound<'_>>]) -> bool {
    bounds[1..=lowest(bounds)].iter().all(|bound| bound.as_ref().is_some_and(Bound::is_point))
}

/// The inquired dimensions of a sub-cube, checked, and its bounds.
///
/// # Errors
/// A dimension twice or past the last one; more or fewer conditions than dimensions.
pub(crate) fn sub_cube<'a>(schema: &Schema, asked: &'a SubCube) -> Result<Vec<Option<Bound<'a>>>> {
    schema.check_inquired(&asked.inquired)?;
    bounds(schema, 0, &asked.conditions)
}

impl Schema {
    fn check_inquired(&self, inquired: &[usize]) -> Result<()> {
        match inquired.iter().find(|at| **at >= self.dimensions().len()) {
            Some(unknown) => Err(self.unknown(&unknown.to_string())),
            None => self.check_once(inquired),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_what_conditions_hold() {
        let conditions = [
            Condition::Any,
            Condition::Is(3),
            Condition::Between(2, 4),
            Condition::Between(4, 2),
            Condition::In(vec![]),
            Condition::In(vec![5, 5]),
            Condition::In(vec![4, 1, 4, 3]),
        ];
        for condition in &conditions {
            let bound = Bound::of(condition);
            for value in 0..8 {
                assert_eq!(bound.as_ref().is_none_or(|bound| bound.holds(value)), condition.holds(value));
            }
        }
        assert!(Bound::of(&conditions[5]).unwrap().is_point() && !Bound::of(&conditions[4]).unwrap().is_point());
    }
}
