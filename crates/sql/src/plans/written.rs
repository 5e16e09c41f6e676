//! Columns of text files that a query passes on as they are, by its logical plan.
//!
//! A column of a result is passed on if projections, filters, orders, limits, groups and joins hand it through, or cast
//! it to text. Columns that the plan compares with each other for equality are of one kind: all of them are text or
//! none. Where the plan does anything else with the column of a file (it compares it with a constant, adds it up), its
//! type counts and is left as it is.

use std::collections::{BTreeSet, HashMap};

use arrow::datatypes::DataType;
use datafusion::catalog::TableProvider;
use datafusion::common::Column;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, LogicalPlan, Operator};

use crate::catalog::listing_of;
use crate::error::{Result, SqlError};
use crate::text_formats::plain;
use crate::walk::{PlanWalk, Walk};

/// A column of a text file: the name of its table in the plan, and its own.
type FileColumn = (String, String);

/// What a plan does with columns of text files besides passing them on.
#[derive(Debug, Default)]
struct Uses {
    /// Columns whose type counts.
    typed: BTreeSet<FileColumn>,
    /// Groups of columns that are compared with each other for equality.
    alike: Vec<Vec<FileColumn>>,
    /// Types of the columns.
    types: HashMap<FileColumn, DataType>,
}

/// The columns of text files, by table, that columns of a plan's result are passed on from: `keys` and `decimals` where
/// the types of the files' columns do not count otherwise, `named` always. Numbers of several texts are one value:
/// decimals are not passed on through comparisons, and not where the plan has groups or distinct rows. Names ignore
/// case.
///
/// # Errors
/// [`SqlError::CubeFacts`] for a key whose text the types of its file's column lose.
pub(crate) fn written_columns(
    plan: &LogicalPlan,
    keys: &[String],
    decimals: &[String],
    named: &[String],
) -> Result<HashMap<String, BTreeSet<String>>> {
    let uses = uses(plan)?;
    let has_groups = plan.exists(|node| Ok(matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_))))?;
    let mut written: HashMap<String, BTreeSet<String>> = HashMap::new();
    let is_of = |names: &[String], name: &str| names.iter().any(|it| it.to_lowercase() == name.to_lowercase());
    for (at, field) in plan.schema().fields().iter().enumerate() {
        let (is_named, is_key) = (is_of(named, field.name()), is_of(keys, field.name()));
        if !is_named && !is_key && (has_groups || !is_of(decimals, field.name())) {
            continue;
        }
        let mut origins = Vec::new();
        let is_passed = passed_on(plan, at, &mut origins);
        let all = uses.with_alike(&origins);
        if !is_named && !is_key && all.iter().any(|column| !origins.contains(column)) {
            continue;
        }
        let typed = all.iter().find(|origin| uses.typed.contains(*origin)).cloned();
        if let (true, false, true, Some((table, column))) = (is_key, is_named, is_passed, &typed)
            && origins.iter().any(|origin| uses.is_lossy(origin))
        {
            let reason = format!(
                "column '{}' names elements, and the query compares or computes with column '{column}' of '{table}' by \
                 its type, which drops zeros: write types: {{{}: text}}, and cast it in the query where it is a number",
                field.name(),
                field.name()
            );
            return Err(SqlError::CubeFacts(reason));
        }
        if is_named || is_passed && typed.is_none() {
            for (table, column) in all {
                written.entry(table).or_default().insert(column);
            }
        }
    }
    Ok(written)
}

/// True if a plan sorts its result: planning leaves out what sorts subqueries without a limit.
pub(crate) fn is_sorted(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(projection) => is_sorted(&projection.input),
        LogicalPlan::Limit(limit) => is_sorted(&limit.input),
        _ => false,
    }
}

/// True if a plan reads text files.
pub(crate) fn reads_text(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_nested(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            found |= source_as_provider(&scan.source).is_ok_and(|provider| is_text(provider.as_ref()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

impl Uses {
    /// Columns with all those that they are compared with.
    fn with_alike(&self, columns: &[FileColumn]) -> BTreeSet<FileColumn> {
        let mut all: BTreeSet<FileColumn> = columns.iter().cloned().collect();
        loop {
            let before = all.len();
            let is_met = |group: &&Vec<FileColumn>| group.iter().any(|column| all.contains(column));
            let alike: Vec<FileColumn> = self.alike.iter().filter(is_met).flatten().cloned().collect();
            all.extend(alike);
            if all.len() == before {
                return all;
            }
        }
    }

    /// True if values of a column have other texts in its type.
    fn is_lossy(&self, column: &FileColumn) -> bool {
        let is_exact = |data_type: &DataType| data_type.is_integer() || data_type.is_string() || data_type.is_null();
        self.types.get(column).is_some_and(|data_type| !is_exact(data_type))
    }
}

/// Collects the columns of text files that a column of a plan's result is passed on from; false if there is a part of
/// it that is made otherwise.
fn passed_on(plan: &LogicalPlan, at: usize, origins: &mut Vec<FileColumn>) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let Ok(provider) = source_as_provider(&scan.source) else { return false };
            if !is_text(provider.as_ref()) {
                return false;
            }
            let at = scan.projection.as_ref().map_or(Some(at), |columns| columns.get(at).copied());
            let schema = provider.schema();
            let Some(field) = at.and_then(|at| schema.fields().get(at)) else { return false };
            origins.push((scan.table_name.table().to_string(), field.name().clone()));
            true
        }
        LogicalPlan::Projection(projection) => {
            let expr = projection.expr.get(at).and_then(column_of);
            expr.is_some_and(|column| column_passed_on(&projection.input, column, origins))
        }
        LogicalPlan::Aggregate(aggregate) => {
            let expr = aggregate.group_expr.get(at).and_then(column_of);
            expr.is_some_and(|column| column_passed_on(&aggregate.input, column, origins))
        }
        LogicalPlan::SubqueryAlias(alias) => passed_on(&alias.input, at, origins),
        LogicalPlan::Filter(filter) => passed_on(&filter.input, at, origins),
        LogicalPlan::Sort(sort) => passed_on(&sort.input, at, origins),
        LogicalPlan::Limit(limit) => passed_on(&limit.input, at, origins),
        LogicalPlan::Distinct(Distinct::All(input)) => passed_on(input, at, origins),
        LogicalPlan::Union(union) => {
            let mut is_passed = true;
            // Each input is looked at, whatever those before it do.
            for input in &union.inputs {
                is_passed &= passed_on(input, at, origins);
            }
            is_passed
        }
        LogicalPlan::Join(join) => {
            let left = join.left.schema().fields().len();
            let right = join.right.schema().fields().len();
            match join.schema.fields().len() == left + right {
                true if at < left => passed_on(&join.left, at, origins),
                true => passed_on(&join.right, at - left, origins),
                false => false,
            }
        }
        _ => false,
    }
}

fn column_passed_on(input: &LogicalPlan, column: &Column, origins: &mut Vec<FileColumn>) -> bool {
    input.schema().maybe_index_of_column(column).is_some_and(|at| passed_on(input, at, origins))
}

/// The column that an expression hands on, as it is or as text.
fn column_of(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Alias(alias) => column_of(&alias.expr),
        Expr::Cast(cast) if cast.field.data_type().is_string() => column_of(&cast.expr),
        _ => None,
    }
}

fn uses(plan: &LogicalPlan) -> Result<Uses> {
    let mut uses = Uses::default();
    // What a subquery refers to around it is told by its name alone.
    let mut outer: BTreeSet<String> = BTreeSet::new();
    plan.apply_nested(|node| {
        let hands_on = matches!(node, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_));
        let inputs = node.inputs();
        // The columns of files behind a column of the inputs, and whether it is passed on from these alone.
        let found = |column: &Column| {
            let mut origins = Vec::new();
            let is_passed = inputs.iter().any(|input| column_passed_on(input, column, &mut origins));
            (origins, is_passed)
        };
        let mut equal = |left: &Expr, right: &Expr| {
            let (Some(left), Some(right)) = (column_of(left), column_of(right)) else { return false };
            let ((mut left, is_left), (right, is_right)) = (found(left), found(right));
            left.extend(right);
            if is_left && is_right {
                uses.alike.push(left)
            } else {
                uses.typed.extend(left)
            }
            true
        };
        if let LogicalPlan::Join(join) = node {
            for (left, right) in &join.on {
                equal(left, right);
            }
        }
        let mut typed = Vec::new();
        node.apply_exprs(|expr| {
            let is_on = |join: &datafusion::logical_expr::Join| join.on.iter().any(|(l, r)| l == expr || r == expr);
            if hands_on && column_of(expr).is_some() || matches!(node, LogicalPlan::Join(join) if is_on(join)) {
                return Ok(TreeNodeRecursion::Continue);
            }
            expr.apply(|part| {
                match part {
                    Expr::Cast(cast) if cast.field.data_type().is_string() && column_of(&cast.expr).is_some() => {
                        return Ok(TreeNodeRecursion::Jump);
                    }
                    Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) if equal(left, right) => {
                        return Ok(TreeNodeRecursion::Jump);
                    }
                    Expr::Column(column) => typed.extend(found(column).0),
                    Expr::OuterReferenceColumn(_, column) => drop(outer.insert(column.name.clone())),
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        uses.typed.extend(typed);
        Ok(TreeNodeRecursion::Continue)
    })?;
    plan.apply_nested(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            for field in scan.source.schema().fields() {
                let column = (scan.table_name.table().to_string(), field.name().clone());
                if outer.contains(field.name()) {
                    uses.typed.insert(column.clone());
                }
                uses.types.insert(column, field.data_type().clone());
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(uses)
}

fn is_text(provider: &dyn TableProvider) -> bool {
    listing_of(provider).is_some_and(|listing| plain(&listing.options().format).downcast_ref::<CsvFormat>().is_some())
}
