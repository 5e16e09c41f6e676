//! Drawn facts: each dense tuple of leading dimensions with each drawn tuple of trailing ones.

use std::collections::{BTreeSet, HashSet};

use rayon::prelude::*;
use warpcube_cube::facts::{FactColumn, FactMeasure, Facts, KeyLayout, Keys, PAGE_CELLS, Rule, ValueType, Values};

use warpcube_arrays::random::{Random, mixed};

use super::elements::BenchCube;

/// The parts of keys from which facts are drawn, ascending.
#[derive(Debug, Clone)]
pub struct Draw {
    layout: KeyLayout,
    /// Keys of dense tuples, zero in trailing dimensions.
    pub(super) dense: Vec<u64>,
    /// Keys of drawn tuples, zero in leading dimensions.
    pub(super) tuples: Vec<u64>,
    /// Number of leading dimensions.
    pub(super) leading: usize,
    seed: u64,
    values: [i64; 2],
}

impl Draw {
    /// Draws about `facts` facts, as many as the definition has if absent. Fewer facts have fewer dense tuples and
    /// fewer drawn ones.
    ///
    /// # Errors
    /// Names of dimensions that are not there; leading dimensions that are drawn.
    pub fn new(cube: &BenchCube, facts: Option<u64>) -> Result<Draw, String> {
        let definition = &cube.definition;
        let layout = KeyLayout::for_sizes(&cube.sizes()).map_err(|error| error.to_string())?;
        if !layout.is_narrow() {
            return Err(format!("keys of {} take {} bits, at most 64", definition.cube, layout.total_bits()));
        }
        let mut dense = BTreeSet::new();
        let mut leading = 0;
        for ranges in &definition.facts.dense {
            leading = ranges.len();
            let mut keys = vec![0_u64];
            for (name, [from, to]) in ranges {
                let dimension = cube.dimension(name)?;
                if dimension >= leading {
                    return Err(format!("{name} is no leading dimension"));
                }
                let shift = layout.shift(dimension);
                keys =
                    keys.iter().flat_map(|key| (*from..*to).map(move |base| key | u64::from(base) << shift)).collect();
            }
            dense.extend(keys);
        }
        let mut dense: Vec<u64> = dense.into_iter().collect();
        let wanted = facts.unwrap_or(definition.facts.number);
        let share = (wanted as f64 / definition.facts.number as f64).min(1.0);
        let kept = ((dense.len() as f64 * share.sqrt()).ceil() as usize).clamp(1, dense.len());
        let all = dense.len();
        dense = (0..kept).map(|at| dense[at * all / kept]).collect();
        let tuples = draw_tuples(cube, &layout, (wanted / kept as u64).max(1))?;
        Ok(Draw { layout, dense, tuples, leading, seed: definition.seed, values: definition.facts.values })
    }

    /// Number of facts.
    pub fn len(&self) -> u64 {
        self.dense.len() as u64 * self.tuples.len() as u64
    }

    /// True without facts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Layout of the keys.
    pub fn layout(&self) -> &KeyLayout {
        &self.layout
    }

    /// Makes the facts, on all cores of the current rayon pool: one measure, a decimal of two digits.
    ///
    /// # Errors
    /// Facts that are not in order, which would be a defect of the drawing.
    pub fn facts(&self) -> Result<Facts, String> {
        self.facts_of(FactMeasure::new("Amount", Rule::Sum, ValueType::Decimal { scale: 2 }), Values::Decimals)
    }

    /// Makes the facts of another measure, whose values are made of the drawn ones.
    pub(super) fn facts_of(
        &self,
        measure: FactMeasure,
        values_of: impl FnOnce(Vec<i64>) -> Values,
    ) -> Result<Facts, String> {
        let mut keys = vec![0_u64; self.len() as usize];
        keys.par_chunks_mut(self.tuples.len()).zip(&self.dense).for_each(|(keys, dense)| {
            keys.iter_mut().zip(&self.tuples).for_each(|(key, tuple)| *key = dense | tuple);
        });
        let (seed, [from, to]) = (mixed(self.seed), self.values);
        let range = (to - from) as u64;
        let value = |key: &u64| from + ((u128::from(mixed(key ^ seed)) * u128::from(range)) >> 64) as i64;
        let values = values_of(keys.par_iter().map(value).collect());
        let column = FactColumn { measure, values, filled: None, counts: None };
        let facts = Facts::from_parts(self.layout.clone(), Keys::Narrow(keys), vec![column], None, PAGE_CELLS);
        facts.map_err(|error| error.to_string())
    }
}

/// Draws tuples of the trailing dimensions.
fn draw_tuples(cube: &BenchCube, layout: &KeyLayout, number: u64) -> Result<Vec<u64>, String> {
    let (definition, sizes) = (&cube.definition.facts.tuples, cube.sizes());
    let numbers = |names: &[String]| names.iter().map(|name| cube.dimension(name)).collect::<Result<Vec<_>, _>>();
    let (uniform, usual) = (numbers(&definition.uniform)?, numbers(&definition.usual)?);
    let buying = cube.dimension(&definition.buyers.dimension)?;
    let seed = cube.definition.seed;
    // Buyers buy from half to one and a half times as much as the mean.
    let weight =
        |buyer: &u32| 0.5 + Random::of(seed, u64::from(*buyer) << 1).below(1 << 20) as f64 / f64::from(1 << 20);
    let weights: Vec<f64> = cube.buyers.iter().map(weight).collect();
    let combinations: u64 = uniform.iter().map(|at| u64::from(sizes[*at])).product();
    let shares = shares(&weights, number, combinations)?;
    let mut tuples: Vec<u64> = (cube.buyers.par_iter().zip(shares))
        .flat_map_iter(|(buyer, share)| {
            let mut random = Random::of(seed, u64::from(*buyer) << 1 | 1);
            let own = u64::from(*buyer) << layout.shift(buying);
            let draw = |random: &mut Random, dimensions: &[usize]| {
                let coordinate = |at: &usize| random.below(sizes[*at].into()) << layout.shift(*at);
                dimensions.iter().map(coordinate).fold(0, |key, bits| key | bits)
            };
            let home = draw(&mut random, &usual);
            let mut drawn = HashSet::new();
            while (drawn.len() as u64) < share {
                let others = match definition.unusual > 0 && random.below(definition.unusual) == 0 {
                    true => draw(&mut random, &usual),
                    false => home,
                };
                drawn.insert(own | others | draw(&mut random, &uniform));
            }
            drawn
        })
        .collect();
    tuples.par_sort_unstable();
    Ok(tuples)
}

/// Splits a number by weights; no share is greater than the number of combinations, and all together are the number.
fn shares(weights: &[f64], number: u64, combinations: u64) -> Result<Vec<u64>, String> {
    // Draws of the last free combinations take long: a share ends at 7/8 of them.
    let most = (combinations * 7 / 8).max(1);
    if number > most * weights.len() as u64 {
        return Err(format!("{number} tuples of {} buyers with {combinations} combinations each", weights.len()));
    }
    let total: f64 = weights.iter().sum();
    let share = |weight: &f64| ((number as f64 * weight / total) as u64).min(most);
    let mut shares: Vec<u64> = weights.iter().map(share).collect();
    let mut left = number - shares.iter().sum::<u64>();
    for at in (0..shares.len()).cycle() {
        if left == 0 {
            break;
        }
        let more = (most - shares[at]).min(left.div_ceil(weights.len() as u64));
        shares[at] += more;
        left -= more;
    }
    Ok(shares)
}
