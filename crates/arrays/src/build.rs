//! The construction of each storage scheme.

use super::{Cells, Limits, Result, Scheme, Storage, Value};
use super::{bess, bxcrs, coordinate, hybrid, offset_value, ptcs, xccs, xcrs};

impl Scheme {
    /// Builds the scheme over `cells`. An error gives the size of what exceeds a limit of the scheme.
    pub fn build<V: Value>(self, cells: &Cells<V>, limits: &Limits) -> Result<Box<dyn Storage<V>>> {
        match self {
            Self::Coordinate => Ok(coordinate::build(cells)),
            Self::OffsetValue => offset_value::build(cells),
            Self::Bess => bess::build(cells),
            Self::Xcrs => xcrs::build(cells, limits),
            Self::Xccs => xccs::build(cells, limits),
            Self::Bxcrs => bxcrs::build(cells, limits),
            Self::Hybrid { r } => hybrid::build(cells, r, limits),
            Self::Ptcs => ptcs::build(cells),
        }
    }
}

/// The array in another scheme, built from its cells.
pub fn convert<V: Value>(array: &dyn Storage<V>, scheme: Scheme, limits: &Limits) -> Result<Box<dyn Storage<V>>> {
    scheme.build(&array.cells(), limits)
}
