//! A cube as a table: a row for each filled base cell.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result as DataFusionResult, Statistics, stats::Precision};
use datafusion::datasource::TableType;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use super::{OpenCube, of_cube};
use crate::error::{Result, SqlError};
use crate::walk::Walk;

/// The table of a cube's base cells: each dimension at base and on its levels, then the measures. Names are lower
/// case.
#[derive(Debug)]
pub(crate) struct CubeTable {
    open: Arc<OpenCube>,
    schema: SchemaRef,
}

impl CubeTable {
    pub(crate) fn new(open: Arc<OpenCube>) -> CubeTable {
        CubeTable { schema: in_lower_case(open.relation().schema()), open }
    }

    /// The names of a column that a filter keeps, by [`warpcube_cube::answer::Relation::names`]; nothing of a filter
    /// over other columns, or of one that fails for a name: the operator above the scan tells of it.
    fn kept(&self, filter: &Expr, state: &dyn Session) -> Option<(usize, Vec<bool>)> {
        let column = self.filtered_column(filter)?;
        let names = self.open.relation().names(column)?;
        let schema = Arc::new(self.schema.project(&[column]).ok()?);
        let columns = DFSchema::try_from(schema.clone()).ok()?;
        let filter = filter.clone().transform_up(|expr| {
            Ok(match expr {
                Expr::Column(column) => Transformed::yes(Expr::Column(Column::new_unqualified(column.name))),
                expr => Transformed::no(expr),
            })
        });
        let filter = state.create_physical_expr(filter.ok()?.data, &columns).ok()?;
        let batch = RecordBatch::try_new(schema, vec![names]).ok()?;
        let marks = filter.evaluate(&batch).and_then(|marks| marks.into_array(batch.num_rows())).ok()?;
        let marks = marks.as_boolean_opt()?.iter().map(|mark| mark == Some(true)).collect();
        Some((column, marks))
    }

    /// The only column of a filter, if it is one of names and the filter always says the same of a name.
    fn filtered_column(&self, filter: &Expr) -> Option<usize> {
        let columns = filter.column_refs();
        let [column] = columns.into_iter().collect::<Vec<_>>()[..] else { return None };
        let is_plain = !filter.is_volatile() && !filter.contains_outer() && !has_subquery(filter);
        let column = self.schema.index_of(&column.name).ok().filter(|_| is_plain)?;
        self.open.relation().names(column).map(|_| column)
    }

    /// Some columns of the first cells with those names.
    fn batches(
        open: &OpenCube,
        projection: &[usize],
        kept: &[(usize, Vec<bool>)],
        most: usize,
    ) -> Result<Vec<RecordBatch>> {
        let relation = open.relation();
        if !kept.is_empty() || projection.is_empty() || most < open.cube.facts.len() {
            return relation.batches(&open.cube, projection, kept, most).map_err(of_cube);
        }
        let is_missing = |column: &usize| !open.columns.lock().contains_key(column);
        let missing: Vec<usize> = projection.iter().copied().filter(is_missing).collect();
        let read = relation.batches(&open.cube, &missing, &[], usize::MAX).map_err(of_cube)?;
        let mut columns = open.columns.lock();
        for (at, column) in missing.into_iter().enumerate() {
            columns.entry(column).or_insert_with(|| read.iter().map(|batch| batch.column(at).clone()).collect());
        }
        let columns: Vec<Arc<[ArrayRef]>> = projection.iter().map(|column| columns[column].clone()).collect();
        let schema = relation.schema().project(projection).map_err(|error| SqlError::Internal(error.to_string()))?;
        let schema = Arc::new(schema);
        let arrays = |at: usize| columns.iter().map(|column: &Arc<[ArrayRef]>| column[at].clone()).collect();
        let batch = |at| RecordBatch::try_new(schema.clone(), arrays(at));
        let batches: std::result::Result<Vec<_>, _> = (0..columns[0].len()).map(batch).collect();
        batches.map_err(|error| SqlError::Internal(error.to_string()))
    }

    /// The identity of the table, and that of its rows.
    pub(crate) fn key_and_version(&self) -> (String, String) {
        let OpenCube { folder, state, .. } = &*self.open;
        (format!("cube {}", folder.display()), format!("state {state}"))
    }
}

#[async_trait]
impl TableProvider for CubeTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        let rows = Precision::Exact(self.open.cube.facts.len());
        Some(Statistics { num_rows: rows, ..Statistics::new_unknown(&self.schema) })
    }

    /// Filters over one column of names keep pages of cells from being read; the operators above filter again.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DataFusionResult<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match self.filtered_column(filter) {
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        // A limit counts the rows that the filters above leave.
        let most = limit.filter(|_| filters.is_empty()).unwrap_or(usize::MAX);
        let kept: Vec<_> = filters.iter().filter_map(|filter| self.kept(filter, state)).collect();
        let columns = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let schema = Arc::new(self.schema.project(&columns)?);
        let open = self.open.clone();
        let made = tokio::task::spawn_blocking(move || CubeTable::batches(&open, &columns, &kept, most)).await;
        let batches = made.map_err(|error| SqlError::Internal(error.to_string()))??;
        let partitions = state.config().target_partitions().clamp(1, batches.len().max(1));
        let size = batches.len().div_ceil(partitions).max(1);
        let parts: Result<Vec<Vec<RecordBatch>>> =
            batches.chunks(size).map(|part| part.iter().map(|batch| renamed(batch, &schema)).collect()).collect();
        let mut parts = parts?;
        if parts.is_empty() {
            parts.push(Vec::new());
        }
        Ok(MemorySourceConfig::try_new_exec(&parts, schema, None)?)
    }
}

fn has_subquery(filter: &Expr) -> bool {
    let is_subquery = |expr: &Expr| {
        Ok(matches!(expr, Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_)))
    };
    filter.exists(is_subquery).unwrap_or(true)
}

/// A schema with names in lower case, as SQL reads names without quotes.
pub(super) fn in_lower_case(schema: &Schema) -> SchemaRef {
    let lower = |field: &Arc<Field>| field.as_ref().clone().with_name(field.name().to_lowercase());
    Arc::new(Schema::new(schema.fields().iter().map(lower).collect::<Vec<_>>()))
}

/// The columns of a batch under the names of a schema.
pub(super) fn renamed(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)
        .map_err(|error| SqlError::Internal(error.to_string()))
}
