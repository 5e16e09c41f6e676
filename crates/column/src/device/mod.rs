//! Columns on the device: layouts of segments, readers for kernels, profiles, encoders.

mod choice;
mod encode;
mod kernels;
mod profile;
mod reader;
mod relation;
mod remap;
mod segment;
mod texts;
mod transcode;

pub(crate) use choice::ValueFacts;
pub(crate) use encode::{encode_best, encode_column};
pub use kernels::{Constant, PLAIN_LIBRARY, View, decoding_library};
pub(crate) use profile::profile;
pub use reader::{ColumnLayout, ColumnReader, GROUP_SLOTS, LINE_BYTES, TILE_SLOTS};
pub use relation::Relation;
pub(crate) use remap::remap_codes;
pub(crate) use segment::{Encoded, Lookup, Room};
pub use segment::{ResidentColumn, Segment};
pub use texts::program_of_texts;
pub(crate) use transcode::{compile_all, distinct, encode_copies, has_encoders, request_better, request_for_load};
pub use transcode::{programs_of_first_loads, programs_of_plain_loads};
