//! Visits of syntax, each compiled once.
//!
//! A visit of sqlparser is generic over its visitor, so that every visitor has a visit of all types of the syntax
//! compiled for it. [`visit`] and [`visit_mut`] pass the visitor on as a trait object: all visitors share one visit.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
};

/// Shows a tree to a visitor.
pub(super) fn visit<V: Visitor>(tree: &impl Visit, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut ending = Ending { visitor, end: None };
    let _ = tree.visit(&mut Object(&mut ending));
    ending.end.map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// Shows a tree to a visitor that may change it.
pub(super) fn visit_mut<V: VisitorMut>(tree: &mut impl VisitMut, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut ending = EndingMut { visitor, end: None };
    let _ = tree.visit(&mut ObjectMut(&mut ending));
    ending.end.map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// Whether an expression has a query within.
pub(super) fn has_query(expr: &Expr) -> bool {
    struct Queries;
    impl Visitor for Queries {
        type Break = ();
        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    visit(expr, &mut Queries).is_break()
}

/// A visitor as a trait object, and one that keeps what another ends its visit with.
macro_rules! objects {
    ($visitor:ident, $object:ident, $ending:ident, $($method:ident: $node:ty),+ $(,)?) => {
        struct $object<'v>(&'v mut dyn $visitor<Break = ()>);

        impl $visitor for $object<'_> {
            type Break = ();

            $(fn $method(&mut self, node: $node) -> ControlFlow<()> {
                self.0.$method(node)
            })+
        }

        struct $ending<'v, V: $visitor> {
            visitor: &'v mut V,
            end: Option<V::Break>,
        }

        impl<V: $visitor> $visitor for $ending<'_, V> {
            type Break = ();

            $(fn $method(&mut self, node: $node) -> ControlFlow<()> {
                self.visitor.$method(node).map_break(|end| self.end = Some(end))
            })+
        }
    };
}

objects!(
    Visitor,
    Object,
    Ending,
    pre_visit_query: &Query,
    post_visit_query: &Query,
    pre_visit_select: &Select,
    post_visit_select: &Select,
    pre_visit_relation: &ObjectName,
    post_visit_relation: &ObjectName,
    pre_visit_table_factor: &TableFactor,
    post_visit_table_factor: &TableFactor,
    pre_visit_expr: &Expr,
    post_visit_expr: &Expr,
    pre_visit_statement: &Statement,
    post_visit_statement: &Statement,
    pre_visit_value: &ValueWithSpan,
    post_visit_value: &ValueWithSpan,
);

objects!(
    VisitorMut,
    ObjectMut,
    EndingMut,
    pre_visit_query: &mut Query,
    post_visit_query: &mut Query,
    pre_visit_select: &mut Select,
    post_visit_select: &mut Select,
    pre_visit_relation: &mut ObjectName,
    post_visit_relation: &mut ObjectName,
    pre_visit_table_factor: &mut TableFactor,
    post_visit_table_factor: &mut TableFactor,
    pre_visit_expr: &mut Expr,
    post_visit_expr: &mut Expr,
    pre_visit_statement: &mut Statement,
    post_visit_statement: &mut Statement,
    pre_visit_value: &mut ValueWithSpan,
    post_visit_value: &mut ValueWithSpan,
);

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    /// Visitors that note what they are shown and end with a name that they seek.
    macro_rules! notes {
        ($notes:ident, $visitor:ident, $($kind:literal $pre:ident $post:ident: $node:ty),+) => {
            #[derive(Default)]
            struct $notes(Vec<String>, &'static str);
            impl $visitor for $notes {
                type Break = String;
                $(fn $pre(&mut self, node: $node) -> ControlFlow<String> {
                    self.0.push(format!("+{} {node}", $kind));
                    match node.to_string() == self.1 {
                        true => ControlFlow::Break(format!("{} {node}", $kind)),
                        false => ControlFlow::Continue(()),
                    }
                }
                fn $post(&mut self, node: $node) -> ControlFlow<String> {
                    self.0.push(format!("-{} {node}", $kind));
                    ControlFlow::Continue(())
                })+
            }
        };
    }

    notes!(
        Notes, Visitor,
        "query" pre_visit_query post_visit_query: &Query,
        "select" pre_visit_select post_visit_select: &Select,
        "relation" pre_visit_relation post_visit_relation: &ObjectName,
        "factor" pre_visit_table_factor post_visit_table_factor: &TableFactor,
        "expr" pre_visit_expr post_visit_expr: &Expr,
        "statement" pre_visit_statement post_visit_statement: &Statement,
        "value" pre_visit_value post_visit_value: &ValueWithSpan
    );

    notes!(
        NotesMut, VisitorMut,
        "query" pre_visit_query post_visit_query: &mut Query,
        "select" pre_visit_select post_visit_select: &mut Select,
        "relation" pre_visit_relation post_visit_relation: &mut ObjectName,
        "factor" pre_visit_table_factor post_visit_table_factor: &mut TableFactor,
        "expr" pre_visit_expr post_visit_expr: &mut Expr,
        "statement" pre_visit_statement post_visit_statement: &mut Statement,
        "value" pre_visit_value post_visit_value: &mut ValueWithSpan
    );

    fn statement(sql: &str) -> Statement {
        Parser::parse_sql(&GenericDialect, sql).unwrap().remove(0)
    }

    /// What sqlparser shows itself.
    fn shown(sql: &str, sought: &'static str) -> (Vec<String>, ControlFlow<String>) {
        let mut notes = Notes(Vec::new(), sought);
        let flow = Visit::visit(&statement(sql), &mut notes);
        (notes.0, flow)
    }

    #[test]
    fn a_visitor_is_shown_what_sqlparser_shows() {
        let sql = "SELECT a + 1 FROM t WHERE b IN (SELECT c FROM u)";
        let (all, _) = shown(sql, "");
        assert_eq!(all.len(), 34);
        for sought in ["", "1", "t", "c", "SELECT c FROM u"] {
            let (mut notes, mut notes_mut) = (Notes(Vec::new(), sought), NotesMut(Vec::new(), sought));
            let (expected, flow) = shown(sql, sought);
            assert_eq!(visit(&statement(sql), &mut notes), flow);
            assert_eq!(notes.0, expected);
            assert_eq!(visit_mut(&mut statement(sql), &mut notes_mut), flow);
            assert_eq!(notes_mut.0, expected);
        }
    }
}
