//! Device work in a physical plan: planner, execution node, table sources, residency statements.

mod background_load;
mod column_files;
mod context;
mod device_exec;
mod execution_plan;
mod explain;
mod explain_cache;
mod fallback;
mod feeds;
mod finish;
mod operators;
mod order;
mod partial;
mod plan_tree;
mod planner;
mod renewed;
mod residency;
mod source;
mod split;
mod work;
mod written;

pub(crate) use background_load::Afterwards;
pub(crate) use order::SortedByDevice;
pub(crate) use planner::DevicePlanner;
pub(crate) use residency::EngineTables;
pub use split::split_aggregations;
pub(crate) use work::PlanningState;
