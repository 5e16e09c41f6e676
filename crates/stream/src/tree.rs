//! The arrays of an H-tree, as the paper lays them out (section 4).

/// A level: a node for each distinct beginning of tuples, in ascending order. Nodes are numbered within their level.
///
/// `parents[i]` is the node above; children are `leftmost_children[i] .. + child_counts[i]` of the next level, whose
/// keys ascend; leaves have none, and the first is 0. `side_links` has the nodes of the level by key, and within a key
/// in ascending order: the nodes of a header entry lie side by side, where the paper's sequential form has a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Level {
    /// Attributes of the level's dimension; 0 for the root.
    pub keys: Vec<u32>,
    /// Nodes one level up; 0 for the root.
    pub parents: Vec<u32>,
    /// First children.
    pub leftmost_children: Vec<u32>,
    /// Numbers of children.
    pub child_counts: Vec<u32>,
    /// All nodes by key.
    pub side_links: Vec<u32>,
    /// A column a measure.
    pub measures: Vec<Vec<i64>>,
    /// The distinct keys.
    pub header: Header,
}

/// The header table of a level: its distinct keys ascending, and where the nodes of each lie among the side links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// Distinct keys.
    pub keys: Vec<u32>,
    /// Place of the first node of a key in the side links.
    pub first: Vec<u32>,
    /// Nodes of a key.
    pub counts: Vec<u32>,
}

/// An H-tree: the root's level, then a level for each dimension of the path. An empty tree has no nodes, the root
/// included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// The levels.
    pub levels: Vec<Level>,
}

impl Tree {
    /// Nodes of all levels.
    pub fn nodes(&self) -> usize {
        self.levels.iter().map(|level| level.keys.len()).sum()
    }

    /// Distinct tuples.
    pub fn leaves(&self) -> usize {
        self.levels.last().map_or(0, |level| level.keys.len())
    }
}
