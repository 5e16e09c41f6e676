//! Decisions, before any code is written: how keys are packed, tables laid out, steps ordered, a top-k found.
//!
//! A decision is data. Facts it rests on are proven ([`crate::facts`]) or estimated ([`estimate`]); estimates order
//! work and never change a result. [`explain`] says in words what was decided.

mod blocks;
mod bounds;
pub(crate) mod bytes;
pub(crate) mod cells;
pub(crate) mod dependencies;
pub(crate) mod derived;
pub(crate) mod estimate;
pub(crate) mod explain;
pub(crate) mod float_limbs;
pub(crate) mod group_values;
mod grouping;
pub(crate) mod groups;
pub(crate) mod growth;
pub(crate) mod input;
pub(crate) mod keys;
pub(crate) mod launches;
pub(crate) mod listed;
pub(crate) mod order;
pub(crate) mod partition_bounds;
pub(crate) mod pipeline;
pub(crate) mod ready;
pub(crate) mod row_layout;
pub(crate) mod rows;
pub(crate) mod run_plan;
mod runs;
pub(crate) mod shared;
pub(crate) mod sink;
pub(crate) mod split;
mod splitting;
mod sums;
pub(crate) mod table;
mod tables;
pub(crate) mod tickets;
pub(crate) mod top;
pub(crate) mod topk_form;
pub(crate) mod topk_rank;
pub(crate) mod union;
pub(crate) mod unread;
pub(crate) mod vectors;
pub(crate) mod view;
mod weight;
pub(crate) mod windows;
