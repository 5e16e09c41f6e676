//! Windows over rows that the device sorts.
//!
//! ```text
//! Window: rank() over (a order by b)        rows 1   ←  sort the rows of t by a, b; rank, count
//!   Window: count(*) over (a)           →   …        ←  scan rows 1
//!     TableScan: t
//! ```
//!
//! A window whose partition and order are the first keys of the sort below it, or go on where these end, shares that
//! sort; keys of partitions have no direction. Any other window sorts the rows that the windows below it leave.

use std::cell::Cell;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction as Call, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, SortExpr, Window, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
};
use warpcube_engine::{AggregateKind, Expr as Device, Frame, FrameBound, Literal, WindowCall, WindowFunction};

use super::Reason;
use super::columns::{BaseColumn, data_type, renumber, replace, rewrite, text};
use super::constants;
use super::finish::Finish;
use super::graph::{Core, Graph, InnerRows, InnerWindows, Relation, WindowKey};
use super::tables::TableFacts;

impl Graph {
    /// Adds the rows of windows to `core`; the result has an expression for each of their columns.
    pub(super) fn windows(
        &mut self,
        window: &Window,
        facts: &TableFacts,
        core: &mut Core,
    ) -> Result<Vec<Expr>, Reason> {
        let (mut graph, mut own) = (Graph::new(facts.options.clone()), Core::default());
        let mut columns = graph.flatten(&window.input, facts, &mut own)?;
        own.without_limit("a window")?;
        let schema = window.input.schema();
        let (mut fields, width) = (schema.fields().to_vec(), columns.len());
        let mut calls = window.window_expr.iter().map(called).collect::<Result<Vec<_>, _>>()?.into_iter();
        let mut calls: Vec<(&Call, &FieldRef, usize)> = window
            .schema
            .fields()
            .iter()
            .skip(width)
            .enumerate()
            .filter_map(|(at, field)| calls.next().map(|call| (call, field, at)))
            .collect();
        // A partition of few keys has to be made of the first ones of the others.
        calls.sort_by_key(|(call, _, _)| call.params.partition_by.len());
        for (call, field, _) in &calls {
            let over = |columns: &[Expr]| over(call, &|expr| rewrite(expr, schema, &columns[..width]));
            let column = match graph.shares_sort(&own, &over(&columns)?, field)? {
                Some(column) => column,
                None => {
                    // A sort knows rows by their numbers, which those of a join get in a list.
                    if own.multiplies() {
                        let rows = InnerRows::of(graph, own, columns, &fields, None);
                        (graph, own) = (Graph::new(facts.options.clone()), Core::default());
                        columns = graph.inner_rows(rows, &fields, &mut own);
                    }
                    let rows = InnerRows::of(graph, own, columns, &fields, None);
                    let rows = InnerRows { windows: Some(InnerWindows::default()), ..rows };
                    (graph, own) = (Graph::new(facts.options.clone()), Core::default());
                    columns = graph.inner_rows(rows, &fields, &mut own);
                    graph.shares_sort(&own, &over(&columns)?, field)?.ok_or("a window without a sort")?
                }
            };
            columns.push(column);
            fields.push((*field).clone());
        }
        let [last] = own.members[..] else { return Err("a window without rows".into()) };
        let relation = self.add(graph.take(last), core);
        let mut columns: Vec<Expr> = columns.iter().map(|column| renumber(column, last, relation)).collect();
        let mut of_windows: Vec<(usize, Expr)> =
            calls.iter().map(|(_, _, at)| *at).zip(columns.split_off(width)).collect();
        of_windows.sort_by_key(|(at, _)| *at);
        columns.extend(of_windows.into_iter().map(|(_, column)| column));
        Ok(columns)
    }

    /// Adds a window to those of the rows that a core has, if their sort may be its own; the result is its column.
    fn shares_sort(&mut self, core: &Core, call: &Call, field: &FieldRef) -> Result<Option<Expr>, Reason> {
        let Some(relation) = core.alone() else { return Ok(None) };
        let Relation::Inner(rows) = self.relation_mut(relation) else { return Ok(None) };
        let InnerRows { outputs, types, windows: Some(windows), .. } = rows.as_mut() else { return Ok(None) };
        let reads_window = Cell::new(false);
        let call = over(call, &|expr| {
            Ok(replace(expr, |column| {
                let output = outputs.get(column.id.position);
                reads_window.set(reads_window.get() || output.is_none());
                output.cloned()
            }))
        })?;
        if reads_window.get() {
            return Ok(None);
        }
        let Some(by) = extended(&mut windows.keys, &call.params) else { return Ok(None) };
        let finish = windows.add(&call, outputs.len(), by, field.data_type())?;
        windows.finish.push(finish);
        let position = types.len() + windows.finish.len() - 1;
        Ok(Some(BaseColumn::expr(relation, position, field.clone())))
    }
}

fn called(expr: &Expr) -> Result<&Call, Reason> {
    match expr {
        Expr::Alias(alias) => called(&alias.expr),
        Expr::WindowFunction(call) => Ok(call),
        other => Err(format!("the window '{other}'")),
    }
}

/// A window with its expressions rewritten.
fn over(call: &Call, rewrite: &dyn Fn(&Expr) -> Result<Expr, Reason>) -> Result<Call, Reason> {
    let mut call = call.clone();
    let params = &mut call.params;
    let keys = params.order_by.iter_mut().map(|key| &mut key.expr);
    let exprs = params.args.iter_mut().chain(&mut params.partition_by).chain(keys);
    for expr in exprs.chain(params.filter.as_deref_mut()) {
        *expr = rewrite(expr)?;
    }
    Ok(call)
}

/// Extends the keys of a sort by those that a window needs; its numbers of keys, or none if it needs other keys.
fn extended(keys: &mut Vec<WindowKey>, params: &WindowFunctionParams) -> Option<(usize, usize)> {
    let mut partition: Vec<&Expr> = Vec::new();
    params.partition_by.iter().for_each(|expr| {
        if !partition.contains(&expr) {
            partition.push(expr);
        }
    });
    let mut order: Vec<&SortExpr> = Vec::new();
    for key in &params.order_by {
        // Rows that are alike in a key so far are alike in it again.
        if !partition.contains(&&key.expr) && !order.iter().any(|known| known.expr == key.expr) {
            order.push(key);
        }
    }
    let known = keys.len().min(partition.len());
    if !keys[..known].iter().all(|key| partition.contains(&&key.key.expr)) {
        return None;
    }
    let is_same = |known: &WindowKey, key: &SortExpr| {
        known.key.expr == key.expr
            && (known.turns || (known.key.asc, known.key.nulls_first) == (key.asc, key.nulls_first))
    };
    let behind = keys.iter().skip(partition.len());
    if !behind.zip(&order).all(|(known, key)| is_same(known, key)) {
        return None;
    }
    if keys.len() < partition.len() {
        let new: Vec<Expr> = partition
            .iter()
            .filter(|expr| !keys.iter().any(|key| key.key.expr == ***expr))
            .map(|expr| (*expr).clone())
            .collect();
        keys.extend(new.into_iter().map(|expr| WindowKey { key: SortExpr::new(expr, true, false), turns: true }));
    }
    for (number, key) in order.iter().enumerate() {
        let own = WindowKey { key: (*key).clone(), turns: false };
        match keys.get_mut(partition.len() + number) {
            Some(known) => *known = own,
            None => keys.push(own),
        }
    }
    Some((partition.len(), partition.len() + order.len()))
}

impl InnerWindows {
    /// Adds a window; how its column is made of calls. Arguments stand behind the first so many outputs.
    fn add(
        &mut self,
        call: &Call,
        first: usize,
        (partition, order): (usize, usize),
        result: &DataType,
    ) -> Result<Finish, Reason> {
        let Call { fun, params } = call;
        let name = fun.name().to_string();
        if params.distinct {
            return Err(format!("{name} of distinct values over a window"));
        }
        let filter = match &params.filter {
            Some(filter) => Some(self.argument(first, filter)?),
            None => None,
        };
        let frame = || frame(&params.window_frame);
        let skips_nulls = matches!(params.null_treatment, Some(NullTreatment::IgnoreNulls));
        let value = |windows: &mut InnerWindows, at: usize| match params.args.get(at) {
            Some(argument) => windows.argument(first, argument),
            None => Err(format!("{name} of {} values", params.args.len())),
        };
        let function = match (fun, name.as_str()) {
            (WindowFunctionDefinition::AggregateUDF(_), _) => {
                return self.aggregate(&name, (params, filter, frame()?), first, (partition, order), result);
            }
            (_, "row_number") => WindowFunction::RowNumber,
            (_, "rank") => WindowFunction::Rank,
            (_, "dense_rank") => WindowFunction::DenseRank,
            (_, "percent_rank") => WindowFunction::PercentRank,
            (_, "cume_dist") => WindowFunction::CumeDist,
            (_, "ntile") => match integer(params.args.first())? {
                parts @ 1.. => WindowFunction::Tile(parts as u64),
                parts => return Err(format!("ntile({parts})")),
            },
            (_, "lag" | "lead") => {
                let rows = if params.args.len() > 1 { integer(params.args.get(1))? } else { 1 };
                let rows = if name == "lag" { rows } else { -rows };
                let default = params.args.get(2).map(constant).transpose()?.unwrap_or(Literal::Null);
                if rows == 0 && skips_nulls {
                    return Err(format!("{name} by no rows that passes over NULLs"));
                }
                WindowFunction::Shift { output: value(self, 0)?, rows, default, skips_nulls }
            }
            (_, "first_value" | "last_value" | "nth_value") => {
                let place = match name.as_str() {
                    "first_value" => 1,
                    "last_value" => -1,
                    _ => integer(params.args.get(1))?,
                };
                if place == 0 {
                    return Err("nth_value(…, 0)".into());
                }
                WindowFunction::Nth { output: value(self, 0)?, place, skips_nulls, frame: frame()? }
            }
            (_, other) => return Err(format!("the window function '{other}'")),
        };
        Ok(Finish::Aggregate(self.call(function, (partition, order), result)))
    }

    fn aggregate(
        &mut self,
        name: &str,
        (params, filter, frame): (&WindowFunctionParams, Option<usize>, Frame),
        first: usize,
        by: (usize, usize),
        result: &DataType,
    ) -> Result<Finish, Reason> {
        if !params.order_by.is_empty() && params.null_treatment.is_some() {
            return Err(format!("{name} that treats NULLs over a window"));
        }
        let [argument] = params.args.as_slice() else { return Err(format!("{name} of {} values", params.args.len())) };
        let of = |kind, output| WindowFunction::Aggregate { kind, output, filter, frame };
        if name == "count" && matches!(argument, Expr::Literal(value, _) if !value.is_null()) {
            return Ok(Finish::Aggregate(self.call(of(AggregateKind::Count, None), by, result)));
        }
        match name {
            "count" => {
                let output = Some(self.argument(first, argument)?);
                Ok(Finish::Aggregate(self.call(of(AggregateKind::Count, output), by, result)))
            }
            "min" | "max" | "bool_and" | "bool_or" => {
                let kind = if matches!(name, "min" | "bool_and") { AggregateKind::Min } else { AggregateKind::Max };
                if data_type(argument)?.is_floating() {
                    return Err(format!("{name} of floats over a window"));
                }
                let output = Some(self.argument(first, argument)?);
                Ok(Finish::Aggregate(self.call(of(kind, output), by, result)))
            }
            "sum" | "avg" => {
                // A sum of integers as doubles is exact as long as doubles hold it.
                let whole = match argument {
                    Expr::Cast(cast) if *cast.field.data_type() == DataType::Float64 => {
                        Some(cast.expr.as_ref()).filter(|inner| data_type(inner).is_ok_and(|ty| ty.is_integer()))
                    }
                    _ => None,
                };
                let input = data_type(argument)?;
                let output = Some(self.argument(first, whole.unwrap_or(argument))?);
                if input.is_floating() && whole.is_none() {
                    return Err(format!("{name} of floats over a window, which adds them in the order of rows"));
                }
                let sum =
                    |windows: &mut InnerWindows, ty: &DataType| windows.call(of(AggregateKind::Sum, output), by, ty);
                if name == "sum" {
                    return Ok(Finish::Aggregate(sum(self, result)));
                }
                let finish = match (&input, result) {
                    (DataType::Float64, DataType::Float64) => {
                        let sum = sum(self, &DataType::Float64);
                        let count = self.call(of(AggregateKind::Count, output), by, &DataType::Int64);
                        Finish::Average { sum, count }
                    }
                    (DataType::Decimal128(precision, from), DataType::Decimal128(_, to)) if *precision <= 25 => {
                        let sum = sum(self, &DataType::Decimal128(38, *from));
                        let count = self.call(of(AggregateKind::Count, output), by, &DataType::Int64);
                        let more_digits = u32::try_from(to - from).map_err(|_| "an average of fewer digits")?;
                        Finish::DecimalAverage { sum, count, more_digits }
                    }
                    _ => return Err(format!("an average of type {input}")),
                };
                Ok(finish)
            }
            other => Err(format!("the aggregate function '{other}' over a window")),
        }
    }

    /// Adds a call, unless there is one like it; its number.
    fn call(&mut self, function: WindowFunction, (partition, order): (usize, usize), result: &DataType) -> usize {
        let call = WindowCall { function, partition, order, data_type: result.clone() };
        self.calls.iter().position(|known| *known == call).unwrap_or_else(|| {
            self.calls.push(call);
            self.calls.len() - 1
        })
    }

    /// The place of an argument among outputs, behind the first so many.
    fn argument(&mut self, first: usize, expr: &Expr) -> Result<usize, Reason> {
        let position = match self.arguments.iter().position(|(known, _)| known == expr) {
            Some(position) => position,
            None => {
                let data_type = data_type(expr)?;
                self.arguments.push((expr.clone(), data_type));
                self.arguments.len() - 1
            }
        };
        Ok(first + position)
    }
}

/// A frame without offsets of values.
fn frame(frame: &WindowFrame) -> Result<Frame, Reason> {
    let bound = |bound: &WindowFrameBound| {
        let (sign, offset) = match bound {
            WindowFrameBound::CurrentRow => (1, 0),
            unbounded if unbounded.is_unbounded() => return Ok(FrameBound::Unbounded),
            WindowFrameBound::Preceding(offset) => (-1, whole(offset)?),
            WindowFrameBound::Following(offset) => (1, whole(offset)?),
        };
        match frame.units {
            WindowFrameUnits::Rows => Ok(FrameBound::Rows(sign * offset)),
            WindowFrameUnits::Groups => Ok(FrameBound::Peers(sign * offset)),
            WindowFrameUnits::Range if matches!(bound, WindowFrameBound::CurrentRow) => Ok(FrameBound::Peers(0)),
            WindowFrameUnits::Range => Err("a window with a RANGE frame whose bounds have offsets".to_string()),
        }
    };
    let is_turned = matches!(&frame.start_bound, WindowFrameBound::Following(offset) if offset.is_null())
        || matches!(&frame.end_bound, WindowFrameBound::Preceding(offset) if offset.is_null());
    if is_turned {
        return Err("a window with a frame that begins at its end".into());
    }
    Ok(Frame { start: bound(&frame.start_bound)?, end: bound(&frame.end_bound)? })
}

fn whole(value: &ScalarValue) -> Result<i64, Reason> {
    match value.cast_to(&DataType::Int64).map_err(text)? {
        ScalarValue::Int64(Some(value)) => Ok(value),
        _ => Err(format!("a window whose offset is {value}")),
    }
}

/// A constant integer among the arguments of a window.
fn integer(expr: Option<&Expr>) -> Result<i64, Reason> {
    match expr {
        Some(Expr::Literal(value, _)) => whole(value),
        _ => Err("a window whose numbers are computed".into()),
    }
}

fn constant(expr: &Expr) -> Result<Literal, Reason> {
    match expr {
        Expr::Literal(value, _) => match constants::literal(value)? {
            Device::Literal(value, _) => Ok(value),
            _ => Err("a window with a string as its default".into()),
        },
        _ => Err("a window whose default is computed".into()),
    }
}
