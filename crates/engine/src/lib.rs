//! What a query *does*: fragments of scans, filters, joins and aggregations become fused kernels, are run over resident
//! columns, and come back as Arrow batches.
//!
//! The engine knows nothing of SQL or DataFusion. What must hold: a fragment gives the rows the CPU plan gives; device
//! memory is reserved before the first launch; no device pointer leaves it.

mod arena;
mod codegen;
mod dictionaries;
mod error;
mod exec;
mod facts;
mod float_sum;
mod format;
mod ir;
mod lookup;
mod plan;
mod result;
mod text_match;
mod tuning;
mod vector;

pub use error::{EngineError, NotCompiled, Result};
pub use exec::binding::{BindingCache, BindingOrigin};
pub use exec::engine::Engine;
pub use exec::predict::{PredictedPipeline, PredictedStep, Prediction, Rows, TableFacts};
pub use exec::report::{LaunchReport, RunOptions, RunReport};
pub use float_sum::FloatSum;
pub use format::in_bytes;
pub use ir::{
    AggregateCall, AggregateKind, BinaryOp, DatePart, DictionaryFunction, Expr, FirstOfPartitions, Fragment,
    FragmentTable, Frame, FrameBound, JoinKind, Literal, OrderKey, Overflow, Pipeline, Probe, Sink, Source, Step, TopK,
    Ty, UnaryOp, WindowCall, WindowFunction,
};
pub use text_match::{LikePattern, TextMatch};
pub use tuning::Tuning;
pub use warpcube_gpu::prims::topk::Algorithm as TopKAlgorithm;
