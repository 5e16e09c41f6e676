//! One aggregation on the CPU.

use super::cells::MeasureCells;
use super::component::{ByRank, Component, ComponentSums, Reducer, Summand, measure_cells};
use super::contract::ContractionPlan;
use super::cost::choose;
use super::monoid::{Extreme, Magnitude, Monoid, Narrow, Wide};
use super::request::AggregateReport;
use super::scan::Scan;
use super::sums::Scatter;
use super::{AggregateError, Algorithm, Area, Cells, Decision, Progress, Request, Tuning, target};
use crate::facts::{Facts, Large, Precise, Rule};

/// Sums in 64 bits are proved if their bound is below 2⁶².
const NARROW_MAX: f64 = 4.6e18;
/// Sums in 128 bits are proved if their bound is below 2¹²⁶.
pub(crate) const WIDE_MAX: f64 = 8.5e37;

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
    if let Some(measure) = measures.iter().find(|&&measure| measure >= facts.measures().len()) {
        let reason = format!("the cube has {} measures, number {measure} is asked for", facts.measures().len());
        return Err(AggregateError::Shape { reason });
    }
    let mut run = Run::new(facts, area, measures, request, progress);
    let parts = measures.iter().map(|&measure| measure_cells(&mut run, facts, area, measure));
    let (parts, arithmetic): (Vec<MeasureCells>, _) =
        parts.collect::<Result<Vec<_>, AggregateError>>()?.into_iter().unzip();
    let (decision, additions) = (run.decision.by_name(), Some(run.additions));
    let report = AggregateReport { decision, arithmetic, filled_targets: 0, additions };
    Ok(Cells::new(area.shape(), parts, report))
}

/// The sum of the magnitudes of a measure's terms below each filled target, the rows of cells, by ascending rank; of an
/// AVG their mean.
///
/// # Errors
/// A wish to stop.
pub(crate) fn magnitudes(
    facts: &Facts,
    area: &Area,
    measure: usize,
    progress: &Progress,
) -> Result<ByRank<f64>, AggregateError> {
    let request = Request::default();
    let mut run = Run::new(facts, area, &[measure], &request, progress);
    let mut sums = run.reduce::<Magnitude>(&Component::values(facts, area, measure))?;
    if let Some(cancelled) = Component::cancelled(facts, area, measure) {
        let cancelled = run.reduce::<Magnitude>(&cancelled)?;
        sums.iter_mut().zip(cancelled).for_each(|((_, sum), (_, cancelled))| sum.0 += cancelled.0);
    }
    if facts.measures()[measure].rule == Rule::Avg {
        let counts = run.reduce::<Magnitude>(&Component::counts(facts, area, measure))?;
        sums.iter_mut().zip(counts).for_each(|((_, sum), (_, count))| sum.0 /= count.0);
    }
    Ok(sums.into_iter().map(|(rank, sum)| (rank, sum.0)).collect())
}

/// The decision of the cost model for measures of an area.
///
/// # Errors
/// An area of another cube.
pub fn forecast(facts: &Facts, area: &Area, measures: &[usize]) -> Result<Decision, AggregateError> {
    area.check(facts, u64::MAX)?;
    Ok(decided(facts, area, measures, &Tuning::default()).0.by_name())
}

/// The decision of the cost model by the first measure, and the plan of its contraction: by weights, or by membership
/// alone.
fn decided(
    facts: &Facts,
    area: &Area,
    measures: &[usize],
    tuning: &Tuning,
) -> (Decision<Algorithm>, ContractionPlan, bool) {
    let measure = measures.first().copied().unwrap_or_default();
    let weighted = facts.measures().get(measure).is_some_and(|measure| measure.rule == Rule::Sum);
    let passes = measures.iter().map(|&measure| facts.measures()[measure].rule.passes()).sum();
    let maps = area.maps_of(measure);
    let plan = ContractionPlan::new(&maps, weighted);
    (choose(facts, &maps, &plan, passes, tuning), plan, weighted)
}

/// One aggregation.
struct Run<'a> {
    facts: &'a Facts,
    area: &'a Area,
    request: &'a Request,
    progress: &'a Progress,
    decision: Decision<Algorithm>,
    /// Plans of contraction by the measure whose maps are its own, if any, and by weighting.
    plans: Vec<((Option<usize>, bool), ContractionPlan)>,
    additions: u64,
}

impl<'a> Run<'a> {
    fn new(
        facts: &'a Facts,
        area: &'a Area,
        measures: &[usize],
        request: &'a Request,
        progress: &'a Progress,
    ) -> Run<'a> {
        let mut plans = Vec::new();
        let decision = match request.algorithm {
            Some(algorithm) => Decision::asked_for(algorithm, area.targets()),
            None => {
                let (decision, plan, weighted) = decided(facts, area, measures, &request.tuning);
                let measure = measures.first().copied().unwrap_or_default();
                plans.push(((area.has_own_maps(measure).then_some(measure), weighted), plan));
                decision
            }
        };
        Run { facts, area, request, progress, decision, plans, additions: 0 }
    }

    /// The narrowest exact sums under whole weights; doubles under others.
    fn arithmetic_of(&self, component: &Component<'_>) -> Arithmetic {
        match component.summand {
            Summand::Doubles => return Arithmetic::Precise,
            Summand::Ones | Summand::Counts => return Arithmetic::Narrow,
            // Carries of all cells are at most as many as rows.
            Summand::Decimals if component.is_carries => return Arithmetic::Wide,
            Summand::Decimals => {}
        }
        let maps = component.maps.iter().filter(|_| component.weighted);
        let weights: f64 = maps.clone().map(|map| map.magnitude()).product();
        let bound = self.facts.len() as f64 * self.facts.magnitude(component.measure).max(1.0) * weights;
        match maps.clone().all(|map| map.is_whole()) {
            true if bound < NARROW_MAX => Arithmetic::Narrow,
            true if bound < WIDE_MAX => Arithmetic::Wide,
            _ => Arithmetic::Precise,
        }
    }

    /// Adds up a component by the chosen algorithm.
    fn reduce<M: Monoid>(&mut self, component: &Component<'_>) -> Result<ByRank<M>, AggregateError> {
        let tuning = &self.request.tuning;
        let (sums, additions) = match self.decision.algorithm {
            Algorithm::Contract => {
                let progress = self.progress;
                let (tensor, additions) = self.plan(component).run(component, tuning, progress)?;
                (tensor.into_entries(), additions)
            }
            Algorithm::Target => target::run(component, self.progress)?,
            source => {
                let (units, unit_cells) = (self.facts.pages(), self.facts.page_cells());
                let scatter = Scatter { units, unit_cells, places: self.area.targets() as u64, tuning };
                let scan = Scan::<M>::new(component, &component.matrices::<M>());
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

    fn plan(&mut self, component: &Component<'_>) -> &ContractionPlan {
        let measure = component.measure;
        let key = (self.area.has_own_maps(measure).then_some(measure), component.weighted);
        let place = self.plans.iter().position(|plan| plan.0 == key).unwrap_or_else(|| {
            self.plans.push((key, ContractionPlan::new(&component.maps, component.weighted)));
            self.plans.len() - 1
        });
        &self.plans[place].1
    }
}

impl Reducer for Run<'_> {
    type Error = AggregateError;

    fn sums(&mut self, component: &Component<'_>) -> Result<ComponentSums, AggregateError> {
        Ok(match self.arithmetic_of(component) {
            Arithmetic::Narrow => ComponentSums::Narrow(self.reduce::<Narrow>(component)?),
            Arithmetic::Wide => ComponentSums::Wide(self.reduce::<Wide>(component)?),
            Arithmetic::Precise => {
                let sums = self.reduce::<Precise>(component)?;
                ComponentSums::roomy(sums, || self.reduce::<Large>(component))?
            }
        })
    }

    fn extremes<const GREATEST: bool>(
        &mut self,
        component: &Component<'_>,
    ) -> Result<ByRank<Extreme<GREATEST>>, AggregateError> {
        self.reduce(component)
    }
}

/// Number type of sums.
enum Arithmetic {
    Narrow,
    Wide,
    Precise,
}
