//! Warpcube as a library: open a [`Session`], give it SQL, take Arrow batches.
//!
//! ```
//! use warpcube::{Session, SessionOptions};
//!
//! # let runtime = tokio::runtime::Runtime::new().unwrap();
//! # runtime.block_on(async {
//! let session = Session::new(SessionOptions::new().with("warpcube.device", "cpu"))?;
//! let batches = session.collect("SELECT 1 + 1 AS two").await?;
//! assert_eq!(batches[0].num_rows(), 1);
//! # Ok::<(), warpcube::SqlError>(())
//! # }).unwrap();
//! ```
//!
//! A session opens its GPU when a statement first uses it, which takes some tenths of a second. A program that goes on
//! to run statements calls [`Session::open_device_in_background`] at its first idle moment, as the shell does; before
//! it ends it waits for that by [`DeviceSlot::close`] of [`Session::device`].

pub use warpcube_sql::{
    Assignment, Budget, Cancel, DeviceChoice, DeviceSlot, Execution, FragmentReport, Origin, Place, Placement,
    Progress, Result, Session, SessionOptions, Settings, SqlError, StatementReport, Summary,
};
