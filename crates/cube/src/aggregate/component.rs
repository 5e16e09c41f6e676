//! Measures as components that are added up, and back to final values.
//!
//! SUM is one weighted component; COUNT, MIN and MAX are one by membership; AVG is a sum and a count by membership. A
//! [`Reducer`] adds components up; final values are made of them in the same way for all reducers. Rules of
//! consolidated cells (margin % = margin ÷ revenue) are not built; they belong here, as one more way to make final
//! values of the components of several measures.

use super::area::tuple;
use super::cells::MeasureCells;
use super::monoid::{Extreme, Monoid, Narrow, Wide};
use super::source::Source;
use super::{AggregateError, Area, CellColumn, TargetMap};
use crate::facts::{Bitmap, FactMeasure, Facts, Large, Precise, Rule, Segment, ValueType, Values};
use crate::matrix::SparseMatrix;

/// The components of a measure.
pub(crate) struct Component<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) measure: usize,
    pub(crate) summand: Summand,
    /// The values of each segment of the facts.
    pub(crate) parts: Vec<Part<'a>>,
    pub(crate) maps: Vec<&'a TargetMap>,
    /// True if weights count; otherwise membership alone.
    pub(crate) weighted: bool,
    /// True if the source has the carries of the measure's sums, whose bound is not that of its values.
    pub(crate) is_carries: bool,
}

/// What a component adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Summand {
    Decimals,
    Doubles,
    /// Numbers of rows, of which a cell has several.
    Counts,
    /// One a cell.
    Ones,
}

/// The values of a component in a segment.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) source: Source<'a>,
    /// Live cells with a value; absent if all are.
    pub(crate) filled: Option<&'a Bitmap>,
}

impl<'a> Component<'a> {
    /// The stored values of a measure.
    pub(crate) fn values(facts: &'a Facts, area: &'a Area, measure: usize) -> Component<'a> {
        let summand = match facts.base().columns()[measure].values {
            Values::Decimals(_) => Summand::Decimals,
            Values::Doubles(_) => Summand::Doubles,
        };
        Component::of(facts, area, measure, summand, |segment| match &segment.columns()[measure].values {
            Values::Decimals(values) => Source::Decimals(values),
            Values::Doubles(values) => Source::Doubles(values),
        })
    }

    /// The rows of an AVG.
    pub(crate) fn counts(facts: &'a Facts, area: &'a Area, measure: usize) -> Component<'a> {
        let summand = if facts.has_counts(measure) { Summand::Counts } else { Summand::Ones };
        Component::of(facts, area, measure, summand, |segment| {
            segment.columns()[measure].counts.as_deref().map_or(Source::Each(1), Source::Counts)
        })
    }

    /// The carries of an AVG's sums, if it has any.
    pub(crate) fn carries(facts: &'a Facts, area: &'a Area, measure: usize) -> Option<Component<'a>> {
        let component = || {
            Component::of(facts, area, measure, Summand::Decimals, |segment| {
                segment.carries(measure).map_or(Source::Each(0), Source::Decimals)
            })
        };
        facts.has_carries(measure).then(|| Component { is_carries: true, ..component() })
    }

    /// What the rows of cells cancelled, if they did.
    pub(crate) fn cancelled(facts: &'a Facts, area: &'a Area, measure: usize) -> Option<Component<'a>> {
        let component = || {
            Component::of(facts, area, measure, Summand::Doubles, |segment| {
                segment.cancelled(measure).map_or(Source::Each(0), Source::Doubles)
            })
        };
        facts.has_cancelled(measure).then(component)
    }

    fn of(
        facts: &'a Facts,
        area: &'a Area,
        measure: usize,
        summand: Summand,
        source: impl Fn(&'a Segment) -> Source<'a>,
    ) -> Component<'a> {
        let part = |segment: &'a Segment| Part {
            segment,
            source: source(segment),
            filled: segment.columns()[measure].filled.as_ref(),
        };
        let parts = facts.segments().iter().map(|segment| part(segment)).collect();
        let (weighted, maps) = (facts.measures()[measure].rule == Rule::Sum, area.maps_of(measure));
        Component { facts, measure, summand, parts, maps, weighted, is_carries: false }
    }

    /// True if the stored values are added up, not rows.
    pub(crate) fn is_values(&self) -> bool {
        matches!(self.summand, Summand::Decimals | Summand::Doubles)
    }

    /// The map of each dimension with weights of a monoid.
    pub(crate) fn matrices<M: Monoid>(&self) -> Vec<SparseMatrix<M::Weight>> {
        let weight = |weight| if self.weighted { M::weight(weight) } else { M::UNIT };
        self.maps.iter().map(|map| map.matrix.with_weights(weight)).collect()
    }
}

/// Values by rank, ascending.
pub(crate) type ByRank<M> = Vec<(u64, M)>;

/// Sums of a component in the narrowest arithmetic that holds them.
pub(crate) enum ComponentSums {
    /// Whole numbers whose bound fits 64 bits.
    Narrow(ByRank<Narrow>),
    /// Whole numbers whose bound fits 128 bits.
    Wide(ByRank<Wide>),
    /// Sums of doubles, or under weights that are not whole.
    Precise(ByRank<RoomySum>),
}

/// A sum of doubles.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RoomySum {
    /// All sums on its way are doubles.
    Precise(Precise),
    /// One sum on its way, which depends on the algorithm, or this one passes the largest double.
    Large(Large),
}

/// Adds up components: by an algorithm of the CPU, or on a device.
pub(crate) trait Reducer {
    /// Its error.
    type Error: From<AggregateError>;

    /// The sums of all filled targets.
    fn sums(&mut self, component: &Component<'_>) -> Result<ComponentSums, Self::Error>;

    /// The least or greatest values of all filled targets.
    fn extremes<const GREATEST: bool>(
        &mut self,
        component: &Component<'_>,
    ) -> Result<ByRank<Extreme<GREATEST>>, Self::Error>;
}

/// The cells of one measure, and the arithmetic of its sums.
///
/// # Errors
/// Those of the reducer; a final value beyond its type.
pub(crate) fn measure_cells<R: Reducer>(
    reducer: &mut R,
    facts: &Facts,
    area: &Area,
    measure: usize,
) -> Result<(MeasureCells, &'static str), R::Error> {
    let (definition, values) = (&facts.measures()[measure], Component::values(facts, area, measure));
    // Read for few measures alone, since it goes through all weights.
    let largest =
        || facts.magnitude(measure) * area.maps_of(measure).iter().map(|map| map.magnitude()).product::<f64>();
    let is_double = values.summand == Summand::Doubles;
    let finish = Finish { measure: definition, is_double, shape: area.shape(), largest: &largest };
    let (values, ranks, arithmetic) = match definition.rule {
        Rule::Sum | Rule::Count => finish.sums(reducer.sums(&values)?)?,
        Rule::Avg => {
            let counts = reducer.sums(&Component::counts(facts, area, measure))?;
            let sums = reducer.sums(&values)?;
            let sums = match Component::carries(facts, area, measure) {
                Some(carries) => sums.with_carries(reducer.sums(&carries)?),
                None => sums,
            };
            finish.averages(sums, counts)?
        }
        Rule::Min => finish.extremes(reducer.extremes::<false>(&values)?)?,
        Rule::Max => finish.extremes(reducer.extremes::<true>(&values)?)?,
    };
    let value_type = if definition.rule == Rule::Avg { ValueType::Double } else { definition.value_type };
    let column = CellColumn { measure, name: definition.name.clone(), value_type, values, filled: None };
    Ok((MeasureCells { column, ranks }, arithmetic))
}

/// Final values of a measure with their ranks, and the arithmetic.
type Final = (Values, Vec<u64>, &'static str);

/// Makes the final values of a measure.
struct Finish<'a> {
    measure: &'a FactMeasure,
    /// True if the stored values are doubles.
    is_double: bool,
    shape: Vec<u32>,
    /// No term of a sum has a greater magnitude.
    largest: &'a dyn Fn() -> f64,
}

/// Units in the last place of the largest term by which weights such as 0.3, which doubles do not have, move a sum.
const UNITS: f64 = 8.0;
/// Most by which a sum of decimals is off a half and counts as one: less than weights of six digits tell apart.
const SLACK_MAX: f64 = 2.5e-7;

impl Finish<'_> {
    fn sums(&self, sums: ComponentSums) -> Result<Final, AggregateError> {
        match (sums, self.is_double) {
            (ComponentSums::Precise(sums), true) => {
                self.finish(sums, "doubles", "the largest double", double, Values::Doubles)
            }
            (ComponentSums::Precise(sums), false) => {
                let largest = (self.largest)();
                let rounded = |sum: RoomySum| {
                    let precise = sum.to_precise();
                    let slack = largest.max(precise.to_f64().abs()) * (UNITS * f64::EPSILON);
                    precise.away_from_zero(slack.min(SLACK_MAX)).to_i64().ok_or_else(|| sum.text())
                };
                self.finish(sums, "doubles, rounded once", "64 bits", rounded, Values::Decimals)
            }
            (ComponentSums::Narrow(sums), _) => {
                self.finish(sums, "64 bits", "64 bits", |sum| Ok(sum.0), Values::Decimals)
            }
            (ComponentSums::Wide(sums), _) => {
                let fits = |sum: Wide| i64::try_from(sum.0).map_err(|_| sum.0.to_string());
                self.finish(sums, "128 bits", "64 bits", fits, Values::Decimals)
            }
        }
    }

    fn averages(&self, sums: ComponentSums, counts: ComponentSums) -> Result<Final, AggregateError> {
        let scale = if let ValueType::Decimal { scale } = self.measure.value_type { scale } else { 0 };
        let unit = 10_f64.powi(scale.into());
        let arithmetic = match &sums {
            ComponentSums::Narrow(_) => "64 bits",
            ComponentSums::Wide(_) => "128 bits",
            ComponentSums::Precise(_) => "doubles",
        };
        let rows: Vec<f64> = counts.divided(&[]).into_iter().map(|(_, rows)| rows * unit).collect();
        // No average lies beyond the values that it is of.
        self.finish(sums.divided(&rows), arithmetic, "the largest double", Ok, Values::Doubles)
    }

    fn extremes<const GREATEST: bool>(&self, sums: ByRank<Extreme<GREATEST>>) -> Result<Final, AggregateError> {
        match self.is_double {
            false => self.finish(sums, "64 bits", "64 bits", |value| Ok(value.decimal()), Values::Decimals),
            true => self.finish(sums, "doubles", "doubles", |value| Ok(value.double()), Values::Doubles),
        }
    }

    /// Final values; the first target whose value does not fit is an error.
    fn finish<M, T>(
        &self,
        sums: ByRank<M>,
        arithmetic: &'static str,
        limit: &'static str,
        value: impl Fn(M) -> Result<T, String>,
        values: impl Fn(Vec<T>) -> Values,
    ) -> Result<Final, AggregateError> {
        let (mut ranks, mut finals) = (Vec::with_capacity(sums.len()), Vec::with_capacity(sums.len()));
        for (rank, sum) in sums {
            ranks.push(rank);
            finals.push(value(sum).map_err(|value| AggregateError::Overflow {
                target: tuple(&self.shape, rank),
                measure: self.measure.name.clone(),
                value,
                limit,
            })?);
        }
        Ok((values(finals), ranks, arithmetic))
    }
}

impl ComponentSums {
    /// The nearest doubles, each divided by the number at its place; by 1 where there is none.
    fn divided(self, by: &[f64]) -> ByRank<f64> {
        fn of<M>(sums: ByRank<M>, by: &[f64], value: impl Fn(M, f64) -> f64) -> ByRank<f64> {
            let by = by.iter().copied().chain(std::iter::repeat(1.0));
            sums.into_iter().zip(by).map(|((rank, sum), by)| (rank, value(sum, by))).collect()
        }
        match self {
            ComponentSums::Narrow(sums) => of(sums, by, |sum, by| sum.0 as f64 / by),
            ComponentSums::Wide(sums) => of(sums, by, |sum, by| sum.0 as f64 / by),
            ComponentSums::Precise(sums) => of(sums, by, |sum, by| match sum {
                RoomySum::Precise(sum) => sum.to_f64() / by,
                RoomySum::Large(sum) => sum.divided(by),
            }),
        }
    }

    /// The sums with those of their carries, of the same targets.
    fn with_carries(self, carries: ComponentSums) -> ComponentSums {
        let carries: Vec<i128> = match carries {
            ComponentSums::Narrow(carries) => carries.into_iter().map(|(_, carry)| i128::from(carry.0)).collect(),
            ComponentSums::Wide(carries) => carries.into_iter().map(|(_, carry)| carry.0).collect(),
            ComponentSums::Precise(_) => Vec::new(),
        };
        let wide = |sum: i128, carry: i128| Wide(sum + (carry << u64::BITS));
        match self {
            ComponentSums::Narrow(sums) => {
                let sums = sums.into_iter().zip(carries);
                ComponentSums::Wide(sums.map(|((rank, sum), carry)| (rank, wide(sum.0.into(), carry))).collect())
            }
            ComponentSums::Wide(sums) => {
                let sums = sums.into_iter().zip(carries);
                ComponentSums::Wide(sums.map(|((rank, sum), carry)| (rank, wide(sum.0, carry))).collect())
            }
            ComponentSums::Precise(sums) => {
                let large = |sum: RoomySum, carry: i128| {
                    let sum = match sum {
                        sum if carry == 0 => return sum,
                        RoomySum::Precise(sum) => Large::from_precise(sum),
                        RoomySum::Large(sum) => sum,
                    };
                    RoomySum::Large(Large(sum.0.plus(Precise::from_i128(carry))))
                };
                let sums = sums.into_iter().zip(carries);
                ComponentSums::Precise(sums.map(|((rank, sum), carry)| (rank, large(sum, carry))).collect())
            }
        }
    }

    /// Sums of doubles. Those that pass the largest double are taken from `large`, which gives the sums of the same
    /// targets with room.
    ///
    /// # Errors
    /// Those of `large`.
    pub(crate) fn roomy<E>(
        sums: ByRank<Precise>,
        large: impl FnOnce() -> Result<ByRank<Large>, E>,
    ) -> Result<ComponentSums, E> {
        let has_room = sums.iter().all(|(_, sum)| sum.is_finite());
        let large = if has_room { Vec::new() } else { large()? };
        let roomy = |(place, (rank, sum)): (usize, (u64, Precise))| match large.get(place) {
            Some((_, large)) if !sum.is_finite() => (rank, RoomySum::Large(*large)),
            _ => (rank, RoomySum::Precise(sum)),
        };
        Ok(ComponentSums::Precise(sums.into_iter().enumerate().map(roomy).collect()))
    }
}

impl RoomySum {
    fn to_precise(self) -> Precise {
        match self {
            RoomySum::Precise(sum) => sum,
            RoomySum::Large(sum) => sum.to_precise(),
        }
    }

    /// The number in errors.
    fn text(self) -> String {
        match self {
            RoomySum::Precise(sum) => sum.to_f64().to_string(),
            RoomySum::Large(sum) => sum.text(),
        }
    }
}

fn double(sum: RoomySum) -> Result<f64, String> {
    let value = sum.to_precise().to_f64();
    if value.is_finite() { Ok(value) } else { Err(sum.text()) }
}
