//! Statements by the shape of their text: see [`crate::plans`].

use std::sync::Arc;
use std::time::Instant;

use datafusion::common::config::Dialect;
use datafusion::common::{ScalarValue, TableReference};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use tracing::Instrument;

use super::Connection;
use super::cached_plans::number_of;
use super::parsed::resolved;
use crate::error::Result;
use crate::plans::{self, Epoch, Holed, Planned, PlannedShape, Shape, Template};
use crate::report::{Phase, StatementReport};
use crate::rewrite::rewrite;
use crate::syntax::{self, Again};

impl Connection {
    /// The plan of a statement by the shape of its text, and a state to run it with; none where it is to be planned
    /// from its own text.
    pub(super) async fn planned_by_shape(
        &self,
        sql: &str,
        report: &Arc<StatementReport>,
    ) -> Result<Option<(Arc<Planned>, SessionState)>> {
        let Some(mut holed) = plans::holed(sql) else { return Ok(None) };
        let (clock, state) = (Instant::now(), self.lean_state());
        let epoch = self.epoch_of(&state);
        let kept = &self.inner.database.shared.kept;
        let shape = loop {
            let shape = match kept.shapes.get(&holed.text, epoch) {
                Some(shape) => shape,
                None => {
                    // What is wrong with a statement is told by planning it as it is.
                    let shape = self.shape_of(&holed, epoch, report).await.unwrap_or(Shape::Unfit);
                    kept.shapes.keep(holed.text.clone(), epoch, shape.clone());
                    if matches!(shape, Shape::Planned(_)) {
                        report.note_planned();
                    }
                    shape
                }
            };
            holed = match shape {
                Shape::Planned(shape) => break shape,
                Shape::Narrower(fits) => match holed.narrowed(sql, &fits) {
                    Some(narrowed) => narrowed,
                    None => return Ok(None),
                },
                Shape::Unfit => return Ok(None),
            };
        };
        let Some(values) = shape.values(&holed.constants) else { return Ok(None) };
        if !self.look_at(&shape.tables, &state).await {
            return Ok(None);
        }
        let planned = self.planned_by_template(&shape.template, values, epoch, report).await.ok().flatten();
        let Some((planned, state)) = planned.filter(|_| self.is_of_now(epoch)) else { return Ok(None) };
        kept.plans.keep(sql, epoch, shape.tables.clone(), &planned);
        report.add_phase(Phase::Optimize, clock.elapsed());
        Ok(Some((planned, state)))
    }

    /// The plan of a template with values, lowered, and a state to run it with; none where the settings are others by
    /// now.
    pub(super) async fn planned_by_template(
        &self,
        template: &Template,
        values: Vec<ScalarValue>,
        epoch: Epoch,
        report: &Arc<StatementReport>,
    ) -> Result<Option<(Arc<Planned>, SessionState)>> {
        let (basis, lean) = (self.planner().basis(), self.lean_state());
        if number_of(&lean) != epoch.settings {
            return Ok(None);
        }
        let lowered = match template.lowered(basis) {
            Some(lowered) => lowered,
            None => {
                let lowered = self.lowered_template(template, &lean).await.ok().flatten().map(Arc::new);
                template.keep(basis, lowered.clone());
                lowered
            }
        };
        let filled = lowered.map(|lowered| self.planner().filled(&lowered, &values)).transpose()?.flatten();
        let filled = match filled {
            Some(planned) if planned.is_lean() => return Ok(Some((Arc::new(planned), lean))),
            filled => filled,
        };
        let mut state = self.inner.context.state();
        if number_of(&state) != epoch.settings {
            return Ok(None);
        }
        if let Some(planned) = filled {
            return Ok(Some((Arc::new(planned), state)));
        }
        state.config_mut().set_extension(report.clone());
        let plan = tracing::info_span!("template").in_scope(|| template.with_values(values, &state))?;
        Ok(Some((Arc::new(self.planner().lower(&plan, &state).await?), state)))
    }

    /// Lowers the plan of a template with its parameters, if nothing of it is kept from the device.
    async fn lowered_template(&self, template: &Template, lean: &SessionState) -> Result<Option<Planned>> {
        let whole = self.inner.context.state();
        if number_of(&whole) != number_of(lean) {
            return Ok(None);
        }
        let planned = self.planner().lower(&template.optimized, &whole).await?;
        if !planned.is_for_device() {
            return Ok(None);
        }
        if planned.is_lean() && planned.is_one_fragment() {
            // Operators with nothing to optimise are kept with the plan.
            self.planner().physical(&planned, &Arc::new(lean.clone())).await?;
        }
        Ok(Some(planned))
    }

    /// Plans the text of a shape.
    async fn shape_of(&self, holed: &Holed, epoch: Epoch, report: &Arc<StatementReport>) -> Result<Shape> {
        let mut state = self.inner.context.state();
        if number_of(&state) != epoch.settings {
            return Ok(Shape::Unfit);
        }
        let parser = &state.config_options().sql_parser;
        if parser.dialect != Dialect::Generic {
            return Ok(Shape::Unfit);
        }
        let has_decimals = parser.parse_float_as_decimal;
        state.config_mut().set_extension(report.clone());
        let mut again: Option<Again> = None;
        let (plan, tables) = loop {
            let reading = again.as_ref().map_or(&state, |again| &again.state);
            match Box::pin(self.query_of_shape(reading, &holed.text)).await {
                Ok(Some(planned)) if !report.is_read_to_plan() => break planned,
                Ok(_) => return Ok(Shape::Unfit),
                Err(error) => again = Some(syntax::again(&state, &holed.text, again.take(), error).await?),
            }
        };
        let types = plans::parameters(&plan, holed.constants.len())?;
        let fits: Vec<bool> = types.iter().map(Option::is_some).collect();
        if fits.iter().any(|fits| !fits) {
            return Ok(Shape::Narrower(fits.into()));
        }
        let types = types.into_iter().flatten().collect();
        if !plans::is_template(&plan)? || !self.is_of_now(epoch) {
            return Ok(Shape::Unfit);
        }
        let optimized = tracing::info_span!("optimize").in_scope(|| state.optimize(&plan))?;
        let template = Template::new(optimized, true, &self.inner.database.shared.catalogs)?;
        if !template.tells_changes {
            return Ok(Shape::Unfit);
        }
        Ok(Shape::Planned(Arc::new(PlannedShape { template, types, tables, has_decimals })))
    }
    /// The plan of a query and the tables that it names; none of other statements, and of tables that are not there.
    async fn query_of_shape(
        &self,
        state: &SessionState,
        sql: &str,
    ) -> Result<Option<(LogicalPlan, Arc<[TableReference]>)>> {
        let parsed = syntax::parse(state, sql).instrument(tracing::info_span!("parse")).await.and_then(rewrite)?;
        let is_query =
            matches!(&parsed, ParsedStatement::Statement(statement) if matches!(**statement, SqlStatement::Query(_)));
        if !is_query {
            return Ok(None);
        }
        let tables = resolved(state.resolve_table_references(&parsed)?.into_iter(), state);
        // Files that are named by their paths change without a trace in the generation.
        if !self.look_at(&tables, state).await {
            return Ok(None);
        }
        let plan = state.statement_to_plan(parsed).instrument(tracing::info_span!("plan")).await?;
        Ok(Some((plan, tables)))
    }
}
