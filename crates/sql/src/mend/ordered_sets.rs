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

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};

use super::picks::Pick;
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
