//! Cubes from tables: a [`Definition`] and the rows of its queries become a model and facts.
//!
//! [`build()`] makes the dimensions one by one: from lists, from rows of a table, or from the distinct values of
//! columns of the facts, which a query of their own gives. Then one pass over the facts gives every row its coordinates
//! and values. [`refresh()`] does the same and keeps what was made by hand in the cube ([`keep`]).
//!
//! Columns of text files are text as it is written: names of elements keep their zeros, and numbers are read as the
//! types of their measures.
//!
//! What holds: names are found to the letter, else in other case where one alone is so written; names that differ in
//! case alone are two elements; NULL, empty text and blanks name no element; NULL values are empty; a row that names no
//! base element is refused, kept aside or counted elsewhere, as `unknown` says, and none is lost without a count;
//! values become decimals exactly or are refused, except doubles, which are rounded to the scale, half away from zero.
//! Nothing here knows an engine of SQL: [`Tables`] answers queries.

mod calendar;
mod consolidate;
mod dates;
mod dimension;
mod drill;
mod encode;
mod error;
mod form;
mod keep;
mod keys;
mod labels;
mod levels;
mod load;
mod measures;
mod numbers;
mod order;
mod parents;
mod pass;
mod problem;
mod refuse;
mod report;
mod resolve;
mod set_aside;
mod source;
mod spelling;
mod typed;
mod values;

use std::cell::{LazyCell, RefCell};
use std::collections::HashSet;

use arrow::array::RecordBatchReader;

pub use drill::source_rows;
pub use error::{BuildError, Refused, RefusedKeys, RefusedValues, RowPlace, TablesError};
pub use report::{
    Aside, BuildReport, DefaultMove, GivenName, MovedElement, NamedElements, OtherCase, RenamedElement, TakenName,
};

use self::dimension::{DimensionPlan, Input};
pub(crate) use self::keep::has_labels_of_table;
use self::keep::{Kept, Refreshed};
use self::measures::MeasurePlan;
use self::source::{Reading, Source};
use crate::define::{Definition, Encoding};
use crate::error::ModelError;
use crate::facts::Facts;
use crate::model::{CubeModel, Dimension, folded};
use crate::progress::Progress;

/// Runs the queries of a definition.
///
/// A query is one of these, where *source* is the definition's SQL in parentheses, or a file in single quotes:
///
///  - `SELECT * FROM source LIMIT 0`, of which the schema alone is read;
///  - `SELECT * FROM source`, for [`source_rows`];
///  - `SELECT "column", … FROM source`;
///  - `SELECT DISTINCT "column", … FROM source`;
///  - the definition's SQL, where [`Tables::is_sorted`] says so.
pub trait Tables {
    /// Batches of the rows of a query, in its order; text files that it names are read as `files` says.
    ///
    /// # Errors
    /// Whatever keeps the query from running; errors of single batches come from the reader.
    fn query(&self, sql: &str, files: &TextFiles) -> Result<Box<dyn RecordBatchReader + '_>, TablesError>;

    /// True if the rows of a query come in an order that its text asks for.
    ///
    /// # Errors
    /// Those of planning the query.
    fn is_sorted(&self, _sql: &str, _files: &TextFiles) -> Result<bool, TablesError> {
        Ok(false)
    }

    /// True if a name in place of a table means text files with delimiters.
    fn is_text(&self, _file: &str) -> bool {
        false
    }

    /// True for cubes of versions that guessed the types of text files: [`TextFiles::columns`] does not count then.
    fn guesses_types(&self) -> bool {
        false
    }
}

/// How text files of a query are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFiles {
    /// The character between values; found from the lines if absent.
    pub delimiter: Option<char>,
    /// The character around values with delimiters in them; found from the lines if absent.
    pub quote: Option<char>,
    /// Whether the first line has names of columns; found from the lines if absent.
    pub header: Option<bool>,
    /// The encoding of characters; UTF-8 if absent.
    pub encoding: Option<Encoding>,
    /// Columns that are text as it is written. The types of other columns follow from their values.
    pub columns: TextColumns,
    /// True if a query that reads no text file is refused, because the definition gives a format of text files.
    pub is_needed: bool,
}

/// Columns of text files that are text as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextColumns {
    /// All of them.
    All,
    /// Those from which columns of the query's result are made.
    Of {
        /// Columns that name elements, if the query does nothing else with the column of the file.
        keys: Vec<String>,
        /// Columns of decimals, if the query does nothing else with the column of the file.
        decimals: Vec<String>,
        /// Columns that `types` names, also where the query computes with the column of the file.
        named: Vec<String>,
    },
}

/// A cube that was built.
#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    /// Dimensions and measures.
    pub model: CubeModel,
    /// Filled base cells, in the layout of the model.
    pub facts: Facts,
    /// Rows of the facts that were kept aside.
    pub aside: Aside,
    /// The report.
    pub report: BuildReport,
}

/// Builds the cube of a definition. Runs on all cores of the current rayon pool.
///
/// # Errors
/// [`BuildError`]: queries that fail; columns that are missing or of another type; dimensions that break a rule of the
/// model; facts that are refused, each kind with its number of rows; values that do not fit; a wish to stop.
pub fn build(definition: &Definition, tables: &dyn Tables, progress: &Progress) -> Result<Built, BuildError> {
    run(definition, Basis::Nothing, tables, progress)
}

/// Builds the cube of a definition anew in the place of a cube. Dimensions of the same names keep removed edges of the
/// source, former names of levels, and default elements, unless the source has a new total.
///
/// # Errors
/// As [`build()`].
pub fn rebuild(
    definition: &Definition,
    old: &CubeModel,
    tables: &dyn Tables,
    progress: &Progress,
) -> Result<Built, BuildError> {
    run(definition, Basis::Loaded(old), tables, progress)
}

/// Builds the cube of a definition again from its tables, and keeps what was made by hand in a cube: elements that a
/// change added, with their edges; edges that a change took away; names that a change gave; captions, attributes and
/// default elements that the definition does not give. All else is the source's: its elements, their parents, weights
/// and order, and the facts.
///
/// # Errors
/// As [`build()`]; [`BuildError::OtherCube`] if the definition's dimensions or measures are not those of the cube.
pub fn refresh(
    definition: &Definition,
    old: &CubeModel,
    tables: &dyn Tables,
    progress: &Progress,
) -> Result<Built, BuildError> {
    run(definition, Basis::Refreshed(old), tables, progress)
}

/// The cube in whose place another is built.
#[derive(Clone, Copy)]
enum Basis<'a> {
    Nothing,
    Loaded(&'a CubeModel),
    Refreshed(&'a CubeModel),
}

fn run(
    definition: &Definition,
    basis: Basis<'_>,
    tables: &dyn Tables,
    progress: &Progress,
) -> Result<Built, BuildError> {
    let (text, met) = (definition.text(), RefCell::new(HashSet::new()));
    let reading = Reading { tables, progress, text: &text, met: &met };
    let mut source = Source::facts(definition, reading)?;
    let measures = MeasurePlan::all(definition, &source)?;
    let place = |name: &str| format!("dimensions.{name}");
    let plan = |(name, dimension)| {
        DimensionPlan::new(name, dimension, &definition.unknown, &source).map_err(|error| error.at(|| place(name)))
    };
    let plans = definition.dimensions.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
    source.spare(dimension::spared(&plans));
    let refreshed = if let Basis::Refreshed(old) = basis { Some(old) } else { None };
    if let Some(old) = refreshed {
        check_same(old, &plans, &measures)?;
    }
    let (mut dimensions, mut merges, mut of_dimensions) = (Vec::new(), Vec::new(), BuildReport::default());
    for (at, plan) in plans.iter().enumerate() {
        let input = Input { facts: &source, reading, old: refreshed.map(|old| &old.dimensions()[at]) };
        let found = plan.dimension(input).map_err(|error| error.at(|| place(plan.name)))?;
        let (dimension, added, other_case) = found;
        of_dimensions.other_case.extend(other_case);
        let alike = dimension.all_alike().into_iter().map(|names| names.join(" and ")).collect();
        of_dimensions.alike.extend(NamedElements::of(plan.name, alike));
        let old = match basis {
            Basis::Nothing => None,
            Basis::Refreshed(old) => Some(&old.dimensions()[at]),
            Basis::Loaded(old) => old.dimension_index(plan.name).map(|at| &old.dimensions()[at]),
        };
        let (dimension, merge) = match old {
            None => (dimension, Merge::Done(Box::new(Kept::new(added)))),
            Some(old) if refreshed.is_some() => {
                let mut merge = Refreshed::new(dimension, old, plan.definition)?;
                (merge.lend()?, Merge::Begun(Box::new(merge)))
            }
            Some(old) => {
                let (dimension, kept) = keep::carried(dimension, old, plan.definition, added)?;
                (dimension, Merge::Done(Box::new(kept)))
            }
        };
        dimensions.push(dimension);
        merges.push(merge);
    }
    if let Some(name) = text.types.names().find(|name| !met.borrow().contains(&folded(name))) {
        let message = format!("no source has a column '{name}'; write types where the facts or a table stand");
        return Err(BuildError::Definition { place: "types".to_owned(), message });
    }
    let modelled = |dimensions| {
        let own = measures.iter().map(|plan| plan.measure.clone()).collect();
        CubeModel::new(&definition.cube, dimensions, own).map_err(|error| {
            let section = if matches!(error, ModelError::Measure { .. }) { "measures" } else { "dimensions" };
            BuildError::from(error).at(|| section.to_owned())
        })
    };
    let model = modelled(dimensions)?;
    let (facts, aside, report) = load::load(&model, &plans, &measures, &definition.unknown, &source, progress)?;
    // Edges made by hand may lie below base elements without facts, so that they are added behind the pass.
    let mut dimensions = Vec::new();
    for (at, (dimension, merge)) in model.into_dimensions().into_iter().zip(merges).enumerate() {
        let filled = LazyCell::new(|| facts.coordinates(at));
        let is_filled = |base: u32| filled.get(base as usize).copied().unwrap_or(false);
        let (dimension, kept) = match merge {
            Merge::Done(kept) => (dimension, *kept),
            Merge::Begun(merge) => merge.finished(dimension, &is_filled)?,
        };
        kept.reported(&dimension, &mut of_dimensions);
        if let Some(old) = refreshed {
            let reordered = order::reordered(&old.dimensions()[at], &dimension);
            of_dimensions.reordered.extend(NamedElements::of(dimension.name(), reordered.into_iter().collect()));
        }
        dimensions.push(dimension);
    }
    let (model, report) = (modelled(dimensions)?, of_dimensions.with_rows(report));
    Ok(Built { model, facts, aside, report })
}

/// A merge of a dimension of the source with that of the cube.
enum Merge<'a> {
    Done(Box<Kept>),
    /// Edges made by hand wait for the facts.
    Begun(Box<Refreshed<'a>>),
}

/// Refuses a definition whose dimensions or measures are not those of a cube.
fn check_same(old: &CubeModel, plans: &[DimensionPlan<'_>], measures: &[MeasurePlan]) -> Result<(), BuildError> {
    let other = |reason: String| Err(BuildError::OtherCube { reason });
    let names = |names: Vec<&str>| names.join(", ");
    let (held, wanted): (Vec<&str>, Vec<&str>) =
        (old.dimensions().iter().map(Dimension::name).collect(), plans.iter().map(|plan| plan.name).collect());
    if held != wanted {
        return other(format!("its dimensions are {}, those of the cube {}", names(wanted), names(held)));
    }
    let changed = measures.iter().map(|plan| &plan.measure).ne(old.measures());
    if changed {
        let text = |measure: &crate::model::Measure| format!("{} {} {}", measure.name, measure.rule, measure.value);
        let held: Vec<String> = old.measures().iter().map(text).collect();
        let wanted: Vec<String> = measures.iter().map(|plan| text(&plan.measure)).collect();
        let (wanted, held) = (wanted.join(", "), held.join(", "));
        return other(format!("its measures are {wanted}, those of the cube {held}, or differ in format or over"));
    }
    Ok(())
}
