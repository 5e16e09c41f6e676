//! Names of tables of the connection alone, beside those of all.
//!
//! As in PostgreSQL, a name without a schema means the temporary table where there is one, and `public.t` the table of
//! all, and so does the name of a table that is made and not TEMP. The planner gives both the same schema: here the
//! second one is called by the schema's name that has no temporary tables. Names that are made, changed or dropped
//! have the spelling of the catalog before ([`stored`]).

use std::ops::ControlFlow;

use datafusion::common::TableReference;
use datafusion::execution::SessionState;
use datafusion::sql::parser::{CopyToSource, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, ObjectType, SchemaName, Select, SelectItem,
    SelectItemQualifiedWildcardKind, Statement as SqlStatement, VisitorMut,
};

use super::items::folded;
use super::macros;
use super::quotes::quoted;
use super::stored;
use crate::default_schema::{CATALOG, LASTING, SCHEMA, TEMPORARY};

/// Has names with a schema mean tables of all.
pub(super) fn with_lasting(state: &SessionState, parsed: &mut ParsedStatement) {
    let mut names = Names { state };
    match parsed {
        ParsedStatement::CreateExternalTable(table) => {
            stored::spell_table(state, &mut table.name);
            names.settle_made(&mut table.name);
        }
        ParsedStatement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Relation(name) => names.settle(name),
            CopyToSource::Query(_) => {}
        },
        ParsedStatement::Explain(explain) => return with_lasting(state, &mut explain.statement),
        _ => {}
    }
    let _ = super::visit(parsed, &mut names);
}

/// As [`with_lasting`], for a table's name alone; gives whether it is that of a temporary table.
pub(super) fn settle(state: &SessionState, name: &mut ObjectName) -> bool {
    let names = Names { state };
    names.settle(name);
    let parts: Option<Vec<&Ident>> = name.0.iter().map(ObjectNamePart::as_ident).collect();
    match parts.as_deref() {
        Some([own]) => {
            let catalog = &state.config_options().catalog;
            catalog.default_catalog == CATALOG && catalog.default_schema == SCHEMA && names.hides(own)
        }
        Some([.., schema, _]) => TEMPORARY.contains(&folded(schema).as_str()),
        _ => false,
    }
}

struct Names<'a> {
    state: &'a SessionState,
}

impl Names<'_> {
    /// Whether the connection has a table of its own of that name.
    fn hides(&self, name: &Ident) -> bool {
        let name = folded(name);
        let [.., own] = TEMPORARY;
        let schema = self.state.schema_for_ref(TableReference::full(CATALOG, own, name.as_str()));
        schema.is_ok_and(|schema| schema.table_exist(&name))
    }

    /// Where the name of the first schema stands, if that of a table that is hidden there follows.
    fn schema_of(&self, names: &[&Ident]) -> Option<usize> {
        let place = match names {
            [catalog, schema, _, ..] if folded(catalog) == CATALOG && folded(schema) == SCHEMA => 1,
            [schema, _, ..] if folded(schema) == SCHEMA => 0,
            _ => return None,
        };
        self.hides(names.get(place + 1)?).then_some(place)
    }

    fn settle(&self, name: &mut ObjectName) {
        let names: Option<Vec<&Ident>> = name.0.iter().map(ObjectNamePart::as_ident).collect();
        if let Some(place) = names.and_then(|names| self.schema_of(&names)) {
            name.0[place] = ObjectNamePart::Identifier(lasting());
        }
    }

    /// As [`Names::settle`], for what a statement makes.
    fn settle_made(&self, name: &mut ObjectName) {
        let names = &self.state.config_options().catalog;
        let is_first = names.default_catalog == CATALOG && names.default_schema == SCHEMA;
        match name.0.as_slice() {
            [own] if is_first && own.as_ident().is_some_and(|own| self.hides(own)) => {
                name.0.insert(0, ObjectNamePart::Identifier(lasting()));
            }
            _ => self.settle(name),
        }
    }
}

fn lasting() -> Ident {
    quoted(LASTING)
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &mut SqlStatement) -> ControlFlow<()> {
        match statement {
            SqlStatement::CreateView(view) => stored::spell_table(self.state, &mut view.name),
            SqlStatement::CreateTable(table) => stored::spell_table(self.state, &mut table.name),
            SqlStatement::AlterTable(table) => stored::spell_table(self.state, &mut table.name),
            SqlStatement::CreateSchema { schema_name: SchemaName::Simple(name), .. }
            | SqlStatement::CreateSchema { schema_name: SchemaName::NamedAuthorization(name, _), .. } => {
                stored::spell_schema(self.state, &mut name.0);
            }
            SqlStatement::Drop { object_type: ObjectType::Schema, names, .. } => {
                names.iter_mut().for_each(|name| stored::spell_schema(self.state, &mut name.0));
            }
            SqlStatement::Drop { names, .. } => {
                names.iter_mut().for_each(|name| stored::spell_table(self.state, name));
            }
            _ => {}
        }
        match statement {
            SqlStatement::CreateView(view) if !view.temporary => self.settle_made(&mut view.name),
            SqlStatement::CreateTable(table) if !table.temporary => self.settle_made(&mut table.name),
            SqlStatement::CreateView(view) if !macros::is_one(view) => {
                let own = view.name.0.last().and_then(ObjectNamePart::as_ident).cloned();
                if let (1, Some(own)) = (view.name.0.len(), own) {
                    let [.., schema] = TEMPORARY;
                    view.name = ObjectName::from(vec![Ident::new(CATALOG), quoted(schema), own]);
                }
            }
            // A schema that has temporary tables is no part of their names; all of them are LOCAL.
            SqlStatement::CreateTable(table) => {
                table.global = table.global.filter(|is_global| *is_global);
                let is_first = |part: &ObjectNamePart| part.as_ident().is_some_and(|name| folded(name) == SCHEMA);
                if table.name.0.len() == 2 && is_first(&table.name.0[0]) {
                    table.name.0.remove(0);
                }
            }
            SqlStatement::Drop { names, .. } => names.iter_mut().for_each(|name| self.settle(name)),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        stored::spell_schema_of(self.state, relation);
        self.settle(relation);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item {
                self.settle(name);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(names) = expr
            && names.len() > 2
            && let Some(place) = self.schema_of(&names.iter().collect::<Vec<_>>())
        {
            names[place] = lasting();
        }
        ControlFlow::Continue(())
    }
}
