//! Named windows.
//!
//! DataFusion 55.2 reads `OVER w` in select lists alone. Elsewhere it takes the call for an aggregate, and of `OVER (w
//! ORDER BY x)` and `WINDOW v AS (w ORDER BY x)` it forgets `w`, whether there is one or not. Here each name gives its
//! definition to the calls that name it. A window may begin with one that is defined before it; it takes over PARTITION
//! BY, and ORDER BY unless it has one of its own. An offset `INTERVAL 3 DAY` of a frame has its number as a text, which
//! DataFusion takes alone.
//!
//! Invariant: windows are visible in the SELECT that defines them and in its ORDER BY, not in subqueries.
//!
//! The file goes once DataFusion reads names of windows.

use std::mem;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, Ident, NamedWindowDefinition, NamedWindowExpr, Query, Select, SetExpr, Value, WindowFrameBound,
    WindowSpec, WindowType,
};

use super::items::folded;
use crate::error::{Result, SqlError};

/// The windows of the queries and SELECTs around the node that is visited, innermost last.
#[derive(Default)]
pub(super) struct Windows {
    scopes: Vec<Vec<(String, WindowSpec)>>,
}

impl Windows {
    /// Takes the windows from a query's own SELECT: its ORDER BY names them, too.
    ///
    /// # Errors
    /// [`SqlError::Planning`] for a definition that contradicts another.
    pub(super) fn enter_query(&mut self, query: &mut Query) -> Result<()> {
        let defined = match query.body.as_mut() {
            SetExpr::Select(select) => resolved(mem::take(&mut select.named_window))?,
            _ => Vec::new(),
        };
        self.scopes.push(defined);
        Ok(())
    }

    /// Takes the windows from an operand of a set operation; a query's own SELECT has those of the query.
    ///
    /// # Errors
    /// As [`Windows::enter_query`].
    pub(super) fn enter_select(&mut self, select: &mut Select) -> Result<()> {
        let own = mem::take(&mut select.named_window);
        let defined = match own.is_empty() {
            true => self.scopes.last().cloned().unwrap_or_default(),
            false => resolved(own)?,
        };
        self.scopes.push(defined);
        Ok(())
    }

    /// Leaves a query or a SELECT.
    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Puts the definition of a window in the place of its name in a call.
    ///
    /// # Errors
    /// [`SqlError::Planning`] for a window that is not defined, or whose definition contradicts the call's.
    pub(super) fn inline(&self, function: &mut Function) -> Result<()> {
        let known = self.scopes.last().map_or(&[][..], Vec::as_slice);
        match &mut function.over {
            Some(over @ WindowType::NamedWindow(_)) => {
                if let WindowType::NamedWindow(name) = over {
                    *over = WindowType::WindowSpec(found(known, name)?.clone());
                }
            }
            Some(WindowType::WindowSpec(spec)) if spec.window_name.is_some() => extend(known, spec)?,
            _ => {}
        }
        if let Some(WindowType::WindowSpec(WindowSpec { window_frame: Some(frame), .. })) = &mut function.over {
            [Some(&mut frame.start_bound), frame.end_bound.as_mut()].into_iter().flatten().for_each(with_text);
        }
        Ok(())
    }
}

/// Writes the number of an interval in a bound as a text.
fn with_text(bound: &mut WindowFrameBound) {
    let (WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset))) = bound else { return };
    let Expr::Interval(interval) = offset.as_mut() else { return };
    while let Expr::Nested(inner) = interval.value.as_mut() {
        interval.value = mem::replace(inner, Box::new(Expr::value(Value::Null)));
    }
    if let Expr::Value(value) = interval.value.as_mut()
        && let Value::Number(digits, _) = &value.value
    {
        value.value = Value::SingleQuotedString(digits.clone());
    }
}

/// Definitions without names of others in them.
fn resolved(definitions: Vec<NamedWindowDefinition>) -> Result<Vec<(String, WindowSpec)>> {
    let mut known: Vec<(String, WindowSpec)> = Vec::new();
    for NamedWindowDefinition(name, definition) in definitions {
        let name = folded(&name);
        if known.iter().any(|(other, _)| *other == name) {
            return Err(SqlError::Planning(format!("window '{name}' is defined twice")));
        }
        let spec = match definition {
            NamedWindowExpr::NamedWindow(other) => found(&known, &other)?.clone(),
            NamedWindowExpr::WindowSpec(mut spec) => {
                extend(&known, &mut spec)?;
                spec
            }
        };
        known.push((name, spec));
    }
    Ok(known)
}

fn found<'a>(known: &'a [(String, WindowSpec)], name: &Ident) -> Result<&'a WindowSpec> {
    let name = folded(name);
    let spec = known.iter().find(|(other, _)| *other == name).map(|(_, spec)| spec);
    spec.ok_or_else(|| SqlError::Planning(format!("window '{name}' is not defined")))
}

/// Gives a window what it takes over from the one that it begins with.
fn extend(known: &[(String, WindowSpec)], spec: &mut WindowSpec) -> Result<()> {
    let Some(name) = spec.window_name.take() else { return Ok(()) };
    let WindowSpec { window_name: _, partition_by, order_by, window_frame } = found(known, &name)?;
    let contradiction = if !spec.partition_by.is_empty() {
        Some("PARTITION BY is not allowed after")
    } else if !spec.order_by.is_empty() && !order_by.is_empty() {
        Some("a second ORDER BY is not allowed after")
    } else if window_frame.is_some() {
        Some("a frame is not allowed in")
    } else {
        None
    };
    if let Some(contradiction) = contradiction {
        return Err(SqlError::Planning(format!(
            "{contradiction} window '{name}', from which another window is derived"
        )));
    }
    spec.partition_by = partition_by.clone();
    if spec.order_by.is_empty() {
        spec.order_by = order_by.clone();
    }
    Ok(())
}
