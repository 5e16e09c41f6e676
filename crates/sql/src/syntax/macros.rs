//! Macros without arguments: `CREATE MACRO m() AS …`, as views whose names end with parentheses.
//!
//! `CREATE MACRO m() AS TABLE SELECT …` is read as `CREATE VIEW "m()" AS SELECT …`, and `FROM m()` as
//! `FROM "m()" AS m`.
//! A macro of an expression is the view of its one row, and a call of it a scalar subquery: it is computed once a
//! statement. So a catalog keeps macros as it keeps views.

use std::ops::ControlFlow;

use datafusion::common::TableReference;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArguments, Ident, MacroDefinition, ObjectName, ObjectNamePart, Statement as SqlStatement,
    TableAlias, TableFactor, TableFunctionArgs, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::dialect::SessionDialect;
use super::items::folded;
use crate::error::{Result, SqlError};

/// The text of the view that a macro is; none of other statements.
///
/// # Errors
/// [`SqlError::Unsupported`] for a macro with arguments.
pub(super) fn as_view(parsed: &ParsedStatement) -> Result<Option<String>> {
    let ParsedStatement::Statement(statement) = parsed else { return Ok(None) };
    let SqlStatement::CreateMacro { or_replace, temporary, name, args, definition } = statement.as_ref() else {
        return Ok(None);
    };
    if *temporary || args.as_ref().is_some_and(|args| !args.is_empty()) {
        return Err(SqlError::Unsupported("macros with arguments, and temporary ones".into()));
    }
    let view = called(name).ok_or_else(|| SqlError::Syntax(format!("'{name}' is no name of a macro")))?;
    let create = if *or_replace { "CREATE OR REPLACE VIEW" } else { "CREATE VIEW" };
    Ok(Some(match definition {
        MacroDefinition::Expr(expr) => format!("{create} {view} AS SELECT {expr} AS value"),
        MacroDefinition::Table(query) => format!("{create} {view} AS {query}"),
    }))
}

/// The text of `DROP VIEW` for a `DROP MACRO`; none of other statements.
pub(super) fn dropped(sql: &str) -> Option<String> {
    let mut words = sql.split_whitespace();
    let mut is = |word: &str| words.next().is_some_and(|next| next.eq_ignore_ascii_case(word));
    if !is("drop") || !is("macro") {
        return None;
    }
    let rest: Vec<&str> = words.collect();
    let rest = match rest.split_first() {
        Some((first, rest)) if first.eq_ignore_ascii_case("table") => rest,
        _ => rest.as_slice(),
    };
    let (exists, rest) = match rest {
        [first, second, rest @ ..] if first.eq_ignore_ascii_case("if") && second.eq_ignore_ascii_case("exists") => {
            ("IF EXISTS ", rest)
        }
        rest => ("", rest),
    };
    let [name] = rest else { return None };
    let name = name.trim_end_matches(';');
    let parsed = Parser::new(&SessionDialect).try_with_sql(name).and_then(|mut it| it.parse_object_name(false)).ok()?;
    Some(format!("DROP VIEW {exists}{}", called(&parsed)?))
}

/// Reads calls of macros as views, in a statement of that text.
pub(super) fn as_views(state: &SessionState, parsed: &mut ParsedStatement, sql: &str) {
    if sql.contains("()") {
        let _ = super::visit(parsed, &mut Calls { state });
    }
}

/// The name of the view of a macro.
fn called(name: &ObjectName) -> Option<ObjectName> {
    let mut parts: Vec<Ident> = name.0.iter().map(|part| part.as_ident().cloned()).collect::<Option<_>>()?;
    let last = parts.pop()?;
    parts.push(Ident::with_quote('"', format!("{}()", folded(&last))));
    Some(ObjectName(parts.into_iter().map(ObjectNamePart::Identifier).collect()))
}

struct Calls<'a> {
    state: &'a SessionState,
}

impl Calls<'_> {
    /// The name of the view that a call without arguments means.
    fn view(&self, name: &ObjectName) -> Option<ObjectName> {
        let view = called(name)?;
        let parts: Vec<String> = view.0.iter().filter_map(|part| part.as_ident().map(folded)).collect();
        let reference = match parts.as_slice() {
            [view] => TableReference::bare(view.as_str()),
            [schema, view] => TableReference::partial(schema.as_str(), view.as_str()),
            [catalog, schema, view] => TableReference::full(catalog.as_str(), schema.as_str(), view.as_str()),
            _ => return None,
        };
        let schema = self.state.schema_for_ref(reference.clone()).ok()?;
        schema.table_exist(reference.table()).then_some(view)
    }
}

impl VisitorMut for Calls<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, alias, args: args @ Some(_), .. } = factor else {
            return ControlFlow::Continue(());
        };
        if !matches!(args, Some(TableFunctionArgs { args: given, settings: None }) if given.is_empty()) {
            return ControlFlow::Continue(());
        }
        if let Some(view) = self.view(name) {
            let own = name.0.last().and_then(|part| part.as_ident().cloned());
            *args = None;
            if let (None, Some(own)) = (&alias, own) {
                *alias = Some(TableAlias { explicit: true, name: own, columns: Vec::new(), at: None });
            }
            *name = view;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Function(Function { name, args: FunctionArguments::List(list), over: None, filter: None, .. }) = expr
        else {
            return ControlFlow::Continue(());
        };
        if list.args.is_empty()
            && list.clauses.is_empty()
            && let Some(view) = self.view(name)
            && let Ok(query) = Parser::new(&SessionDialect)
                .try_with_sql(&format!("SELECT * FROM {view}"))
                .and_then(|mut parser| parser.parse_query())
        {
            *expr = Expr::Subquery(query);
        }
        ControlFlow::Continue(())
    }
}
