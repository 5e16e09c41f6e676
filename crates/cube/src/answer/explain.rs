//! How one cell is computed, in words.

use std::fmt::Write;

use super::{AskOptions, Cube, CubeError};
use crate::aggregate::{Progress, work};
use crate::ask::{asked_at, target_name};
use crate::model::{Dimension, ElementId};
use crate::query::{BoundPlace, CubeAxis, Target};
use crate::view::cell_text;

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
        let (cells, refused) = self.aggregate(&asked, options, progress)?;
        let maps: Vec<_> = asked.area.maps_of(measure).into_iter().cloned().collect();
        let counts = work(&self.facts, &maps);
        let definition = &self.model.measures()[measure];
        let value = cells.find(&vec![0; maps.len()]).and_then(|cell| cells.columns()[0].value(cell));
        let mut text = format!(
            "{} = {}\n",
            definition.name,
            value.map_or("empty".to_string(), |value| cell_text(definition, value))
        );
        let rule = self.facts.columns()[measure].measure.rule;
        let _ = write!(text, "  {rule} over {} of {} base cells", counts.relevant_cells, self.facts.len());
        if let Some(over) = &definition.over {
            let _ = write!(text, ", {} over {}", format!("{:?}", over.span).to_lowercase(), over.dimension);
        }
        text.push('\n');
        for place in point {
            if let CubeAxis::Dimension(position) = place.axis {
                self.explain_place(&mut text, &self.model.dimensions()[position], place);
            }
        }
        let report = cells.report();
        let _ = writeln!(text, "Algorithm: {} ({})", report.algorithm, report.reason);
        if let Some(reason) = refused {
            let _ = writeln!(text, "  not on the device: {reason}");
        }
        for prediction in &report.predictions {
            let _ = writeln!(
                text,
                "  {:16} {:>16.0} additions, cost {:.0}",
                prediction.algorithm.name(),
                prediction.additions,
                prediction.cost
            );
        }
        let arithmetic = report.arithmetic.join(", ");
        let _ = writeln!(text, "  done: {} additions in {arithmetic}", report.additions);
        Ok(text)
    }

    fn explain_place(&self, text: &mut String, dimension: &Dimension, place: &BoundPlace) {
        let default = if place.is_default { " (default)" } else { "" };
        let _ = write!(text, "{}: {}{default}", dimension.name(), target_name(dimension, &place.target));
        match &place.target {
            Target::Element(element) => {
                let children = children(dimension, *element);
                let bases = dimension.base_set(*element).len();
                if !children.is_empty() {
                    let _ = write!(text, " = {children}; {bases} base elements below it");
                }
            }
            Target::Sum(elements) => {
                let _ = write!(text, "; {} elements", elements.len());
            }
            Target::Measure(_) => {}
        }
        text.push('\n');
    }
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
        text.push_str(dimension.element(edge.child).name());
    }
    if edges.len() > CHILDREN_MAX {
        let _ = write!(text, " + {} more", edges.len() - CHILDREN_MAX);
    }
    text
}
