//! A schema whose tables are looked at again whenever a statement names them.
//!
//! Tables over files: their files are compared with those the table was made from. Views: planned from their text, so
//! that they see the tables there are now. Names that are paths: tables made on the spot. Tables in memory: at their
//! current version, by hidden names in the roles that statements which change them need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::datatypes::Schema;
use async_trait::async_trait;
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::common::config::{CatalogOptions, ConfigOptions, SqlParserOptions};
use datafusion::common::{DFSchema, Result as DataFusionResult, exec_err, plan_err};
use datafusion::datasource::{TableType, ViewTable};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, DescribeTable, EmptyRelation, LogicalPlan};
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{DescribeAlias, ObjectName, Query, Statement as SqlStatement};
use parking_lot::RwLock;

use super::connection_state::ConnectionState;
use super::files::ExternalTable;
use super::given::given;
use super::kept::{self, KeptCatalog};
use super::names;
use super::special::BrokenTable;
use super::{CATALOG, LASTING, SCHEMA};
use crate::error::{Result, SqlError};
use crate::memory_table::{Common, MemoryTable, Role};
use crate::report::StatementReport;
use crate::syntax::{self, Again};

tokio::task_local! {
    /// The views that are being planned, outermost first: the address of the schema's tables, and the name.
    static VIEWS_OPEN: Vec<(usize, String)>;
    /// The name of the table that the statement being planned makes.
    static CREATED: Option<String>;
    /// The statement that is defining something.
    static DEFINITION: Definition;
}

/// A statement that defines something in a catalog.
///
/// DataFusion takes an old table away before it makes the new one. Here the old one stays until the new one takes its
/// place in one step: statements at the same time find one of both, and a `CREATE OR REPLACE` that fails loses nothing.
/// That step is the commit point of the statement.
#[derive(Debug)]
struct Definition {
    report: Arc<StatementReport>,
    /// The statement.
    text: String,
    /// Whether the statement takes the place of a table.
    replaces: bool,
    /// Whether the table is one of the connection alone.
    is_temporary: bool,
    /// Whether it has taken the table away that it replaces.
    has_taken: AtomicBool,
}

/// Does the work of a statement of that text that defines something, and `replaces` a table; a table that
/// `is_temporary` is one of the connection alone.
pub(crate) async fn define<T>(
    report: &Arc<StatementReport>,
    text: &str,
    replaces: bool,
    is_temporary: bool,
    work: impl Future<Output = T>,
) -> T {
    let (report, text) = (report.clone(), text.to_string());
    let definition = Definition { report, text, replaces, is_temporary, has_taken: AtomicBool::new(false) };
    DEFINITION.scope(definition, work).await
}

/// The commit point of the statement that is defining something.
pub(super) fn commit_definition() -> Result<()> {
    DEFINITION.try_with(|definition| definition.report.commit()).unwrap_or(Ok(()))
}

/// Plans a statement. The name of the table that it makes is looked up like others, among files too; an error of such
/// files is not the statement's. DESCRIBE of a query tells the types that the query has when it runs.
pub(crate) async fn plan_statement(state: &SessionState, parsed: ParsedStatement) -> DataFusionResult<LogicalPlan> {
    if let Some(query) = described(&parsed) {
        let query = ParsedStatement::Statement(Box::new(SqlStatement::Query(Box::new(query.clone()))));
        let plan = analyzed(state, state.statement_to_plan(query).await?)?;
        let (schema, output) = (plan.schema().inner().clone(), LogicalPlan::describe_schema());
        let output_schema = Arc::new(DFSchema::try_from(output)?);
        return Ok(LogicalPlan::DescribeTable(DescribeTable { schema, output_schema }));
    }
    let created = created(&parsed).and_then(|name| name.0.last()?.as_ident().map(|ident| ident.value.clone()));
    CREATED.scope(created, state.statement_to_plan(parsed)).await
}

/// The query that a DESCRIBE is of.
fn described(parsed: &ParsedStatement) -> Option<&Query> {
    let ParsedStatement::Statement(statement) = parsed else { return None };
    let SqlStatement::Explain { describe_alias: DescribeAlias::Describe | DescribeAlias::Desc, statement, .. } =
        statement.as_ref()
    else {
        return None;
    };
    match statement.as_ref() {
        SqlStatement::Query(query) => Some(query),
        _ => None,
    }
}

/// A plan with the types that it has when it runs.
fn analyzed(state: &SessionState, plan: LogicalPlan) -> DataFusionResult<LogicalPlan> {
    state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})
}

/// The name of the table or the view that a statement makes.
fn created(parsed: &ParsedStatement) -> Option<&ObjectName> {
    match parsed {
        ParsedStatement::CreateExternalTable(external) => Some(&external.name),
        ParsedStatement::Statement(statement) => match statement.as_ref() {
            SqlStatement::CreateTable(table) => Some(&table.name),
            SqlStatement::CreateView(view) => Some(&view.name),
            _ => None,
        },
        _ => None,
    }
}

#[derive(Debug, Clone)]
enum Entry {
    Plain(Arc<dyn TableProvider>),
    External(Arc<ExternalTable>),
    /// A table over files of a kept catalog that no statement has named yet.
    Unopened(Arc<dyn TableProvider>, Arc<ViewText>),
    View(Arc<dyn TableProvider>, Arc<ViewText>),
}

/// The text of a definition, with the settings of the connection that made it by which it is read: names mean the same
/// to every connection.
#[derive(Debug)]
struct ViewText {
    text: String,
    parser: SqlParserOptions,
    catalog: String,
    schema: String,
}

impl ViewText {
    /// A definition of a kept catalog, which is called `catalog` here.
    fn of_kept(definition: kept::Definition, catalog: &str) -> ViewText {
        ViewText {
            text: definition.text,
            parser: kept::parser(&definition.settings),
            catalog: definition.catalog.unwrap_or_else(|| catalog.to_string()),
            schema: definition.schema,
        }
    }

    /// The definition as a catalog keeps it that is called `catalog` here.
    fn as_kept(&self, kind: kept::Kind, catalog: &str) -> kept::Definition {
        kept::Definition {
            kind,
            text: self.text.clone(),
            catalog: (self.catalog != catalog).then(|| self.catalog.clone()),
            schema: self.schema.clone(),
            settings: kept::changed(&self.parser),
        }
    }

    /// Has names and literals read as in the view's text, whatever temporary tables a connection has.
    fn set_names(&self, options: &mut ConfigOptions) {
        options.sql_parser = self.parser.clone();
        options.catalog.default_catalog.clone_from(&self.catalog);
        let is_first = self.catalog == CATALOG && self.schema == SCHEMA;
        options.catalog.default_schema = if is_first { LASTING.into() } else { self.schema.clone() };
    }
}

impl Entry {
    /// The table as it was when it was registered or last looked at.
    fn table(&self) -> &Arc<dyn TableProvider> {
        match self {
            Entry::Plain(table) | Entry::View(table, _) | Entry::Unopened(table, _) => table,
            Entry::External(external) => &external.table,
        }
    }

    /// Notes whether a table in memory has a name: one without takes no rows.
    fn be_listed(&self, is_listed: bool) {
        if let Some(memory) = self.table().downcast_ref::<MemoryTable>() {
            memory.be_listed(is_listed);
        }
    }
}

/// The tables of a schema.
#[derive(Debug)]
pub(super) struct Tables {
    name: String,
    entries: RwLock<BTreeMap<String, Entry>>,
    /// Whether the schema was dropped: a table that is made in it then would be lost.
    is_closed: AtomicBool,
    /// Where definitions are kept, and the name that the catalog has here.
    kept: Option<(Arc<KeptCatalog>, String)>,
}

impl Tables {
    pub(super) fn new(name: &str, kept: Option<(Arc<KeptCatalog>, String)>) -> Tables {
        Tables { name: name.to_string(), entries: RwLock::default(), is_closed: AtomicBool::new(false), kept }
    }

    /// A schema of a kept catalog, which is called `catalog` here. Its files and views are looked at once a statement
    /// names them.
    pub(super) fn of_kept(
        name: &str,
        kept: &Arc<KeptCatalog>,
        catalog: &str,
        definitions: BTreeMap<String, kept::Definition>,
    ) -> Tables {
        let tables = Tables::new(name, Some((kept.clone(), catalog.to_string())));
        let entry = |(name, definition): (String, kept::Definition)| {
            let kind = definition.kind;
            let unseen = |kind| -> Arc<dyn TableProvider> {
                let error = SqlError::Internal(format!("'{name}' of a catalog was not looked at"));
                Arc::new(BrokenTable { schema: Arc::new(Schema::empty()), kind, error })
            };
            let text = Arc::new(ViewText::of_kept(definition, catalog));
            let entry = match kind {
                kept::Kind::View => Entry::View(unseen(TableType::View), text),
                kept::Kind::Table => Entry::Unopened(unseen(TableType::Base), text),
            };
            (name, entry)
        };
        *tables.entries.write() = definitions.into_iter().map(entry).collect();
        tables
    }

    /// The names of all that is there, of macros too.
    pub(super) fn names(&self) -> Vec<String> {
        self.entries.read().keys().cloned().collect()
    }

    /// Keeps what a name means from now on; `text` is that of the definition of a table over files.
    fn keep(&self, name: &str, entry: Option<&Entry>, text: Option<ViewText>) -> Result<()> {
        let Some((kept, catalog)) = &self.kept else { return Ok(()) };
        let definition = match entry {
            Some(Entry::View(_, text)) => Some(text.as_kept(kept::Kind::View, catalog)),
            Some(Entry::External(_)) => text.map(|text| text.as_kept(kept::Kind::Table, catalog)),
            Some(Entry::Plain(_) | Entry::Unopened(..)) | None => None,
        };
        kept.keep(&self.name, name, definition)?;
        if matches!(entry, Some(Entry::Plain(_))) {
            let folder = kept.folder().display();
            let warning = format!(
                "table '{name}' is in memory, and the catalog in {folder} does not keep it: COPY it to a file, and \
                 make a table over that file"
            );
            let _ = DEFINITION.try_with(|definition| definition.report.warn(&[warning]));
        }
        Ok(())
    }

    /// Closes the schema, which was dropped: its tables have no names any more.
    pub(super) fn close(&self) {
        let entries = self.entries.write();
        self.is_closed.store(true, Ordering::Relaxed);
        entries.values().for_each(|entry| entry.be_listed(false));
    }

    /// Names of tables and of their columns as they were when last looked at.
    pub(super) fn describe(&self) -> Vec<(String, Vec<String>)> {
        let columns =
            |table: &Arc<dyn TableProvider>| table.schema().fields().iter().map(|field| field.name().clone()).collect();
        self.entries.read().iter().map(|(name, entry)| (name.clone(), columns(entry.table()))).collect()
    }

    /// The table over files of a name, as it was when it was last looked at.
    pub(super) fn external(&self, name: &str) -> Option<Arc<ExternalTable>> {
        match self.entries.read().get(name) {
            Some(Entry::External(external)) => Some(external.clone()),
            _ => None,
        }
    }

    /// Whether a listing table is that of one of the tables over files.
    pub(super) fn looks_at(&self, listing: &Arc<dyn TableProvider>) -> bool {
        let is_over = |entry: &Entry| matches!(entry, Entry::External(external) if external.is_over(listing));
        self.entries.read().values().any(is_over)
    }

    /// Takes tables in memory to their current versions: a handle holds the rows of its own.
    pub(super) fn drop_stale(&self) {
        let plain = |(name, entry): (&String, &Entry)| match entry {
            Entry::Plain(table) => Some((name.clone(), table.clone())),
            _ => None,
        };
        let tables: Vec<_> = self.entries.read().iter().filter_map(plain).collect();
        tables.iter().for_each(|(name, table)| drop(self.current(name, table)));
    }

    /// The table at its current version: the same handle until it changes, by which templates know it.
    fn current(&self, name: &str, known: &Arc<dyn TableProvider>) -> Arc<dyn TableProvider> {
        let Some(memory) = known.downcast_ref::<MemoryTable>().filter(|memory| !memory.is_current()) else {
            return known.clone();
        };
        let now: Arc<dyn TableProvider> = Arc::new(memory.in_role(Role::Rows));
        if let Some(Entry::Plain(entry)) = self.entries.write().get_mut(name)
            && Arc::ptr_eq(entry, known)
        {
            *entry = now.clone();
        }
        now
    }
}

/// A schema as one connection sees it: names that a state is needed for are looked up with that connection's.
#[derive(Debug)]
pub(crate) struct ConnectionSchema {
    state: ConnectionState,
    /// What the tables in memory of a database share.
    common: Common,
    tables: Arc<Tables>,
    /// The tables of the connection alone, whose names come first.
    temporary: Option<Arc<Tables>>,
}

impl ConnectionSchema {
    pub(super) fn new(
        state: ConnectionState,
        common: Common,
        tables: Arc<Tables>,
        temporary: Option<Arc<Tables>>,
    ) -> ConnectionSchema {
        ConnectionSchema { state, common, tables, temporary }
    }

    /// Whether it may have tables of the connection alone, and has one of that name.
    pub(crate) fn has_temporary(&self, name: &str) -> Option<bool> {
        self.temporary.as_ref().map(|temporary| temporary.entries.read().contains_key(name))
    }

    /// The tables among which a name is looked for.
    fn tables_of(&self, name: &str) -> &Arc<Tables> {
        match (&self.temporary, self.has_temporary(name)) {
            (Some(temporary), Some(true)) => temporary,
            _ => &self.tables,
        }
    }

    /// The table of that name that a program gives the statement, among the names of the first schema. That of a table
    /// that is being made is not one that is read.
    fn given(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.temporary.is_none() || DEFINITION.try_with(|_| ()).is_ok() {
            true => Ok(None),
            false => given(name, &self.common),
        }
    }

    /// The table over files of a name, as it was when it was last looked at.
    pub(super) fn external(&self, name: &str) -> Option<Arc<ExternalTable>> {
        self.tables_of(name).external(name)
    }

    /// The table for its files as they are now.
    async fn look_again(&self, name: &str, known: Arc<ExternalTable>) -> Result<Arc<dyn TableProvider>> {
        let Some(runtime) = self.state.runtime() else { return Ok(known.table.clone()) };
        let snapshot = known.look(&runtime).await?;
        if known.is_current(&snapshot, &self.state.reach()) {
            return Ok(known.table.clone());
        }
        let Some(state) = self.state.copied() else { return Ok(known.table.clone()) };
        self.common.changed();
        let now = Arc::new(known.reopen(state, snapshot).await?);
        // A table that another statement has dropped or replaced meanwhile stays so.
        if let Some(Entry::External(entry)) = self.tables.entries.write().get_mut(name)
            && Arc::ptr_eq(entry, &known)
        {
            *entry = now.clone();
        }
        Ok(now.table.clone())
    }

    /// The table over files of a kept definition, opened.
    async fn open_kept(&self, name: &str, known: &Entry, text: &Arc<ViewText>) -> Result<Arc<dyn TableProvider>> {
        let Some(mut state) = self.state.copied() else {
            return Err(SqlError::Internal("a table over files without a connection".into()));
        };
        text.set_names(state.config_mut().options_mut());
        let parsed = syntax::parse(&state, &text.text).await?;
        let plan = Box::pin(plan_statement(&state, parsed)).await?;
        let LogicalPlan::Ddl(DdlStatement::CreateExternalTable(command)) = plan else {
            return Err(SqlError::Internal(format!("the definition of '{name}' is not that of a table over files")));
        };
        let opened = Arc::new(ExternalTable::open(&state, &command).await?);
        // A table that another statement has dropped, replaced or opened meanwhile stays so.
        if let Some(entry) = self.tables.entries.write().get_mut(name)
            && Arc::ptr_eq(entry.table(), known.table())
        {
            *entry = Entry::External(opened.clone());
        }
        self.common.changed();
        Ok(opened.table.clone())
    }

    /// The text of a definition that the connection makes.
    fn text_of(&self, text: &str) -> ViewText {
        let options = self.state.copied().map(|state| state.config_options().clone()).unwrap_or_default();
        let CatalogOptions { default_catalog: catalog, default_schema: schema, .. } = options.catalog.clone();
        ViewText { text: syntax::with_signs(text), parser: options.sql_parser.clone(), catalog, schema }
    }

    /// The view, planned from its text.
    async fn plan_again(&self, name: &str, text: &ViewText) -> Result<Arc<dyn TableProvider>> {
        let Some(mut state) = self.state.copied() else {
            return Err(SqlError::Internal("a view without a connection".into()));
        };
        text.set_names(state.config_mut().options_mut());
        let mut open = VIEWS_OPEN.try_with(Clone::clone).unwrap_or_default();
        let view = (Arc::as_ptr(&self.tables) as usize, name.to_string());
        if open.contains(&view) {
            return Err(SqlError::RecursiveView(name.to_string()));
        }
        open.push(view);
        let plan = VIEWS_OPEN.scope(open, Box::pin(view_plan(&state, &text.text))).await?;
        Ok(Arc::new(ViewTable::new(plan, Some(text.text.clone()))))
    }
}

/// A view with its columns alone: it is planned from its text, and a plan holds the rows of its tables in memory.
fn without_plan(view: &ViewTable) -> Arc<dyn TableProvider> {
    let empty = EmptyRelation { produce_one_row: false, schema: view.logical_plan().schema().clone() };
    Arc::new(ViewTable::new(LogicalPlan::EmptyRelation(empty), view.definition().cloned()))
}

/// The plan below `CREATE VIEW`, with names in the case that tables have them in.
async fn view_plan(state: &SessionState, text: &str) -> Result<LogicalPlan> {
    let mut again: Option<Again> = None;
    loop {
        let reading = again.as_ref().map_or(state, |again| &again.state);
        match Box::pin(view_plan_with(reading, text)).await {
            Ok(plan) => return Ok(plan),
            Err(error) => again = Some(syntax::again(state, text, again.take(), error).await?),
        }
    }
}

async fn view_plan_with(state: &SessionState, text: &str) -> Result<LogicalPlan> {
    let statement = syntax::parse(state, text).await?;
    match state.statement_to_plan(statement).await? {
        LogicalPlan::Ddl(DdlStatement::CreateView(view)) => Ok(analyzed(state, Arc::unwrap_or_clone(view.input))?),
        _ => Err(SqlError::Internal("the text of a view is not that of a view".into())),
    }
}

#[async_trait]
impl SchemaProvider for ConnectionSchema {
    fn table_names(&self) -> Vec<String> {
        let temporary = self.temporary.iter().flat_map(|temporary| temporary.names());
        // Macros, and variables among them, are views whose names end with parentheses: no tables.
        let is_table = |name: &String| !name.ends_with("()");
        let names: BTreeSet<String> = self.tables.names().into_iter().chain(temporary).filter(is_table).collect();
        names.into_iter().collect()
    }

    async fn table(&self, name: &str) -> DataFusionResult<Option<Arc<dyn TableProvider>>, DataFusionError> {
        if let Some((role, name)) = Role::of_name(name) {
            let entry = self.tables_of(name).entries.read().get(name).cloned();
            if entry.is_none() && self.given(name)?.is_some() {
                let reason = format!("a change of '{name}', which is no table of the catalog");
                return Err(SqlError::Unsupported(reason).into());
            }
            let memory = entry.as_ref().and_then(|entry| entry.table().downcast_ref::<MemoryTable>());
            return Ok(memory.map(|table| Arc::new(table.in_role(role)) as Arc<dyn TableProvider>));
        }
        let tables = self.tables_of(name);
        let entry = tables.entries.read().get(name).cloned();
        let is_created = |created: &Option<String>| created.as_ref().is_some_and(|it| it.eq_ignore_ascii_case(name));
        let is_created = || CREATED.try_with(is_created).unwrap_or(false);
        let Some(entry) = entry else {
            if let Some(table) = self.given(name)? {
                return Ok(Some(table));
            }
            let Some(state) = self.state.copied() else { return Ok(None) };
            return match names::by_name(&state, name).await {
                Err(_) if is_created() => Ok(None),
                found => Ok(found?),
            };
        };
        let looked_at = match &entry {
            Entry::Plain(table) => Ok(tables.current(name, table)),
            Entry::External(external) => self.look_again(name, external.clone()).await,
            Entry::Unopened(..) if is_created() => return Ok(None),
            Entry::Unopened(_, text) => Box::pin(self.open_kept(name, &entry, text)).await,
            Entry::View(_, text) => self.plan_again(name, text).await,
        };
        // One table that cannot be read must not keep others from being described (`SHOW COLUMNS`).
        let (schema, kind) = (entry.table().schema(), entry.table().table_type());
        let broken = |error| Arc::new(BrokenTable { schema, kind, error }) as Arc<dyn TableProvider>;
        Ok(Some(looked_at.unwrap_or_else(broken)))
    }

    async fn table_type(&self, name: &str) -> DataFusionResult<Option<TableType>> {
        Ok(self.tables_of(name).entries.read().get(name).map(|entry| entry.table().table_type()))
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
        // DataFusion's own tables in memory change while they are planned; the rows go over into one of ours.
        let ours = |table: &MemTable| MemoryTable::of_registered(&name, table, self.common.clone());
        let table = match table.downcast_ref::<MemTable>().map(ours).transpose()? {
            Some(memory) => Arc::new(memory) as Arc<dyn TableProvider>,
            None => table,
        };
        let entry = match (table.downcast_ref::<ExternalTable>(), table.downcast_ref::<ViewTable>()) {
            (Some(external), _) => Entry::External(Arc::new(external.clone())),
            (None, Some(view)) => match view.definition() {
                Some(text) => Entry::View(without_plan(view), Arc::new(self.text_of(text))),
                None => Entry::Plain(table),
            },
            (None, None) => Entry::Plain(table),
        };
        let is_temporary = DEFINITION.try_with(|it| it.is_temporary).unwrap_or(false);
        let tables = self.temporary.as_ref().filter(|_| is_temporary).unwrap_or(&self.tables);
        let mut entries = tables.entries.write();
        if tables.is_closed.load(Ordering::Relaxed) {
            return exec_err!("schema '{}' has been dropped", tables.name);
        }
        if let Some(there) = entries.get(&name) {
            // Another connection may have made the table that this statement replaces.
            let kind = there.table().table_type();
            let is_alike = kind == entry.table().table_type();
            if !is_alike && DEFINITION.try_with(|it| it.replaces).unwrap_or(false) {
                let kind = if kind == TableType::View { "view" } else { "table" };
                return plan_err!("'{name}' is a {kind}; drop it first");
            }
            let replaces = |it: &Definition| it.has_taken.load(Ordering::Relaxed) || it.replaces && is_alike;
            if !DEFINITION.try_with(replaces).unwrap_or(false) {
                return exec_err!("table '{name}' already exists");
            }
        }
        commit_definition()?;
        let text = DEFINITION.try_with(|definition| self.text_of(&definition.text)).ok();
        tables.keep(&name, Some(&entry), text)?;
        entry.be_listed(true);
        if let Some(replaced) = entries.insert(name, entry) {
            replaced.be_listed(false);
        }
        self.common.changed();
        Ok(None)
    }

    fn deregister_table(&self, name: &str) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
        let tables = self.tables_of(name);
        let mut entries = tables.entries.write();
        let Some(entry) = entries.get(name).cloned() else { return Ok(None) };
        let stays = DEFINITION.try_with(|it| it.replaces && !it.has_taken.swap(true, Ordering::Relaxed));
        if !stays.unwrap_or(false) {
            commit_definition()?;
            tables.keep(name, None, None)?;
            entry.be_listed(false);
            entries.remove(name);
            self.common.changed();
        }
        Ok(Some(entry.table().clone()))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables_of(name).entries.read().contains_key(name)
    }
}
