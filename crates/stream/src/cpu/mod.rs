//! H-trees on one core: what a machine without a device uses, and what the device is compared with.

mod build;
mod query;

use std::sync::Arc;

use crate::error::{Result, StreamError};
use crate::query::{Answers, Condition, Query, Rows, SubCube, bounds};
use crate::schema::Schema;
use crate::tree::Tree;
use crate::tuples::Tuples;
use build::Source;

/// An H-tree in host memory; cheap to clone. A clone is a version: changes of the other leave it as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuTree {
    schema: Arc<Schema>,
    tree: Arc<Tree>,
}

impl CpuTree {
    /// The tree of some tuples: a sort, then one pass over the sorted rows that appends nodes to all levels.
    ///
    /// # Errors
    /// A sum that leaves 64 bits; more nodes than 32 bits number.
    pub fn build(schema: &Arc<Schema>, tuples: &Tuples) -> Result<CpuTree> {
        let source = Source::of_tuples(schema, tuples).sorted();
        let order: Vec<u32> = source.rows().collect();
        Ok(CpuTree { schema: schema.clone(), tree: Arc::new(source.assembled(schema.measures(), &order)?) })
    }

    /// Adds a batch: its sorted rows are merged with the leaves. A failure leaves the tree as it was.
    ///
    /// # Errors
    /// As [`CpuTree::build`].
    pub fn insert(&mut self, tuples: &Tuples) -> Result<()> {
        let source = Source::of_leaves(&self.tree, &self.schema);
        let rows = source.rows().count() + tuples.len();
        if u32::try_from(rows).is_err() {
            return Err(StreamError::TooMany { count: rows as u64, what: "rows" });
        }
        let (source, order) = source.merged(Source::of_tuples(&self.schema, tuples));
        self.tree = Arc::new(source.assembled(self.schema.measures(), &order)?);
        Ok(())
    }

    /// Removes all tuples that meet a condition a dimension, in the schema's order: those before a time, for example.
    ///
    /// # Errors
    /// More or fewer conditions than dimensions.
    pub fn remove(&mut self, conditions: &[Condition]) -> Result<()> {
        let bounds = bounds(&self.schema, 0, conditions)?;
        let source = Source::of_leaves(&self.tree, &self.schema);
        let order: Vec<u32> = source.rows().filter(|row| !source.meets(*row, &bounds)).collect();
        self.tree = Arc::new(source.assembled(self.schema.measures(), &order)?);
        Ok(())
    }

    /// The cells of some queries, on the popular path or off it.
    ///
    /// # Errors
    /// More or fewer conditions than dimensions; a sum that leaves 64 bits.
    pub fn answer(&self, queries: &[Query]) -> Result<Answers> {
        query::answer(&self.schema, &self.tree, queries)
    }

    /// The cells of a sub-cube.
    ///
    /// # Errors
    /// More or fewer conditions than dimensions; an inquired dimension that is not there, or twice; a sum that leaves
    /// 64 bits.
    pub fn sub_cube(&self, asked: &SubCube) -> Result<Rows> {
        query::sub_cube(&self.schema, &self.tree, asked)
    }

    /// Dimensions and measures.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The arrays.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }
}
