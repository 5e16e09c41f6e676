//! The suite `primitives` as a library: the programs `kbench` and `warpcube` run it.
//!
//! It knows no SQL and no command beside its own arguments ([`prims::PrimitiveArgs`]). A program opens the device,
//! follows the run ([`prims::Follower`]) and writes the report.

pub mod prims;
pub mod report;
