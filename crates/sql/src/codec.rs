//! Plans as bytes, for databases of other processes: what an engine that distributes queries sends to its workers.
//!
//! What travels is an optimised logical plan in the encoding of `datafusion-proto`, below a line that names the version
//! that wrote it ([`crate::Connection::encode_plan`]). Device nodes travel as the plans they were lowered from: the
//! database that receives them lowers them again, for its own settings and device. Tables over files travel as paths,
//! formats and columns; all others as names, which are looked up in the receiving database's catalog.
//!
//! Invariant: a plan that would come back as another one is refused when it is encoded.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::TableReference;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::{TableType, provider_as_source, source_as_provider};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, LogicalPlanBuilder, ScalarUDF, TableScan, TableSource};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::logical_plan::LogicalExtensionCodec;

use crate::catalog::{TextKeys, check_received, listing_of, with_format};
use crate::error::{Result, SqlError, one_line};
use crate::locations::mirrored;
use crate::lower::DeviceNode;
use crate::mend;
use crate::shared::{SharedTable, With, hoisted};
use crate::text_formats::{self, plain};
use crate::walk::PlanWalk;

/// First words of an encoded plan.
const HEAD: &str = "warpcube plan ";
/// First bytes of a table whose keys are read from their texts; the plan of a scan of its listing table follows.
const TEXT_KEYS: &[u8] = b"text keys ";
/// First bytes of a query over shared tables: no plan begins with them.
const WITH: &[u8] = &[0];
/// Longest first line.
const HEAD_BYTES_MAX: usize = 64;

/// Encodes what is Warpcube's own in a logical plan, for `datafusion-proto`.
///
/// [`crate::Connection::encode_plan`] and [`crate::Connection::run_encoded`] use it; programs that encode plans
/// themselves, because theirs have nodes of their own, call it for ours; `datafusion-proto` has no form for our tables
/// over CSV and JSON, of which those two encode DataFusion's formats. A decoded plan is run by a connection's own
/// context ([`crate::Connection::context`]), whose planner lowers device nodes and looks up tables.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanCodec;

impl LogicalExtensionCodec for PlanCodec {
    fn try_decode(&self, bytes: &[u8], inputs: &[LogicalPlan], context: &TaskContext) -> DataFusionResult<Extension> {
        if let Some(bytes) = bytes.strip_prefix(WITH) {
            let with = With::from_bytes(bytes, inputs);
            let with = with.ok_or_else(|| SqlError::PlanDecode("shared tables that cannot be read".into()))?;
            return Ok(Extension { node: Arc::new(with) });
        }
        let original = logical_plan_from_bytes_with_extension_codec(bytes, context, self)?;
        Ok(Extension { node: Arc::new(DeviceNode::received(original)) })
    }

    fn try_encode(&self, node: &Extension, bytes: &mut Vec<u8>) -> DataFusionResult<()> {
        if let Some(with) = node.node.as_any().downcast_ref::<With>() {
            bytes.extend_from_slice(WITH);
            bytes.extend(with.to_bytes());
            return Ok(());
        }
        let Some(device) = node.node.as_any().downcast_ref::<DeviceNode>() else {
            let name = node.node.name();
            return Err(SqlError::PlanEncode(format!("no node '{name}' is known; encode it with your codec")).into());
        };
        bytes.extend(logical_plan_to_bytes_with_extension_codec(device.original(), self)?);
        Ok(())
    }

    /// A function that no registry has.
    fn try_decode_udf(&self, name: &str, _bytes: &[u8]) -> DataFusionResult<Arc<ScalarUDF>> {
        mend::unregistered(name).ok_or_else(|| SqlError::PlanDecode(format!("no function '{name}' is known")).into())
    }

    fn try_decode_table_provider(
        &self,
        bytes: &[u8],
        name: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> DataFusionResult<Arc<dyn TableProvider>> {
        if let Some(plan) = bytes.strip_prefix(TEXT_KEYS) {
            let plan = logical_plan_from_bytes_with_extension_codec(plan, context, self)?;
            let LogicalPlan::TableScan(scan) = plan else {
                return Err(SqlError::PlanDecode("a table over files that is none".into()).into());
            };
            return Ok(Arc::new(TextKeys::new(source_as_provider(&scan.source)?)?));
        }
        Ok(match bytes.try_into() {
            Ok(bytes) => {
                let id = u64::from_le_bytes(bytes);
                Arc::new(SharedTable { id: (id >> 1) as usize, must: id & 1 != 0, schema })
            }
            Err(_) => Arc::new(NamedTable { name: name.clone(), schema }),
        })
    }

    /// A table is encoded as its name, a shared one as its id; the columns are in the plan already. One over files in
    /// folders of keys is encoded as its listing table.
    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        bytes: &mut Vec<u8>,
    ) -> DataFusionResult<()> {
        if let Some(SharedTable { id, must, .. }) = table.downcast_ref() {
            bytes.extend(((*id as u64) << 1 | u64::from(*must)).to_le_bytes());
        }
        if let Some(keys) = table.downcast_ref::<TextKeys>() {
            let scan = LogicalPlanBuilder::scan(name.clone(), provider_as_source(keys.listing().clone()), None)?;
            bytes.extend_from_slice(TEXT_KEYS);
            bytes.extend(logical_plan_to_bytes_with_extension_codec(&scan.build()?, self)?);
        }
        Ok(())
    }
}

/// A table of a decoded plan, until the receiving connection's planner has looked it up.
#[derive(Debug)]
struct NamedTable {
    name: TableReference,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for NamedTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let reason = format!("table '{}' was not looked up; run the plan in a Warpcube connection", self.name);
        Err(SqlError::PlanDecode(reason).into())
    }
}

/// The bytes of an optimised plan; `context` has the connection's functions.
pub(crate) fn encode(plan: &LogicalPlan, context: &TaskContext) -> Result<Vec<u8>> {
    check_kind(plan).map_err(SqlError::PlanEncode)?;
    if let Some(scan) = scans(&expanded(plan)?)?.iter().find(|scan| is_elsewhere(scan)) {
        let reason = format!("table '{}' is over files elsewhere, whose places only this process has", scan.table_name);
        return Err(SqlError::PlanEncode(reason));
    }
    let plan = without_hints(plan)?;
    let refused = |error: DataFusionError| SqlError::PlanEncode(reason(error));
    let body = logical_plan_to_bytes_with_extension_codec(&plan, &PlanCodec).map_err(refused)?;
    let back = logical_plan_from_bytes_with_extension_codec(&body, context, &PlanCodec).map_err(refused)?;
    let (sent, back) = (expanded(&plan)?.display_indent_schema().to_string(), expanded(&back)?);
    let back = back.display_indent_schema().to_string();
    if sent != back {
        let step = sent.lines().zip(back.lines()).find(|(sent, back)| sent != back).map_or("", |(sent, _)| sent.trim());
        return Err(SqlError::PlanEncode(format!("datafusion-proto has no exact form for the step '{step}'")));
    }
    let mut bytes = format!("{HEAD}{} {}\n", env!("CARGO_PKG_VERSION"), body.len()).into_bytes();
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// The plan of encoded bytes, as it was before any of it was lowered; its tables are still to be settled.
pub(crate) fn decode(bytes: &[u8], context: &TaskContext) -> Result<LogicalPlan> {
    let body = body(bytes).map_err(SqlError::PlanDecode)?;
    let refused = |error: DataFusionError| SqlError::PlanDecode(reason(error));
    let plan = logical_plan_from_bytes_with_extension_codec(body, context, &PlanCodec).map_err(refused)?;
    let plan = with_formats(expanded(&plan)?, |format| text_formats::of(format.clone()))?;
    check_kind(&plan).map_err(SqlError::PlanDecode)?;
    Ok(plan)
}

/// What follows the first line, if all is there.
fn body(bytes: &[u8]) -> std::result::Result<&[u8], String> {
    let end = bytes.iter().take(HEAD_BYTES_MAX).position(|byte| *byte == b'\n');
    let head = end.and_then(|end| std::str::from_utf8(&bytes[..end]).ok()).and_then(|head| head.strip_prefix(HEAD));
    let Some(((version, length), end)) = head.and_then(|head| head.split_once(' ')).zip(end) else {
        return Err(format!("expected bytes that start with '{HEAD}', as Connection::encode_plan gives them"));
    };
    let own = env!("CARGO_PKG_VERSION");
    if version != own {
        return Err(format!(
            "expected a plan of Warpcube {own}, found one of {version}; run the same version at both ends"
        ));
    }
    let body = &bytes[end + 1..];
    match length.parse::<usize>() {
        Ok(length) if length == body.len() => Ok(body),
        _ => Err(format!("expected {length} bytes after the first line, found {}; send all of them", body.len())),
    }
}

/// Plans that only read travel.
fn check_kind(plan: &LogicalPlan) -> std::result::Result<(), String> {
    let mut found = None;
    let _ = plan.apply_nested(|plan| {
        found = match plan {
            LogicalPlan::Ddl(_) | LogicalPlan::Dml(_) | LogicalPlan::Copy(_) => Some("a statement that writes"),
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_) => Some("a description"),
            LogicalPlan::Statement(_) => Some("a statement about the session"),
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Ok(TreeNodeRecursion::Stop)
    });
    found.map_or(Ok(()), |found| Err(format!("expected a query, found {found}")))
}

fn reason(error: DataFusionError) -> String {
    match SqlError::from(error).bare() {
        SqlError::PlanEncode(reason) | SqlError::PlanDecode(reason) => reason,
        SqlError::Internal(reason) | SqlError::Planning(reason) | SqlError::Unsupported(reason) => reason,
        other => one_line(&other.to_string()),
    }
}

/// A plan that `datafusion-proto` has words for: scans do not say how many rows are wanted, as the limit that says so
/// stays above and the encoding has no place for both, and formats of files are DataFusion's own.
fn without_hints(plan: &LogicalPlan) -> DataFusionResult<LogicalPlan> {
    let plain =
        with_formats(plan.clone(), |format| plain(format).clone())?.transform_down_nested(|plan| match plan {
            LogicalPlan::TableScan(scan) if scan.fetch.is_some() => {
                Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { fetch: None, ..scan })))
            }
            plan => match DeviceNode::of(&plan) {
                Some(node) => {
                    let node = Arc::new(DeviceNode::received(without_hints(node.original())?));
                    Ok(Transformed::yes(LogicalPlan::Extension(Extension { node })))
                }
                None => Ok(Transformed::no(plan)),
            },
        })?;
    Ok(plain.data)
}

/// A plan with other formats in its tables over files.
fn with_formats(
    plan: LogicalPlan,
    other: impl Fn(&Arc<dyn FileFormat>) -> Arc<dyn FileFormat>,
) -> DataFusionResult<LogicalPlan> {
    let replaced = plan.transform_down_nested(|plan| {
        let LogicalPlan::TableScan(scan) = plan else { return Ok(Transformed::no(plan)) };
        let provider = source_as_provider(&scan.source).ok();
        let table = provider.as_ref().and_then(|provider| Some((provider, listing_of(provider.as_ref())?)));
        let Some((provider, table)) = table else {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        let format = other(&table.options().format);
        if Arc::ptr_eq(&format, &table.options().format) {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        }
        let listing: Arc<dyn TableProvider> = Arc::new(with_format(table, format)?);
        let table = match provider.is::<TextKeys>() {
            true => Arc::new(TextKeys::new(listing)?),
            false => listing,
        };
        let source = provider_as_source(table);
        Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
    })?;
    Ok(replaced.data)
}

/// A plan with the originals of its device nodes in their places, and the tables that these share at its root.
fn expanded(plan: &LogicalPlan) -> DataFusionResult<LogicalPlan> {
    let expanded = plan.clone().transform_down_nested(|plan| match DeviceNode::of(&plan) {
        Some(node) => Ok(Transformed::yes(node.original().clone())),
        None => Ok(Transformed::no(plan)),
    })?;
    if expanded.transformed { hoisted(expanded.data) } else { Ok(expanded.data) }
}

/// A plan that came from another database with the tables of this one; none where it did not, or has nothing to settle.
pub(crate) async fn settle(plan: &LogicalPlan, state: &SessionState) -> DataFusionResult<Option<LogicalPlan>> {
    let mut received = false;
    plan.apply_nested(|plan| {
        received |= DeviceNode::of(plan).is_some_and(|node| node.lowered().is_none());
        received |= matches!(plan, LogicalPlan::TableScan(scan) if named(&scan.source).is_some());
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !received {
        return Ok(None);
    }
    let plan = expanded(plan)?;
    let mut tables: HashMap<TableReference, Arc<dyn TableSource>> = HashMap::new();
    for scan in scans(&plan)? {
        let Some(provider) = named(&scan.source) else { continue };
        let Some(table) = provider.downcast_ref::<NamedTable>() else { continue };
        tables.insert(scan.table_name, look_up(table, state).await?);
    }
    let settled = plan.transform_down_nested(|plan| match plan {
        LogicalPlan::TableScan(scan) if named(&scan.source).is_some() => {
            let source = tables.get(&scan.table_name).cloned().unwrap_or(scan.source);
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
        }
        plan => Ok(Transformed::no(plan)),
    })?;
    Ok(Some(settled.data))
}

/// Looks at the files that a decoded plan reads.
///
/// # Errors
/// Where there are none, or none with the columns that the plan was made for.
pub(crate) async fn check_files(plan: &LogicalPlan, state: &SessionState) -> Result<()> {
    for scan in scans(plan)? {
        let Ok(provider) = source_as_provider(&scan.source) else { continue };
        if let Some(listing) = listing_of(provider.as_ref()) {
            check_received(state, scan.table_name.table(), listing).await?;
        }
    }
    Ok(())
}

fn scans(plan: &LogicalPlan) -> DataFusionResult<Vec<TableScan>> {
    let mut scans = Vec::new();
    plan.apply_nested(|plan| {
        if let LogicalPlan::TableScan(scan) = plan {
            scans.push(scan.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(scans)
}

/// Whether a table is over files elsewhere.
fn is_elsewhere(scan: &TableScan) -> bool {
    let is_mirrored = |path: PathBuf| mirrored(&path).is_some();
    let provider = source_as_provider(&scan.source).ok();
    let listing = provider.as_ref().and_then(|provider| listing_of(provider.as_ref()));
    let mut urls = listing.into_iter().flat_map(|listing| listing.table_paths());
    urls.any(|url| url.get_url().to_file_path().is_ok_and(is_mirrored))
}

/// The table behind a source, if it is known by its name alone.
fn named(source: &Arc<dyn TableSource>) -> Option<Arc<dyn TableProvider>> {
    source_as_provider(source).ok().filter(|provider| provider.is::<NamedTable>())
}

/// The receiving database's table of a name, if it has the columns of the sender's.
async fn look_up(wanted: &NamedTable, state: &SessionState) -> Result<Arc<dyn TableSource>> {
    let columns = |schema: &SchemaRef| {
        let column = |field: &Arc<arrow::datatypes::Field>| {
            let null = if field.is_nullable() { "" } else { " NOT NULL" };
            format!("{} {}{null}", field.name(), field.data_type())
        };
        schema.fields().iter().map(column).collect::<Vec<_>>().join(", ")
    };
    let expected = columns(&wanted.schema);
    let name = wanted.name.table();
    let refused = |found: String| {
        let repair = "make the same table in the database that runs the plan, or read it from a file";
        Err(SqlError::PlanDecode(format!(
            "the rows of table '{name}' do not travel: expected one of this name with columns ({expected}) here, \
             {found}; {repair}"
        )))
    };
    let table = match state.schema_for_ref(wanted.name.clone()) {
        Ok(schema) if schema.table_exist(name) => schema.table(name).await?,
        _ => None,
    };
    let Some(table) = table else { return refused("found none".into()) };
    let found = columns(&table.schema());
    if found != expected {
        return refused(format!("found ({found})"));
    }
    Ok(provider_as_source(table))
}
