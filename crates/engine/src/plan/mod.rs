//! Decisions, before any code is written: how keys are packed, tables laid out, steps ordered, a top-k found.
//!
//! A decision is data. Facts it rests on are proven ([`crate::facts`]) or estimated ([`estimate`]); estimates order
//! work and never change a result. [`explain`] says in words what was decided.

pub(crate) mod bytes;
pub(crate) mod dependencies;
pub(crate) mod derived;
pub(crate) mod estimate;
pub(crate) mod explain;
pub(crate) mod float_limbs;
pub(crate) mod keys;
pub(crate) mod listed;
pub(crate) mod order;
pub(crate) mod table;
pub(crate) mod topk_form;
pub(crate) mod topk_rank;
pub(crate) mod union;
