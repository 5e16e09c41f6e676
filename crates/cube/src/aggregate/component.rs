//! Measures as components that algorithms add up, and back to final values.
//!
//! SUM is one weighted component; COUNT, MIN and MAX are one by membership; AVG is a sum and a count by membership.

use super::area::tuple;
use super::cells::MeasureCells;
use super::contract::Plan;
use super::cost::{Choice, choose};
use super::monoid::{Extreme, Monoid, Narrow, Wide};
use super::request::Report;
use super::scan::{Scan, Source};
use super::sums::Scatter;
use super::{
    AggregateError, Algorithm, Area, CellColumn, Cells, Prediction, Progress, Request, TargetMap, Tuning, target,
};
use crate::facts::{Bitmap, FactColumn, Facts, Precise, Rule, ValueType, Values};
use crate::matrix::SparseMatrix;

/// Sums in 64 bits are proved if their bound is below 2⁶².
const NARROW_MAX: f64 = 4.6e18;
/// Sums in 128 bits are proved if their bound is below 2¹²⁶.
const WIDE_MAX: f64 = 8.5e37;

/// What is added up for a measure.
pub(crate) struct Component<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) source: Source<'a>,
    /// Cells with a value; absent if all have one.
    pub(crate) filled: Option<&'a Bitmap>,
    pub(crate) maps: Vec<&'a TargetMap>,
    /// True if weights count; otherwise membership alone.
    weighted: bool,
}

impl Component<'_> {
    /// The map of each dimension with weights of a monoid.
    pub(crate) fn matrices<M: Monoid>(&self) -> Vec<SparseMatrix<M::Weight>> {
        let weight = |weight| if self.weighted { M::weight(weight) } else { M::UNIT };
        self.maps.iter().map(|map| map.matrix.with_weights(weight)).collect()
    }
}

/// Aggregates `measures` (numbers of the facts' measures) over the targets of an area.
///
/// The result holds filled targets alone, sorted by target. AVG gives doubles, other rules the type of the measure.
/// Runs on all cores of the current rayon pool, except for [`Algorithm::Source`].
///
/// # Errors
/// An area of another cube or of more targets than the request allows, both before memory is taken; a final value
/// beyond its type; a wish to stop.
pub fn aggregate(
    facts: &Facts,
    area: &Area,
    measures: &[usize],
    request: &Request,
    progress: &Progress,
) -> Result<Cells, AggregateError> {
    area.check(facts, request.targets_max)?;
    if let Some(measure) = measures.iter().find(|&&measure| measure >= facts.columns().len()) {
        let reason = format!("the cube has {} measures, number {measure} is asked for", facts.columns().len());
        return Err(AggregateError::Shape { reason });
    }
    let mut run = Run::new(facts, area, measures, request, progress);
    let parts = measures.iter().map(|&measure| run.measure(measure));
    let parts: Vec<MeasureCells> = parts.collect::<Result<_, _>>()?;
    let Choice { algorithm, reason, predictions } = run.choice;
    let report = Report {
        algorithm: algorithm.to_string(),
        device: None,
        reason,
        predictions,
        arithmetic: run.arithmetic,
        targets: area.targets() as u64,
        filled_targets: 0,
        additions: Some(run.additions),
    };
    Ok(Cells::new(area.shape(), parts, report))
}

/// What the cost model says of the CPU's algorithms for one measure of an area.
///
/// # Errors
/// An area of another cube.
pub fn predict(facts: &Facts, area: &Area, measure: usize) -> Result<Vec<Prediction>, AggregateError> {
    area.check(facts, u64::MAX)?;
    Ok(chosen(facts, area, measure, &Tuning::default()).0.predictions)
}

/// The choice of the cost model for one measure, and the plan of its contraction: by weights, or by membership alone.
fn chosen(facts: &Facts, area: &Area, measure: usize, tuning: &Tuning) -> (Choice, Plan, bool) {
    let weighted = facts.columns().get(measure).is_some_and(|column| column.measure.rule == Rule::Sum);
    let maps = area.maps_of(measure);
    let plan = Plan::new(&maps, weighted);
    (choose(facts, &maps, &plan, tuning), plan, weighted)
}

/// One aggregation.
struct Run<'a> {
    facts: &'a Facts,
    area: &'a Area,
    request: &'a Request,
    progress: &'a Progress,
    choice: Choice,
    /// Plans of contraction by the measure whose maps are its own, if any, and by weighting.
    plans: Vec<((Option<usize>, bool), Plan)>,
    arithmetic: Vec<&'static str>,
    additions: u64,
}

/// Sums by rank.
type Sums<M> = Vec<(u64, M)>;

impl<'a> Run<'a> {
    fn new(
        facts: &'a Facts,
        area: &'a Area,
        measures: &[usize],
        request: &'a Request,
        progress: &'a Progress,
    ) -> Run<'a> {
        let mut plans = Vec::new();
        let choice = match request.algorithm {
            Some(algorithm) => Choice::named(algorithm),
            None => {
                let measure = measures.first().copied().unwrap_or_default();
                let (choice, plan, weighted) = chosen(facts, area, measure, &request.tuning);
                plans.push(((area.has_own_maps(measure).then_some(measure), weighted), plan));
                choice
            }
        };
        Run { facts, area, request, progress, choice, plans, arithmetic: Vec::new(), additions: 0 }
    }

    fn measure(&mut self, measure: usize) -> Result<MeasureCells, AggregateError> {
        let column = &self.facts.columns()[measure];
        let (values, ranks, arithmetic) = match column.measure.rule {
            Rule::Sum => self.sum(measure)?,
            Rule::Count => self.count(measure)?,
            Rule::Avg => self.average(measure)?,
            Rule::Min => self.extreme::<false>(measure)?,
            Rule::Max => self.extreme::<true>(measure)?,
        };
        self.arithmetic.push(arithmetic);
        let value_type = if column.measure.rule == Rule::Avg { ValueType::Double } else { column.measure.value_type };
        let column = CellColumn { measure, name: column.measure.name.clone(), value_type, values, filled: None };
        Ok(MeasureCells { column, ranks })
    }

    fn sum(&mut self, measure: usize) -> Result<(Values, Vec<u64>, &'static str), AggregateError> {
        let component = self.component(measure, source(&self.facts.columns()[measure]), true);
        let is_double = matches!(self.facts.columns()[measure].values, Values::Doubles(_));
        match self.arithmetic_of(measure, &component) {
            _ if is_double => {
                let sums = self.reduce::<Precise>(measure, &component)?;
                self.finish(measure, sums, "doubles", "the largest double", double, Values::Doubles)
            }
            Arithmetic::Narrow => {
                let sums = self.reduce::<Narrow>(measure, &component)?;
                self.finish(measure, sums, "64 bits", "64 bits", |sum| Ok(sum.0), Values::Decimals)
            }
            Arithmetic::Wide => {
                let sums = self.reduce::<Wide>(measure, &component)?;
                let fits = |sum: Wide| i64::try_from(sum.0).map_err(|_| sum.0.to_string());
                self.finish(measure, sums, "128 bits", "64 bits", fits, Values::Decimals)
            }
            Arithmetic::Precise => {
                let sums = self.reduce::<Precise>(measure, &component)?;
                let rounded = |sum: Precise| sum.to_i64().ok_or_else(|| sum.text());
                self.finish(measure, sums, "doubles, rounded once", "64 bits", rounded, Values::Decimals)
            }
        }
    }

    fn count(&mut self, measure: usize) -> Result<(Values, Vec<u64>, &'static str), AggregateError> {
        let component = self.component(measure, source(&self.facts.columns()[measure]), false);
        let sums = self.reduce::<Narrow>(measure, &component)?;
        self.finish(measure, sums, "64 bits", "64 bits", |sum| Ok(sum.0), Values::Decimals)
    }

    fn average(&mut self, measure: usize) -> Result<(Values, Vec<u64>, &'static str), AggregateError> {
        let column = &self.facts.columns()[measure];
        let scale = if let ValueType::Decimal { scale } = column.measure.value_type { scale } else { 0 };
        let counts = column.counts.as_deref().map_or(Source::Ones, Source::Counts);
        let counts = self.reduce::<Narrow>(measure, &self.component(measure, counts, false))?;
        let component = self.component(measure, source(column), false);
        let (sums, arithmetic): (Sums<f64>, _) = match &column.values {
            Values::Doubles(_) => (of(self.reduce::<Precise>(measure, &component)?, Precise::to_f64), "doubles"),
            Values::Decimals(_) => (of(self.reduce::<Wide>(measure, &component)?, |sum| sum.0 as f64), "128 bits"),
        };
        let unit = 10_f64.powi(scale.into());
        let averages =
            sums.into_iter().zip(counts).map(|((rank, sum), (_, rows))| (rank, sum / (rows.0 as f64 * unit)));
        let finite = |average: f64| if average.is_finite() { Ok(average) } else { Err("a number".to_string()) };
        self.finish(measure, averages.collect(), arithmetic, "the largest double", finite, Values::Doubles)
    }

    fn extreme<const GREATEST: bool>(
        &mut self,
        measure: usize,
    ) -> Result<(Values, Vec<u64>, &'static str), AggregateError> {
        let column = &self.facts.columns()[measure];
        let component = self.component(measure, source(column), false);
        let sums = self.reduce::<Extreme<GREATEST>>(measure, &component)?;
        match column.values {
            Values::Decimals(_) => {
                self.finish(measure, sums, "64 bits", "64 bits", |value| Ok(value.decimal()), Values::Decimals)
            }
            Values::Doubles(_) => {
                self.finish(measure, sums, "doubles", "doubles", |value| Ok(value.double()), Values::Doubles)
            }
        }
    }

    fn component(&self, measure: usize, source: Source<'a>, weighted: bool) -> Component<'a> {
        let filled = self.facts.columns()[measure].filled.as_ref();
        Component { facts: self.facts, source, filled, maps: self.area.maps_of(measure), weighted }
    }

    /// The narrowest exact sums under whole weights; doubles under others.
    fn arithmetic_of(&self, measure: usize, component: &Component<'_>) -> Arithmetic {
        let weights: f64 = component.maps.iter().map(|map| map.magnitude()).product();
        let bound = self.facts.len() as f64 * self.facts.magnitude(measure).max(1.0) * weights;
        match component.maps.iter().all(|map| map.is_whole()) {
            true if bound < NARROW_MAX => Arithmetic::Narrow,
            true if bound < WIDE_MAX => Arithmetic::Wide,
            _ => Arithmetic::Precise,
        }
    }

    /// Adds up a component by the chosen algorithm.
    fn reduce<M: Monoid>(&mut self, measure: usize, component: &Component<'_>) -> Result<Sums<M>, AggregateError> {
        let tuning = &self.request.tuning;
        let (sums, additions) = match self.choice.algorithm {
            Algorithm::Contract => {
                let progress = self.progress;
                let (tensor, additions) = self.plan(measure, component).run(component, tuning, progress)?;
                (tensor.into_entries(), additions)
            }
            Algorithm::Target => target::run(component, self.progress)?,
            source => {
                let pages = self.facts.pages();
                let (units, unit_cells) = (pages.len(), pages.page_cells());
                let scatter = Scatter { units, unit_cells, places: self.area.targets() as u64, tuning };
                let scan = Scan::<M>::new(self.facts, component.source, component.filled, &component.matrices::<M>());
                self.progress.expect(units as u64);
                let work = |pages, sums: &mut _| scan.run(pages, sums, self.progress);
                let (tensor, additions) = match source {
                    Algorithm::Source => scatter.sequential(work)?,
                    _ => scatter.parallel(work)?,
                };
                (tensor.into_entries(), additions)
            }
        };
        self.additions += additions;
        Ok(sums)
    }

    fn plan(&mut self, measure: usize, component: &Component<'_>) -> &Plan {
        let key = (self.area.has_own_maps(measure).then_some(measure), component.weighted);
        let place = self.plans.iter().position(|plan| plan.0 == key).unwrap_or_else(|| {
            self.plans.push((key, Plan::new(&component.maps, component.weighted)));
            self.plans.len() - 1
        });
        &self.plans[place].1
    }

    /// Final values; the first target whose value does not fit is an error.
    fn finish<M, T>(
        &self,
        measure: usize,
        sums: Sums<M>,
        arithmetic: &'static str,
        limit: &'static str,
        value: impl Fn(M) -> Result<T, String>,
        values: impl Fn(Vec<T>) -> Values,
    ) -> Result<(Values, Vec<u64>, &'static str), AggregateError> {
        let (mut ranks, mut finals) = (Vec::with_capacity(sums.len()), Vec::with_capacity(sums.len()));
        for (rank, sum) in sums {
            ranks.push(rank);
            finals.push(value(sum).map_err(|value| AggregateError::Overflow {
                target: tuple(&self.area.shape(), rank),
                measure: self.facts.columns()[measure].measure.name.clone(),
                value,
                limit,
            })?);
        }
        Ok((values(finals), ranks, arithmetic))
    }
}

/// Number type of a weighted sum of decimals.
enum Arithmetic {
    Narrow,
    Wide,
    Precise,
}

fn source(column: &FactColumn) -> Source<'_> {
    match &column.values {
        Values::Decimals(values) => Source::Decimals(values),
        Values::Doubles(values) => Source::Doubles(values),
    }
}

fn double(sum: Precise) -> Result<f64, String> {
    let value = sum.to_f64();
    if value.is_finite() { Ok(value) } else { Err(sum.text()) }
}

fn of<M, T>(sums: Sums<M>, value: impl Fn(M) -> T) -> Sums<T> {
    sums.into_iter().map(|(rank, sum)| (rank, value(sum))).collect()
}
