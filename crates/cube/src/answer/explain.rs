//! How one cell is computed, in words.

use std::fmt::Write;

use super::shown::{Rest, shown};
use super::{AskOptions, Cube, CubeError};
use crate::aggregate::{Cells, Progress, cells_below, forecast};
use crate::ask::{Asked, asked_at, place_format, target_name};
use crate::model::{Dimension, ElementId};
use crate::query::{BoundPlace, CubeAxis, Target};
use crate::view::{cell_text, visible};

/// Children of an element that are listed.
const CHILDREN_MAX: usize = 8;

impl Cube {
    /// The cell with its value, what each dimension contributes, and how it was aggregated.
    pub(super) fn explain(
        &self,
        point: &[BoundPlace],
        options: &AskOptions<'_>,
        progress: &Progress,
    ) -> Result<String, CubeError> {
        let asked = asked_at(&self.model, point)?;
        let measure = asked.measures.first().copied().unwrap_or_default();
        let cells = self.aggregate(&asked, options, progress)?;
        let maps: Vec<_> = asked.area.maps_of(measure).into_iter().cloned().collect();
        let below = cells_below(&self.facts, &maps, measure);
        let filled = self.facts.filled(measure);
        let definition = &self.model.measures()[measure];
        let cells = shown(self, &asked, cells, Rest::Digits)?;
        let value = cells.find(&vec![0; maps.len()]).and_then(|cell| cells.columns()[0].value(cell));
        let format = place_format(&self.model, point);
        let mut text = format!(
            "{} = {}\n",
            visible(&definition.name),
            value.map_or("empty".to_string(), |value| cell_text(definition, format.as_ref(), value))
        );
        let rule = self.facts.measures()[measure].rule;
        let _ = write!(text, "  {rule} over {below} of {filled} base cells");
        if let Some(over) = &definition.over {
            let _ = write!(text, ", {} over {}", over.span, visible(&over.dimension));
        }
        text.push('\n');
        for place in point {
            if let CubeAxis::Dimension(position) = place.axis {
                self.explain_place(&mut text, &self.model.dimensions()[position], place);
            }
        }
        self.explain_algorithm(&mut text, &asked, measure, &cells)?;
        if let Some(reason) = &cells.report().decision.place.refused {
            let _ = writeln!(text, "  not on the device: {reason}");
        }
        Ok(text)
    }

    /// The algorithm that ran, and what cost models say of all: those of the device where it ran, and those of the CPU.
    fn explain_algorithm(
        &self,
        text: &mut String,
        asked: &Asked,
        measure: usize,
        cells: &Cells,
    ) -> Result<(), CubeError> {
        let report = cells.report();
        let mut decision = report.decision.clone();
        if decision.place.device.is_some() || decision.predicted.is_empty() {
            let of_cpu = forecast(&self.facts, &asked.area, &[measure]);
            let of_cpu = of_cpu.map_err(|error| CubeError::aggregate(error, &self.model, asked))?;
            decision.predicted.extend(of_cpu.predicted);
        }
        text.push_str(&decision.explained());
        let arithmetic = report.arithmetic.join(", ");
        let _ = match report.additions {
            Some(additions) => writeln!(text, "  done: {additions} additions in {arithmetic}"),
            None => writeln!(text, "  done in {arithmetic}"),
        };
        Ok(())
    }

    fn explain_place(&self, text: &mut String, dimension: &Dimension, place: &BoundPlace) {
        let default = if place.is_default { " (default)" } else { "" };
        let (name, target) = (visible(dimension.name()), target_name(dimension, &place.target));
        let _ = write!(text, "{name}: {}{default}", visible(&target));
        match &place.target {
            Target::Element(element) => {
                let children = children(dimension, *element);
                let bases = dimension.base_set(*element).len();
                if !children.is_empty() {
                    let _ = write!(text, " = {children}; {bases} base element{} below it", plural(bases));
                }
            }
            Target::Sum(elements) => {
                let _ = write!(text, "; {} element{}", elements.len(), plural(elements.len()));
            }
            Target::Measure(_) => {}
        }
        text.push('\n');
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The children of an element with their weights: `Actual − Budget`.
fn children(dimension: &Dimension, element: ElementId) -> String {
    let edges = dimension.element(element).children();
    let mut text = String::new();
    for (number, edge) in edges.iter().take(CHILDREN_MAX).enumerate() {
        let sign = match (number, edge.weight < 0.0) {
            (0, false) => "",
            (0, true) => "−",
            (_, false) => " + ",
            (_, true) => " − ",
        };
        text.push_str(sign);
        if edge.weight.abs() != 1.0 {
            let _ = write!(text, "{} × ", edge.weight.abs());
        }
        text.push_str(&visible(dimension.element(edge.child).name()));
    }
    if edges.len() > CHILDREN_MAX {
        let _ = write!(text, " + {} more", edges.len() - CHILDREN_MAX);
    }
    text
}
