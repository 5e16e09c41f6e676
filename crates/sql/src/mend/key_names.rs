//! Names of their own for the keys of joins.
//!
//! The planner of DataFusion 55.2 makes columns of keys that are expressions, beside those of the input, and finds them
//! by names that leave casts out: `a.i::INT + 1` beside `a.i::BIGINT + 1` is refused, and so is what has the name of a
//! column. Here such a key has an alias that tells its casts.
//!
//! A join loses aliases where values take the place of parameters: they are given again then. The file goes once the
//! planner finds keys by their places.

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::each_node;

/// The final plan with a name for each key.
pub(crate) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    each_node(plan, |plan| {
        let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
        let (mut left, mut right) = (Names::of(&join.left), Names::of(&join.right));
        let mut changed = false;
        for (one, other) in &mut join.on {
            changed |= left.tell(one) | right.tell(other);
        }
        Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
    })
}

/// The names of a side of a join: those of columns, and of expressions that become columns.
struct Names(Vec<(String, Option<Expr>)>);

impl Names {
    fn of(side: &LogicalPlan) -> Names {
        // A key may name a column without its table.
        let names = side.schema().columns().into_iter().flat_map(|column| [column.flat_name(), column.name]);
        Names(names.map(|name| (name, None)).collect())
    }

    /// Gives a key another name where it has one that is taken.
    fn tell(&mut self, key: &mut Expr) -> bool {
        if matches!(key, Expr::Column(_)) {
            return false;
        }
        // The planner names casts as they are shown.
        let own = match key {
            Expr::Cast(_) | Expr::TryCast(_) => key.to_string(),
            _ => key.schema_name().to_string(),
        };
        let shown = key.to_string();
        let numbered = (2..).map(|number| format!("{shown} {number}"));
        let is_free = |name: &String| self.0.iter().all(|(taken, of)| taken != name || of.as_ref() == Some(key));
        let Some(name) = [own.clone(), shown.clone()].into_iter().chain(numbered).find(is_free) else { return false };
        self.0.push((name.clone(), Some(key.clone())));
        let changed = name != own;
        if changed {
            *key = std::mem::take(key).alias(name);
        }
        changed
    }
}
