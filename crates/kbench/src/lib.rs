//! The suites `primitives` and `cube` as a library: the programs `kbench` and `warpcube` run the first, `kbench` both.
//!
//! It knows no SQL and no command beside its own arguments ([`prims::PrimitiveArgs`], [`cube::CubeArgs`]). A program
//! opens the device, follows the run ([`prims::Follower`]) and writes the report.

pub mod cube;
pub mod prims;
pub mod report;
