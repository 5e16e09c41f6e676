//! A cube as a folder on disk, opened in place and replaced as a whole.
//!
//! ```text
//! cube.json               manifest: version, generation, statistics, the files of the generation
//! lock                    locked by the process that changes the cube, with its number and time
//! model-7.json            the model
//! facts-7.warpcols        keys, values, validity and counts: a column file of `warpcube_column`; one a segment
//! removed-7-0.warpcols    the cells of a segment that later ones replaced or removed, if there are any
//! index-7-0.warpcols      an array of the storage scheme whose entries are no cells, in a column file; none with BESS
//! definition-7.yaml       the definition as given, if there is one
//! texts-7.arrow           text cells, if there are any: an Arrow stream
//! aside-7-0.arrow         rows kept aside: an Arrow stream for each run of batches of one schema
//! origin-7.json           what an import keeps beside the model, if the cube was imported
//! ```
//!
//! Facts lie in segments: a base, in the storage scheme, and one of keys for each later generation that changed few
//! cells. Segments lie in pages of [`PAGE_ROWS`] cells. Keys are delta- and bit-packed, decimals and counts are packed
//! by a frame of reference, doubles are packed if they are decimals; each column takes the encoding with the fewest
//! bytes, plain values included. A checksum covers the directory of the facts and every page of every column; the
//! manifest has its own and those of the other files.
//!
//! Numbers in names are the generation that wrote the file. A generation has files of former ones where their content
//! is the same: a change that moves no facts writes a model and a manifest (`replace`).
//!
//! Invariants: files are never changed after a manifest names them, and stay as long as it does. The manifest is
//! replaced by a rename after all files of its generation are on disk, so that every reader sees one generation whole.
//! A reader takes no lock; if the files of its manifest are gone, it reads the manifest of the next generation. One
//! process at a time holds the lock. Cubes of one folder are replaced together by a record beside them (`together`).
//! Lengths are compared with the file before memory is allocated.

mod arrow_file;
pub mod checked;
mod cube;
mod error;
mod facts_file;
mod folder;
mod holder;
mod index;
mod lock;
mod manifest;
mod open;
mod pages;
mod palo_origin;
mod record;
mod replace;
mod sizes;
mod texts;
mod together;
mod within;

pub use cube::{CubeOrigin, StoredCube, TextCell};
pub use error::{StoreError, reason};
pub use folder::{LOCK_NAME, MANIFEST_NAME, parent_of, sync_folder, write_file};
pub use holder::Holder;
pub use lock::CubeLock;
pub use manifest::{
    ColumnSummary, DimensionSummary, FactsSummary, FileEntry, MANIFEST_VERSION, Manifest, Role, SCHEME_VERSION,
    SegmentSummary,
};
pub use open::{info, open, open_with_manifest};
pub use pages::PAGE_ROWS;
pub use palo_origin::{CellLayout, DimensionOrigin, ElementOrigin, Field, LineEnd, PaloOrigin};
pub use record::RECORD_NAME;
pub use replace::{Step, check_new, create, create_in_steps, drawn_identity};
pub use sizes::{SchemeSize, chosen, scheme_sizes};
pub use together::replace_together_in_steps;
pub use within::check_outside;
