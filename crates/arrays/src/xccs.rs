//! xCCS, extended compressed column storage: xCRS of the array with its dimensions in reverse order.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, section 3.2.1. A column is one
//! tuple of all dimensions but the first. Iteration and aggregation follow the columns: the last dimension is slowest.
//! Sub-arrays are sorted into row-major order before they are returned.

use super::blocked::{Blocked, Names};
use super::pointers::Dense;
use super::{Cells, GroupBy, Limits, NamedArray, Result, Scheme, Shape, Sizes, Storage, SubArray, Value};
use crate::key::{DIMENSIONS_MAX, Tuple};

/// The array in column order. Arrays: `cptr` (columns + 1), `rind` and `val` (one a cell).
#[derive(Debug)]
struct Xccs<V> {
    shape: Shape,
    reversed: Blocked<V, u32, Dense>,
}

/// Builds xCCS. An error gives the bytes of column pointers above the limit.
pub(crate) fn build<V: Value>(cells: &Cells<V>, limits: &Limits) -> Result<Box<dyn Storage<V>>> {
    let names = Names { scheme: Scheme::Xccs, keys: "rind", pointers: "cptr" };
    let split = cells.shape().dimensions() - 1;
    let reversed = Blocked::new(names, &cells.reversed(), split, limits)?;
    Ok(Box::new(Xccs { shape: cells.shape().clone(), reversed }))
}

impl<V: Value> Storage<V> for Xccs<V> {
    fn scheme(&self) -> Scheme {
        Scheme::Xccs
    }

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn len(&self) -> usize {
        self.reversed.len()
    }

    fn get(&self, coordinates: &[u32]) -> Result<Vec<Option<V>>> {
        let dimensions = self.shape.dimensions();
        self.shape.tuples(coordinates)?;
        let mut reversed = coordinates.to_vec();
        for (cell, tuple) in reversed.chunks_exact_mut(dimensions).enumerate() {
            self.shape.check(cell, tuple)?;
            tuple.reverse();
        }
        self.reversed.get(&reversed)
    }

    fn sub_array(&self, area: &SubArray) -> Result<Cells<V>> {
        area.check(&self.shape)?;
        Ok(self.reversed.sub_array(&area.reversed())?.reversed())
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[u32], V)) {
        let mut forward: Tuple = [0; DIMENSIONS_MAX];
        self.reversed.for_each(&mut |tuple, value| {
            let forward = &mut forward[..tuple.len()];
            forward.iter_mut().zip(tuple.iter().rev()).for_each(|(at, coordinate)| *at = *coordinate);
            visit(forward, value);
        });
    }

    fn cells(&self) -> Cells<V> {
        self.reversed.cells().reversed()
    }

    fn prefix_sums(&self) -> Result<Vec<GroupBy<V>>> {
        let renumber = |sums: Vec<GroupBy<V>>| sums.into_iter().map(|sum| sum.reversed(&self.shape)).collect();
        self.reversed.prefix_sums().map(renumber).map_err(|error| error.reversed(self.shape.dimensions()))
    }

    fn sizes(&self) -> Sizes {
        self.reversed.sizes()
    }

    fn arrays(&self) -> Vec<NamedArray<'_, V>> {
        self.reversed.arrays()
    }

    fn replace(&mut self, tuple: &[u32], value: V) -> Result<Option<V>> {
        self.shape.check_one(tuple)?;
        let reversed: Vec<u32> = tuple.iter().rev().copied().collect();
        self.reversed.replace(&reversed, value)
    }
}
