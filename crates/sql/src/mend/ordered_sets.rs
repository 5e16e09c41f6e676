//! `percentile_disc` (also `quantile_disc`) and `mode`, which DataFusion 55.2 lacks, of values of every type with an
//! order.
//!
//! - `percentile_disc(f) WITHIN GROUP (ORDER BY x)`, `quantile_disc(x, f)`: of n values the first one, in the order,
//!   whose number from 1 is at least f · n.
//! - `mode() WITHIN GROUP (ORDER BY x)`, `mode(x)`: the most frequent value; of several the first in the order.
//!
//! NULLs are left out, as in PostgreSQL and DuckDB. Values are collected by `array_agg`; those of all groups are sorted
//! at once and dealt out to their groups.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, make_comparator};
use arrow::compute::{SortOptions, sort_to_indices, take};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};

use super::quantiles::{Collected, CollectedGroups, Rule, constant};

static SIGNATURE: LazyLock<Signature> = LazyLock::new(|| Signature::user_defined(Volatility::Immutable));

/// The functions.
pub(super) fn functions() -> [AggregateUDF; 2] {
    let function = |name, alias: &[&str], takes_share| {
        let aliases = alias.iter().map(ToString::to_string).collect();
        AggregateUDF::new_from_impl(OrderedSet { name, aliases, takes_share })
    };
    [function("percentile_disc", &["quantile_disc"], true), function("mode", &[], false)]
}

/// One of the functions.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OrderedSet {
    name: &'static str,
    aliases: Vec<String>,
    /// Whether the share of a percentile is the second argument.
    takes_share: bool,
}

impl OrderedSet {
    fn rule(&self, arguments: &AccumulatorArgs) -> Result<Rule> {
        let is_descending = arguments.order_bys.first().is_some_and(|key| key.options.descending);
        let share = match arguments.exprs.get(1) {
            None => None,
            Some(share) => Some(self.share(constant(share, arguments)?)?),
        };
        Ok(Rule::Pick(Pick { share, is_descending }))
    }

    fn share(&self, share: Option<ScalarValue>) -> Result<f64> {
        let found = match share {
            Some(ScalarValue::Float64(Some(share))) if (0.0..=1.0).contains(&share) => return Ok(share),
            Some(found) => found.to_string(),
            None => "an expression that is no constant".to_string(),
        };
        Err(DataFusionError::Plan(format!("{} takes a share from 0 to 1, found {found}", self.name)))
    }

    /// What `array_agg` is asked for.
    fn collecting<'a>(arguments: &AccumulatorArgs<'a>) -> AccumulatorArgs<'a> {
        AccumulatorArgs {
            return_field: list(&arguments.expr_fields[0]),
            schema: arguments.schema,
            ignore_nulls: true,
            order_bys: &[],
            is_reversed: false,
            name: arguments.name,
            is_distinct: arguments.is_distinct,
            exprs: &arguments.exprs[..1],
            expr_fields: &arguments.expr_fields[..1],
        }
    }
}

/// Whether values of a type are sorted as their bits are: intervals go by their length.
fn has_order(value: &DataType) -> bool {
    !value.is_nested() && !matches!(value, DataType::Interval(_))
}

fn list(value: &FieldRef) -> FieldRef {
    Arc::new(Field::new_list("values", Field::new_list_field(value.data_type().clone(), true), true))
}

impl AggregateUDFImpl for OrderedSet {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &SIGNATURE
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match (arguments, self.takes_share) {
            ([value], false) if has_order(value) => Ok(vec![value.clone()]),
            ([value, share], true) if has_order(value) && share.is_numeric() => {
                Ok(vec![value.clone(), DataType::Float64])
            }
            _ => Err(DataFusionError::Plan(format!("{} takes other arguments", self.name))),
        }
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let rule = self.rule(&arguments)?;
        Ok(Box::new(Collected::new(array_agg_udaf().accumulator(OrderedSet::collecting(&arguments))?, rule)))
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let rule = self.rule(&arguments)?;
        let collected = array_agg_udaf().create_sliding_accumulator(OrderedSet::collecting(&arguments))?;
        Ok(Box::new(Collected::new(collected, rule)))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        array_agg_udaf().state_fields(StateFieldsArgs {
            name: arguments.name,
            input_fields: &arguments.input_fields[..1],
            return_field: list(&arguments.input_fields[0]),
            ordering_fields: &[],
            is_distinct: arguments.is_distinct,
        })
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs) -> bool {
        array_agg_udaf().groups_accumulator_supported(OrderedSet::collecting(&arguments))
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let rule = self.rule(&arguments)?;
        let collected = array_agg_udaf().create_groups_accumulator(OrderedSet::collecting(&arguments))?;
        Ok(Box::new(CollectedGroups::new(collected, rule)))
    }

    /// The accumulators sort.
    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }
}

/// Which value of a group is taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pick {
    /// The share of a percentile; a mode has none.
    share: Option<f64>,
    is_descending: bool,
}

impl Pick {
    /// The values of lists that have no NULL.
    pub(super) fn of_lists(self, lists: &ArrayRef) -> Result<ArrayRef> {
        let lists = lists.as_list::<i32>();
        let offsets: Vec<usize> = lists.value_offsets().iter().map(|offset| *offset as usize).collect();
        let values = lists.values();
        let (first, end) = (offsets[0], offsets[lists.len()]);
        let options = SortOptions { descending: self.is_descending, nulls_first: false };
        let order = sort_to_indices(&values.slice(first, end - first), Some(options), None)?;
        let mut list_of = vec![0; end - first];
        for (list, bounds) in offsets.windows(2).enumerate() {
            list_of[bounds[0] - first..bounds[1] - first].fill(list);
        }
        // Each list gets its values in their order, at the places that it has.
        let (mut sorted, mut next) = (vec![0u32; end - first], offsets.clone());
        for position in order.values() {
            let place = &mut next[list_of[*position as usize]];
            sorted[*place - first] = *position + first as u32;
            *place += 1;
        }
        let is_equal = make_comparator(values, values, SortOptions::default())?;
        let pick = |(list, bounds): (usize, &[usize])| {
            let of_list = &sorted[bounds[0] - first..bounds[1] - first];
            let is_equal = |one: u32, other: u32| is_equal(one as usize, other as usize).is_eq();
            if lists.is_null(list) { None } else { self.of_sorted(of_list, is_equal) }
        };
        let picked: UInt32Array = offsets.windows(2).enumerate().map(pick).collect();
        Ok(take(values, &picked, None)?)
    }

    /// One of the positions of sorted values.
    fn of_sorted(self, sorted: &[u32], is_equal: impl Fn(u32, u32) -> bool) -> Option<u32> {
        if let Some(share) = self.share {
            let number = (share * sorted.len() as f64).ceil().max(1.0) as usize;
            return sorted.get(number.min(sorted.len()).checked_sub(1)?).copied();
        }
        let runs = sorted.chunk_by(|one, other| is_equal(*one, *other));
        // Of equally long runs the first one.
        let longest = runs.reduce(|longest, run| if run.len() > longest.len() { run } else { longest });
        longest.map(|run| run[0])
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, ListArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    fn picked(share: Option<f64>, is_descending: bool, lists: &ListArray) -> Vec<Option<i32>> {
        let lists: ArrayRef = Arc::new(lists.clone());
        let picked = Pick { share, is_descending }.of_lists(&lists).unwrap();
        picked.as_any().downcast_ref::<Int32Array>().unwrap().iter().collect()
    }

    #[test]
    fn values_are_picked_within_their_lists() {
        let list = |values: &[i32]| Some(values.iter().copied().map(Some).collect::<Vec<_>>());
        let lists = [list(&[9, 9, 9]), list(&[5, 1, 4, 1, 5]), None, list(&[]), list(&[2])];
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
        // A slice begins behind the first values.
        let lists = lists.slice(1, 4);
        assert_eq!(picked(None, false, &lists), [Some(1), None, None, Some(2)]);
        assert_eq!(picked(None, true, &lists), [Some(5), None, None, Some(2)]);
        for (share, up, down) in [(0.0, 1, 5), (0.2, 1, 5), (0.4, 1, 5), (0.5, 4, 4), (0.61, 5, 1), (1.0, 5, 1)] {
            assert_eq!(picked(Some(share), false, &lists), [Some(up), None, None, Some(2)], "{share}");
            assert_eq!(picked(Some(share), true, &lists), [Some(down), None, None, Some(2)], "{share}");
        }
    }
}
