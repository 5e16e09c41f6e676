//! Base columns: the columns of the relations of a join graph, by numbers.
//!
//! Expressions of a graph are DataFusion's, whose columns are names. A base column is a leaf of such an expression that
//! carries the number of its relation, its position there, and its field: a function without arguments, which nothing
//! calls. Its type and its nullability are those of the field, so that expressions of base columns have types without a
//! schema.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, plan_datafusion_err};
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::Reason;
use crate::walk::Walk;

/// The schema of expressions over base columns: none of their columns is looked up.
static NO_NAMES: LazyLock<DFSchema> = LazyLock::new(DFSchema::empty);
/// The arguments of a base column.
static NO_ARGUMENTS: LazyLock<Signature> = LazyLock::new(|| Signature::nullary(Volatility::Immutable));

/// The number of a relation in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RelationId(pub(super) usize);

/// A column of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ColumnId {
    /// The relation.
    pub(super) relation: RelationId,
    /// The column's position among those of the relation.
    pub(super) position: usize,
}

/// A column of a relation with its name and type. Those of one relation are ordered by name, so that fragments do not
/// depend on the order of a table's columns.
#[derive(Debug, Clone)]
pub(crate) struct BaseColumn {
    /// Its numbers.
    pub(super) id: ColumnId,
    /// Its name, for people, its type, and whether it may be NULL.
    pub(super) field: FieldRef,
}

impl BaseColumn {
    /// The column as an expression.
    pub(super) fn expr(relation: RelationId, position: usize, field: FieldRef) -> Expr {
        BaseColumn { id: ColumnId { relation, position }, field }.into_expr()
    }

    /// The columns of a relation as expressions.
    pub(super) fn all<'f>(relation: RelationId, fields: impl IntoIterator<Item = &'f FieldRef>) -> Vec<Expr> {
        let fields = fields.into_iter().enumerate();
        fields.map(|(position, field)| BaseColumn::expr(relation, position, field.clone())).collect()
    }

    fn into_expr(self) -> Expr {
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(self)), Vec::new()))
    }

    /// The base column that an expression is.
    pub(super) fn of(expr: &Expr) -> Option<&BaseColumn> {
        let Expr::ScalarFunction(function) = expr else { return None };
        function.func.inner().downcast_ref()
    }
}

impl From<BaseColumn> for Expr {
    fn from(column: BaseColumn) -> Expr {
        column.into_expr()
    }
}

impl PartialEq for BaseColumn {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for BaseColumn {}

impl Hash for BaseColumn {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl PartialOrd for BaseColumn {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BaseColumn {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |column: &Self| (column.id.relation, column.id.position);
        let by_name = || self.field.name().cmp(other.field.name()).then_with(|| key(self).cmp(&key(other)));
        self.id.relation.cmp(&other.id.relation).then_with(by_name)
    }
}

impl ScalarUDFImpl for BaseColumn {
    fn name(&self) -> &str {
        self.field.name()
    }

    fn signature(&self) -> &Signature {
        &NO_ARGUMENTS
    }

    fn return_type(&self, _arg_types: &[DataType]) -> PlanResult<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> PlanResult<FieldRef> {
        Ok(self.field.clone())
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        Err(DataFusionError::Internal(format!("the base column '{}' in an expression that is computed", self.name())))
    }
}

/// The schema to ask for the type of an expression over base columns.
pub(super) fn no_names() -> &'static DFSchema {
    &NO_NAMES
}

/// The type of an expression over base columns.
pub(super) fn data_type(expr: &Expr) -> Result<DataType, Reason> {
    expr.get_type(no_names()).map_err(text)
}

/// The base columns that an expression reads, in order.
pub(super) fn columns(expr: &Expr) -> BTreeSet<BaseColumn> {
    let mut found = BTreeSet::new();
    visit(expr, &mut |column| _ = found.insert(column.clone()));
    found
}

/// The relations that an expression reads.
pub(super) fn relations(expr: &Expr) -> BTreeSet<RelationId> {
    let mut found = BTreeSet::new();
    visit(expr, &mut |column| _ = found.insert(column.id.relation));
    found
}

fn visit(expr: &Expr, each: &mut dyn FnMut(&BaseColumn)) {
    let walked = expr.apply(|expr| {
        BaseColumn::of(expr).into_iter().for_each(&mut *each);
        Ok(TreeNodeRecursion::Continue)
    });
    walked.expect("no step of the walk fails");
}

/// An expression with other expressions in place of some of its base columns.
pub(super) fn replace(expr: &Expr, mut other: impl FnMut(&BaseColumn) -> Option<Expr>) -> Expr {
    let replaced = expr.clone().transform_down(|expr| {
        let replaced = BaseColumn::of(&expr).and_then(&mut other);
        Ok(match replaced {
            Some(other) => Transformed::new(other, true, TreeNodeRecursion::Jump),
            None => Transformed::no(expr),
        })
    });
    replaced.expect("expressions take the place of columns").data
}

/// An expression with the base columns of one relation as those of another.
pub(super) fn renumber(expr: &Expr, from: RelationId, to: RelationId) -> Expr {
    replace(expr, |column| {
        let BaseColumn { id, field } = column;
        (id.relation == from).then(|| BaseColumn::expr(to, id.position, field.clone()))
    })
}

/// An expression as people write it.
pub(super) fn shown(expr: &Expr) -> String {
    replace(expr, |column| Some(Expr::Column(Column::new_unqualified(column.field.name())))).to_string()
}

/// An expression over a plan's columns as one over base columns.
pub(super) fn rewrite(expr: &Expr, schema: &DFSchema, columns: &[Expr]) -> Result<Expr, Reason> {
    rewrite_over(expr, [(schema, columns)])
}

/// An expression over the columns of several plans as one over base columns.
pub(super) fn rewrite_over<'a, const PLANS: usize>(
    expr: &Expr,
    plans: [(&'a DFSchema, &'a [Expr]); PLANS],
) -> Result<Expr, Reason> {
    let rewritten = expr
        .clone()
        .unalias_nested()
        .data
        .transform_up(|expr| match &expr {
            Expr::Column(column) => {
                let found = plans.iter().find_map(|(schema, columns)| {
                    schema.maybe_index_of_column(column).map(|index| columns[index].clone())
                });
                let base = found.ok_or_else(|| plan_datafusion_err!("no column '{column}'"))?;
                Ok(Transformed::new(base, true, TreeNodeRecursion::Jump))
            }
            _ => Ok(Transformed::no(expr)),
        })
        .map_err(text)?;
    Ok(rewritten.data)
}

/// The reason that an error of DataFusion is.
pub(super) fn text(error: DataFusionError) -> Reason {
    error.strip_backtrace()
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;
    use datafusion::logical_expr::lit;

    use super::*;

    fn base(relation: usize, position: usize, name: &str, data_type: DataType, nullable: bool) -> Expr {
        BaseColumn::expr(RelationId(relation), position, Arc::new(Field::new(name, data_type, nullable)))
    }

    #[test]
    fn base_columns_have_types_without_a_schema() {
        let (one, other) = (base(0, 3, "a", DataType::Int64, false), base(1, 0, "b", DataType::Int64, true));
        assert_eq!(data_type(&(one.clone() + other.clone())), Ok(DataType::Int64));
        assert_eq!(data_type(&one.clone().lt(lit(3i64))), Ok(DataType::Boolean));
        assert!(!one.nullable(no_names()).unwrap() && (one.clone() + other.clone()).nullable(no_names()).unwrap());
        assert!(data_type(&Expr::Column(Column::new_unqualified("a"))).is_err());
    }

    #[test]
    fn base_columns_are_told_apart_by_numbers() {
        let text = DataType::Utf8;
        let (one, same) = (base(0, 1, "output 1", text.clone(), true), base(0, 1, "#2.a", text.clone(), true));
        let (other, twin) = (base(2, 1, "output 1", text.clone(), true), base(0, 2, "output 1", text, true));
        assert_eq!(one, same);
        assert!(one != other && one != twin);
        let both = one.clone().eq(other.clone());
        assert_eq!(relations(&both), [RelationId(0), RelationId(2)].into());
        assert_eq!(renumber(&both, RelationId(2), RelationId(0)), one.clone().eq(one.clone()));
        assert_eq!(shown(&one.eq(lit("#1.x"))), "output 1 = Utf8(\"#1.x\")");
    }

    #[test]
    fn columns_of_a_relation_are_in_the_order_of_their_names() {
        let number = |relation, position, name| base(relation, position, name, DataType::Int64, true);
        let read = number(10, 0, "a") + number(2, 0, "z") + number(2, 1, "b") + number(2, 1, "b");
        let positions: Vec<_> =
            columns(&read).iter().map(|column| (column.id.relation.0, column.id.position)).collect();
        assert_eq!(positions, [(2, 1), (2, 0), (10, 0)]);
    }

    #[test]
    fn columns_of_plans_become_base_columns() {
        let schema = arrow::datatypes::Schema::new(vec![Field::new("x", DataType::Int64, true)]);
        let plan = DFSchema::try_from_qualified_schema("t", &schema).unwrap();
        let base = base(7, 0, "x", DataType::Int64, true);
        let column = Expr::Column(Column::new(Some("t"), "x"));
        assert_eq!(rewrite(&(column + lit(1i64)), &plan, std::slice::from_ref(&base)).unwrap(), base + lit(1i64));
        assert!(rewrite(&Expr::Column(Column::new_unqualified("y")), &plan, &[]).unwrap_err().contains("'y'"));
    }
}
