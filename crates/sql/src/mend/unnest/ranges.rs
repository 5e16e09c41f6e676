//! What an inequality compares with the rows around, in the order of the compared values.
//!
//! Counts and sums of the rows up to a value of the rows around, and the last rows before it, would join each value of
//! the domain with all rows below it. Here values and rows are sorted together once:
//!
//! ```text
//! (SELECT count(*) FROM u WHERE u.k = t.k AND u.ts <= t.ts)
//!
//!   Filter: of the domain
//!     count(one) OVER (PARTITION BY k ORDER BY ts, of the domain ROWS UNBOUNDED PRECEDING)
//!       Union
//!         the domain: k, ts, NULL
//!         u:          k, ts, 1
//! ```
//!
//! With `ORDER BY ts DESC LIMIT n`, such a count is the number of the first row that is asked for: the rows of `u` are
//! numbered by `ts`, and joined by number.

use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use datafusion::common::{Column, JoinType, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::{AggregateFunction, Sort as SortExpr, WindowFunction};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Cast, Expr, ExprFunctionExt, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder,
    Operator, Sort, Union, Window, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, cast,
    lit, when,
};

use super::outer::{columns, filtered, joined, named, projected, substituted};
use super::push::{Binding, Pushed, Pusher};

/// Aggregates that go on from row to row.
const RUNNING: &[&str] = &["count", "sum", "min", "max", "avg"];
/// Most rows of a LIMIT that are joined by number.
const ROWS_MAX: u64 = 1000;

/// Rows of a plan that equal items and are on one side of another.
pub(super) struct Range {
    rows: LogicalPlan,
    /// The values of the rows that equal items, and whether NULL equals nothing.
    keys: Vec<(usize, Expr, bool)>,
    /// The value that is compared.
    value: Expr,
    item: usize,
    /// Whether the value is below the item.
    is_below: bool,
    /// Whether it may be the item itself.
    takes_equal: bool,
}

impl Pusher<'_> {
    /// The range that a filter is, if its conditions refer to the rows around by equalities and one inequality.
    fn range(&self, plan: &LogicalPlan) -> Result<Option<Range>> {
        let LogicalPlan::Filter(Filter { predicate, input, .. }) = plan else { return Ok(None) };
        if self.refers(input)? {
            return Ok(None);
        }
        let (mut own, mut compared) = (Vec::new(), None);
        let mut keys: Vec<(usize, Expr, bool)> = Vec::new();
        for conjunct in split_conjunction_owned(predicate.clone()) {
            let within = self.within([&conjunct])?;
            let mut found = (0..self.items.len()).filter(|item| within[*item]);
            let (item, other) = (found.next(), found.next());
            let Some(item) = item else {
                own.push(conjunct);
                continue;
            };
            if other.is_some() || keys.iter().any(|(known, ..)| *known == item) {
                return Ok(None);
            }
            if let Some((value, is_strict)) = self.equal(&conjunct, item, input) {
                keys.push((item, value, is_strict));
            } else if let Some(found) = self.inequality(&conjunct, item, input)
                && compared.is_none()
            {
                compared = Some((item, found));
            } else {
                return Ok(None);
            }
        }
        let Some((item, (value, is_below, takes_equal))) = compared else { return Ok(None) };
        if keys.iter().any(|(known, ..)| *known == item) {
            return Ok(None);
        }
        let strict = keys.iter().filter(|(.., is_strict)| *is_strict).map(|(_, value, _)| value);
        own.extend(strict.chain([&value]).map(|value| value.clone().is_not_null()));
        let rows = filtered(input.as_ref().clone(), own)?;
        Ok(Some(Range { rows, keys, value, item, is_below, takes_equal }))
    }

    /// The value that an inequality compares with an item, whether it is below, and whether it may be equal.
    fn inequality(&self, conjunct: &Expr, item: usize, input: &LogicalPlan) -> Option<(Expr, bool, bool)> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = conjunct else { return None };
        let op = if right.as_ref() == &self.items[item] { *op } else { op.swap()? };
        let (is_below, takes_equal) = match op {
            Operator::Lt => (true, false),
            Operator::LtEq => (true, true),
            Operator::Gt => (false, false),
            Operator::GtEq => (false, true),
            _ => return None,
        };
        // As an equality the operands are checked alike.
        let equal = BinaryExpr::new(left.clone(), Operator::Eq, right.clone());
        let (value, _) = self.equal(&Expr::BinaryExpr(equal), item, input)?;
        let data_type = value.get_type(input.schema()).ok()?;
        // The order of floats knows NaN and two zeros.
        let is_sorted = data_type.is_integer()
            || data_type.is_decimal()
            || data_type.is_string()
            || data_type.is_temporal() && !matches!(data_type, DataType::Interval(_));
        is_sorted.then_some((value, is_below, takes_equal))
    }

    /// For each value of the domain, aggregates over the rows of a range: these expressions of the rows, each with its
    /// function. Gives the plan, the columns of the items, and those of the aggregates.
    fn running(&mut self, range: &Range, aggregates: Vec<(AggregateFunction, Expr)>) -> Result<Running> {
        let mut wanted = vec![false; self.items.len()];
        range.keys.iter().for_each(|(item, ..)| wanted[*item] = true);
        wanted[range.item] = true;
        let (domain, found) = self.domain(&wanted)?;
        let is_of_domain = self.names.column();
        let mut of_rows = vec![lit(false).alias(&is_of_domain)];
        let mut of_domain = vec![lit(true).alias(&is_of_domain)];
        let mut bound = vec![None; self.items.len()];
        let values = range.keys.iter().map(|(item, value, _)| (*item, value));
        for (item, value) in values.chain([(range.item, &range.value)]) {
            let name = self.names.column();
            of_rows.push(value.clone().alias(&name));
            let Some(found) = &found[item] else { continue };
            of_domain.push(Expr::Column(found.column.clone()).alias(&name));
            bound[item] = Some(Binding { column: Column::new_unqualified(name), is_strict: false });
        }
        let is_of_domain = Expr::Column(Column::new_unqualified(is_of_domain));
        let column = |item: usize| bound[item].as_ref().map(|bound: &Binding| Expr::Column(bound.column.clone()));
        let partition_by: Vec<Expr> = range.keys.iter().filter_map(|(item, ..)| column(*item)).collect();
        // A value of the domain that is NULL comes before all rows, one that equals some behind them if they are asked
        // for: the frame needs no peers.
        let mut order_by: Vec<SortExpr> =
            column(range.item).map(|value| value.sort(range.is_below, true)).into_iter().collect();
        order_by.push(is_of_domain.clone().sort(range.takes_equal, false));
        let (mut windows, mut made) = (Vec::new(), Vec::new());
        for (function, value) in aggregates {
            let (name, argument) = (self.names.column(), self.names.column());
            let null = ScalarValue::try_from(value.get_type(range.rows.schema())?)?;
            of_rows.push(value.alias(&argument));
            of_domain.push(Expr::Literal(null, None).alias(&argument));
            let argument = Expr::Column(Column::new_unqualified(argument));
            let mut window = WindowFunction::new(WindowFunctionDefinition::AggregateUDF(function.func), vec![argument]);
            window.params.partition_by = partition_by.clone();
            window.params.order_by = order_by.clone();
            window.params.window_frame = rows_so_far();
            windows.push(Expr::WindowFunction(Box::new(window)).alias(&name));
            made.push(Expr::Column(Column::new_unqualified(name)));
        }
        let branches = [projected(domain, of_domain)?, projected(range.rows.clone(), of_rows)?];
        let union = LogicalPlan::Union(Union::try_new(branches.into_iter().map(Arc::new).collect())?);
        let plan = LogicalPlan::Window(Window::try_new(windows, Arc::new(union))?);
        Ok(Running { plan: filtered(plan, vec![is_of_domain])?, bound, made })
    }

    /// An aggregation without groups over a range, if its functions go on from row to row.
    pub(super) fn running_aggregates(&mut self, aggregate: &Aggregate) -> Result<Option<Pushed>> {
        if !aggregate.group_expr.is_empty() {
            return Ok(None);
        }
        let Some(range) = self.range(&aggregate.input)? else { return Ok(None) };
        let mut functions = Vec::with_capacity(aggregate.aggr_expr.len());
        for expr in &aggregate.aggr_expr {
            let Expr::AggregateFunction(function) = expr.clone().unalias() else { return Ok(None) };
            let params = &function.params;
            let [argument] = params.args.as_slice() else { return Ok(None) };
            let data_type = argument.get_type(range.rows.schema())?;
            let is_running = RUNNING.contains(&function.func.name())
                && !params.distinct
                && params.order_by.is_empty()
                && (!data_type.is_floating() || matches!(function.func.name(), "count"));
            if !is_running || self.within([expr])?.contains(&true) {
                return Ok(None);
            }
            let value = match &params.filter {
                Some(filter) => when(filter.as_ref().clone(), argument.clone()).end()?,
                None => argument.clone(),
            };
            // Sums of rows that no row around asks for may leave the type.
            let is_wide = function.func.name() == "sum" && data_type.is_integer();
            let value = if is_wide { cast(value, DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0)) } else { value };
            functions.push((function, value));
        }
        let Running { plan, bound, made } = self.running(&range, functions)?;
        let exprs = made.into_iter().enumerate().map(|(place, made)| {
            let to = aggregate.schema.field(place).data_type();
            let own = made.get_type(plan.schema())?;
            Ok(named(if own == *to { made } else { cast(made, to.clone()) }, &aggregate.schema, place))
        });
        let exprs = exprs.collect::<Result<_>>()?;
        self.project(Pushed { plan, bound, is_single: true }, exprs).map(Some)
    }

    /// The first rows of a sorted range, if these are those nearest to the value of the rows around.
    pub(super) fn nearest(&mut self, sort: &Sort, skip: u64, fetch: u64) -> Result<Option<Pushed>> {
        let Some(last) = skip.checked_add(fetch).and_then(|last| i64::try_from(last).ok()) else { return Ok(None) };
        if fetch == 0 || fetch > ROWS_MAX {
            return Ok(None);
        }
        // Projections between the sort and the filter are computed above.
        let mut values = columns(&sort.input);
        let mut input = sort.input.as_ref();
        loop {
            let (schema, exprs) = match input {
                LogicalPlan::Projection(projection) => (&projection.schema, projection.expr.clone()),
                LogicalPlan::SubqueryAlias(alias) => (&alias.schema, columns(&alias.input)),
                _ => break,
            };
            let below = values.into_iter().map(|value| substituted(value, schema, &exprs));
            values = below.collect::<Result<_>>()?;
            input = input.inputs()[0];
        }
        let Some(range) = self.range(input)? else { return Ok(None) };
        let within = self.within(&values)?;
        if values.iter().any(Expr::is_volatile) || within.contains(&true) {
            return Ok(None);
        }
        let mut sorts = Vec::with_capacity(sort.expr.len());
        for SortExpr { expr, asc, nulls_first } in &sort.expr {
            let expr = substituted(expr.clone(), sort.input.schema(), &values)?;
            sorts.push(SortExpr { expr, asc: !asc, nulls_first: !nulls_first });
        }
        let is_nearest = sorts.first().is_some_and(|sort| sort.expr == range.value && sort.asc == range.is_below);
        if !is_nearest {
            return Ok(None);
        }
        let Expr::AggregateFunction(counting) = count(lit(1i64)) else { return Ok(None) };
        let Running { plan: counts, bound, mut made } = self.running(&range, vec![(counting, lit(1i64))])?;
        let number = self.names.column();
        let keys: Vec<Expr> = range.keys.iter().map(|(_, value, _)| value.clone()).collect();
        let numbered = match keys.is_empty() {
            true => row_number().order_by(sorts).build()?,
            false => row_number().partition_by(keys).order_by(sorts).build()?,
        };
        let window = Window::try_new(vec![numbered.alias(&number)], Arc::new(range.rows.clone()))?;
        let rows = LogicalPlan::Window(window);
        // The places before the last row of the range.
        let places = (last - fetch as i64..last).map(|place| vec![lit(place)]).collect();
        let places = LogicalPlanBuilder::values(places)?.build()?;
        let place = self.names.column();
        let places = {
            let column = columns(&places).swap_remove(0).alias(&place);
            projected(places, vec![column])?
        };
        let counts = joined(counts, places, JoinType::Inner, Vec::new())?;
        let number = Expr::Column(Column::new_unqualified(number));
        let number = Expr::Cast(Cast::new(Box::new(number), DataType::Int64));
        let (last, place) = (made.swap_remove(0), Expr::Column(Column::new_unqualified(place)));
        let mut conditions =
            vec![Expr::BinaryExpr(BinaryExpr::new(Box::new(last), Operator::Minus, Box::new(place))).eq(number)];
        for (item, value, is_strict) in &range.keys {
            if let Some(binding) = &bound[*item] {
                let binding = Binding { is_strict: *is_strict, ..binding.clone() };
                conditions.push(binding.is(Expr::Column(binding.column.clone()), value.clone()));
            }
        }
        let plan = joined(counts, rows, JoinType::Inner, conditions)?;
        let schema = sort.input.schema();
        let exprs = values.into_iter().enumerate().map(|(place, value)| named(value.unalias(), schema, place));
        let exprs = exprs.collect();
        self.project(Pushed { plan, bound, is_single: fetch == 1 }, exprs).map(Some)
    }
}

/// The frame of a row and all before it.
fn rows_so_far() -> WindowFrame {
    let start = WindowFrameBound::Preceding(ScalarValue::UInt64(None));
    WindowFrame::new_bounds(WindowFrameUnits::Rows, start, WindowFrameBound::CurrentRow)
}

/// Aggregates over ranges, for each value of the domain.
struct Running {
    plan: LogicalPlan,
    bound: Vec<Option<Binding>>,
    made: Vec<Expr>,
}
