//! The report of a build, and the rows that it kept aside.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::model::TwoPaths;

/// The report of a build.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildReport {
    /// Rows of the facts.
    pub rows: u64,
    /// Rows that are part of a cell.
    pub rows_loaded: u64,
    /// Rows without a value of any measure; they make no cell.
    pub rows_empty: u64,
    /// Rows kept aside.
    pub rows_aside: u64,
    /// Rows that count for the element that `unknown` names, by dimension; dimensions without such rows are left out.
    pub rows_renamed: Vec<(String, u64)>,
    /// Rows that name elements in another case: those of the facts by dimension, and those of tables whose parents are.
    pub other_case: Vec<OtherCase>,
    /// Doubles that were rounded to the scale of a measure of decimals, by measure; measures without any are left out.
    pub values_rounded: Vec<(String, u64)>,
    /// Filled base cells: rows of one cell were folded.
    pub cells: u64,
    /// Elements added by `unknown`; of a refresh, all new elements. Dimensions without any are left out.
    pub added: Vec<NamedElements>,
    /// Elements that a refresh no longer found in the source.
    pub removed: Vec<NamedElements>,
    /// Elements that a refresh placed below other parents, or with other weights.
    pub moved: Vec<MovedElement>,
    /// Dimensions for which a refresh or a load found another default element.
    pub defaults: Vec<DefaultMove>,
    /// Dimensions whose default element stayed, though the rule gives another one.
    pub defaults_kept: Vec<DefaultMove>,
    /// Edges of the source that a refresh or a load left out, since changes have taken them away, as `child from
    /// parent`. Dimensions without any are left out.
    pub unlinked: Vec<NamedElements>,
    /// Elements of levels that have another name than before a refresh or a load.
    pub renamed: Vec<RenamedElement>,
    /// Alternative names of the source that a refresh left to elements made by hand.
    pub taken: Vec<TakenName>,
    /// Names that changes gave elements, and that a refresh left to other elements of the source.
    pub given: Vec<GivenName>,
    /// Elements that were made by hand, and that the source has now.
    pub adopted: Vec<NamedElements>,
    /// Elements that are gone, and at which something was made by hand, which comes back with them.
    pub away: Vec<NamedElements>,
    /// What was made by hand and is dropped: by a load elements, and other things as `name X of A`; by a refresh what
    /// the source does not allow now, as `X below Y, where facts lie`.
    pub dropped: Vec<NamedElements>,
    /// Elements that lie below nothing, as edges of the source to their parents stay away.
    pub nowhere: Vec<NamedElements>,
    /// Names of the source's elements that differ in case alone, as `true and TRUE`. Dimensions without any are left
    /// out.
    pub alike: Vec<NamedElements>,
    /// Elements whose name the source writes in another case than before a refresh or a load.
    pub respelled: Vec<RenamedElement>,
    /// Base elements that a refresh placed before another one that was before them, as `Jan before Feb`: the first of
    /// each dimension. Dimensions without any are left out.
    pub reordered: Vec<NamedElements>,
    /// Base elements that lie below one element over two paths; dimensions without any are left out.
    pub two_paths: Vec<TwoPaths>,
    /// Texts of cells whose elements are gone.
    pub texts_lost: u64,
}

impl BuildReport {
    /// With the counts of rows and cells of another report.
    pub(super) fn with_rows(self, of_rows: BuildReport) -> BuildReport {
        let BuildReport { rows, rows_loaded, rows_empty, rows_aside, rows_renamed, values_rounded, cells, .. } =
            of_rows;
        let other_case = of_rows.other_case.into_iter().chain(self.other_case).collect();
        BuildReport {
            rows,
            rows_loaded,
            rows_empty,
            rows_aside,
            rows_renamed,
            other_case,
            values_rounded,
            cells,
            ..self
        }
    }
}

/// A dimension whose default element is another one than before, by the rule of
/// [`crate::model::Dimension::default_element`] or by its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultMove {
    /// The dimension.
    pub dimension: String,
    /// The default element before.
    pub before: String,
    /// The default element now.
    pub after: String,
}

/// An element that has another name than before: the source writes its name in another case, or values of levels give
/// it another one (its value alone, or more of its path where elements share the value). The former name still finds it
/// where no other element has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenamedElement {
    /// The dimension.
    pub dimension: String,
    /// Its name before.
    pub before: String,
    /// Its name now.
    pub after: String,
}

/// An alternative name that the source gives an element, and an element made by hand has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenName {
    /// The dimension.
    pub dimension: String,
    /// The name.
    pub name: String,
    /// The element of the source. Its rows find it by the name, queries do not.
    pub element: String,
}

/// A name that a change gave an element, and that the source has for another one. The element gets it again once it is
/// free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenName {
    /// The dimension.
    pub dimension: String,
    /// The name.
    pub name: String,
    /// The element that had it.
    pub element: String,
}

/// Rows that name elements of a dimension in another case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherCase {
    /// The dimension.
    pub dimension: String,
    /// Its table, whose rows name parents; nothing for rows of the facts.
    pub table: Option<String>,
    /// Number of the rows.
    pub rows: u64,
    /// What they name, each once, as `berlin is Berlin`.
    pub names: Vec<String>,
}

impl OtherCase {
    /// The rows, if there are any.
    pub(super) fn of(dimension: &str, table: Option<&str>, names: Vec<String>, rows: u64) -> Option<OtherCase> {
        let (dimension, table) = (dimension.to_owned(), table.map(str::to_owned));
        (rows > 0).then_some(OtherCase { dimension, table, rows, names })
    }
}

/// Elements of a dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedElements {
    /// The dimension.
    pub dimension: String,
    /// Their names.
    pub names: Vec<String>,
}

impl NamedElements {
    /// The elements of these names, if there are any.
    pub(super) fn of(dimension: &str, names: Vec<String>) -> Option<NamedElements> {
        (!names.is_empty()).then(|| NamedElements { dimension: dimension.to_owned(), names })
    }
}

/// An element that has other parents than before a refresh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedElement {
    /// The dimension.
    pub dimension: String,
    /// The element.
    pub element: String,
    /// Its parents before, in their order; with weights other than 1 as `parent × weight`.
    pub before: Vec<String>,
    /// Its parents now.
    pub after: Vec<String>,
}

/// Rows of the facts that were kept aside: the columns that the cube reads, and the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Aside {
    /// Columns of the batches; the last, of texts, is the reason.
    pub schema: SchemaRef,
    /// The rows in the order of the facts.
    pub batches: Vec<RecordBatch>,
}

impl Aside {
    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.batches.iter().map(|batch| batch.num_rows() as u64).sum()
    }
}
