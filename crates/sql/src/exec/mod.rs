//! Device work in a physical plan: planner, execution node, table sources, residency statements.

mod background_load;
mod context;
mod device_exec;
mod explain;
mod explain_cache;
mod finish;
mod kept;
mod operators;
mod order;
mod partial;
mod planner;
mod renewed;
mod residency;
mod source;
mod work;
mod written;

pub(crate) use background_load::Afterwards;
pub(crate) use order::SortedByDevice;
pub use partial::split_aggregations;
pub(crate) use planner::DevicePlanner;
pub(crate) use residency::EngineTables;
pub(crate) use work::PlanningState;
