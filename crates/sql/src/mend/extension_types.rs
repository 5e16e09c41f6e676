//! The extension types of expressions: where texts become UUIDs or JSON, and which columns are some.
//!
//! DataFusion 55.2 knows the metadata of a column, but not of what a CASE or an aggregate gives, and compares texts as
//! they are. Here the type of each expression is that of its arguments or of its function. A value that shares a type
//! with a UUID or JSON is read as one: results of CASE and `coalesce`, columns of UNION and VALUES. So is what a UUID
//! is compared with: operands, items of IN and of lists, keys of joins, columns of subqueries. JSON is compared as
//! text, as in DuckDB. Constants are read here. Columns of projections and unions have the types in their metadata.
//!
//! Plans without such a type are not changed. The file goes once DataFusion coerces extension types.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, ScalarValue, TableReference};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{
    Aggregate, Between, BinaryExpr, Case, Cast, Distinct, Expr, ExprSchemable, Join, LogicalPlan, Projection, Subquery,
    TableScan, Union, Values, WindowFunctionDefinition, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::conversion::is_text;
use super::each_expression;
use super::intervals::compares;
use crate::error::SqlError;
use crate::extension_types::ExtensionType;
use crate::functions;
use crate::text_bytes::is_bytes;
use crate::walk::{PlanWalk, Walk};
use crate::words::sql_name;

/// Functions that give one of their arguments.
const OF_ARGUMENTS: [&str; 6] = ["coalesce", "greatest", "least", "nullif", "nvl", "nvl2"];
/// Aggregates and window functions that give a value of their first argument.
const OF_ROWS: [&str; 11] = [
    "any_value",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "max",
    "min",
    "mode",
    "nth_value",
    "quantile_disc",
    "percentile_disc",
];
/// Functions that look for values in a list, or put some into it.
const OF_ITEMS: [&str; 11] = [
    "array_append",
    "array_has",
    "array_position",
    "array_positions",
    "array_prepend",
    "array_remove",
    "array_remove_all",
    "array_remove_n",
    "array_replace",
    "array_replace_all",
    "array_replace_n",
];
/// Functions of two lists.
const OF_LISTS: [&str; 6] =
    ["array_concat", "array_except", "array_has_all", "array_has_any", "array_intersect", "array_union"];
/// The function that names a type.
const TYPE_OF: &str = "typeof";
/// Functions that take JSON among their arguments as it is.
const OF_JSON: [&str; 3] = ["json_array", "json_object", "to_json"];

/// The rule, before types are coerced.
#[derive(Debug)]
pub(super) struct ExtensionTypes;

impl AnalyzerRule for ExtensionTypes {
    fn name(&self) -> &str {
        "extension_types"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        with_extension_types(plan)
    }
}

/// The plan with its extension types.
///
/// # Errors
/// A constant that is no value of the type that it becomes, and a UUID beside what is no text.
fn with_extension_types(plan: LogicalPlan) -> Result<LogicalPlan> {
    match has_some(&plan)? {
        true => Ok(plan.transform_up_nested(in_node)?.data),
        false => Ok(plan),
    }
}

/// A column of rows that are inserted, as a value of its column's type.
///
/// # Errors
/// A type whose values are no UUIDs.
pub(super) fn inserted(value: Expr, from: &DataType, to: ExtensionType) -> Result<Expr> {
    if from.is_null() {
        return Ok(Expr::Cast(Cast::new(Box::new(value), DataType::Utf8)));
    }
    check_read(from, to)?;
    // The function is not coerced any more.
    let reader = functions::reader(to)?;
    let taken = reader.coerce_types(std::slice::from_ref(from))?;
    let value = match taken.first() {
        Some(taken) if taken != from => Expr::Cast(Cast::new(Box::new(value), taken.clone())),
        _ => value,
    };
    Ok(reader.call(vec![value]))
}

/// Whether a plan reads or makes a value of such a type.
fn has_some(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    let next = |found| if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue };
    plan.apply_nested(|plan| {
        if plan.inputs().is_empty() {
            let is_some =
                |field: &Arc<Field>| ExtensionType::of(field).or_else(|| ExtensionType::unread(field)).is_some();
            found |= plan.schema().fields().iter().any(is_some);
        }
        plan.apply_exprs(|expr| {
            found |= expr.exists(|expr| match expr {
                Expr::ScalarFunction(call) => Ok(functions::extension_type(&call.func).is_some()),
                _ => Ok(false),
            })?;
            Ok(next(found))
        })?;
        Ok(next(found))
    })?;
    Ok(found)
}

fn in_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let inputs = Inputs::of(&plan);
    let plan = match plan {
        LogicalPlan::Union(union) => return Ok(Transformed::yes(LogicalPlan::Union(in_union(union)?))),
        LogicalPlan::TableScan(scan) => return read_scan(scan),
        LogicalPlan::Join(join) => LogicalPlan::Join(in_keys(join)?),
        LogicalPlan::RecursiveQuery(mut query) => {
            query.recursive_term = Arc::new(read_columns(query.recursive_term, &columns(&query.static_term))?);
            LogicalPlan::RecursiveQuery(query)
        }
        plan => plan,
    };
    let rewritten = each_expression(plan, is_candidate, |expr, schema| {
        expr.transform_up(|expr| inputs.in_expression(expr, schema))
    })?;
    let plan = match rewritten.data {
        LogicalPlan::Projection(mut projection) => {
            let (exprs, input) = (std::mem::take(&mut projection.expr), projection.input.schema().clone());
            projection.expr = exprs.into_iter().map(|expr| inputs.named(expr, &input)).collect::<Result<_>>()?;
            LogicalPlan::Projection(projection)
        }
        LogicalPlan::Distinct(Distinct::On(mut distinct)) => {
            let (exprs, input) = (std::mem::take(&mut distinct.select_expr), distinct.input.schema().clone());
            distinct.select_expr = exprs.into_iter().map(|expr| inputs.named(expr, &input)).collect::<Result<_>>()?;
            LogicalPlan::Distinct(Distinct::On(distinct))
        }
        LogicalPlan::Values(values) => LogicalPlan::Values(inputs.in_values(values)?),
        plan => plan,
    };
    Ok(Transformed::yes(plan.recompute_schema()?))
}

fn is_candidate(expr: &Expr) -> bool {
    match expr {
        Expr::InList(_) | Expr::Between(_) | Expr::Case(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => true,
        Expr::BinaryExpr(binary) => compares(binary.op),
        Expr::ScalarFunction(call) => {
            let name = call.name();
            let of_lists = name == "make_array" || OF_ITEMS.contains(&name) || OF_LISTS.contains(&name);
            name == TYPE_OF || of_lists || OF_ARGUMENTS.contains(&name) || OF_JSON.contains(&name)
        }
        _ => false,
    }
}

/// The columns that a node reads, with their types.
struct Inputs(Vec<(DFSchemaRef, Vec<Option<ExtensionType>>)>);

impl Inputs {
    fn of(plan: &LogicalPlan) -> Inputs {
        Inputs(plan.inputs().into_iter().map(|input| (input.schema().clone(), columns(input))).collect())
    }

    fn column(&self, column: &Column) -> Option<ExtensionType> {
        let found = |(schema, types): &(DFSchemaRef, Vec<Option<_>>)| {
            schema.maybe_index_of_column(column).and_then(|place| types.get(place).copied().flatten())
        };
        self.0.iter().find_map(found)
    }

    /// The type of what an expression gives.
    fn type_of(&self, expr: &Expr) -> Option<ExtensionType> {
        match expr {
            Expr::Alias(alias) => self.type_of(&alias.expr),
            Expr::Column(column) => self.column(column),
            Expr::OuterReferenceColumn(field, _) => ExtensionType::of(field),
            Expr::Case(case) => self.common(results(case)),
            Expr::ScalarFunction(call) if OF_ARGUMENTS.contains(&call.name()) => {
                self.common(call.args.iter().skip(usize::from(call.name() == "nvl2")))
            }
            Expr::ScalarFunction(call) => functions::extension_type(&call.func),
            Expr::ScalarSubquery(subquery) => columns(&subquery.subquery).first().copied().flatten(),
            Expr::AggregateFunction(call) => self.of_rows(call.func.name(), &call.params.args),
            Expr::WindowFunction(call) => match &call.fun {
                WindowFunctionDefinition::AggregateUDF(function) => self.of_rows(function.name(), &call.params.args),
                WindowFunctionDefinition::WindowUDF(function) => self.of_rows(function.name(), &call.params.args),
            },
            _ => None,
        }
    }

    fn of_rows(&self, function: &str, arguments: &[Expr]) -> Option<ExtensionType> {
        let of = self.type_of(arguments.first().filter(|_| OF_ROWS.contains(&function))?);
        // What `lag` and `lead` give for no row is not read.
        let is_read = |default: &Expr| {
            matches!(default, Expr::Literal(value, _) if value.is_null()) || self.type_of(default) == of
        };
        of.filter(|_| !matches!(function, "lag" | "lead") || arguments.get(2).is_none_or(is_read))
    }

    /// The type that values share.
    fn common<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> Option<ExtensionType> {
        common(exprs.into_iter().map(|expr| self.type_of(expr)))
    }

    /// Reads each of these values that has no such type as one of the type that they share.
    fn share<'e>(&self, exprs: impl IntoIterator<Item = &'e mut Expr>, schema: &DFSchema) -> Result<bool> {
        let mut exprs: Vec<&mut Expr> = exprs.into_iter().collect();
        let Some(to) = self.common(exprs.iter().map(|expr| &**expr)) else { return Ok(false) };
        for expr in &mut exprs {
            if self.type_of(expr).is_none() {
                **expr = read(std::mem::take(*expr), to, schema)?;
            }
        }
        Ok(true)
    }

    /// The same of values that are compared.
    fn compare<'e>(&self, exprs: impl IntoIterator<Item = &'e mut Expr>, schema: &DFSchema) -> Result<bool> {
        let exprs: Vec<&mut Expr> = exprs.into_iter().collect();
        match self.common(exprs.iter().map(|expr| &**expr)) {
            Some(ExtensionType::Uuid) => self.share(exprs, schema),
            _ => Ok(false),
        }
    }

    /// The type of what is in a list that is written out or collected.
    fn of_items(&self, list: &Expr) -> Option<ExtensionType> {
        match list {
            Expr::Alias(alias) => self.of_items(&alias.expr),
            Expr::ScalarFunction(call) if call.name() == "make_array" => self.common(&call.args),
            Expr::AggregateFunction(call) if call.func.name() == "array_agg" => self.type_of(call.params.args.first()?),
            _ => None,
        }
    }

    /// Reads the texts of a list beside a UUID, and a text beside a list of UUIDs.
    fn beside_items(&self, arguments: &mut [Expr], schema: &DFSchema) -> Result<bool> {
        let is_list = |expr: &Expr| expr.get_type(schema).is_ok_and(|of| of.is_list());
        let is_uuid = |expr: &Expr| {
            let of = if is_list(expr) { self.of_items(expr) } else { self.type_of(expr) };
            of == Some(ExtensionType::Uuid)
        };
        if !arguments.iter().any(is_uuid) {
            return Ok(false);
        }
        for argument in arguments.iter_mut().filter(|argument| !is_uuid(argument)) {
            match argument.get_type(schema)? {
                text if is_text(&text) => *argument = read(std::mem::take(argument), ExtensionType::Uuid, schema)?,
                list if list.is_list() => {
                    *argument = functions::reader_of_lists()?.call(vec![std::mem::take(argument)]);
                }
                _ => {}
            }
        }
        Ok(true)
    }

    fn in_expression(&self, mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let changed = match &mut expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
                self.compare([left.as_mut(), right.as_mut()], schema)?
            }
            Expr::InList(InList { expr, list, .. }) => self.compare(list.iter_mut().chain([expr.as_mut()]), schema)?,
            Expr::Between(Between { expr, low, high, .. }) => {
                self.compare([expr.as_mut(), low.as_mut(), high.as_mut()], schema)?
            }
            Expr::InSubquery(comparison) => {
                self.beside_subquery(&mut comparison.expr, &mut comparison.subquery, schema)?
            }
            Expr::SetComparison(comparison) => {
                self.beside_subquery(&mut comparison.expr, &mut comparison.subquery, schema)?
            }
            Expr::Case(Case { expr, when_then_expr, else_expr }) => {
                let mut changed = false;
                if let Some(operand) = expr {
                    let whens = when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                    changed = self.compare(whens.chain([operand.as_mut()]), schema)?;
                }
                let thens = when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
                self.share(thens.chain(else_expr.as_deref_mut()), schema)? | changed
            }
            Expr::ScalarFunction(call) if OF_ARGUMENTS.contains(&call.name()) => {
                let first = usize::from(call.name() == "nvl2").min(call.args.len());
                match call.name() {
                    "nullif" => self.compare(&mut call.args, schema)?,
                    _ => self.share(&mut call.args[first..], schema)?,
                }
            }
            Expr::ScalarFunction(call) if call.name() == "make_array" => self.compare(&mut call.args, schema)?,
            Expr::ScalarFunction(call) if OF_ITEMS.contains(&call.name()) || OF_LISTS.contains(&call.name()) => {
                self.beside_items(&mut call.args, schema)?
            }
            Expr::ScalarFunction(call)
                if call.name() == "to_json"
                    && call
                        .args
                        .first()
                        .is_some_and(|argument| self.type_of(argument) == Some(ExtensionType::Json)) =>
            {
                expr = std::mem::take(&mut call.args[0]);
                true
            }
            Expr::ScalarFunction(call) if OF_JSON.contains(&call.name()) => {
                let mut changed = false;
                for argument in &mut call.args {
                    changed |= self.json_as_it_is(argument, schema)?;
                }
                changed
            }
            Expr::ScalarFunction(call) if call.name() == TYPE_OF => {
                match call.args.first().and_then(|argument| self.type_of(argument)) {
                    Some(of) => {
                        expr = lit(of.name());
                        true
                    }
                    None => false,
                }
            }
            _ => false,
        };
        Ok(Transformed::new_transformed(expr, changed))
    }

    /// Marks JSON, within lists and structs that are written out too, as what JSON has as it is.
    fn json_as_it_is(&self, expr: &mut Expr, schema: &DFSchema) -> Result<bool> {
        if self.type_of(expr) == Some(ExtensionType::Json) {
            *expr = functions::as_it_is(std::mem::take(expr));
            return Ok(true);
        }
        let mut changed = false;
        match expr {
            Expr::Alias(alias) => changed = self.json_as_it_is(&mut alias.expr, schema)?,
            Expr::ScalarFunction(call) if call.name() == "named_struct" => {
                for member in call.args.iter_mut().skip(1).step_by(2) {
                    changed |= self.json_as_it_is(member, schema)?;
                }
            }
            Expr::ScalarFunction(call) if call.name() == "make_array" => {
                let mut items = call.args.clone();
                for item in &mut items {
                    changed |= self.json_as_it_is(item, schema)?;
                }
                // Items keep one type.
                let types = items.iter().map(|item| item.get_type(schema)).collect::<Result<Vec<_>>>()?;
                changed &= types.windows(2).all(|pair| pair[0] == pair[1]);
                if changed {
                    call.args = items;
                }
            }
            _ => {}
        }
        Ok(changed)
    }

    /// A value and the column of a subquery that it is compared with.
    fn beside_subquery(&self, expr: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
        let types = [self.type_of(expr), columns(&subquery.subquery).first().copied().flatten()];
        match types {
            [None, Some(ExtensionType::Uuid)] => {
                *expr = read(std::mem::take(expr), ExtensionType::Uuid, schema)?;
                Ok(true)
            }
            [Some(ExtensionType::Uuid), None] => {
                subquery.subquery = Arc::new(read_columns(subquery.subquery.clone(), &[types[0]])?);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// An item of a projection whose field has the type in its metadata.
    fn named(&self, expr: Expr, input: &DFSchema) -> Result<Expr> {
        let Some(of) = self.type_of(&expr) else { return Ok(expr) };
        if ExtensionType::of(&expr.to_field(input)?.1) == Some(of) {
            return Ok(expr);
        }
        let metadata = Some(of.metadata());
        Ok(match expr {
            Expr::Alias(alias) => Expr::Alias(alias.with_metadata(metadata)),
            expr => {
                let (table, name) = expr.qualified_name();
                expr.alias_qualified_with_metadata(table, name, metadata)
            }
        })
    }

    /// VALUES whose columns share types.
    fn in_values(&self, mut values: Values) -> Result<Values> {
        let schema = values.schema.clone();
        let empty = DFSchema::empty();
        let mut types = Vec::with_capacity(schema.fields().len());
        for column in 0..schema.fields().len() {
            let cells = || values.values.iter().filter_map(|row| row.get(column));
            types.push(self.common(cells()));
            self.share(values.values.iter_mut().filter_map(|row| row.get_mut(column)), &empty)?;
        }
        values.schema = with_types(&schema, &types)?;
        Ok(values)
    }
}

/// What a CASE gives.
fn results(case: &Case) -> impl Iterator<Item = &Expr> {
    case.when_then_expr.iter().map(|(_, then)| then.as_ref()).chain(case.else_expr.as_deref())
}

/// The type that several values share: those without one become values of it. Values of two types are texts.
pub(super) fn common(types: impl IntoIterator<Item = Option<ExtensionType>>) -> Option<ExtensionType> {
    let mut types = types.into_iter().flatten();
    let first = types.next()?;
    types.all(|other| other == first).then_some(first)
}

/// The types of a plan's columns. An aggregation and a window have some that their fields do not tell.
fn columns(plan: &LogicalPlan) -> Vec<Option<ExtensionType>> {
    match plan {
        LogicalPlan::Filter(filter) => columns(&filter.input),
        LogicalPlan::Sort(sort) => columns(&sort.input),
        LogicalPlan::Limit(limit) => columns(&limit.input),
        LogicalPlan::SubqueryAlias(alias) => columns(&alias.input),
        LogicalPlan::Distinct(Distinct::All(input)) => columns(input),
        LogicalPlan::Subquery(subquery) => columns(&subquery.subquery),
        LogicalPlan::Window(window) => {
            let inputs = Inputs::of(plan);
            let own = window.window_expr.iter().map(|expr| inputs.type_of(expr));
            columns(&window.input).into_iter().chain(own).collect()
        }
        LogicalPlan::Aggregate(aggregate) => of_aggregate(plan, aggregate),
        plan => plan.schema().fields().iter().map(|field| ExtensionType::of(field)).collect(),
    }
}

fn of_aggregate(plan: &LogicalPlan, aggregate: &Aggregate) -> Vec<Option<ExtensionType>> {
    let inputs = Inputs::of(plan);
    let keys = grouping_set_to_exprlist(&aggregate.group_expr).unwrap_or_default();
    let keys = keys.into_iter().map(|key| inputs.type_of(key));
    let calls = aggregate.aggr_expr.iter().map(|call| inputs.type_of(call));
    // The number of the grouping set is between them.
    let other = plan.schema().fields().len().saturating_sub(keys.len() + calls.len());
    keys.chain(std::iter::repeat_n(None, other)).chain(calls).collect()
}

/// A scan whose columns are values of their types. One that has been read tells no types any more: a view's plan is
/// analysed when it is made and where it is used.
fn read_scan(mut scan: TableScan) -> Result<Transformed<LogicalPlan>> {
    let schema = scan.projected_schema.clone();
    let unread: Vec<_> = schema.fields().iter().map(|field| ExtensionType::unread(field)).collect();
    if unread.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
    }
    let read: Vec<_> = schema.fields().iter().map(|field| ExtensionType::of(field)).collect();
    let kept: Vec<_> = read.iter().zip(&unread).map(|(of, unread)| of.filter(|_| unread.is_none())).collect();
    scan.projected_schema = with_types(&schema, &kept)?;
    let item = |((table, field), unread): ((Option<&TableReference>, &Arc<Field>), &Option<ExtensionType>)| {
        let column = Expr::from((table, field));
        let Some(to) = unread else { return Ok(column) };
        let read = functions::reader(*to)?.call(vec![column]);
        Ok(read.alias_qualified_with_metadata(table.cloned(), field.name(), Some(to.metadata())))
    };
    let items = schema.iter().zip(&unread).map(item).collect::<Result<_>>()?;
    let scan = Arc::new(LogicalPlan::TableScan(scan));
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(items, scan)?)))
}

/// Keys of a join of the same types.
fn in_keys(mut join: Join) -> Result<Join> {
    let side = |plan: &Arc<LogicalPlan>| (Inputs(vec![(plan.schema().clone(), columns(plan))]), plan.schema().clone());
    let ((left, of_left), (right, of_right)) = (side(&join.left), side(&join.right));
    for (one, other) in &mut join.on {
        match (left.type_of(one), right.type_of(other)) {
            (None, Some(ExtensionType::Uuid)) => *one = read(std::mem::take(one), ExtensionType::Uuid, &of_left)?,
            (Some(ExtensionType::Uuid), None) => *other = read(std::mem::take(other), ExtensionType::Uuid, &of_right)?,
            _ => {}
        }
    }
    Ok(join)
}

/// A union whose columns share types.
fn in_union(union: Union) -> Result<Union> {
    let of_inputs: Vec<_> = union.inputs.iter().map(|input| columns(input)).collect();
    let width = union.schema.fields().len();
    let types: Vec<_> =
        (0..width).map(|column| common(of_inputs.iter().map(|types| types.get(column).copied().flatten()))).collect();
    let inputs = union.inputs.into_iter().map(|input| Ok(Arc::new(read_columns(input, &types)?)));
    let inputs = inputs.collect::<Result<_>>()?;
    Ok(Union { inputs, schema: with_types(&union.schema, &types)? })
}

/// A plan whose columns are values of these types. Within a union of unions each input is a plan of its own.
fn read_columns(plan: Arc<LogicalPlan>, types: &[Option<ExtensionType>]) -> Result<LogicalPlan> {
    let own = columns(&plan);
    let is_read = |(own, to): (&Option<_>, &Option<_>)| own.is_some() || to.is_none();
    if own.iter().zip(types).all(is_read) {
        return Ok(Arc::unwrap_or_clone(plan));
    }
    match plan.as_ref() {
        LogicalPlan::Union(union) => {
            let inputs = union.inputs.iter().map(|input| Ok(Arc::new(read_columns(input.clone(), types)?)));
            let inputs = inputs.collect::<Result<_>>()?;
            let shared: Vec<_> = own.iter().zip(types).map(|(own, to)| own.or(*to)).collect();
            return Ok(LogicalPlan::Union(Union { inputs, schema: with_types(&union.schema, &shared)? }));
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let input = Arc::new(read_columns(input.clone(), types)?);
            return Ok(LogicalPlan::Distinct(Distinct::All(input)));
        }
        _ => {}
    }
    let schema = plan.schema().clone();
    let item = |(number, (table, field)): (usize, (Option<&TableReference>, &Arc<Field>))| {
        let column = Expr::from((table, field));
        match (own.get(number), types.get(number)) {
            (Some(None), Some(Some(to))) => {
                let read = read(column, *to, &schema)?;
                Ok(read.alias_qualified_with_metadata(table.cloned(), field.name(), Some(to.metadata())))
            }
            _ => Ok(column),
        }
    };
    let items = schema.iter().enumerate().map(item).collect::<Result<_>>()?;
    Ok(LogicalPlan::Projection(Projection::try_new(items, plan)?))
}

/// The schema with these types in the metadata of its fields, and no others.
pub(super) fn with_types(schema: &DFSchemaRef, types: &[Option<ExtensionType>]) -> Result<DFSchemaRef> {
    let fields = schema.iter().zip(types).map(|((table, field), of)| {
        let metadata = of.map(|of| of.metadata().to_hashmap()).unwrap_or_default();
        (table.cloned(), Arc::new(field.as_ref().clone().with_metadata(metadata)))
    });
    let of_schema = DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())?;
    Ok(Arc::new(of_schema.with_functional_dependencies(schema.functional_dependencies().clone())?))
}

/// A value as one of a type; NULL stays what it is.
fn read(expr: Expr, to: ExtensionType, schema: &DFSchema) -> Result<Expr> {
    if let Expr::Literal(value, metadata) = &expr
        && let Some(text) = value.try_as_str()
    {
        let read = text.map(|text| functions::read_as(to, text)).transpose()?;
        return Ok(Expr::Literal(ScalarValue::Utf8(read), metadata.clone()));
    }
    let from = expr.get_type(schema)?;
    if from.is_null() {
        return Ok(expr);
    }
    check_read(&from, to)?;
    Ok(functions::reader(to)?.call(vec![expr]))
}

/// Refuses what no UUID is read from.
fn check_read(from: &DataType, to: ExtensionType) -> Result<()> {
    match to == ExtensionType::Json || from.is_null() || is_text(from) || is_bytes(from) {
        true => Ok(()),
        false => {
            let (to, from) = (to.name(), sql_name(from));
            Err(SqlError::Planning(format!(
                "{to} and {from} have no common type; a UUID is read from VARCHAR and BLOB"
            ))
            .into())
        }
    }
}
