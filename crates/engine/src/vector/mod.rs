//! Fragments over columns in host memory, run by the threads of the CPU.
//!
//! The second way to run what is planned for a device ([`crate::plan`]): vectors of 1,024 rows pass the steps of a
//! pipeline with a selection, as in MonetDB/X100 (Boncz, Zukowski and Nes, "MonetDB/X100: Hyper-Pipelining Query
//! Execution", CIDR 2005). Columns are decoded a vector at a time where they lie. Threads take morsels of a table
//! (Leis, Boncz, Kemper and Neumann, "Morsel-driven parallelism", SIGMOD 2014), each with a sink of its own, which are
//! merged in the end. What is not done here is refused, and runs elsewhere.
//!
//! [`plan`] makes a plan of programs ([`program`], [`evaluate`], [`wide`], [`calendar`]), steps and [`sinks`], [`scan`]
//! runs a pipeline ([`probes`], [`read`]) over the registers of a vector ([`values`]), whose rows come to [`tables`],
//! [`groups`], [`rows`] or the [`first`] rows of an [`order`] with [`windows`]; [`run`] makes a batch of them.

mod calendar;
mod evaluate;
mod first;
mod groups;
mod keys;
mod limits;
mod order;
mod origin;
mod plan;
mod probes;
mod program;
mod read;
mod rows;
pub(crate) mod run;
mod scan;
mod sinks;
mod tables;
mod values;
mod wide;
mod windows;
