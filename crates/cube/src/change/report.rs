//! The report of a text of changes.

use crate::build::DefaultMove;
use crate::model::TwoPaths;

/// The report of a text of changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeReport {
    /// Number of statements.
    pub changes: u64,
    /// Facts kept aside, by the element that is gone.
    pub facts_aside: Vec<FactsAside>,
    /// Texts kept aside.
    pub texts_aside: u64,
    /// Names of other cubes of the catalog that lost the removed elements, too.
    pub other_cubes: Vec<String>,
    /// Elements of the source that were removed, or placed otherwise below others or in the order, which a refresh
    /// undoes; none without a definition.
    pub of_source: Vec<SourceElements>,
    /// Labels that the definition or its source gives, as `size of A`, which a refresh sets again.
    pub labels_of_source: Vec<SourceElements>,
    /// Elements that lie below nothing, as changes took edges of the source away.
    pub nowhere: Vec<SourceElements>,
    /// Edges of the source that were taken away, as `child from parent`; refreshes and loads leave them out. None
    /// without a definition.
    pub unlinked: Vec<SourceElements>,
    /// Dimensions whose default element is gone.
    pub defaults: Vec<DefaultMove>,
    /// Dimensions whose default element stayed, though the rule gives another one.
    pub defaults_kept: Vec<DefaultMove>,
    /// Base elements that lie below one element over two paths, of dimensions that changed.
    pub two_paths: Vec<TwoPaths>,
    /// Names that stand for one of several elements of a level.
    pub warnings: Vec<String>,
    /// True if an export has no place for a change: captions, alternative names, attributes and default elements of a
    /// cube that was imported from a Palo database.
    pub is_not_exported: bool,
}

impl ChangeReport {
    /// Adds the report of removing the same elements from another cube of the catalog.
    pub fn add_other(&mut self, cube: &str, other: ChangeReport) {
        self.other_cubes.push(cube.to_owned());
        self.texts_aside += other.texts_aside;
        for more in other.facts_aside {
            let is_same = |held: &&mut FactsAside| held.dimension == more.dimension && held.element == more.element;
            match self.facts_aside.iter_mut().find(is_same) {
                Some(held) => held.facts += more.facts,
                None => self.facts_aside.push(more),
            }
        }
    }
}

/// Facts of an element that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactsAside {
    /// The dimension.
    pub dimension: String,
    /// The element.
    pub element: String,
    /// Filled base cells.
    pub facts: u64,
}

/// Elements of the source in one dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceElements {
    /// The dimension.
    pub dimension: String,
    /// Their names.
    pub names: Vec<String>,
}
