//! Statements by the shape of their text: see [`crate::plans`].

use std::sync::Arc;
use std::time::Instant;

use datafusion::common::config::Dialect;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use parking_lot::Mutex;
use tracing::Instrument;

use super::Connection;
use super::kept::number_of;
use super::parsed::resolved;
use crate::error::Result;
use crate::plans::{self, Epoch, Holed, Planned, PlannedShape, Shape};
use crate::report::{Phase, StatementReport};
use crate::rewrite::rewrite;
use crate::syntax;

impl Connection {
    /// The plan of a statement by the shape of its text, and a state to run it with; none where it is to be planned
    /// from its own text.
    pub(super) async fn planned_by_shape(
        &self,
        sql: &str,
        report: &Arc<StatementReport>,
    ) -> Result<Option<(Arc<Planned>, SessionState)>> {
        let basis = self.planner().basis();
        if !basis.open {
            return Ok(None);
        }
        let Some(holed) = plans::holed(sql) else { return Ok(None) };
        let (clock, state) = (Instant::now(), self.lean_state());
        let epoch = self.epoch_of(&state);
        let kept = &self.inner.database.shared.kept;
        let shape = match kept.shapes.get(&holed.text, epoch) {
            Some(Shape::Unfit) => return Ok(None),
            Some(Shape::Planned(shape)) => shape,
            None => {
                // What is wrong with a statement is told by planning it as it is.
                let planned = self.planned_shape(&holed, epoch, report).await.ok().flatten().map(Arc::new);
                let shape = planned.clone().map_or(Shape::Unfit, Shape::Planned);
                kept.shapes.keep(holed.text, epoch, shape);
                let Some(planned) = planned else { return Ok(None) };
                report.note_planned();
                planned
            }
        };
        let Some(values) = shape.values(&holed.constants) else { return Ok(None) };
        if !self.look_at(&shape.tables, &state).await {
            return Ok(None);
        }
        let lowered = match shape.lowered(basis) {
            Some(lowered) => lowered,
            None => {
                let lowered = self.lowered_shape(&shape, epoch).await.ok().flatten().map(Arc::new);
                *shape.lowered.lock() = Some((basis, lowered.clone()));
                lowered
            }
        };
        let Some(lowered) = lowered else { return Ok(None) };
        let Some(planned) = self.planner().filled(&lowered, values)? else { return Ok(None) };
        if !self.is_of_now(epoch) {
            return Ok(None);
        }
        let planned = Arc::new(planned);
        kept.plans.keep(sql, epoch, shape.tables.clone(), &planned);
        report.add_phase(Phase::Optimize, clock.elapsed());
        Ok(Some((planned, state)))
    }

    /// Lowers the plan of a shape, if that gives one fragment with little above it.
    async fn lowered_shape(&self, shape: &PlannedShape, epoch: Epoch) -> Result<Option<Planned>> {
        let (whole, lean) = (self.inner.context.state(), self.lean_state());
        if [&whole, &lean].into_iter().any(|state| number_of(state) != epoch.settings) {
            return Ok(None);
        }
        let planned = self.planner().lower(&shape.optimized, &whole).await?;
        if !planned.is_lean() || !planned.is_one_fragment() {
            return Ok(None);
        }
        // Operators with nothing to optimise are kept with the plan.
        self.planner().physical(&planned, &Arc::new(lean)).await?;
        Ok(planned.operators.get().is_some().then_some(planned))
    }

    /// Plans the text of a shape; none where its statements are to be planned one by one.
    async fn planned_shape(
        &self,
        holed: &Holed,
        epoch: Epoch,
        report: &Arc<StatementReport>,
    ) -> Result<Option<PlannedShape>> {
        let mut state = self.inner.context.state();
        if number_of(&state) != epoch.settings {
            return Ok(None);
        }
        let parser = &state.config_options().sql_parser;
        if parser.dialect != Dialect::Generic {
            return Ok(None);
        }
        let has_decimals = parser.parse_float_as_decimal;
        state.config_mut().set_extension(report.clone());
        let parsed =
            syntax::parse(&state, &holed.text).instrument(tracing::info_span!("parse")).await.and_then(rewrite)?;
        let is_query =
            matches!(&parsed, ParsedStatement::Statement(statement) if matches!(**statement, SqlStatement::Query(_)));
        if !is_query {
            return Ok(None);
        }
        let references = state.resolve_table_references(&parsed)?;
        let plan = state.statement_to_plan(parsed).instrument(tracing::info_span!("plan")).await?;
        let Some(types) = plans::parameters(&plan, holed.constants.len())? else { return Ok(None) };
        if !plans::is_template(&plan)? || !self.is_of_now(epoch) {
            return Ok(None);
        }
        let optimized = tracing::info_span!("optimize").in_scope(|| state.optimize(&plan))?;
        if !plans::tells_changes(&optimized, &self.inner.database.shared.catalogs)? {
            return Ok(None);
        }
        let (tables, lowered) = (resolved(references.into_iter(), &state), Mutex::default());
        Ok(Some(PlannedShape { optimized, types, tables, has_decimals, lowered }))
    }
}
