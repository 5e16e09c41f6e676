//! Parts of plans in a few words, for reports.

use datafusion::logical_expr::LogicalPlan;

use crate::syntax::TableOfWith;

/// A plan in a few words: what is done over which tables.
pub(crate) fn describe(plan: &LogicalPlan, what: &str) -> String {
    match tables(plan) {
        tables if tables.is_empty() => what.to_string(),
        tables => format!("{what} over {tables}"),
    }
}

/// The tables of a plan: those of joins and of unions.
fn tables(plan: &LogicalPlan) -> String {
    if let LogicalPlan::TableScan(scan) = plan {
        let name = scan.table_name.table();
        return TableOfWith::of(name).map_or(name, |table| table.name).to_string();
    }
    let inputs: Vec<&LogicalPlan> = plan.inputs();
    let is_union = matches!(plan, LogicalPlan::Union(_));
    let of_input = |input: &&LogicalPlan| match tables(input) {
        tables if !is_union && inputs.len() > 1 && tables.contains(" ∪ ") => format!("({tables})"),
        tables => tables,
    };
    let named: Vec<String> = inputs.iter().map(of_input).filter(|tables| !tables.is_empty()).collect();
    named.join(if is_union { " ∪ " } else { " ⋈ " })
}
