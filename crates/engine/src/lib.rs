//! What a query *does*: fragments of scans, filters, joins and aggregations become fused kernels, are run over resident
//! columns, and come back as Arrow batches.
//!
//! The engine knows nothing of SQL or DataFusion. What must hold: a fragment gives the rows the CPU plan gives; device
//! memory is reserved before the first launch; no device pointer leaves it.

mod aggregate;
mod arena;
mod bind;
mod binding;
mod codegen;
mod dictionaries;
mod error;
mod estimate;
mod explain;
mod float_limbs;
mod float_sum;
mod ir;
mod keys;
mod launch_group;
mod lookup;
mod order;
mod predict;
mod read;
mod recorded;
mod result;
mod run;
mod table;
mod topk;
mod tuning;

pub use binding::BindingCache;
pub use error::{EngineError, NotCompiled, Result};
pub use float_sum::FloatSum;
pub use ir::{
    AggregateCall, AggregateKind, BinaryOp, DatePart, DictionaryFunction, Expr, Fragment, FragmentTable, JoinKind,
    Literal, OrderKey, Overflow, Pipeline, Probe, Sink, Step, TopK, Ty, UnaryOp,
};
pub use predict::{PredictedPipeline, Prediction, TableFacts, in_bytes};
pub use run::{Engine, LaunchReport, RunOptions, RunReport};
pub use tuning::Tuning;
pub use warpcube_gpu::prims::topk::Algorithm as TopKAlgorithm;
