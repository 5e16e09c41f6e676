//! The tuples of a scheme's cells from its arrays, as a file has them.
//!
//! Nothing about the arrays is trusted: lengths, order and bounds are checked before an entry is used as a position.

use std::ops::Range;

use hashbrown::HashMap;

use super::linear::Linear;
use super::ranked_bitmap::RankedBitmap;
use super::{Scheme, Shape};
use crate::key::{DIMENSIONS_MAX, Tuple};

/// Arrays by name, every entry as a word of 64 bits. Keys of 128 bits are two arrays, the second of which has the name
/// of the first and [`HIGH`] behind it.
pub type Words = HashMap<String, Vec<u64>>;

/// The suffix in the name of the higher words of an array.
pub const HIGH: &str = " high";

/// Calls `visit` with the tuple of each of `cells` cells in the order of the scheme: row-major, but for xCCS (last
/// dimension slowest).
///
/// # Errors
/// The contradiction to the scheme, as a sentence. PTCS has no arrays.
pub fn restore(
    scheme: Scheme,
    shape: &Shape,
    cells: usize,
    words: &Words,
    visit: &mut dyn FnMut(&[u32]),
) -> Result<(), String> {
    let dimensions = shape.dimensions();
    let arrays = Arrays { words, cells, shape };
    match scheme {
        Scheme::Coordinate => arrays.coordinates(visit),
        Scheme::OffsetValue => arrays.offsets(visit),
        Scheme::Bess => arrays.blocks(0, &[0, cells as u64], &arrays.keys("bei", 0)?, visit),
        Scheme::Xcrs => {
            arrays.blocks(dimensions - 1, arrays.list("rptr")?, &arrays.keys("cind", dimensions - 1)?, visit)
        }
        Scheme::Hybrid { r } if (1..=dimensions).contains(&r) => {
            let split = dimensions + 1 - r;
            arrays.blocks(split, arrays.list("bptr")?, &arrays.keys("bei", split)?, visit)
        }
        Scheme::Bxcrs => arrays.ranked_rows(visit),
        Scheme::Xccs => {
            let shape = shape.reversed();
            let arrays = Arrays { shape: &shape, ..arrays };
            let mut forward: Tuple = [0; DIMENSIONS_MAX];
            let keys = arrays.keys("rind", dimensions - 1)?;
            arrays.blocks(dimensions - 1, arrays.list("cptr")?, &keys, &mut |tuple| {
                let forward = &mut forward[..dimensions];
                forward.iter_mut().zip(tuple.iter().rev()).for_each(|(at, coordinate)| *at = *coordinate);
                visit(forward);
            })
        }
        Scheme::Hybrid { .. } | Scheme::Ptcs => Err(format!("{scheme} has no arrays of {dimensions} dimensions")),
    }
}

/// Arrays of an array of a shape.
struct Arrays<'a> {
    words: &'a Words,
    cells: usize,
    shape: &'a Shape,
}

impl<'a> Arrays<'a> {
    fn list(&self, name: &str) -> Result<&'a [u64], String> {
        self.words.get(name).map(Vec::as_slice).ok_or_else(|| format!("the array {name} is missing"))
    }

    /// An array with an entry for each cell.
    fn of_cells(&self, name: &str) -> Result<&'a [u64], String> {
        let list = self.list(name)?;
        match list.len() == self.cells {
            true => Ok(list),
            false => Err(format!("the array {name} has {} entries for {} cells", list.len(), self.cells)),
        }
    }

    /// The keys of all cells over the dimensions from `split` on.
    fn keys(&self, name: &str, split: usize) -> Result<Vec<u128>, String> {
        let low = self.of_cells(name)?;
        let high = format!("{name}{HIGH}");
        Ok(match self.shape.bits(split..self.shape.dimensions()) {
            0..=64 => low.iter().map(|word| u128::from(*word)).collect(),
            _ => {
                let pairs = low.iter().zip(self.of_cells(&high)?);
                pairs.map(|(low, high)| u128::from(*high) << u64::BITS | u128::from(*low)).collect()
            }
        })
    }

    fn checked(&self, cell: usize, tuple: &[u32]) -> Result<(), String> {
        self.shape.check(cell, tuple).map_err(|error| error.to_string())
    }

    fn coordinates(&self, visit: &mut dyn FnMut(&[u32])) -> Result<(), String> {
        let lists = (1..=self.shape.dimensions()).map(|number| self.of_cells(&format!("ind{number}")));
        let lists = lists.collect::<Result<Vec<_>, _>>()?;
        let mut tuple: Tuple = [0; DIMENSIONS_MAX];
        let tuple = &mut tuple[..lists.len()];
        for cell in 0..self.cells {
            for (at, list) in tuple.iter_mut().zip(&lists) {
                *at = u32::try_from(list[cell]).unwrap_or(u32::MAX);
            }
            self.checked(cell, tuple)?;
            visit(tuple);
        }
        Ok(())
    }

    fn offsets(&self, visit: &mut dyn FnMut(&[u32])) -> Result<(), String> {
        let dimensions = self.shape.dimensions();
        let trailing = (0..dimensions).find_map(|split| Some((split, Linear::new(self.shape, split..dimensions)?)));
        let leading = trailing.as_ref().and_then(|(split, _)| Linear::new(self.shape, 0..*split));
        let (Some((split, trailing)), Some(leading)) = (trailing, leading) else {
            return Err("offsets do not fit the shape".to_owned());
        };
        let offsets = self.of_cells("offset")?;
        let whole = ([0], [0, self.cells as u64]);
        let (partitions, starts): (&[u64], &[u64]) = match split {
            0 => (&whole.0, &whole.1),
            _ => (self.list("partition")?, self.list("pptr")?),
        };
        let ranges = ranges(starts, partitions.len(), self.cells)?;
        let mut tuple: Tuple = [0; DIMENSIONS_MAX];
        let tuple = &mut tuple[..dimensions];
        for (partition, cells) in partitions.iter().zip(ranges) {
            inside(*partition, &leading)?;
            leading.decode(*partition, &mut tuple[..split]);
            for cell in cells {
                inside(offsets[cell], &trailing)?;
                trailing.decode(offsets[cell], &mut tuple[split..]);
                visit(tuple);
            }
        }
        Ok(())
    }

    /// Cells by a pointer for every block of the first `split` dimensions, and a key each.
    fn blocks(&self, split: usize, starts: &[u64], keys: &[u128], visit: &mut dyn FnMut(&[u32])) -> Result<(), String> {
        let leading = Linear::new(self.shape, 0..split).ok_or("blocks do not fit the shape")?;
        let blocks = usize::try_from(leading.places()).map_err(|_| "blocks do not fit the memory")?;
        let ranges = ranges(starts, blocks, self.cells)?;
        self.in_blocks(split, (0..).zip(ranges), &leading, keys, visit)
    }

    /// Cells by a pointer for every filled row, found by the bitmap of rows.
    fn ranked_rows(&self, visit: &mut dyn FnMut(&[u32])) -> Result<(), String> {
        let split = self.shape.dimensions() - 1;
        let rows = Linear::new(self.shape, 0..split).ok_or("rows do not fit the shape")?;
        let words = self.list("compwrd")?;
        if words.len() as u128 != RankedBitmap::words_of(rows.places()) {
            return Err(format!("the bitmap has {} words for {} rows", words.len(), rows.places()));
        }
        let words = words.iter().map(|word| u32::try_from(*word)).collect::<Result<Vec<u32>, _>>();
        let bitmap = RankedBitmap::from_words(words.map_err(|_| "a word of the bitmap has more than 32 bits")?);
        let mut filled = Vec::new();
        bitmap.ones(0..rows.places() as u64, |row, _| filled.push(row));
        let ranges = ranges(self.list("rptr_c")?, filled.len(), self.cells)?;
        self.in_blocks(split, filled.into_iter().zip(ranges), &rows, &self.keys("cind", split)?, visit)
    }

    fn in_blocks(
        &self,
        split: usize,
        blocks: impl Iterator<Item = (u64, Range<usize>)>,
        leading: &Linear,
        keys: &[u128],
        visit: &mut dyn FnMut(&[u32]),
    ) -> Result<(), String> {
        let dimensions = self.shape.dimensions();
        let bits: Vec<u32> = (split..dimensions).map(|at| self.shape.bits(at..at + 1)).collect();
        let mut tuple: Tuple = [0; DIMENSIONS_MAX];
        let tuple = &mut tuple[..dimensions];
        for (block, cells) in blocks.filter(|(_, cells)| !cells.is_empty()) {
            leading.decode(block, &mut tuple[..split]);
            for cell in cells {
                let mut key = keys[cell];
                for (at, bits) in tuple[split..].iter_mut().zip(&bits).rev() {
                    *at = (key & ((1 << bits) - 1)) as u32;
                    key >>= bits;
                }
                if key != 0 {
                    return Err(format!("the key of cell {cell} has bits that no dimension has"));
                }
                self.checked(cell, tuple)?;
                visit(tuple);
            }
        }
        Ok(())
    }
}

/// The positions between neighbouring pointers.
fn ranges(starts: &[u64], blocks: usize, cells: usize) -> Result<impl Iterator<Item = Range<usize>>, String> {
    if starts.len() != blocks + 1 {
        return Err(format!("there are {} pointers for {blocks} blocks", starts.len()));
    }
    if starts[0] != 0 || starts[blocks] != cells as u64 || !starts.is_sorted() {
        return Err(format!("pointers do not ascend from 0 to {cells}"));
    }
    Ok(starts.windows(2).map(|bounds| bounds[0] as usize..bounds[1] as usize))
}

fn inside(offset: u64, linear: &Linear) -> Result<(), String> {
    match u128::from(offset) < linear.places() {
        true => Ok(()),
        false => Err(format!("the offset {offset} lies outside of the shape")),
    }
}
