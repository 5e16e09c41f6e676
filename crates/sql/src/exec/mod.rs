//! Device work in a physical plan: planner, execution node, table sources, residency statements.

mod background_load;
mod context;
mod device_exec;
mod engines;
mod explain;
mod explain_cache;
mod finish;
mod kept;
mod partial;
mod planner;
mod residency;
mod row_groups;
mod source;
mod work;

pub(crate) use background_load::{Afterwards, BackgroundLoad, BackgroundLoads};
pub(crate) use context::DeviceContext;
pub(crate) use engines::Engines;
pub(crate) use explain::FragmentRun;
pub use partial::split_aggregations;
pub(crate) use planner::DevicePlanner;
pub(crate) use residency::EngineTables;
pub(crate) use row_groups::ParquetFiles;
pub(crate) use work::PlanningState;
