//! What tuples of a stream cube have: dimensions, the order of these in the tree, measures.

pub use crate::error::{DIMENSIONS_MAX, MEASURES_MAX};
use crate::error::{Result, StreamError};

/// A dimension: an attribute of tuples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimension {
    /// Its name.
    pub name: String,
    /// Its attributes are below this number, 1 to 2^32.
    pub cardinality: u64,
}

impl Dimension {
    /// A dimension of a name and a cardinality.
    pub fn new(name: impl Into<String>, cardinality: u64) -> Dimension {
        Dimension { name: name.into(), cardinality }
    }

    /// Bits of its attributes, at least one.
    pub(crate) fn bits(&self) -> u32 {
        (64 - (self.cardinality - 1).leading_zeros()).max(1)
    }
}

/// What a node keeps of the tuples below it; the numbers are those of columns of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Measure {
    /// The sum of a value.
    Sum(usize),
    /// The number of tuples.
    Count,
    /// The least of a value.
    Min(usize),
    /// The largest of a value.
    Max(usize),
}

impl Measure {
    /// The column that it is made of; none for the number of tuples.
    pub fn value(self) -> Option<usize> {
        match self {
            Measure::Sum(value) | Measure::Min(value) | Measure::Max(value) => Some(value),
            Measure::Count => None,
        }
    }
}

/// The order of dimensions from the root to the leaves, which is the popular path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// By ascending cardinality, which gives the fewest nodes.
    Cardinality,
    /// The dimensions of these names.
    Named(Vec<String>),
}

/// Dimensions and measures of a stream cube.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    dimensions: Vec<Dimension>,
    values: usize,
    measures: Vec<Measure>,
    /// The dimension of each level below the root.
    path: Vec<usize>,
}

impl Schema {
    /// A cube of tuples with these dimensions and so many columns of values.
    ///
    /// # Errors
    /// A number of dimensions or measures out of range; a name twice; a cardinality out of range; a measure of a column
    /// that is not there; an order that leaves out a dimension, or names another.
    pub fn new(dimensions: Vec<Dimension>, values: usize, measures: Vec<Measure>, order: &Order) -> Result<Schema> {
        let count = dimensions.len();
        if count == 0 || count > DIMENSIONS_MAX {
            return Err(StreamError::Dimensions { count });
        }
        if measures.is_empty() || measures.len() > MEASURES_MAX {
            return Err(StreamError::Measures { count: measures.len() });
        }
        for (at, Dimension { name, cardinality }) in dimensions.iter().enumerate() {
            if dimensions[..at].iter().any(|before| before.name == *name) {
                return Err(StreamError::Twice { name: name.clone() });
            }
            if *cardinality == 0 || *cardinality > 1 << 32 {
                return Err(StreamError::Cardinality { name: name.clone(), cardinality: *cardinality });
            }
        }
        for (measure, value) in measures.iter().enumerate().filter_map(|(at, one)| Some((at, one.value()?))) {
            if value >= values {
                return Err(StreamError::MeasureValue { measure, value, values });
            }
        }
        let mut schema = Schema { dimensions, values, measures, path: Vec::new() };
        schema.path = schema.path_of(order)?;
        Ok(schema)
    }

    fn path_of(&self, order: &Order) -> Result<Vec<usize>> {
        let names = match order {
            Order::Cardinality => {
                let mut path: Vec<usize> = (0..self.dimensions.len()).collect();
                path.sort_by_key(|at| self.dimensions[*at].cardinality);
                return Ok(path);
            }
            Order::Named(names) => names,
        };
        let path = names.iter().map(|name| self.dimension(name)).collect::<Result<Vec<usize>>>()?;
        self.check_once(&path)?;
        match path.len() == self.dimensions.len() {
            true => Ok(path),
            false => Err(StreamError::Order { given: path.len(), dimensions: self.dimensions.len() }),
        }
    }

    /// Refuses a dimension twice.
    pub(crate) fn check_once(&self, dimensions: &[usize]) -> Result<()> {
        match dimensions.iter().enumerate().find(|(at, one)| dimensions[..*at].contains(one)) {
            Some((_, twice)) => Err(StreamError::Twice { name: self.dimensions[*twice].name.clone() }),
            None => Ok(()),
        }
    }

    /// The number of the dimension of a name.
    ///
    /// # Errors
    /// A name that no dimension has.
    pub fn dimension(&self, name: &str) -> Result<usize> {
        self.dimensions.iter().position(|one| one.name == name).ok_or_else(|| self.unknown(name))
    }

    /// The error of a name, or a number, that no dimension has.
    pub(crate) fn unknown(&self, name: &str) -> StreamError {
        let known: Vec<&str> = self.dimensions.iter().map(|one| one.name.as_str()).collect();
        StreamError::UnknownDimension { name: name.to_string(), known: known.join(", ") }
    }

    /// The dimensions, in the order of tuples.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// Columns of values that tuples have.
    pub fn values(&self) -> usize {
        self.values
    }

    /// The measures.
    pub fn measures(&self) -> &[Measure] {
        &self.measures
    }

    /// The dimension of each level below the root.
    pub fn path(&self) -> &[usize] {
        &self.path
    }

    /// The dimension of a level from 1 on.
    pub(crate) fn at_level(&self, level: usize) -> &Dimension {
        &self.dimensions[self.path[level - 1]]
    }

    /// Levels of a tree, the root's included.
    pub(crate) fn levels(&self) -> usize {
        self.dimensions.len() + 1
    }

    /// The schema of a tree over some dimensions alone, whose rows are nodes of a tree of this one.
    pub(crate) fn of_dimensions(&self, chosen: &[usize]) -> Schema {
        let dimensions: Vec<Dimension> = chosen.iter().map(|at| self.dimensions[*at].clone()).collect();
        let path = (0..dimensions.len()).collect();
        Schema { dimensions, values: self.values, measures: self.measures.clone(), path }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimensions(cardinalities: &[u64]) -> Vec<Dimension> {
        cardinalities.iter().enumerate().map(|(at, of)| Dimension::new(format!("d{at}"), *of)).collect()
    }

    fn refused(dimensions: Vec<Dimension>, measures: Vec<Measure>, order: &Order) -> String {
        Schema::new(dimensions, 1, measures, order).unwrap_err().to_string()
    }

    #[test]
    fn the_path_is_by_cardinality_or_named() {
        let by = |order: &Order| Schema::new(dimensions(&[9, 1, 3]), 0, vec![Measure::Count], order).unwrap();
        assert_eq!(by(&Order::Cardinality).path(), [1, 2, 0]);
        let named = ["d2", "d0", "d1"].map(String::from).to_vec();
        assert_eq!(by(&Order::Named(named)).path(), [2, 0, 1]);
        assert_eq!(by(&Order::Cardinality).dimensions().iter().map(Dimension::bits).collect::<Vec<_>>(), [4, 1, 2]);
        assert_eq!(Dimension::new("all", 1 << 32).bits(), 32);
    }

    #[test]
    fn what_no_tree_has_is_refused_by_its_name() {
        let count = || vec![Measure::Count];
        for of in [0, 32] {
            let error = refused(dimensions(&vec![2; of]), count(), &Order::Cardinality);
            assert_eq!(error, format!("a stream cube has 1 to 31 dimensions, not {of}"));
        }
        let twice = vec![Dimension::new("a", 2), Dimension::new("a", 3)];
        assert_eq!(refused(twice, count(), &Order::Cardinality), "dimension 'a' is named twice");
        assert!(refused(dimensions(&[0]), count(), &Order::Cardinality).contains("cardinality of 0"));
        assert!(refused(dimensions(&[(1 << 32) + 1]), count(), &Order::Cardinality).contains("4294967297"));
        assert!(refused(dimensions(&[2]), Vec::new(), &Order::Cardinality).ends_with("not 0"));
        assert!(refused(dimensions(&[2]), vec![Measure::Count; 9], &Order::Cardinality).ends_with("not 9"));
        let error = refused(dimensions(&[2]), vec![Measure::Count, Measure::Sum(1)], &Order::Cardinality);
        assert_eq!(error, "measure 1 is of value 1; tuples have 1 values");
        let named = |names: &[&str]| {
            let order = Order::Named(names.iter().map(|name| name.to_string()).collect());
            refused(dimensions(&[2, 3]), count(), &order)
        };
        assert_eq!(named(&["d0", "x"]), "no dimension is called 'x'; there are d0, d1");
        assert_eq!(named(&["d0", "d0"]), "dimension 'd0' is named twice");
        assert_eq!(named(&["d1"]), "the order names 1 of 2 dimensions; it has to name all");
    }
}
