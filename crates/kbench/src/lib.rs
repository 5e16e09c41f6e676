//! The suites `primitives` and `schemes` as a library: `kbench` runs both, `warpcube` the first.
//!
//! It knows no SQL and no command beside its own arguments ([`prims::PrimitiveArgs`], [`schemes::SchemeArgs`]). A
//! program opens the device, follows the run ([`prims::Follower`]) and writes the report.

pub mod prims;
pub mod report;
pub mod schemes;
