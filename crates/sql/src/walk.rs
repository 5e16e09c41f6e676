//! Walks over plans and expressions, each compiled once.
//!
//! A walk of DataFusion is generic over the closure that it calls, so that every closure has a walk over all kinds of
//! nodes compiled for it. The walks here pass the closure on as `&mut dyn FnMut`: one walk is compiled for each kind of
//! tree. They visit the same nodes in the same order; `Jump`, `Stop` and `transformed` mean what they mean there.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
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
    use datafusion::logical_expr::Operator;
    use datafusion::logical_expr::{LogicalPlanBuilder, binary_expr, col, exists, lit, scalar_subquery};

    use super::*;

    /// `(a + 1) * b`.
    fn product() -> Expr {
        binary_expr(binary_expr(col("a"), Operator::Plus, lit(1)), Operator::Multiply, col("b"))
    }

    fn shown(after: impl Fn(&str) -> TreeNodeRecursion) -> (Vec<String>, TreeNodeRecursion) {
        let (expr, mut seen) = (product(), Vec::new());
        let end = expr.apply(|expr| {
            seen.push(expr.to_string());
            Ok(after(&expr.to_string()))
        });
        (seen, end.unwrap())
    }

    #[test]
    fn jump_passes_over_children_and_stop_ends_the_walk() {
        use TreeNodeRecursion::{Continue, Jump, Stop};
        let all = ["a + Int32(1) * b", "a + Int32(1)", "a", "Int32(1)", "b"];
        assert_eq!(shown(|_| Continue).0, all);
        let (seen, end) = shown(|expr| if expr == "a + Int32(1)" { Jump } else { Continue });
        assert_eq!((seen.as_slice(), end), ([all[0], all[1], all[4]].map(String::from).as_slice(), Continue));
        let (seen, end) = shown(|expr| if expr == "a" { Stop } else { Continue });
        assert_eq!(
            (seen.as_slice(), end),
            (all[..3].iter().map(|text| text.to_string()).collect::<Vec<_>>().as_slice(), Stop)
        );
    }

    #[test]
    fn changes_are_told_and_made_in_their_order() {
        let two = |expr| match expr {
            Expr::Literal(..) => Ok(Transformed::yes(lit(2))),
            expr => Ok(Transformed::no(expr)),
        };
        for changed in [product().transform_up(two), product().transform_down(two)] {
            let changed = changed.unwrap();
            assert!(changed.transformed);
            assert_eq!(changed.data.to_string(), "a + Int32(2) * b");
        }
        assert!(!product().transform_up(|expr| Ok(Transformed::no(expr))).unwrap().transformed);
    }
}
