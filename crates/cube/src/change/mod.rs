//! Changes of a live cube: elements, consolidations and names, by statements of text ([`crate::query::parse_changes`]).
//!
//! The statements of one text change the cube together or not at all. Facts and texts at elements that go are kept
//! aside, under the names that their elements had before. A [`crate::build::refresh()`] keeps what was made by hand and
//! takes all else from the source again; the report names elements for which that undoes a change.

mod aside;
mod report;
mod statement;

use arrow::error::ArrowError;

pub use report::{ChangeReport, FactsAside, SourceElements};

use self::statement::Changing;
use crate::query::{QueryError, parse_changes};
use crate::store::StoredCube;

/// An error of a change.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The text is wrong, or the cube refuses the change.
    #[error(transparent)]
    Text(#[from] QueryError),
    /// Rows cannot be kept aside.
    #[error("keeping facts aside failed: {0}")]
    Arrow(#[from] ArrowError),
}

/// The cube after the changes of a text, and what they did.
///
/// # Errors
/// [`ChangeError::Text`] with the place of the text: text that the grammar does not have, names that are unknown, taken
/// or ambiguous, edges that would make a cycle or stand twice, keys that grow too wide.
pub fn change(cube: &StoredCube, text: &str) -> Result<(StoredCube, ChangeReport), ChangeError> {
    let mut changing = Changing::new(cube, text);
    for statement in parse_changes(text)? {
        changing.apply(&statement)?;
    }
    changing.end_renames()?;
    Ok(changing.finish()?)
}
