//! Grouping sets: the finest groups once, coarser ones from them.
//!
//! ```text
//! SELECT a, b, sum(x) FROM t GROUP BY ROLLUP (a, b)
//!
//! pipeline 0: scan t: group by a, b: sum(x)                    the finest groups
//! pipeline 1: scan groups of 0: group by a: sum united         groups that coarser ones are made of
//! pipeline 2: scan groups of 1: sum united                     one row, also of no rows
//! pipelines 3, 4, 5, a union into one table of groups by keys and set:
//!   scan groups of 0: group by a, b, 0: sum united
//!   scan groups of 1: group by a, NULL, 1: sum united
//!   scan groups of 2: group by NULL, NULL, 3: sum united
//! ```
//!
//! The groups of a set are made of those of its smallest parent: of the sets that have all of its keys and more, the
//! one with the fewest keys. Accumulators are united as they are ([`warpcube_engine::AggregateCall::unites`]), so that
//! sums are as exact as over the rows, and only the total of a group can leave its type.
//!
//! A row tells its set by a number, as DataFusion's `__grouping_id` does ([`Aggregate::INTERNAL_GROUPING_ID`]): a bit
//! for each key that the set lacks, the last key's lowest, and above them how often the same set came before.

use std::collections::HashMap;
use std::ops::Range;

use arrow::datatypes::DataType;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet};
use warpcube_engine::{AggregateCall, Expr as Device, Literal, Pipeline, Sink, Source, Ty};

use super::Reason;
use super::columns::text;
use super::distinct::OverValues;

/// Most sets: each has one kernel or two, which have to be compiled.
const SETS_MAX: usize = 256;
/// Most sets of aggregates of DISTINCT values: sets of one level have a kernel of their own in one launch, whose
/// parameters have a limit.
const SETS_OF_VALUES_MAX: usize = 64;
/// Bits of the number of a set.
const BITS: usize = 64;

/// The keys of an aggregation that a set groups by, in order.
type Keys = Vec<usize>;

/// The sets of an aggregation.
#[derive(Debug)]
pub(super) struct Sets {
    /// The keys of each set, with its number.
    sets: Vec<(Keys, u64)>,
    /// How many keys there are.
    keys: usize,
}

impl Sets {
    /// The keys of an aggregation in the order of its columns, and its sets if it has some.
    pub(super) fn of(aggregate: &Aggregate) -> Result<(Vec<Expr>, Option<Sets>), Reason> {
        let [Expr::GroupingSet(sets)] = aggregate.group_expr.as_slice() else {
            return Ok((aggregate.group_expr.clone(), None));
        };
        let keys = grouping_set_to_exprlist(&aggregate.group_expr).map_err(text)?;
        let count = keys.len();
        let all = match sets {
            GroupingSet::Rollup(_) => count + 1,
            GroupingSet::Cube(_) => {
                u32::try_from(count).ok().and_then(|count| 1usize.checked_shl(count)).unwrap_or(usize::MAX)
            }
            GroupingSet::GroupingSets(sets) => sets.len(),
        };
        if all > SETS_MAX {
            return Err(format!("{all} grouping sets, where {SETS_MAX} are the most"));
        }
        let sets: Vec<Keys> = match sets {
            GroupingSet::Rollup(_) => (0..=count).map(|kept| (0..kept).collect()).collect(),
            GroupingSet::Cube(_) => {
                (0..1u64 << count).map(|set| (0..count).filter(|key| set >> key & 1 == 0).collect()).collect()
            }
            GroupingSet::GroupingSets(sets) => {
                let of = |set: &Vec<Expr>| (0..count).filter(|key| set.contains(keys[*key])).collect();
                sets.iter().map(of).collect()
            }
        };
        let mut seen: HashMap<Keys, u64> = HashMap::new();
        let numbered = |set: Keys| {
            let before = seen.entry(set.clone()).or_default();
            let lacking = (0..count).filter(|key| !set.contains(key)).map(|key| count - 1 - key);
            let number = lacking.fold(u128::from(*before) << count, |number, bit| number | 1 << bit);
            *before += 1;
            Ok((set, u64::try_from(number).map_err(|_| too_many())?))
        };
        if count > BITS {
            return Err(too_many());
        }
        let sets = sets.into_iter().map(numbered).collect::<Result<_, Reason>>()?;
        Ok((keys.into_iter().cloned().collect(), Some(Sets { sets, keys: count })))
    }

    /// Refuses more sets than one launch takes with a value as one more key.
    pub(super) fn check_with_value(&self) -> Result<(), Reason> {
        match self.sets.len() {
            0..=SETS_OF_VALUES_MAX => Ok(()),
            all => Err(format!("{all} grouping sets of distinct values, where {SETS_OF_VALUES_MAX} are the most")),
        }
    }

    /// The sets, each once, those of many keys first; the finest groups, by all keys, are one of them.
    fn by_size(&self) -> Vec<Keys> {
        let mut all: Vec<Keys> = self.sets.iter().map(|(set, _)| set.clone()).collect();
        all.push((0..self.keys).collect());
        all.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        all.dedup();
        all
    }
}

/// Why a number does not tell a set.
fn too_many() -> Reason {
    format!("grouping sets whose number has more than {BITS} bits")
}

/// Whether a set has all keys of another and more.
fn is_parent(set: &[usize], of: &[usize]) -> bool {
    set.len() > of.len() && of.iter().all(|key| set.contains(key))
}

impl Sets {
    /// Writes the pipelines of the sets behind that of the finest groups, which is the last one. What is `over` groups
    /// by a value, too, is made of the groups by each set and the value.
    pub(super) fn write(
        &self,
        pipelines: &mut Vec<Pipeline>,
        unions: &mut Vec<Range<usize>>,
        types: &[DataType],
        over: Option<&OverValues>,
    ) -> Result<(), Reason> {
        let lacking = || Reason::from("grouping sets of what does not aggregate");
        let Some(Sink::Aggregate { groups, aggregates }) = pipelines.last().map(|finest| &finest.sink) else {
            return Err(lacking());
        };
        let aggregates = aggregates.clone();
        let value_type = groups.last().filter(|_| over.is_some()).map(|(_, data_type)| data_type.clone());
        let all = self.by_size();
        let parent = |set: &Keys| all.iter().filter(|other| is_parent(other, set)).min_by_key(|other| other.len());
        let over_groups = |source, groups, aggregates| Pipeline {
            source: Source::Output(source),
            steps: Vec::new(),
            sink: Sink::Aggregate { groups, aggregates },
        };
        // The pipeline that leaves the groups of a set: of the finest, of parents, and of the set without keys, which
        // has a group even where there are no rows. Values are distinct in groups by them and a set.
        let mut left: HashMap<&Keys, usize> = HashMap::new();
        for set in &all {
            let is_needed = over.is_some() || set.is_empty() || all.iter().any(|other| parent(other) == Some(set));
            match parent(set).and_then(|parent| Some((parent, *left.get(parent)?))) {
                None => _ = left.insert(set, pipelines.len() - 1),
                Some((parent, source)) if is_needed => {
                    let register = |key: &usize| parent.iter().position(|other| other == key);
                    let key = |key: &usize| Some((Device::Reg(register(key)?), types[*key].clone()));
                    let mut groups = set.iter().map(key).collect::<Option<Vec<_>>>().ok_or_else(lacking)?;
                    groups.extend(value_type.iter().map(|value| (Device::Reg(parent.len()), value.clone())));
                    let keys = parent.len() + usize::from(value_type.is_some());
                    pipelines.push(over_groups(source, groups, united(&aggregates, keys)));
                    left.insert(set, pipelines.len() - 1);
                }
                Some(_) => {}
            }
        }
        let mut aggregates = aggregates;
        if let Some(over) = over {
            for set in all.iter().filter(|set| self.sets.iter().any(|(named, _)| named == *set)) {
                let source = left.get_mut(set).ok_or_else(lacking)?;
                let key = |(place, key): (usize, &usize)| (Device::Reg(place), types[*key].clone());
                let groups = set.iter().enumerate().map(key).collect();
                pipelines.push(over_groups(*source, groups, over.behind(set.len())));
                *source = pipelines.len() - 1;
            }
            aggregates = over.behind(0);
        }
        let first = pipelines.len();
        for (set, number) in &self.sets {
            let (of, source) = match left.get(set) {
                Some(source) => (set, *source),
                None => parent(set).and_then(|parent| Some((parent, *left.get(parent)?))).ok_or_else(lacking)?,
            };
            let key = |(key, data_type): (usize, &DataType)| {
                let ty = Ty::of(data_type).ok_or_else(|| format!("a key of type {data_type}"))?;
                let register = of.iter().position(|other| *other == key).filter(|_| set.contains(&key));
                let null = || Device::Literal(Literal::Null, ty);
                Ok::<_, Reason>((register.map_or_else(null, Device::Reg), data_type.clone()))
            };
            let mut groups = (0..self.keys).zip(types).map(key).collect::<Result<Vec<_>, _>>()?;
            let number_type = types.get(self.keys).ok_or_else(lacking)?;
            let ty = Ty::of(number_type).ok_or_else(lacking)?;
            groups.push((Device::Literal(Literal::Int((*number).into()), ty), number_type.clone()));
            pipelines.push(over_groups(source, groups, united(&aggregates, of.len())));
        }
        if pipelines.len() - first > 1 {
            unions.push(first..pipelines.len());
        }
        Ok(())
    }
}

/// Aggregates of groups that have so many keys, united.
fn united(aggregates: &[AggregateCall], keys: usize) -> Vec<AggregateCall> {
    let call = |(position, call): (usize, &AggregateCall)| AggregateCall {
        argument: Some(Device::Reg(keys + position)),
        filter: None,
        unites: true,
        ..call.clone()
    };
    aggregates.iter().enumerate().map(call).collect()
}
