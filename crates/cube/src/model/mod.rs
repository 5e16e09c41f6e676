//! What a cube is made of: dimensions of weighted elements, measures, and the key that packs coordinates into bits.
//!
//! The model is that of a MOLAP cube (Meinke, section 2.2): a dimension is a graph of base and consolidated elements
//! whose references carry weights. A dimension changes through [`Dimension::apply`], a cube through
//! [`CubeModel::apply`]; each change is checked as a whole before anything moves. Stored models are checked again when
//! they are read.

mod absent;
mod balance;
mod build;
mod change;
mod cube;
mod dimension;
mod element;
mod exact;
mod format;
mod graph;
mod layout;
mod levels;
mod measure;
mod names;
mod stored;
mod topology;
mod two_paths;
mod weights;

pub use absent::{Above, Absent};
pub use build::{Consolidation, DimensionBuilder, ParentRow};
pub use change::{Change, Effect};
pub use cube::{CubeEffect, CubeModel, MODEL_VERSION};
pub(crate) use dimension::NameMatches;
pub use dimension::{AttributeColumn, AttributeKind, Dimension, Hierarchy};
pub use element::{Attribute, Displaced, Edge, Element, ElementId, ElementKind, Member, Unlinked};
pub(crate) use format::settled;
pub use format::{NUMBER_FORMAT, Number, NumberFormat};
pub(crate) use layout::layout_of;
pub use levels::LevelIndex;
pub use measure::{Balance, Measure, Span};
pub use names::folded;
pub use names::nearest;
pub(crate) use names::{ParentKeys, is_blank};
pub use topology::WEIGHT_MAX;
pub use two_paths::TwoPaths;
pub use weights::{BaseMap, BaseWeights};

pub use crate::facts::{Rule, SCALE_MAX, ValueType};
