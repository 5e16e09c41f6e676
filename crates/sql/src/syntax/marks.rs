//! What the tree of a statement tells of the words in its text: which are columns, which are tables, and which are
//! names that the statement gives.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AlterTableOperation, ExcludeSelectItem, Expr, Ident, ObjectName, OrderByKind, Query, RenameSelectItem, Select,
    SelectItem, SetExpr, Statement as SqlStatement, TableAliasColumnDef, TableFactor, VisitMut, Visitor, VisitorMut,
    WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::tokenizer::Location;

use super::items::{each_name, folded};
use super::{relations, visits};

/// What the tree of a statement tells of its words.
#[derive(Default)]
pub(super) struct Marks {
    /// The columns of tables, and of those of WITH.
    tables: HashMap<String, HashSet<String>>,
    /// Names in expressions, and of columns elsewhere. All those of a statement in parentheses, `(PIVOT …)`, stand
    /// where it begins.
    pub(super) columns: HashSet<(Location, String)>,
    /// Where the statement names something of its own that is called as columns are, and these names.
    pub(super) definitions: HashSet<Location>,
    pub(super) defined: HashSet<String>,
    /// Those in quotes.
    pub(super) quoted: HashSet<String>,
    /// Names of tables, and of those that the statement gives them.
    pub(super) relations: HashSet<Location>,
    pub(super) table_names: HashSet<String>,
    /// Names that stand for columns, whatever the statement defines.
    pub(super) meant: HashSet<Location>,
}

impl Marks {
    /// None yet, of a statement with these columns of tables.
    pub(super) fn new(tables: HashMap<String, HashSet<String>>) -> Marks {
        Marks { tables, ..Marks::default() }
    }

    fn define(&mut self, name: &Ident) {
        self.definitions.insert(name.span.start);
        let names = if name.quote_style.is_some() { &mut self.quoted } else { &mut self.defined };
        names.insert(folded(name));
    }

    fn column(&mut self, name: &Ident) {
        self.columns.insert((name.span.start, folded(name)));
    }

    /// Names that are those of columns, whatever the statement defines.
    fn column_names<'n>(&mut self, names: impl IntoIterator<Item = &'n Ident>) {
        for name in names {
            self.column(name);
            self.meant.insert(name.span.start);
        }
    }

    fn relation(&mut self, name: &Ident) {
        self.relations.insert(name.span.start);
        self.table_names.insert(folded(name));
    }

    /// Names of columns in the options of a wildcard.
    fn options(&mut self, options: &WildcardAdditionalOptions) {
        let WildcardAdditionalOptions { opt_exclude, opt_except, opt_replace, opt_rename, .. } = options;
        let excluded: &[ObjectName] = match opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => std::slice::from_ref(name),
            Some(ExcludeSelectItem::Multiple(names)) => names,
            None => &[],
        };
        let mut names: Vec<&Ident> =
            excluded.iter().filter_map(|name| name.0.last().and_then(|part| part.as_ident())).collect();
        if let Some(except) = opt_except {
            names.extend([&except.first_element].into_iter().chain(&except.additional_elements));
        }
        if let Some(replace) = opt_replace {
            names.extend(replace.items.iter().map(|item| &item.column_name));
        }
        let renamed = match opt_rename {
            Some(RenameSelectItem::Single(one)) => std::slice::from_ref(one),
            Some(RenameSelectItem::Multiple(several)) => several,
            None => &[],
        };
        names.extend(renamed.iter().map(|renamed| &renamed.ident));
        self.column_names(names);
        renamed.iter().for_each(|renamed| self.define(&renamed.alias));
    }

    /// The names that columns of a FROM may have; none where a table may have any.
    fn names_of(&self, select: &Select) -> Option<HashSet<String>> {
        let mut found = Some(HashSet::new());
        let mut add = |factor: &TableFactor| {
            let own = match factor {
                TableFactor::Table { name, args: None, .. } => {
                    let own = name.0.last().and_then(|part| part.as_ident());
                    own.and_then(|own| self.tables.get(&folded(own))).cloned()
                }
                TableFactor::Derived { subquery, alias, .. } => {
                    Some(self.given_by(subquery, alias.as_ref().map_or(&[], |alias| &alias.columns)))
                }
                _ => None,
            };
            match (own, &mut found) {
                (Some(own), Some(found)) => found.extend(own),
                _ => found = None,
            }
        };
        select.from.iter().for_each(|from| relations::each_factor(from, &mut add));
        found
    }

    /// The names that columns of a query may have, by the names behind its alias, or all that stand in it.
    fn given_by(&self, query: &Query, columns: &[TableAliasColumnDef]) -> HashSet<String> {
        struct Names<'m>(&'m Marks, HashSet<String>);
        impl Visitor for Names<'_> {
            type Break = ();
            fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
                let own = name.0.last().and_then(|part| part.as_ident());
                self.1.extend(own.and_then(|own| self.0.tables.get(&folded(own))).into_iter().flatten().cloned());
                ControlFlow::Continue(())
            }
            fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
                self.1.extend(select.projection.iter().filter_map(|item| match item {
                    SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
                    _ => None,
                }));
                ControlFlow::Continue(())
            }
        }
        if !columns.is_empty() {
            return columns.iter().map(|column| folded(&column.name)).collect();
        }
        let mut names = Names(self, HashSet::new());
        let _ = visits::visit(query, &mut names);
        names.1
    }

    /// Names in an expression over columns of these names that are those of columns but for case.
    fn mean(&mut self, tree: &mut impl VisitMut, columns: &HashSet<String>) {
        let is_spelled =
            |name: &str| !columns.contains(name) && columns.iter().any(|column| column.to_lowercase() == name);
        each_name(tree, &mut |expr| {
            if let Expr::Identifier(name) = expr
                && name.quote_style.is_none()
                && is_spelled(&folded(name))
            {
                self.meant.insert(name.span.start);
            }
        });
    }

    /// The same in the arguments of calls alone: a name beside them may be an alias.
    fn mean_in_calls(&mut self, tree: &mut impl VisitMut, columns: &HashSet<String>) {
        struct Calls<'m>(&'m mut Marks, &'m HashSet<String>);
        impl VisitorMut for Calls<'_> {
            type Break = ();
            fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
                if let Expr::Function(function) = expr {
                    self.0.mean(&mut function.args, self.1);
                }
                ControlFlow::Continue(())
            }
        }
        let _ = visits::visit_mut(tree, &mut Calls(self, columns));
    }
}

impl VisitorMut for Marks {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &mut SqlStatement) -> ControlFlow<()> {
        match statement {
            SqlStatement::CreateTable(table) => table.columns.iter().for_each(|column| self.define(&column.name)),
            SqlStatement::CreateView(view) => view.columns.iter().for_each(|column| self.define(&column.name)),
            SqlStatement::AlterTable(table) => {
                for operation in &table.operations {
                    match operation {
                        AlterTableOperation::AddColumn { column_def, .. } => self.define(&column_def.name),
                        AlterTableOperation::DropColumn { column_names, .. } => self.column_names(column_names),
                        AlterTableOperation::AlterColumn { column_name, .. } => {
                            self.column_names(std::slice::from_ref(column_name));
                        }
                        AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                            self.column_names(std::slice::from_ref(old_column_name));
                            self.define(new_column_name);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.relation(&table.alias.name);
            let columns = self.given_by(&table.query, &table.alias.columns);
            self.tables.insert(folded(&table.alias.name), columns);
            table.alias.columns.iter().for_each(|column| self.define(&column.name));
        }
        if let (SetExpr::Select(select), Some(order_by)) = (query.body.as_ref(), &mut query.order_by)
            && let OrderByKind::Expressions(keys) = &mut order_by.kind
            && let Some(columns) = self.names_of(select)
        {
            self.mean_in_calls(keys, &columns);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &select.projection {
            match item {
                SelectItem::ExprWithAlias { alias, .. } => self.define(alias),
                SelectItem::ExprWithAliases { aliases, .. } => aliases.iter().for_each(|alias| self.define(alias)),
                SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => self.options(options),
                SelectItem::UnnamedExpr(_) => {}
            }
        }
        if let Some(columns) = self.names_of(select) {
            self.mean(&mut select.projection, &columns);
            self.mean(&mut select.selection, &columns);
            self.mean(&mut select.group_by, &columns);
            self.mean_in_calls(&mut select.having, &columns);
            self.mean_in_calls(&mut select.qualify, &columns);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<()> {
        name.0.iter().filter_map(|part| part.as_ident()).for_each(|part| self.relation(part));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let alias = match factor {
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::NestedJoin { alias, .. } => alias,
            TableFactor::Pivot { aggregate_functions, alias, .. } => {
                aggregate_functions.iter().filter_map(|it| it.alias.as_ref()).for_each(|alias| self.define(alias));
                alias
            }
            TableFactor::Unpivot { name, value, columns, alias, .. } => {
                self.define(name);
                if let Expr::Identifier(value) = value {
                    self.define(value);
                }
                columns.iter().filter_map(|it| it.alias.as_ref()).for_each(|alias| self.define(alias));
                alias
            }
            _ => return ControlFlow::Continue(()),
        };
        if let Some(alias) = alias {
            self.relation(&alias.name);
            alias.columns.iter().for_each(|column| self.define(&column.name));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => self.column(name),
            Expr::CompoundIdentifier(names) => names.iter().for_each(|name| self.column(name)),
            Expr::Lambda(lambda) => lambda.params.iter().for_each(|parameter| self.define(&parameter.name)),
            Expr::Dictionary(fields) => fields.iter().for_each(|field| self.define(&field.key)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
