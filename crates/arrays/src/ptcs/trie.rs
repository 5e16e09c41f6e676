//! A PATRICIA trie: N nodes for N keys, each both a branch and a leaf.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, sections 3.5.1 to 3.5.4 and
//! algorithms 5 and 6, after Knuth, *The Art of Computer Programming*, volume 3, section 6.3. Removal is not in the
//! thesis; construction from sorted keys is linear where the thesis inserts one by one.
//!
//! Invariants: bits are counted from 1 at the highest bit of a key; the header's bit is 0 and its first link leads to
//! the root. Bits ascend along links downwards; a link to a node whose bit is no greater leads up, to the leaf that
//! the node is. The key of a node lies below the node. Nodes are numbered in 32 bits; free nodes are chained by their
//! first link.

use crate::key::Key;
use crate::{Result, SchemeError, Sizes, Value};

/// Most nodes: numbers below the mark of no node.
const NODES_MAX: usize = NONE as usize;
/// Marks the absence of a node.
const NONE: u32 = u32::MAX;

/// Index part of a node. Packed so that its bytes are those of formula 3.5: a key, two links and a bit position.
#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
struct Node<K> {
    key: K,
    links: [u32; 2],
    bit: u32,
}

/// A PATRICIA trie from keys to values.
#[derive(Debug)]
pub(super) struct Trie<K: Key, V> {
    /// Bits of a key.
    bits: u32,
    nodes: Vec<Node<K>>,
    values: Vec<V>,
    header: u32,
    free: u32,
    len: usize,
}

/// A place in a trie reached by a key: the node found, the branch that leads to it and that branch's parent.
struct Found {
    grandparent: u32,
    parent: u32,
    node: u32,
}

impl<K: Key, V: Value> Trie<K, V> {
    /// Trie of ascending keys of `bits` bits, in linear time.
    ///
    /// Node i branches at the first bit in which keys i - 1 and i differ: the trie is the Cartesian tree of these bits,
    /// smallest on top. Node 0 is the header.
    pub(super) fn from_sorted(bits: u32, cells: impl ExactSizeIterator<Item = (K, V)>) -> Result<Self> {
        let len = cells.len();
        check_size(len)?;
        let mut trie = Self {
            bits,
            nodes: Vec::with_capacity(len),
            values: Vec::with_capacity(len),
            header: if len == 0 { NONE } else { 0 },
            free: NONE,
            len,
        };
        // Branches on the path from the header to the last key, top first.
        let mut path: Vec<u32> = Vec::with_capacity(bits as usize + 1);
        for (index, (key, value)) in (0u32..).zip(cells) {
            let bit = trie.nodes.last().map_or(0, |last| trie.first_difference(last.key, key));
            let mut left = index.saturating_sub(1);
            while let Some(below) = path.pop_if(|above| trie.nodes[*above as usize].bit > bit) {
                left = below;
            }
            if let Some(above) = path.last() {
                // The header has one link, in front; other branches take later keys on their second.
                let side = usize::from(*above != 0);
                trie.nodes[*above as usize].links[side] = index;
            }
            trie.nodes.push(Node { key, links: [left, index], bit });
            trie.values.push(value);
            path.push(index);
        }
        Ok(trie)
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of nodes, free ones included, and of values.
    pub(super) fn sizes(&self) -> Sizes {
        Sizes {
            index_bytes: size_of_val(self.nodes.as_slice()) as u64,
            value_bytes: size_of_val(self.values.as_slice()) as u64,
        }
    }

    /// First bit in which two different keys differ, counted from 1 at the highest.
    fn first_difference(&self, one: K, other: K) -> u32 {
        self.bits - one.highest_difference(other)
    }

    /// The link that a key takes at a node.
    #[inline]
    fn side(&self, node: u32, key: K) -> usize {
        match self.nodes[node as usize].bit {
            0 => 0,
            bit => key.bit(self.bits - bit),
        }
    }

    /// Follows `key` to a leaf, or to the first node whose bit is at or past `stop`.
    #[inline]
    fn follow(&self, key: K, stop: u32) -> Found {
        let (mut grandparent, mut parent) = (self.header, self.header);
        let mut node = self.nodes[self.header as usize].links[0];
        let mut above = 0;
        loop {
            let Node { bit, links, .. } = self.nodes[node as usize];
            if bit <= above || bit >= stop {
                return Found { grandparent, parent, node };
            }
            above = bit;
            (grandparent, parent) = (parent, node);
            node = links[key.bit(self.bits - bit)];
        }
    }

    /// The node that holds a key.
    #[inline]
    fn find(&self, key: K) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let node = self.follow(key, u32::MAX).node;
        let found = self.nodes[node as usize].key;
        (found == key).then_some(node)
    }

    /// Value of a key (algorithm 6).
    #[inline]
    pub(super) fn get(&self, key: K) -> Option<V> {
        self.find(key).map(|node| self.values[node as usize])
    }

    /// Sets the value of a key that is there; returns the old one.
    pub(super) fn replace(&mut self, key: K, value: V) -> Option<V> {
        let node = self.find(key)?;
        Some(std::mem::replace(&mut self.values[node as usize], value))
    }

    /// Sets the value of a key and returns the one it had (algorithm 5).
    pub(super) fn insert(&mut self, key: K, value: V) -> Result<Option<V>> {
        if self.len == 0 {
            self.header = self.allocate(key, value)?;
            self.nodes[self.header as usize].links = [self.header; 2];
            self.len = 1;
            return Ok(None);
        }
        let leaf = self.follow(key, u32::MAX).node;
        let found = self.nodes[leaf as usize].key;
        if found == key {
            return Ok(Some(std::mem::replace(&mut self.values[leaf as usize], value)));
        }
        let bit = self.first_difference(found, key);
        let Found { parent, node: below, .. } = self.follow(key, bit);
        let node = self.allocate(key, value)?;
        let own = key.bit(self.bits - bit);
        let mut links = [below; 2];
        links[own] = node;
        self.nodes[node as usize].links = links;
        self.nodes[node as usize].bit = bit;
        let side = self.side(parent, key);
        self.nodes[parent as usize].links[side] = node;
        self.len += 1;
        Ok(None)
    }

    /// Removes a key and returns its value.
    ///
    /// The branch that leads up to the key's leaf has one link left and is cut out. It then takes the place of the node
    /// that held the key, which is still a branch further up, and that node is free.
    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let node = self.find(key)?;
        let Found { grandparent, parent, .. } = self.follow(key, u32::MAX);
        self.len -= 1;
        if parent == self.header {
            // The header alone links up to itself from itself.
            self.header = NONE;
            return Some(self.release(node));
        }
        let above = self.branch_above(key, node);
        let other = self.nodes[parent as usize].links[1 - self.side(parent, key)];
        let side = self.side(grandparent, key);
        self.nodes[grandparent as usize].links[side] = other;
        if parent != node {
            let Node { links, bit, .. } = self.nodes[node as usize];
            self.nodes[parent as usize].links = links;
            self.nodes[parent as usize].bit = bit;
            match above {
                Some(above) => {
                    let side = self.side(above, key);
                    self.nodes[above as usize].links[side] = parent;
                }
                None => self.header = parent,
            }
        }
        Some(self.release(node))
    }

    /// The branch whose link leads down to `node` on the path of `key`; none above the header.
    fn branch_above(&self, key: K, node: u32) -> Option<u32> {
        if node == self.header {
            return None;
        }
        let bit = self.nodes[node as usize].bit;
        Some(self.follow(key, bit).parent)
    }

    /// Visits keys in ascending order (section 3.5.4). `enter` is asked before a link of a branch is followed: a key
    /// below the branch, the bit of the branch above it, the branch's bit, and the side.
    pub(super) fn traverse(&self, enter: impl Fn(K, u32, u32, usize) -> bool, mut visit: impl FnMut(K, V)) {
        if self.len == 0 {
            return;
        }
        // Links not yet followed, each with the bit of its branch: at most one a bit.
        let mut open = Vec::with_capacity(self.bits as usize + 1);
        open.push((self.nodes[self.header as usize].links[0], 0));
        while let Some((node, above)) = open.pop() {
            let Node { key, links, bit } = self.nodes[node as usize];
            if bit <= above {
                visit(key, self.values[node as usize]);
                continue;
            }
            for side in [1, 0] {
                if enter(key, above, bit, side) {
                    open.push((links[side], bit));
                }
            }
        }
    }

    fn allocate(&mut self, key: K, value: V) -> Result<u32> {
        let node = Node { key, links: [NONE; 2], bit: 0 };
        if self.free != NONE {
            let number = self.free;
            self.free = self.nodes[number as usize].links[0];
            self.nodes[number as usize] = node;
            self.values[number as usize] = value;
            return Ok(number);
        }
        check_size(self.nodes.len() + 1)?;
        self.nodes.push(node);
        self.values.push(value);
        Ok(self.nodes.len() as u32 - 1)
    }

    fn release(&mut self, node: u32) -> V {
        self.nodes[node as usize].links[0] = self.free;
        self.free = node;
        self.values[node as usize]
    }
}

/// An error if nodes exceed the numbers of 32 bits.
fn check_size(cells: usize) -> Result<()> {
    match cells <= NODES_MAX {
        true => Ok(()),
        false => Err(SchemeError::TrieSize { cells, limit: NODES_MAX }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Holds the structure's invariants and returns the keys in order.
    fn check(trie: &Trie<u64, i64>) -> Vec<(u64, i64)> {
        let mut found = Vec::new();
        trie.traverse(|_, _, _, _| true, |key, value| found.push((key, value)));
        assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0), "{found:?}");
        assert_eq!(found.len(), trie.len());
        let mut stack = vec![(trie.header, None)];
        while let Some((number, above)) = stack.pop().filter(|_| trie.len > 0) {
            let Node { bit, links, .. } = trie.nodes[number as usize];
            if above.is_some_and(|above| bit <= above) {
                continue;
            }
            let sides = if number == trie.header { 1 } else { 2 };
            assert_eq!(bit == 0, number == trie.header);
            links[..sides].iter().for_each(|link| stack.push((*link, Some(bit))));
        }
        found
    }

    #[test]
    fn sorted_keys_give_the_trie_of_insertions() {
        let keys = [0u64, 1, 10, 11, 35, 36, 37, 42, 43, 64, 65, 70, 75];
        let sorted = Trie::from_sorted(7, keys.iter().map(|key| (*key, *key as i64))).unwrap();
        let mut inserted = Trie::from_sorted(7, std::iter::empty()).unwrap();
        keys.iter().for_each(|key| assert_eq!(inserted.insert(*key, *key as i64), Ok(None)));
        assert_eq!(check(&sorted), check(&inserted));
        // Formula 3.5 with links of 4 bytes: bit position, key and two links.
        assert_eq!(sorted.sizes(), Sizes { index_bytes: 13 * (4 + 8 + 2 * 4), value_bytes: 13 * 8 });
    }

    #[test]
    fn freed_nodes_are_used_again() {
        let mut trie = Trie::from_sorted(6, (0..50u32).map(|key| (u64::from(key), 0))).unwrap();
        (0..50).for_each(|key| assert_eq!(trie.remove(key), Some(0)));
        assert_eq!((trie.len(), trie.get(3)), (0, None));
        (0..50).for_each(|key| assert_eq!(trie.insert(49 - key, 1i64), Ok(None)));
        assert_eq!((check(&trie).len(), trie.nodes.len()), (50, 50));
    }

    #[test]
    fn more_nodes_than_links_can_name_are_refused() {
        assert_eq!(check_size(NODES_MAX), Ok(()));
        assert!(check_size(NODES_MAX + 1).unwrap_err().to_string().contains("at most 4294967295 cells"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn any_sequence_equals_a_map(start in prop::collection::btree_map(0u64..256, -9i64..9, 0..40),
                                     steps in prop::collection::vec((any::<bool>(), 0u64..256, -9i64..9), 0..120)) {
            let mut expected: BTreeMap<u64, i64> = start.clone();
            let mut trie = Trie::from_sorted(8, start.into_iter().collect::<Vec<_>>().into_iter()).unwrap();
            check(&trie);
            for (insert, key, value) in steps {
                if insert {
                    prop_assert_eq!(trie.insert(key, value), Ok(expected.insert(key, value)));
                } else {
                    prop_assert_eq!(trie.remove(key), expected.remove(&key));
                }
                prop_assert_eq!(trie.get(key), expected.get(&key).copied());
                prop_assert_eq!(check(&trie), expected.iter().map(|(key, value)| (*key, *value)).collect::<Vec<_>>());
            }
            for key in 0..256 {
                prop_assert_eq!(trie.get(key), expected.get(&key).copied());
            }
        }
    }
}
