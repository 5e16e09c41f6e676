//! The ways in which keys become groups: sorted, by a dense table, by hashing; and the prefixes of sorted keys.

use hashbrown::HashMap;

use super::sort::{Record, sort};
use crate::key::{DIMENSIONS_MAX, Key, KeyLayout};

/// Groups by some leading dimensions of keys.
pub(crate) struct Groups<K> {
    /// The key of each group, ascending.
    pub(crate) keys: Vec<K>,
    /// The group of each item.
    pub(crate) of: Vec<u32>,
}

/// How keys of one layout become keys of some of its dimensions in another order (algorithm 8, line 5, of Wang).
pub(crate) struct Reorder {
    /// Fields that move as one: lowest bit and bits.
    pub(crate) shifts: Vec<u32>,
    pub(crate) bits: Vec<u32>,
}

impl Reorder {
    /// From keys of the dimensions `from` in `layout` to keys of the dimensions `to`, which are all among them.
    pub(crate) fn new(layout: &KeyLayout, from: &[usize], to: &[usize]) -> Reorder {
        let mut reorder = Reorder { shifts: Vec::new(), bits: Vec::new() };
        let mut before = None;
        for dimension in to {
            let Some(place) = from.iter().position(|other| other == dimension) else { continue };
            let (bits, shift) = (layout.bits()[place], layout.shifts()[place]);
            match reorder.bits.last_mut().zip(reorder.shifts.last_mut()) {
                // Neighbours in both orders.
                Some((last, below)) if before == place.checked_sub(1) && before.is_some() && *last + bits <= 32 => {
                    *last += bits;
                    *below = shift;
                }
                // A field without bits may have a shift by all bits of a key.
                _ if bits == 0 => continue,
                _ => {
                    reorder.bits.push(bits);
                    reorder.shifts.push(shift);
                }
            }
            before = Some(place);
        }
        reorder
    }

    #[inline]
    pub(crate) fn key<K: Key>(&self, key: K) -> K {
        let mut fields = [0; DIMENSIONS_MAX];
        for ((field, shift), bits) in fields.iter_mut().zip(&self.shifts).zip(&self.bits) {
            *field = key.field(*shift, *bits);
        }
        K::pack(&self.bits, &fields)
    }
}

/// Keys of a source in an order of its dimensions, with the numbers of their rows.
pub(crate) struct Sorted<K> {
    order: Vec<usize>,
    layout: KeyLayout,
    records: Vec<Record<K>>,
    spare: Vec<Record<K>>,
}

impl<K: Key> Sorted<K> {
    /// Keys as they are.
    pub(crate) fn new(order: &[usize], layout: &KeyLayout, keys: &[K]) -> Self {
        let records = keys.iter().copied().zip(0..).collect();
        Sorted { order: order.to_vec(), layout: layout.clone(), records, spare: Vec::new() }
    }

    /// Sorts the keys by `order`; they are sorted by its first `shared` dimensions, which are the first of the order so
    /// far too.
    pub(crate) fn arrange(&mut self, order: &[usize], shared: usize) {
        if shared == order.len() {
            return;
        }
        let rest = self.order.iter().filter(|dimension| !order.contains(dimension));
        let full: Vec<usize> = order.iter().chain(rest).copied().collect();
        let layout = reordered(&self.layout, &self.order, &full);
        let reorder = Reorder::new(&self.layout, &self.order, &full);
        self.records.iter_mut().for_each(|record| record.0 = reorder.key(record.0));
        (self.order, self.layout) = (full, layout);
        let (above, below) = (self.below(shared), self.below(order.len()));
        let is_same = |one: &Record<K>, other: &Record<K>| is_prefix_same(one.0, other.0, above);
        self.records.chunk_by_mut(is_same).for_each(|segment| sort(segment, &mut self.spare, below..above));
    }

    /// Bits of the keys behind the first dimensions.
    fn below(&self, length: usize) -> u32 {
        below(&self.layout, length)
    }

    /// Groups by the first dimensions, of each of these lengths, which descend by one.
    pub(crate) fn groups(&self, lengths: impl Iterator<Item = usize>) -> Vec<Groups<K>> {
        let belows: Vec<u32> = lengths.map(|length| self.below(length)).collect();
        let mut levels = prefixes(self.records.iter().map(|record| record.0), &belows);
        let by_place = std::mem::take(&mut levels[0].of);
        levels[0].of = vec![0; by_place.len()];
        for (record, group) in self.records.iter().zip(by_place) {
            levels[0].of[record.1 as usize] = group;
        }
        levels
    }
}

/// Layout of some dimensions of `order` in the order `to`.
pub(crate) fn reordered(layout: &KeyLayout, order: &[usize], to: &[usize]) -> KeyLayout {
    let place = |dimension: &usize| order.iter().position(|other| other == dimension);
    layout.chosen(&to.iter().filter_map(place).collect::<Vec<usize>>())
}

/// Bits of a layout behind its first dimensions.
pub(crate) fn below(layout: &KeyLayout, length: usize) -> u32 {
    length.checked_sub(1).map_or(layout.total_bits(), |last| layout.shifts()[last])
}

/// True if keys are the same but for the lowest bits.
fn is_prefix_same<K: Key>(one: K, other: K, below: u32) -> bool {
    one == other || one.highest_difference(other) < below
}

/// The key without its lowest bits, any number of them.
pub(crate) fn leading<K: Key>(mut key: K, mut below: u32) -> K {
    while below > 0 {
        let step = below.min(32);
        key = key.without(step);
        below -= step;
    }
    key
}

/// Groups of ascending keys by their bits from `belows` on, which ascend, in one pass: a key that differs from the one
/// in front of it in bit `b` begins a group wherever fewer than `b + 1` bits are left out. Items of the first level are
/// the keys, those of each other one the groups of the level in front of it.
pub(crate) fn prefixes<K: Key>(keys: impl Iterator<Item = K>, belows: &[u32]) -> Vec<Groups<K>> {
    let mut levels: Vec<Groups<K>> = belows.iter().map(|_| Groups { keys: Vec::new(), of: Vec::new() }).collect();
    let mut before: Option<K> = None;
    for key in keys {
        let begins = match before.replace(key) {
            None => levels.len(),
            Some(before) if before == key => 0,
            Some(before) => {
                let bit = key.highest_difference(before);
                belows.iter().take_while(|below| bit >= **below).count()
            }
        };
        for (level, below) in levels[..begins].iter_mut().zip(belows) {
            level.keys.push(leading(key, *below));
        }
        // Each new group is an item of the next level, and the key one of the first.
        for level in levels.iter_mut().take(begins + 1) {
            level.of.push(level.keys.len() as u32 - 1);
        }
    }
    levels
}

/// Groups of keys by a table with an entry for each possible key of `bits` bits, at most 32.
pub(crate) fn dense<K: Key>(keys: impl Iterator<Item = K>, bits: u32) -> Groups<K> {
    let mut of: Vec<u32> = keys.map(|key| key.field(0, bits)).collect();
    let mut numbers = vec![0u32; 1 << bits];
    of.iter().for_each(|place| numbers[*place as usize] = 1);
    let mut keys = Vec::new();
    for (place, number) in (0..).zip(&mut numbers) {
        if *number == 1 {
            *number = keys.len() as u32;
            keys.push(K::pack(&[bits], &[place]));
        }
    }
    of.iter_mut().for_each(|place| *place = numbers[*place as usize]);
    Groups { keys, of }
}

/// Groups of keys by a hash table; the groups are sorted behind.
pub(crate) fn hashed<K: Key>(keys: impl Iterator<Item = K>, bits: u32) -> Groups<K> {
    let mut numbers: HashMap<K, u32> = HashMap::new();
    let mut found: Vec<Record<K>> = Vec::new();
    let number = |key: K| {
        *numbers.entry(key).or_insert_with(|| {
            found.push((key, found.len() as u32));
            found.len() as u32 - 1
        })
    };
    let mut of: Vec<u32> = keys.map(number).collect();
    sort(&mut found, &mut Vec::new(), 0..bits);
    let mut places = vec![0u32; found.len()];
    (0..).zip(&found).for_each(|(place, (_, number))| places[*number as usize] = place);
    of.iter_mut().for_each(|number| *number = places[*number as usize]);
    Groups { keys: found.into_iter().map(|(key, _)| key).collect(), of }
}
