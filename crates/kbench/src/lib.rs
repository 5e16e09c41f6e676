//! The suites `primitives`, `cube` and `schemes` as a library: `kbench` and `warpcube bench` run them.
//!
//! It knows no SQL and no command beside its own arguments ([`prims::PrimitiveArgs`], [`cube::CubeArgs`],
//! [`schemes::SchemeArgs`]). A program opens the device, follows the run ([`prims::Follower`]) and writes the report.

pub mod cube;
pub mod prims;
pub mod report;
pub mod schemes;
