//! Walks over plans and expressions, each compiled once.
//!
//! A walk of DataFusion is generic over the closure that it calls, so that every closure has a walk over all kinds of
//! nodes compiled for it. The walks here pass the closure on as `&mut dyn FnMut`: one walk is compiled for each kind of
//! tree. They visit the same nodes in the same order; `Jump`, `Stop` and `transformed` mean what they mean there.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

/// What a walk does after a node that it has shown.
type Next = Result<TreeNodeRecursion>;
/// A node that a walk gave away, and what it does after it.
type Changed<T> = Result<Transformed<T>>;

/// Walks over a tree, each as that of [`TreeNode`] with its name.
pub(crate) trait Walk: TreeNode {
    /// Shows each node to `visit`, parents first.
    fn apply<'n>(&'n self, mut visit: impl FnMut(&'n Self) -> Next) -> Next {
        TreeNode::apply(self, &mut visit as &mut dyn FnMut(&'n Self) -> Next)
    }

    /// Shows each child of this node to `visit`.
    fn apply_children<'n>(&'n self, mut visit: impl FnMut(&'n Self) -> Next) -> Next {
        TreeNode::apply_children(self, &mut visit as &mut dyn FnMut(&'n Self) -> Next)
    }

    /// Puts what `change` gives in the place of each child of this node.
    fn map_children(self, mut change: impl FnMut(Self) -> Changed<Self>) -> Changed<Self> {
        TreeNode::map_children(self, &mut change as &mut dyn FnMut(Self) -> Changed<Self>)
    }

    /// Whether `is_sought` holds for a node; the walk ends with the first.
    fn exists(&self, mut is_sought: impl FnMut(&Self) -> Result<bool>) -> Result<bool> {
        TreeNode::exists(self, &mut is_sought as &mut dyn FnMut(&Self) -> Result<bool>)
    }

    /// Puts what `change` gives in the place of each node, parents first.
    fn transform_down(self, mut change: impl FnMut(Self) -> Changed<Self>) -> Changed<Self> {
        TreeNode::transform_down(self, &mut change as &mut dyn FnMut(Self) -> Changed<Self>)
    }

    /// Puts what `change` gives in the place of each node, children first.
    fn transform_up(self, mut change: impl FnMut(Self) -> Changed<Self>) -> Changed<Self> {
        TreeNode::transform_up(self, &mut change as &mut dyn FnMut(Self) -> Changed<Self>)
    }

    /// Puts what a rewriter of DataFusion's gives on its way up in the place of each node, children first.
    fn rewritten_up(self, rewriter: &mut impl TreeNodeRewriter<Node = Self>) -> Changed<Self> {
        Walk::transform_up(self, |node| rewriter.f_up(node))
    }

    /// Puts what `enter` gives in the place of each node on the way down, and what `leave` gives on the way up.
    fn transform_down_up(
        self,
        mut enter: impl FnMut(Self) -> Changed<Self>,
        mut leave: impl FnMut(Self) -> Changed<Self>,
    ) -> Changed<Self> {
        TreeNode::transform_down_up(
            self,
            &mut enter as &mut dyn FnMut(Self) -> Changed<Self>,
            &mut leave as &mut dyn FnMut(Self) -> Changed<Self>,
        )
    }
}

impl Walk for Expr {}
impl Walk for LogicalPlan {}
impl Walk for Arc<dyn ExecutionPlan> {}
impl Walk for Arc<dyn PhysicalExpr> {}

/// Walks over a logical plan that go into the plans of its subqueries too, and walks over the expressions of one node.
pub(crate) trait PlanWalk: Sized {
    /// As [`Walk::apply`], within subqueries too.
    fn apply_nested(&self, visit: impl FnMut(&Self) -> Next) -> Next;

    /// As [`Walk::transform_down`], within subqueries too.
    fn transform_down_nested(self, change: impl FnMut(Self) -> Changed<Self>) -> Changed<Self>;

    /// As [`Walk::transform_up`], within subqueries too.
    fn transform_up_nested(self, change: impl FnMut(Self) -> Changed<Self>) -> Changed<Self>;

    /// As [`Walk::transform_down_up`], within subqueries too.
    fn transform_down_up_nested(
        self,
        enter: impl FnMut(Self) -> Changed<Self>,
        leave: impl FnMut(Self) -> Changed<Self>,
    ) -> Changed<Self>;

    /// Shows each expression of this node to `visit`.
    fn apply_exprs(&self, visit: impl FnMut(&Expr) -> Next) -> Next;

    /// Puts what `change` gives in the place of each expression of this node.
    fn map_exprs(self, change: impl FnMut(Expr) -> Changed<Expr>) -> Changed<Self>;
}

impl PlanWalk for LogicalPlan {
    fn apply_nested(&self, mut visit: impl FnMut(&Self) -> Next) -> Next {
        self.apply_with_subqueries(&mut visit as &mut dyn FnMut(&Self) -> Next)
    }

    fn transform_down_nested(self, mut change: impl FnMut(Self) -> Changed<Self>) -> Changed<Self> {
        self.transform_down_with_subqueries(&mut change as &mut dyn FnMut(Self) -> Changed<Self>)
    }

    fn transform_up_nested(self, mut change: impl FnMut(Self) -> Changed<Self>) -> Changed<Self> {
        self.transform_up_with_subqueries(&mut change as &mut dyn FnMut(Self) -> Changed<Self>)
    }

    fn transform_down_up_nested(
        self,
        mut enter: impl FnMut(Self) -> Changed<Self>,
        mut leave: impl FnMut(Self) -> Changed<Self>,
    ) -> Changed<Self> {
        self.transform_down_up_with_subqueries(
            &mut enter as &mut dyn FnMut(Self) -> Changed<Self>,
            &mut leave as &mut dyn FnMut(Self) -> Changed<Self>,
        )
    }

    fn apply_exprs(&self, mut visit: impl FnMut(&Expr) -> Next) -> Next {
        self.apply_expressions(&mut visit as &mut dyn FnMut(&Expr) -> Next)
    }

    fn map_exprs(self, mut change: impl FnMut(Expr) -> Changed<Expr>) -> Changed<Self> {
        self.map_expressions(&mut change as &mut dyn FnMut(Expr) -> Changed<Expr>)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::common::tree_node::TreeNodeRecursion::{Continue, Jump, Stop};
    use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
    use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col, exists, lit};

    use super::{PlanWalk, Walk};

    /// What a walk over `b + (a + 1)` shows, and what it ends with.
    fn shown(after: impl Fn(&str) -> TreeNodeRecursion) -> (Vec<String>, TreeNodeRecursion) {
        let (expr, mut seen) = (col("b") + (col("a") + lit(1)), Vec::new());
        let end = expr.apply(|expr| {
            seen.push(expr.to_string());
            Ok(after(&expr.to_string()))
        });
        (seen, end.unwrap())
    }

    /// `SELECT … WHERE EXISTS (SELECT … WHERE true)`, of rows that come from nowhere.
    fn nested() -> LogicalPlan {
        let rows = || LogicalPlanBuilder::empty(true);
        let subquery = rows().filter(lit(true)).unwrap().build().unwrap();
        rows().filter(exists(Arc::new(subquery))).unwrap().build().unwrap()
    }

    fn name(plan: &LogicalPlan) -> &'static str {
        match plan {
            LogicalPlan::Filter(filter) if matches!(filter.predicate, Expr::Exists(_)) => "outer",
            LogicalPlan::Filter(_) => "inner",
            LogicalPlan::Subquery(_) => "subquery",
            _ => "rows",
        }
    }

    #[test]
    fn jump_passes_over_children_and_stop_ends_the_walk() {
        let all = ["b + a + Int32(1)", "b", "a + Int32(1)", "a", "Int32(1)"].map(String::from);
        assert_eq!(shown(|_| Continue), (all.to_vec(), Continue));
        assert_eq!(shown(|expr| if expr == all[2] { Jump } else { Continue }), (all[..3].to_vec(), Continue));
        assert_eq!(shown(|expr| if expr == "a" { Stop } else { Continue }), (all[..4].to_vec(), Stop));
    }

    #[test]
    fn changes_go_by_their_order_and_are_told() {
        let change = |expr| match expr {
            Expr::Literal(..) => Ok(Transformed::yes(lit(1) + col("c"))),
            Expr::Column(column) if column.name == "c" => Ok(Transformed::yes(col("d"))),
            expr => Ok(Transformed::no(expr)),
        };
        let up = (col("a") + lit(5)).transform_up(change).unwrap();
        assert_eq!((up.data, up.transformed), (col("a") + (lit(1) + col("c")), true));
        let down = lit(5).transform_down(|expr| {
            Ok(match expr {
                Expr::Literal(..) => Transformed::yes(Expr::Not(Box::new(col("c")))),
                expr => change(expr)?,
            })
        });
        assert_eq!(down.unwrap().data, Expr::Not(Box::new(col("d"))));
        assert!(!col("a").transform_up(change).unwrap().transformed);
        assert!((col("a") + col("c")).exists(|expr| Ok(*expr == col("c"))).unwrap());
    }

    #[test]
    fn nested_walks_go_into_subqueries() {
        let (plan, mut seen) = (nested(), Vec::new());
        let mut note = |plan: &LogicalPlan| {
            seen.push(name(plan));
            Ok(Continue)
        };
        plan.apply(&mut note).unwrap();
        plan.apply_nested(&mut note).unwrap();
        assert_eq!(seen, ["outer", "rows", "outer", "subquery", "inner", "rows", "rows"]);
        let (mut down, mut up, mut both) = (Vec::new(), Vec::new(), Vec::new());
        let noting = |seen: &mut Vec<&'static str>, plan: LogicalPlan| {
            seen.push(name(&plan));
            Ok(Transformed::no(plan))
        };
        nested().transform_down_nested(|plan| noting(&mut down, plan)).unwrap();
        nested().transform_up_nested(|plan| noting(&mut up, plan)).unwrap();
        nested().transform_down_up_nested(|plan| Ok(Transformed::no(plan)), |plan| noting(&mut both, plan)).unwrap();
        assert_eq!(down, ["outer", "subquery", "inner", "rows", "rows"]);
        assert_eq!(up, ["rows", "inner", "subquery", "rows", "outer"]);
        assert_eq!(both, up);
    }

    #[test]
    fn expressions_are_those_of_one_node() {
        let mut shown = 0;
        nested()
            .apply_exprs(|_| {
                shown += 1;
                Ok(Continue)
            })
            .unwrap();
        let changed = nested().map_exprs(|_| Ok(Transformed::yes(lit(false)))).unwrap();
        let LogicalPlan::Filter(filter) = &changed.data else { panic!("{}", changed.data) };
        assert_eq!((shown, changed.transformed, &filter.predicate), (1, true, &lit(false)));
    }
}
