//! `cube('folder', 'query')`: the cells that a query of a cube asks for, as a table.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result as DataFusionResult, ScalarValue};
use datafusion::datasource::TableType;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use warpcube_cube::answer::long_schema;
use warpcube_cube::query::{BoundQuery, bind_with_warnings, parse};

use super::exec::{CubeExec, CubeQuery};
use super::table::in_lower_case;
use super::{Cubes, folder_of};
use crate::error::SqlError;
use crate::settings::Settings;

/// The table function.
#[derive(Debug)]
pub(crate) struct CubeFunction {
    cubes: Arc<Cubes>,
}

impl CubeFunction {
    /// The function's name.
    pub(crate) const NAME: &str = "cube";

    pub(crate) fn new(cubes: Arc<Cubes>) -> CubeFunction {
        CubeFunction { cubes }
    }
}

impl TableFunctionImpl for CubeFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> DataFusionResult<Arc<dyn TableProvider>> {
        let [folder, query] = args.exprs() else { return Err(usage().into()) };
        let (Some(folder), Some(query)) = (text(folder), text(query)) else { return Err(usage().into()) };
        let path = folder_of(&folder).unwrap_or_else(|| PathBuf::from(&folder));
        let open = self.cubes.open(&path, args.session().config_options())?;
        // Names are bound now, so that a wrong query is an error of planning.
        let wrong = |error: warpcube_cube::query::QueryError| SqlError::CubeQuery(error.to_string());
        let bound = parse(&query).and_then(|parsed| bind_with_warnings(&open.cube.model, &parsed, &query));
        let (bound, warnings) = bound.map_err(wrong)?;
        let BoundQuery::CrossTab(table) = bound else {
            let reason = "cube() takes rows, cols and pages; the base cells of a cube are the table of its folder";
            return Err(SqlError::CubeQuery(reason.into()).into());
        };
        let schema = in_lower_case(&long_schema(&open.cube, &table));
        let query = CubeQuery { cubes: self.cubes.clone(), open, text: query, bound: table, schema, warnings };
        Ok(Arc::new(CubeCells { query: Arc::new(query) }))
    }
}

fn usage() -> SqlError {
    SqlError::Planning("cube() takes two texts: the folder of a cube and a query of it".into())
}

fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text), _) => {
            text.clone()
        }
        _ => None,
    }
}

/// The cells of a query, aggregated when they are read.
#[derive(Debug)]
struct CubeCells {
    query: Arc<CubeQuery>,
}

#[async_trait]
impl TableProvider for CubeCells {
    fn schema(&self) -> SchemaRef {
        self.query.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let settings = state.config_options().extensions.get::<Settings>().cloned().unwrap_or_default();
        Ok(Arc::new(CubeExec::new(self.query.clone(), settings, projection)?))
    }
}
