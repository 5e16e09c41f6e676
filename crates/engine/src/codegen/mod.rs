//! From plans of pipelines to kernel source. Everything is decided by the plan ([`crate::plan::pipeline`]); here it is
//! written.
//!
//! [`params`] collects the members of a kernel's parameter struct, [`expr`] turns expressions into statements
//! ([`strings`] where dictionaries meet, [`integers`] where numbers may overflow, [`keys`] where tuples are packed),
//! [`aggregate`] has the cells that rows add to, [`launch_group`] the kernels that run pipelines, [`pipeline`] writes
//! the kernel around them ([`group_values`] where it scans the groups of another): [`steps`] its loops, [`vectors`]
//! the values of slots, [`compare`] tests of packed values, [`shared_tables`] what it keeps in shared memory,
//! [`zones`] what it need not look at, [`frame`] what a sink does before and after, [`runs`] what it does a run of
//! rows at a time, [`stages`] what it does with several matches of a row, [`stops`] where it stops without room and
//! goes on, [`result_rows`] rows as a result, [`computed`] what is computed of groups, [`list`] rows for another
//! pipeline, [`topk`] the kernels of a top-k beside its scan, [`windows`] those of windows behind a sort, [`library`]
//! what all of these call, [`memory`] where all that lies.
//! `warpcube_column::ColumnReader` has the text that reads columns.

mod aggregate;
mod build;
mod compare;
pub(crate) mod computed;
mod dense;
mod ends;
pub(crate) mod expr;
pub(crate) mod filters;
mod floats;
mod frame;
mod group_values;
mod integers;
mod keys;
pub(crate) mod launch_group;
pub(crate) mod library;
mod list;
pub(crate) mod memory;
pub(crate) mod params;
mod partials;
pub(crate) mod pipeline;
mod rank_places;
mod result_rows;
mod row_kernel;
mod rows;
mod runs;
mod shared_tables;
pub(crate) mod sink;
mod stages;
mod steps;
pub(crate) mod stop_memory;
mod stops;
mod strings;
mod tables;
pub(crate) mod topk;
mod vectors;
mod window_runs;
pub(crate) mod windows;
mod zones;
