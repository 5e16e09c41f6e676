//! Cubes that are asked: the text of a query in, an answer out.
//!
//! [`Cube::ask`] parses and binds a query, aggregates its area and gives an [`Answer`]: aggregated cells as a cross-tab
//! or in long form, base cells as rows, or a text. Rows of the source behind a cell are read by the caller, which has
//! the source: [`Answer::Source`] names the base elements that they belong to.

mod device;
mod explain;
mod long;
mod outlook;
mod relation;
mod rows;
mod shown;

use std::collections::HashMap;
use std::sync::Arc;

pub use long::{LongForm, long_schema};
pub use relation::Relation;
pub use rows::BaseRows;

pub use crate::algorithm::{AlgorithmName, UnknownAlgorithm};
pub use crate::ask::CubeError;

use self::shown::{Rest, shown};
use crate::aggregate::{self, AggregateReport, Area, Cells, Decision, Place, Progress, Request, TARGETS_MAX, Tuning};
use crate::algorithm::DeviceAlgorithm;
use crate::ask::{Asked, CrossTabAnswer, RankedPage, asked, asked_at, cross_tab, placed, ranked};
use crate::facts::Facts;
use crate::model::{CubeModel, ElementId};
use crate::query::{BoundPlace, BoundQuery, BoundTable, bind_with_warnings, parse};

/// Aggregation of an area by other means than the algorithms of the CPU.
pub trait Aggregator: Sync {
    /// The cells of an area by the algorithm named, or by the one that a cost model chooses; or why it cannot aggregate
    /// them.
    ///
    /// # Errors
    /// Those of the aggregation: a final value beyond its type, a wish to stop, a device that fails.
    fn aggregate(
        &self,
        facts: &Facts,
        area: &Area,
        measures: &[usize],
        named: Option<DeviceAlgorithm>,
        progress: &Progress,
    ) -> Result<Result<Cells, String>, CubeError>;

    /// Whether to aggregate an area here, where no algorithm is named; `cpu` gives the milliseconds of the CPU by
    /// estimate.
    fn place(&self, _facts: &Facts, _area: &Area, _measures: &[usize], _cpu: &dyn Fn() -> f64) -> Place {
        Place::on(self.device_name())
    }

    /// The cost model's decision for an area; nothing is loaded for it. Or why it cannot be aggregated here.
    ///
    /// # Errors
    /// A wish to stop, a device that fails.
    fn forecast(
        &self,
        facts: &Facts,
        area: &Area,
        measures: &[usize],
        progress: &Progress,
    ) -> Result<Result<Decision, String>, CubeError>;

    /// The name of the device.
    fn device_name(&self) -> String;
}

/// How a query is answered.
#[derive(Clone, Copy)]
pub struct AskOptions<'a> {
    /// The algorithm. If absent, the device aggregates by the one that its cost model chooses, or else the CPU.
    pub algorithm: Option<AlgorithmName>,
    /// Most targets of an area, filled or not.
    pub targets_max: u64,
    /// The device that aggregates in place of the CPU, unless an algorithm of the CPU is named or the device leaves the
    /// area to the CPU.
    pub device: Option<&'a dyn Aggregator>,
}

impl Default for AskOptions<'_> {
    fn default() -> Self {
        AskOptions { algorithm: None, targets_max: TARGETS_MAX, device: None }
    }
}

/// Texts of cells by the element of each dimension; cells of consolidated elements may have one, too.
pub type Texts = HashMap<Vec<ElementId>, String>;

/// A cube with its cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Cube {
    /// Dimensions and measures.
    pub model: CubeModel,
    /// Filled base cells; their measures are those of the model, in its order.
    pub facts: Arc<Facts>,
    /// Texts of cells.
    pub texts: Texts,
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Aggregated cells.
    Table(Box<TableAnswer>),
    /// Base cells, a row each.
    Rows(BaseRows),
    /// A text of several lines.
    Text(String),
    /// The cell whose source rows are wanted.
    Source(SourceCell),
}

/// Aggregated cells with the query that they answer.
#[derive(Debug, Clone, PartialEq)]
pub struct TableAnswer {
    /// The query.
    pub table: BoundTable,
    /// Its area.
    pub asked: Asked,
    /// The cells of the area.
    pub cells: Cells,
    /// Warnings of names that stand for one of several elements.
    pub warnings: Vec<String>,
    /// The rows that `top` or `bottom` keeps, ranked by their values as a cross-tab shows them: the same in every form.
    ranked: Option<Vec<RankedPage>>,
}

/// The base elements below one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceCell {
    /// Base elements of each dimension, by coordinate; nothing where all of them lie below the cell.
    pub bases: Vec<Option<Vec<u32>>>,
    /// The measure, by position.
    pub measure: usize,
}

impl Cube {
    /// Answers a query.
    ///
    /// # Errors
    /// A text that is no query or names what the cube has not, each with the place; an area beyond the limit; a final
    /// value beyond its type, with the cell; a wish to stop; an algorithm of the device that is named and cannot run.
    pub fn ask(&self, text: &str, options: &AskOptions<'_>, progress: &Progress) -> Result<Answer, CubeError> {
        let of_text = |error: crate::query::QueryError| CubeError::query(&error, text);
        let query = parse(text).map_err(of_text)?;
        let (bound, warnings) = bind_with_warnings(&self.model, &query, text).map_err(of_text)?;
        match bound {
            BoundQuery::CrossTab(table) => {
                let answer = self.table(table, options, progress)?;
                Ok(Answer::Table(Box::new(TableAnswer { warnings, ..answer })))
            }
            BoundQuery::Facts(point) => self.facts_at(&point, progress).map(Answer::Rows),
            BoundQuery::Nearest { count, to } => self.nearest_to(count, &to, progress).map(Answer::Rows),
            BoundQuery::Explain(point) => self.explain(&point, options, progress).map(Answer::Text),
            BoundQuery::Source(point) => self.source_of(&point).map(Answer::Source),
        }
    }

    /// Warnings of names in a query that stand for one of several elements; none for a text that is no query. Those of
    /// a cross-tab are [`TableAnswer::warnings`], too.
    pub fn warnings(&self, text: &str) -> Vec<String> {
        let bound = parse(text).and_then(|query| bind_with_warnings(&self.model, &query, text));
        bound.map_or_else(|_| Vec::new(), |(_, warnings)| warnings)
    }

    fn table(
        &self,
        table: BoundTable,
        options: &AskOptions<'_>,
        progress: &Progress,
    ) -> Result<TableAnswer, CubeError> {
        let asked = asked(&self.model, &table)?;
        let cells = self.aggregate(&asked, options, progress)?;
        let ranked = match &table.extreme {
            None => None,
            Some(extreme) => {
                let shown = shown(self, &asked, cells.clone(), Rest::Digits)?;
                Some(ranked(&table, extreme, &placed(&table, &shown)))
            }
        };
        Ok(TableAnswer { table, asked, cells, warnings: Vec::new(), ranked })
    }

    /// Cells of an area.
    fn aggregate(&self, asked: &Asked, options: &AskOptions<'_>, progress: &Progress) -> Result<Cells, CubeError> {
        let AskOptions { algorithm, targets_max, device } = *options;
        let Asked { area, measures, .. } = asked;
        let of_device = |error| match error {
            CubeError::Aggregate(error) => CubeError::aggregate(error, &self.model, asked),
            error => error,
        };
        area.check(&self.facts, targets_max).map_err(|error| CubeError::aggregate(error, &self.model, asked))?;
        let placed = device.filter(|_| algorithm.is_none()).map(|device| self.place(asked, device));
        let chosen = device.filter(|_| placed.as_ref().is_none_or(|placed| placed.device.is_some()));
        let mut place = placed.unwrap_or_default();
        let named = match (algorithm, chosen) {
            (Some(AlgorithmName::Device(algorithm)), None) => return Err(CubeError::NoDevice { algorithm }),
            (Some(AlgorithmName::Device(algorithm)), Some(device)) => {
                return match device.aggregate(&self.facts, area, measures, Some(algorithm), progress) {
                    Ok(Ok(cells)) => Ok(cells),
                    Ok(Err(reason)) | Err(CubeError::Device(reason)) => Err(CubeError::Refused { algorithm, reason }),
                    Err(error) => Err(of_device(error)),
                };
            }
            (Some(AlgorithmName::Cpu(named)), device) => {
                place.refused = device.map(|_| format!("{named} is an algorithm of the CPU"));
                Some(named)
            }
            (None, Some(device)) => {
                match device.aggregate(&self.facts, area, measures, None, progress).map_err(of_device)? {
                    Ok(cells) => return Ok(cells.placed(place)),
                    Err(reason) => place.refused = Some(reason),
                }
                None
            }
            (None, None) => None,
        };
        let request = Request { algorithm: named, targets_max, tuning: Tuning::default() };
        let cells = aggregate::aggregate(&self.facts, area, measures, &request, progress);
        Ok(cells.map_err(|error| CubeError::aggregate(error, &self.model, asked))?.placed(place))
    }

    /// Where to aggregate an area for which no algorithm is named.
    fn place(&self, asked: &Asked, device: &dyn Aggregator) -> Place {
        let Asked { area, measures, .. } = asked;
        let cpu = || aggregate::forecast(&self.facts, area, measures).map_or(f64::INFINITY, |decision| decision.ms);
        device.place(&self.facts, area, measures, &cpu)
    }

    /// The base elements below a cell.
    fn source_of(&self, point: &[BoundPlace]) -> Result<SourceCell, CubeError> {
        let asked = asked_at(&self.model, point)?;
        let measure = asked.measures.first().copied().unwrap_or_default();
        let maps = asked.area.maps_of(measure);
        let bases = maps.into_iter().zip(self.model.dimensions()).map(|(map, dimension)| {
            let bases: Vec<u32> = (0..map.bases()).filter(|base| !map.targets_of(*base).0.is_empty()).collect();
            let living = (0..dimension.base_count() as u32).filter(|base| dimension.at_base(*base).is_some()).count();
            (bases.len() < living).then_some(bases)
        });
        Ok(SourceCell { bases: bases.collect(), measure })
    }
}

impl TableAnswer {
    /// The cells laid out in pages, rows and columns; doubles without the digits that their terms do not leave.
    ///
    /// # Errors
    /// [`CubeError::Shown`] for a cross-tab that is too large.
    pub fn cross_tab(&self, cube: &Cube) -> Result<CrossTabAnswer, CubeError> {
        let cells = shown(cube, &self.asked, self.cells.clone(), Rest::Digits)?;
        let cross_tab = cross_tab(&cube.model, &self.table, &self.asked, &cells)?;
        Ok(CrossTabAnswer { texts: long::text_targets(cube, self).len() as u64, ..cross_tab })
    }

    /// The filled cells, a row each, with the columns of [`long_schema`]: pages, rows and columns in the order of the
    /// query, rows by value where it asks for top or bottom rows. Batches of `batch_rows` rows are made one by one, so
    /// that the empty cells of a large area take no memory.
    pub fn long_form<'a>(&'a self, cube: &'a Cube, batch_rows: usize) -> LongForm<'a> {
        LongForm::new(cube, self, batch_rows)
    }

    /// The same answer with 0 for sums of doubles that are less than their terms leave, as texts for people have it;
    /// other values keep their bits.
    ///
    /// # Errors
    /// A final value beyond its type.
    pub fn without_rests(self, cube: &Cube) -> Result<TableAnswer, CubeError> {
        let cells = shown(cube, &self.asked, self.cells, Rest::Values)?;
        Ok(TableAnswer { cells, ..self })
    }

    /// The report of the aggregation.
    pub fn report(&self) -> &AggregateReport {
        self.cells.report()
    }
}
